// Starts `omnigraph lsp` for .gq and .pg files; all else is the server's.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const settings = workspace.getConfiguration("omnigraph");
  const [command, ...args] = settings.get("server.command");
  client = new LanguageClient(
    "omnigraph",
    "Omnigraph",
    { command, args },
    {
      documentSelector: [{ language: "gq" }, { language: "pg" }],
      initializationOptions: { schema: settings.get("schema") || null },
      synchronize: { fileEvents: workspace.createFileSystemWatcher("**/{*.pg,omnigraph.yaml}") },
    },
  );
  await client.start();
};

exports.deactivate = () => client?.stop();

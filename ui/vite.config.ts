// Builds the workbench into the Python package, each file plain and compressed, under hashed names.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const FILES = "workbench";
const OUT = "../src/omnigraph/server/workbench";

/** The style goes into the page: the first paint waits for one answer of the server instead of two. */
function inlineStyle(): Plugin {
  return {
    name: "inline-style",
    enforce: "post",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        return html.replace(/<link rel="stylesheet"[^>]*href="\.\/([^"]+)">/g, (_, name: string) => {
          const style = bundle![name];
          if (style.type !== "asset") throw new Error(`${name} is no style`);
          delete bundle![name];
          return `<style>${style.source}</style>`;
        });
      },
    },
  };
}

function compress(): Plugin {
  return {
    name: "compress",
    closeBundle() {
      for (const directory of [OUT, join(OUT, FILES)]) {
        for (const name of readdirSync(directory).filter((each) => /\.(html|js|css|svg)$/.test(each))) {
          const path = join(directory, name);
          const plain = readFileSync(path);
          const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
          writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
          writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
        }
      }
    },
  };
}

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  worker: { format: "es" },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsDir: FILES,
    assetsInlineLimit: 0,
    target: "es2022",
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  plugins: [inlineStyle(), compress()],
});

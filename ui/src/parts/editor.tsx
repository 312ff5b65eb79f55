// The query editor. Completion and mistakes come from the compiler of the server; only the colours
// are decided here. It lives in a shadow root, where its styles need no permission of the page's
// content security policy.
import { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, type Completion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, linter, lintKeymap } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { post } from "../api";
import { branch } from "../state";
import { toCharacters, toUnits } from "../text";
import type { CheckOutput, StoredQuery } from "../types";

const KEYWORDS = new Set(
  ("all and as asc by case contains delete desc distinct either else end ends_with false for having in insert is limit match not " +
    "null offset optional or order query return set shortest starts_with then top true update upsert when where").split(" "),
);

const language = StreamLanguage.define<{ isInComment: boolean }>({
  name: "gq",
  startState: () => ({ isInComment: false }),
  token(stream, state) {
    if (state.isInComment) {
      state.isInComment = !stream.skipTo("*/");
      if (state.isInComment) stream.skipToEnd();
      else stream.match("*/");
      return "comment";
    }
    if (stream.match("//")) return stream.skipToEnd(), "comment";
    if (stream.match("/*")) return (state.isInComment = true), "comment";
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^\$[a-z_]\w*/)) return "variableName";
    if (stream.match(/^@\w+/)) return "meta";
    if (stream.match(/^[A-Z]\w*/)) return "typeName";
    if (stream.match(/^\d+(\.\d+)?/)) return "number";
    if (stream.match(/^\.\s*[a-z_]\w*/)) return "propertyName";
    const word = stream.match(/^[a-z_]\w*/) as RegExpMatchArray | null;
    if (word) {
      if (KEYWORDS.has(word[0])) return "keyword";
      return stream.match(/^\s*\(/, false) ? "function" : "name";
    }
    stream.next();
    return "operator";
  },
  tokenTable: { function: tags.function(tags.variableName) },
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: tags.variableName, color: "var(--code-variable)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.meta, color: "var(--quiet)" },
]);

const looks = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--text)", backgroundColor: "var(--surface)" },
  "&.cm-focused": { outline: "none" },
  // Above the numbers of lines and the current line, which would cover an outline.
  "&.cm-focused::after": { content: '""', position: "absolute", inset: "0", border: "2px solid var(--accent)", pointerEvents: "none", zIndex: "250" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "4px" },
  ".cm-tooltip-autocomplete ul li": { padding: "2px 6px !important" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent) !important", color: "var(--on-accent) !important" },
  ".cm-completionDetail": { color: "var(--quiet)", marginLeft: "1em", fontStyle: "normal" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-diagnostic": { fontFamily: "var(--mono)", fontSize: "12px", whiteSpace: "pre-wrap" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning, .cm-lintRange-info": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)", textUnderlineOffset: "3px" },
});

const ICONS: Record<string, string> = { class: "class", type: "type", property: "property", variable: "variable", edge: "interface", function: "function", keyword: "keyword", annotation: "text" };

/** Whether a place is in no query: before, between or after them. */
function isOutside(text: string): boolean {
  const bare = text.replace(/\/\/.*|\/\*[^]*?(\*\/|$)|"(?:[^"\\]|\\.)*"?/g, "");
  return bare.split("{").length <= bare.split("}").length && !/\bquery\s+\w*[^}]*$/.test(bare);
}

/** Stored queries, where no query is being written: one that is chosen is opened, with its parameters. */
function listStored(text: string, word: string, { stored, onStored }: Props): Completion[] {
  if (!isOutside(text)) return [];
  return stored.filter((each) => each.name.startsWith(word)).map((each) => ({
    label: each.name, type: "function", detail: "stored query", info: each.description || undefined,
    apply: (editor: EditorView, _: Completion, from: number, to: number) => {
      editor.dispatch({ changes: { from, to } });
      onStored(each);
    },
  }));
}

async function complete(context: CompletionContext, props: Props): Promise<CompletionResult | null> {
  const before = context.matchBefore(/[$@]?\w+|[.:{]\s*/);
  if (!context.explicit && before === null) return null;
  const text = context.state.doc.toString();
  const word = context.matchBefore(/\w*/)!;
  const own = listStored(text.slice(0, word.from), word.text, props);
  try {
    const body = { text, offset: toCharacters(text, context.pos), branch: branch.value };
    const found = await post<{ start: number; items: { label: string; kind: string; detail: string; doc: string }[] }>("/editor/complete", body);
    return {
      from: own.length ? word.from : toUnits(text, found.start),
      options: [...found.items.map((each) => ({ label: each.label, type: ICONS[each.kind], detail: each.detail, info: each.doc || undefined })), ...own],
      validFor: /^[$@]?\w*$/,
    };
  } catch {
    return null;
  }
}

interface Props {
  /** What it begins with: from then on the editor has the text, and tells of every change. */
  text: string;
  onText: (text: string, cursor: number) => void;
  onCheck: (found: CheckOutput, text: string) => void;
  onRun: () => void;
  stored: StoredQuery[];
  onStored: (query: StoredQuery) => void;
}

export default function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const view = useRef<EditorView | null>(null);

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const check = async (editor: EditorView): Promise<Diagnostic[]> => {
      const text = editor.state.doc.toString();
      try {
        const found = await post<CheckOutput>("/editor/check", { text, branch: branch.value });
        latest.current.onCheck(found, text);
        return found.diagnostics.map((each) => ({
          from: toUnits(text, each.start),
          to: Math.max(toUnits(text, each.end), toUnits(text, each.start) + 1) <= text.length ? Math.max(toUnits(text, each.end), toUnits(text, each.start) + 1) : text.length,
          severity: each.severity,
          message: each.code ? `${each.code}: ${each.message}` : each.message,
        }));
      } catch {
        return [];
      }
    };
    const run = () => (latest.current.onRun(), true);
    view.current = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run }, { key: "Tab", run: acceptCompletion }])),
          lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(),
          language, syntaxHighlighting(colours), looks,
          autocompletion({ override: [(context) => complete(context, latest.current)], activateOnTypingDelay: 60 }),
          linter(check, { delay: 200 }),
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged || update.selectionSet) latest.current.onText(update.state.doc.toString(), update.state.selection.main.head);
          }),
          EditorView.contentAttributes.of({ "aria-label": "Query" }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);
  return <div class="editor" ref={host} />;
}

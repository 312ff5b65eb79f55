import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, catalog, get, may, post, put } from "../api";
import { typeColour } from "../colours";
import { CommitLink, CopyButton, Empty, Panel, Problem, Tabs, useLoad } from "../parts/basics";
import Editor from "../parts/editor";
import { keyOf } from "../entities";
import { Grid, PAGE_ROWS } from "../parts/grid";
import { Params, toValues } from "../parts/params";
import Picture, { type Dot, Legend, type Line } from "../parts/picture";
import { Plan, type Explained } from "../parts/plan";
import { address, at, branch, go, route, target, wrote } from "../state";
import { count, plural, show, shortId, toCharacters } from "../text";
import type { ChangeOutput, CheckOutput, EditorQuery, Picture as PictureOf, ReadOutput, Row, StoredQuery } from "../types";

const DRAFT = "omnigraph-draft";
const PAGES_KEPT = 50;
const PICTURE_ROWS = 1000;
const PICTURE_ROWS_MAX = 30_000;

function firstText(): string {
  const node = catalog.value?.nodes[0];
  if (!node) return "";
  const shown = node.properties.filter((each) => !each.is_vector && !each.is_blob).slice(0, 4);
  const variable = `$${node.name[0].toLowerCase()}`;
  return `query first() {\n    match { ${variable}: ${node.name} }\n    return { ${shown.map((each) => `${variable}.${each.name}`).join(", ")} }\n    limit 100\n}\n`;
}

function queryAt(queries: EditorQuery[], text: string, cursor: number): EditorQuery | null {
  const here = toCharacters(text, cursor);
  return [...queries].reverse().find((each) => each.start <= here) ?? queries[0] ?? null;
}

/** The first page, and those that were read last, stay. */
function forgetPages(pages: Map<number, Row[]>): void {
  for (const first of [...pages.keys()].slice(1, Math.max(1, pages.size - PAGES_KEPT))) pages.delete(first);
}

function refuseWrite(): string | null {
  if (at.value) return "A mutation changes a branch: leave the past first.";
  return may("change") ? null : "You may read here, not change.";
}

interface Result {
  columns: string[];
  total: number;
  pages: Map<number, Row[]>;
  over: object;
  body: object;
  commit?: string;
  milliseconds: number;
}

export default function Query() {
  const [text, setText] = useState(() => route.value.params.q ?? sessionStorage.getItem(DRAFT) ?? firstText());
  const [edition, setEdition] = useState(0);
  const [cursor, setCursor] = useState(0);
  const [found, setFound] = useState<(CheckOutput & { of: string }) | null>(null);
  const [given, setGiven] = useState<Record<string, string>>(() => JSON.parse(route.value.params.p ?? "{}"));
  const [stored, setStored] = useState<StoredQuery | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [changed, setChanged] = useState<ChangeOutput | null>(null);
  const [drawn, setDrawn] = useState<DrawnRows | null>(null);
  const [explained, setExplained] = useState<Explained | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isRunning, setIsRunning] = useState(false);
  const [view, setView] = useState<"result" | "plan">("result");
  const [row, setRow] = useState<Row | null>(null);
  const [saved, setSaved] = useState("");
  const [replaces, setReplaces] = useState<string | null>(null);
  const [, redraw] = useState(0);
  const stop = useRef<AbortController | null>(null);
  const catalogue = useLoad(() => get<{ queries: StoredQuery[] }>("/queries"), []);

  useEffect(() => sessionStorage.setItem(DRAFT, text), [text]);
  const seen = useRef(route.value.params.q);
  useEffect(() => {
    const { q } = route.value.params;
    if (q !== undefined && q !== seen.current) {
      setText(q);
      setEdition((before) => before + 1);
    }
    seen.current = q;
  }, [route.value.params.q]);

  const queries = found?.queries ?? [];
  const current = queryAt(queries, text, cursor);
  const params = stored ? stored.params : (current?.params ?? []);
  const isMutation = stored ? stored.mutation : (current?.mutation ?? false);
  const refusal = isMutation ? refuseWrite() : null;

  /** The query at the cursor, of the text as it is now: the last check may be of an older one. */
  async function readCurrent(): Promise<EditorQuery | null> {
    if (found?.of === text) return current;
    const fresh = await post<CheckOutput>("/editor/check", { text, branch: branch.value });
    setFound({ ...fresh, of: text });
    return queryAt(fresh.queries, text, cursor);
  }

  async function run() {
    stop.current?.abort();
    const control = (stop.current = new AbortController());
    setIsRunning(true);
    setError(null);
    setRow(null);
    setView("result");
    try {
      const chosen = stored ?? (await readCurrent());
      const values = toValues(chosen?.params ?? [], given);
      if (chosen?.mutation) await runMutation(chosen, values, control.signal);
      else await runRead(stored ? null : (chosen as EditorQuery | null), values, control.signal);
    } catch (problem) {
      if (!control.signal.aborted) setError(problem as Error);
    } finally {
      if (stop.current === control) setIsRunning(false);
    }
  }

  async function runMutation({ name }: { name: string }, values: Row, signal: AbortSignal) {
    const why = refuseWrite();
    if (why) throw new ApiError(403, { error: why });
    const body = stored ? { params: values, branch: branch.value, expect_mutation: true } : { query: text, name, params: values, branch: branch.value };
    const done = await post<ChangeOutput>(stored ? `/queries/${encodeURIComponent(stored.name)}` : "/mutate", body, signal);
    setChanged(done);
    setDrawn(null);
    const rows = done.rows ?? [];
    setResult(done.columns?.length ? { columns: done.columns, total: rows.length, pages: new Map([[0, rows]]), over: {}, body: {}, milliseconds: 0 } : null);
    await wrote();
  }

  async function runRead(chosen: EditorQuery | null, values: Row, signal: AbortSignal) {
    const started = performance.now();
    const body = stored ? { params: values } : { query: text, name: chosen?.name, params: values, rows_max: PAGE_ROWS };
    const path = stored ? `/queries/${encodeURIComponent(stored.name)}` : "/query";
    const done = await post<ReadOutput>(path, { ...body, ...target.value }, signal);
    const over = done.graph_commit_id ? { snapshot: done.graph_commit_id } : target.value;
    const pages = new Map<number, Row[]>();
    for (let first = 0; first < Math.max(done.rows.length, 1); first += PAGE_ROWS) pages.set(first, done.rows.slice(first, first + PAGE_ROWS));
    setChanged(null);
    setResult({ columns: done.columns ?? [], total: done.row_count, pages, over, body, commit: done.graph_commit_id, milliseconds: performance.now() - started });
    setDrawn(null);
    if (chosen?.picture) await draw(chosen.picture, values, over, signal);
  }

  async function draw(picture: PictureOf, values: Row, over: object, signal?: AbortSignal, most = PICTURE_ROWS) {
    const done = await post<ReadOutput>("/query", { query: picture.query, params: values, rows_max: most, ...over }, signal);
    const more = done.rows.length < Math.min(done.row_count, PICTURE_ROWS_MAX) ? () => draw(picture, values, over, undefined, PICTURE_ROWS_MAX).catch(setError) : null;
    setDrawn({ picture, rows: done.rows, total: done.row_count, more });
  }

  async function need(first: number) {
    if (!result || result.pages.has(first)) return;
    result.pages.set(first, []);
    try {
      const done = await post<ReadOutput>("/query", { ...result.body, ...result.over, rows_skip: first, rows_max: PAGE_ROWS });
      result.pages.set(first, done.rows);
      forgetPages(result.pages);
    } catch (problem) {
      result.pages.delete(first);
      setError(problem as Error);
    }
    redraw((before) => before + 1);
  }

  async function explain() {
    setView("plan");
    setError(null);
    try {
      const chosen = await readCurrent();
      const body = { query: text, name: chosen?.name, params: toValues(chosen?.params ?? [], given), branch: branch.value, analyze: true };
      setExplained(await post<Explained>("/explain", body));
    } catch (problem) {
      setExplained(null);
      setError(problem as Error);
    }
  }

  /** Ask twice before one that is there is replaced. */
  async function store() {
    setError(null);
    setSaved("");
    try {
      const chosen = await readCurrent();
      if (!chosen) throw new ApiError(400, { error: "There is no query without mistakes at the cursor: nothing was stored." });
      await put(`/queries/${encodeURIComponent(chosen.name)}`, { query: text, replace: replaces === chosen.name });
      setSaved(`Stored as ${chosen.name}.`);
      setReplaces(null);
      catalogue.reload();
    } catch (problem) {
      setError(problem as Error);
      setReplaces(problem instanceof ApiError && problem.status === 409 && catalogue.data?.queries.some((each) => each.name === current?.name) ? (current?.name ?? null) : null);
    }
  }

  function save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `${current?.name ?? "query"}.gq`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  const open = (each: StoredQuery) => (setStored(each), setGiven({}));
  const share = () => `${location.origin}${location.pathname}${address("query", { q: text, p: Object.keys(given).length ? JSON.stringify(given) : "" })}`;
  const mistakes = found?.diagnostics.filter((each) => each.severity === "error").length ?? 0;
  return (
    <div class="page query">
      <Panel title={stored ? `Stored query ${stored.name}` : "Query"} class="write" tools={
        <>
          {stored && <button onClick={() => setStored(null)}>Back to the editor</button>}
          {!stored && <CopyButton text={share}>Share</CopyButton>}
          {!stored && may("admin") && <button onClick={store} disabled={!current} title="For everyone who may invoke stored queries">{replaces !== null && replaces === current?.name ? `Replace ${show(replaces)}` : "Store"}</button>}
          {!stored && <button onClick={save} title="For the directory that `queries:` of omnigraph.yaml names">Save as .gq</button>}
          {!stored && <button onClick={explain} disabled={isMutation}>Explain</button>}
          <button class="primary" onClick={run} disabled={isRunning || refusal !== null} title={refusal ?? "Ctrl+Enter"}>{isRunning ? "Running…" : isMutation ? "Run as one commit" : "Run"}</button>
        </>
      }>
        {stored ? <p class="note">{show(stored.description) || "This query has no description."}</p>
          : <Editor key={edition} text={text} onText={(next, place) => (setText(next), setCursor(place))} onCheck={(checked, of) => setFound({ ...checked, of })} onRun={run} stored={catalogue.data?.queries ?? []} onStored={open} />}
        {!stored && <p class="status">
          {queries.length > 1 && current && <>{`query ${current.name} of ${queries.length}`} · </>}
          {mistakes ? <span class="bad">{plural(mistakes, "mistake")}</span> : found?.of === text ? "no mistakes" : "checking…"}
          {refusal && <span class="bad"> · {refusal}</span>}
          {saved && <span role="status"> · {show(saved)}</span>}
          <span class="quiet"> · Ctrl+Enter runs · Ctrl+Space completes</span>
        </p>}
      </Panel>
      <div class="side">
        <Panel title="Parameters">
          {params.length === 0 ? <Empty title="No parameters" /> : <Params params={params} given={given} onChange={setGiven} />}
        </Panel>
        <Panel title="Stored queries">
          {catalogue.data?.queries.length ? (
            <ul class="list">
              {catalogue.data.queries.map((each) => (
                <li key={each.name}>
                  <button class="link grow" onClick={() => open(each)}>{show(each.name)}</button>
                  {each.mutation && <span class="chip">writes</span>}
                </li>
              ))}
            </ul>
          ) : <Empty title="None">Queries that <code>omnigraph.yaml</code> stores appear here.</Empty>}
        </Panel>
      </div>
      <Panel class="answer" title={<Tabs label="Result" value={view} options={["result", "plan"] as const} names={{ result: "Result", plan: "Plan" }} onChange={setView} />}
        tools={result && view === "result" && <span class="quiet">{plural(result.total, "row")}{result.commit && <> of commit <code>{shortId(result.commit)}</code></>}{result.milliseconds > 0 && <> in {count(Math.round(result.milliseconds))} ms</>}</span>}>
        <Problem error={error} retry={error instanceof ApiError && error.status === 0 ? run : undefined} />
        {view === "plan" ? (explained ? <Plan explained={explained} /> : !error && <Empty title="No plan yet">Explain shows how a read is run, step by step, with rows and times.</Empty>) : (
          <>
            {changed && <p class="note good">{changed.commit ? <>Committed <CommitLink href={address("history", { commit: changed.commit.graph_commit_id })} id={changed.commit.graph_commit_id} /> on {changed.branch}: {plural(changed.affected_nodes, "node")}, {plural(changed.affected_edges, "edge")}.</> : "Nothing matched: no commit was made."}</p>}
            {result ? (
              <div class={drawn ? "split" : "single"}>
                {result.total === 0 ? <Empty title="No rows">The query ran and found nothing.</Empty>
                  : <Grid label="Rows" columns={result.columns} total={result.total} onRow={setRow} need={need}
                      get={(index) => result.pages.get(Math.floor(index / PAGE_ROWS) * PAGE_ROWS)?.[index % PAGE_ROWS]} />}
                {drawn && <Drawn {...drawn} />}
              </div>
            ) : !changed && !error && <Empty title="No result yet">Write a query and run it. Completion knows the types and properties of this graph.</Empty>}
            {row && <Details row={row} onClose={() => setRow(null)} />}
          </>
        )}
      </Panel>
    </div>
  );
}

function Details({ row, onClose }: { row: Row; onClose: () => void }) {
  useLayoutEffect(() => {
    const close = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, []);
  return (
    <aside class="details" aria-label="Row">
      <header><strong>Row</strong><button onClick={onClose} aria-label="Close">×</button></header>
      <dl>{Object.entries(row).map(([name, value]) => <><dt>{show(name)}</dt><dd>{value === null ? <span class="null">null</span> : <bdi>{show(value)}</bdi>}</dd></>)}</dl>
    </aside>
  );
}

/** Every node and edge of the rows once; a path with the nodes that it leads through. */
export function toPicture({ picture, rows }: { picture: PictureOf; rows: Row[] }): { dots: Dot[]; lines: Line[] } {
  const dots = new Map<string, Dot>();
  const lines = new Map<string, Line>();
  const add = (key: string | null, type: unknown, label: unknown) => {
    if (key !== null && !dots.has(key)) dots.set(key, { id: key, type: String(type), label: show(label), colour: typeColour(String(type)) });
  };
  const join = (id: unknown, type: string, source: string | null, target: string | null) => {
    const key = `${type}\u0000${id}`;
    if (id !== null && source !== null && target !== null && !lines.has(key)) lines.set(key, { id: key, source, target, type });
  };
  for (const row of rows) {
    const ids = picture.nodes.map((node) => (row[node.id_column] === null ? null : keyOf(String(row[node.type_column]), String(row[node.id_column]))));
    picture.nodes.forEach((node, place) => add(ids[place], row[node.type_column], (node.label_column && row[node.label_column]) ?? row[node.id_column]));
    for (const edge of picture.edges) {
      if (edge.nodes_column === null) join(row[edge.id_column], edge.type, ids[edge.source], ids[edge.target]);
      else {
        const [edges, nodes] = [(row[edge.id_column] ?? []) as string[], (row[edge.nodes_column] ?? []) as string[]];
        // A walk between two types goes to and fro.
        const types = [edge.source, edge.target].map((end) => String(row[picture.nodes[end].type_column]));
        const keys = nodes.map((id, place) => keyOf(types[place % 2], id));
        nodes.forEach((id, place) => add(keys[place], types[place % 2], id));
        edges.forEach((id, place) => join(id, edge.type, keys[place], keys[place + 1]));
      }
    }
  }
  return { dots: [...dots.values()], lines: [...lines.values()] };
}

interface DrawnRows {
  picture: PictureOf;
  rows: Row[];
  total: number;
  more: (() => void) | null;
}

function Drawn(props: DrawnRows) {
  const { dots, lines } = useMemo(() => toPicture(props), [props.picture, props.rows]);
  const types = [...new Set(dots.map((each) => each.type))];
  const choose = (id: string) => {
    const [type, key] = id.split("\u0000");
    go("explore", { type, id: key });
  };
  return (
    <div class="drawn">
      <Picture dots={dots} lines={lines} label="Picture of the rows" onChoose={choose} />
      <Legend types={types} colours={typeColour} />
      {props.rows.length < props.total && <p class="quiet corner">the first {count(props.rows.length)} rows {props.more && <button onClick={props.more}>Draw {count(Math.min(props.total, PICTURE_ROWS_MAX))}</button>}</p>}
    </div>
  );
}


import { useState } from "preact/hooks";
import { ApiError, base, catalog, may, parse, token } from "../api";
import { CommitLink, Empty, Panel, Problem, Text } from "../parts/basics";
import { address, at, branch, branches, wrote } from "../state";
import { count, plural, show } from "../text";
import { type Dropped, describe, IGNORED, RECORDS, toForm } from "../uploads";
import type { Commit, Row } from "../types";

interface Preview {
  dry_run: true;
  changes_nothing: boolean;
  tables: { table_key: string; inserted: number; replaced: number; unchanged: number; refused: number; removed: number; rows: Row[] }[];
  problems: number;
  bad_rows: string[];
  notes: string[];
}

interface Loaded {
  branch: string;
  total_rows: number;
  tables: { table_key: string; rows_loaded: number }[];
  notes: string[];
  commit: Commit | null;
}

/** A request that tells how much of it is sent, which `fetch` does not. */
function upload<T>(path: string, form: FormData, tell: (share: number) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", base.value + path);
    if (token.value) request.setRequestHeader("Authorization", `Bearer ${token.value}`);
    request.upload.onprogress = (event) => event.lengthComputable && tell(event.loaded / event.total);
    request.onerror = () => reject(new ApiError(0, { error: "The server does not answer. Nothing was loaded; your files and choices are kept here." }));
    request.onload = () => {
      try {
        const body = parse<T & { error?: string }>(request.responseText);
        if (request.status < 300) resolve(body);
        else reject(new ApiError(request.status, { error: body.error ?? `the server answered ${request.status}` }));
      } catch {
        reject(new ApiError(request.status, { error: `the server answered ${request.status}` }));
      }
    };
    request.send(form);
  });
}

export default function Load() {
  const [files, setFiles] = useState<Dropped[]>([]);
  const [mode, setMode] = useState("merge");
  const [into, setInto] = useState("");
  const [preview, setPreview] = useState<Preview | null>(null);
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isOver, setIsOver] = useState(false);
  const refusal = at.value ? "Leave the past to load." : !may("change") ? "You may read here, not load." : null;

  async function take(list: FileList | null) {
    const found = await Promise.all([...(list ?? [])].map(describe));
    setFiles((before) => [...before.filter((each) => !found.some((other) => other.file.name === each.file.name)), ...found]);
    setPreview(null);
    setLoaded(null);
  }
  const change = (place: number, next: Partial<Dropped>) => {
    setFiles((before) => before.map((each, other) => (other === place ? { ...each, ...next } : each)));
    setPreview(null);
  };
  async function run(isDry: boolean) {
    setError(null);
    setShare(0);
    if (isDry) setPreview(null);
    const target = into || branch.value;
    const given: Record<string, string> = { branch: target, mode, dry_run: String(isDry) };
    if (!branches.value.includes(target)) given.from = branch.value;
    try {
      const path = `/load/files?${new URLSearchParams(given)}`;
      const done = await upload<Preview | Loaded>(path, toForm(files), setShare);
      if (isDry) setPreview(done as Preview);
      else {
        setLoaded(done as Loaded);
        setPreview(null);
        setFiles([]);
        await wrote();
      }
    } catch (problem) {
      setError(problem as Error);
    } finally {
      setShare(null);
    }
  }

  const isReady = files.length > 0 && refusal === null && share === null;
  return (
    <div class="page load">
      <Panel title="Files" tools={<>
        <label>into <input class="narrow" aria-label="Branch to load into" list="branches" placeholder={branch.value} value={into} onInput={(event) => setInto(event.currentTarget.value.trim())} /></label>
        <datalist id="branches">{branches.value.map((each) => <option key={each} value={each} />)}</datalist>
        <label>mode <select value={mode} onChange={(event) => (setMode(event.currentTarget.value), setPreview(null))}><option value="merge">merge: add and replace</option><option value="append">append: only new ones</option><option value="overwrite">overwrite: replace the types</option></select></label>
        <button disabled={!isReady} onClick={() => run(true)}>Dry run</button>
        <button class="primary" disabled={!isReady || preview === null || preview.problems > 0} title={preview === null ? "Make a dry run first" : ""} onClick={() => run(false)}>Load as one commit</button>
      </>}>
        {refusal && <p class="note warn">{refusal}</p>}
        <Problem error={error} />
        {share !== null && <p class="note"><progress value={share} max={1} aria-label="Sent" /> {share < 1 ? `sending, ${Math.round(share * 100)} %` : "checking…"}</p>}
        <label class={isOver ? "drop over" : "drop"} onDragOver={(event) => (event.preventDefault(), setIsOver(true))} onDragLeave={() => setIsOver(false)}
          onDrop={(event) => (event.preventDefault(), setIsOver(false), void take(event.dataTransfer?.files ?? null))}>
          <input type="file" multiple aria-label="Files" onChange={(event) => void take(event.currentTarget.files)} />
          <strong>Drop CSV, Parquet or JSON here</strong>
          <span class="quiet">or choose files; nothing is written before you have seen a dry run</span>
        </label>
        {files.map((each, place) => <Mapping key={each.file.name} dropped={each} onChange={(next) => change(place, next)} onRemove={() => setFiles(files.filter((other) => other !== each))} />)}
      </Panel>
      {loaded && <p class="note good">{loaded.commit ? <>Loaded {plural(loaded.total_rows, "row")} into {loaded.branch} as <CommitLink href={address("history", { branch: loaded.branch, commit: loaded.commit.graph_commit_id })} id={loaded.commit.graph_commit_id} />.</> : "Everything was there already: no commit was made."}</p>}
      {preview && <Outcome preview={preview} />}
    </div>
  );
}

function Mapping({ dropped, onChange, onRemove }: { dropped: Dropped; onChange: (next: Partial<Dropped>) => void; onRemove: () => void }) {
  const types = [...catalog.value!.nodes, ...catalog.value!.edges];
  const type = types.find((each) => each.name === dropped.type);
  const isEdge = type !== undefined && "source" in type;
  const targets = [...(isEdge ? ["from", "to"] : []), ...(type?.properties.map((each) => each.name) ?? [])];
  return (
    <section class="mapping">
      <header>
        <strong><Text value={dropped.file.name} /></strong> <span class="quiet">{count(dropped.file.size)} bytes</span>
        <label>type <select aria-label={`Type of ${dropped.file.name}`} value={dropped.type} onChange={(event) => onChange({ type: event.currentTarget.value })}>
          <option value={RECORDS}>as the records say</option>
          {types.map((each) => <option key={each.name}>{each.name}</option>)}
        </select></label>
        <button onClick={onRemove} aria-label={`Remove ${dropped.file.name}`}>×</button>
      </header>
      {type && dropped.columns.length > 0 && (
        <table class="plain">
          <thead><tr><th>column</th><th>first values</th><th>becomes</th></tr></thead>
          <tbody>
            {dropped.columns.map((column, place) => (
              <tr key={column}>
                <td><code>{show(column)}</code></td>
                <td class="quiet"><bdi>{dropped.samples.map((row) => show(row[place])).filter(Boolean).slice(0, 3).join(" · ")}</bdi></td>
                <td><select aria-label={`Column ${column}`} value={dropped.mapping[column] ?? IGNORED} onChange={(event) => onChange({ mapping: { ...dropped.mapping, [column]: event.currentTarget.value } })}>
                  <option value={IGNORED}>– left out –</option>
                  {targets.map((each) => <option key={each}>{each}</option>)}
                </select></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {type && dropped.columns.length === 0 && <p class="quiet">Its columns are read on the server; they have to have the names of the properties.</p>}
    </section>
  );
}

function Outcome({ preview }: { preview: Preview }) {
  return (
    <Panel title="Dry run" tools={<span class={preview.problems ? "chip bad" : "chip good"}>{preview.problems ? plural(preview.problems, "bad row") : preview.changes_nothing ? "would change nothing" : "ready to load"}</span>}>
      {preview.problems > 0 && (
        <div class="problem" role="alert">
          <strong>{plural(preview.problems, "row")} cannot be loaded. Nothing was written.</strong>
          <ol class="bad-rows">{preview.bad_rows.map((each, place) => <li key={place}><Text value={each} /></li>)}</ol>
        </div>
      )}
      {preview.notes.map((each) => <p class="note" key={each}><Text value={each} /></p>)}
      <table class="plain">
        <thead><tr><th>type</th><th class="figure">new</th><th class="figure">replaced</th><th class="figure">unchanged</th><th class="figure">refused</th><th class="figure">removed</th></tr></thead>
        <tbody>
          {preview.tables.map((each) => (
            <tr key={each.table_key}>
              <td>{each.table_key.split(":")[1]}</td>
              {[each.inserted, each.replaced, each.unchanged, each.refused, each.removed].map((number, place) => <td key={place} class="figure">{count(number)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {preview.tables.filter((each) => each.rows.length).map((each) => (
        <div key={each.table_key} class="sample">
          <h3>{each.table_key.split(":")[1]}, as it would be stored</h3>
          <table class="plain">
            <thead><tr>{Object.keys(each.rows[0]).map((name) => <th key={name}>{name}</th>)}</tr></thead>
            <tbody>{each.rows.slice(0, 5).map((row, place) => <tr key={place}>{Object.keys(each.rows[0]).map((name) => <td key={name}><bdi>{show(row[name])}</bdi></td>)}</tr>)}</tbody>
          </table>
        </div>
      ))}
      {preview.tables.length === 0 && preview.problems === 0 && <Empty title="No rows" />}
    </Panel>
  );
}

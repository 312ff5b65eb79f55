import { useEffect, useState } from "preact/hooks";
import { get, may, post, ROOT, send } from "../api";
import { Empty, Loading, Panel, Problem, Text, useLoad } from "../parts/basics";
import { count, plural, visible } from "../text";

interface Table {
  table_key: string;
  rows: number;
  fragments: number;
  small_fragments: number;
  deleted_rows: number;
  head_is_pin: boolean;
  indexes_missing: string[];
  indexes_lagging: string[];
}

interface Doctor {
  uri: string;
  versions: Record<string, string>;
  disk_free_bytes: number | null;
  disk_total_bytes: number | null;
  commits: number;
  branches: number;
  pending_recovery: string[];
  advice: string[];
  tables: Table[];
}

interface Job {
  job_id: string;
  kind: string;
  state: string;
  created_at: unknown;
  actor_id?: string | null;
  [name: string]: unknown;
}

interface Metric {
  name: string;
  help: string;
  samples: { labels: string; value: number }[];
}

/** The counters of the server, without the buckets of its histograms. */
function readMetrics(text: string): Metric[] {
  const found = new Map<string, Metric>();
  for (const line of text.split("\n")) {
    const help = /^# HELP (\S+) (.*)$/.exec(line);
    if (help) found.set(help[1], { name: help[1], help: help[2], samples: [] });
    const sample = /^([a-z_]\w*?)(_total|_sum|_count)?(\{.*\})? ([\d.e+-]+)$/i.exec(line);
    if (!sample || /_(bucket|created)$/.test(sample[1])) continue;
    const metric = found.get(sample[1]) ?? found.get(`${sample[1]}${sample[2] ?? ""}`);
    metric?.samples.push({ labels: `${sample[2] && !metric.name.endsWith(sample[2]) ? sample[2].slice(1) : ""} ${sample[3] ?? ""}`.trim(), value: Number(sample[4]) });
  }
  return [...found.values()].filter((each) => each.name.startsWith("omnigraph") && each.samples.some((sample) => sample.value !== 0));
}

const LOOK_AGAIN_MS = 1000;
/** The states in which a job stays. */
const DONE = ["succeeded", "failed", "cancelled"];
const KINDS = ["optimize", "verify", "cleanup"] as const;

export default function Admin() {
  const isAllowed = ["verify", "optimize", "cleanup", "admin", "repair"].some(may);
  const doctor = useLoad(() => (may("verify") ? get<Doctor>("/doctor") : Promise.resolve(null)), []);
  const ready = useLoad(async () => (await send("/readyz", {}, ROOT)).json() as Promise<{ status: string; graphs: number; configuration: { state: string; loaded_at: string } }>, []);
  const metrics = useLoad(async () => readMetrics(await (await send("/metrics", {}, ROOT)).text()), []);
  return (
    <div class="page admin">
      <Panel title="Doctor" tools={<button onClick={doctor.reload}>Examine again</button>}>
        {!may("verify") ? <Empty title="Not for you">The policy does not let you examine this graph.</Empty> : <Loading of={doctor} />}
        {doctor.data && <Examined doctor={doctor.data} />}
      </Panel>
      <div class="column">
        <Panel title="Server">
          <Loading of={ready} />
          {ready.data && <dl><dt>state</dt><dd>{ready.data.status}</dd><dt>graphs</dt><dd>{ready.data.graphs}</dd><dt>settings</dt><dd>{ready.data.configuration.state}, read {ready.data.configuration.loaded_at}</dd></dl>}
        </Panel>
        {isAllowed && <Jobs />}
      </div>
      <Panel title="Metrics" class="wide" tools={<button onClick={metrics.reload}>Read again</button>}>
        <Loading of={metrics} />
        <table class="plain">
          <tbody>
            {metrics.data?.map((each) => (
              <tr key={each.name}>
                <td><code>{each.name}</code><br /><span class="quiet">{visible(each.help)}</span></td>
                <td>{each.samples.length === 1 ? count(each.samples[0].value) : each.samples.length > 1 && <details><summary>{plural(each.samples.length, "value")}</summary><ul class="list">{each.samples.map((sample) => <li key={sample.labels}><code class="grow">{visible(sample.labels)}</code><span class="figure">{count(sample.value)}</span></li>)}</ul></details>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Panel>
    </div>
  );
}

function Examined({ doctor }: { doctor: Doctor }) {
  const size = (bytes: number | null) => (bytes === null ? "?" : `${(bytes / 1e9).toFixed(1)} GB`);
  return (
    <>
      {doctor.advice.length === 0 ? <p class="note good">Nothing to do.</p> : doctor.advice.map((each) => <p class="note warn" key={each}><Text value={each} /></p>)}
      {doctor.pending_recovery.length > 0 && <p class="note warn">{plural(doctor.pending_recovery.length, "write")} to recover.</p>}
      <dl>
        <dt>store</dt><dd><Text value={doctor.uri} /></dd>
        <dt>disk</dt><dd>{size(doctor.disk_free_bytes)} free of {size(doctor.disk_total_bytes)}</dd>
        <dt>history</dt><dd>{plural(doctor.commits, "commit")}, {plural(doctor.branches, "branch")}</dd>
        <dt>versions</dt><dd>{Object.entries(doctor.versions).map(([name, version]) => `${name} ${version}`).join(" · ")}</dd>
      </dl>
      <table class="plain">
        <thead><tr><th>table</th><th class="figure">rows</th><th class="figure">fragments</th><th class="figure">small</th><th class="figure">deleted rows</th><th>indexes to build</th></tr></thead>
        <tbody>
          {doctor.tables.map((each) => (
            <tr key={each.table_key}>
              <td><code>{each.table_key}</code></td><td class="figure">{count(each.rows)}</td><td class="figure">{each.fragments}</td><td class="figure">{each.small_fragments}</td><td class="figure">{count(each.deleted_rows)}</td>
              <td class="quiet">{[...each.indexes_missing, ...each.indexes_lagging].join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Jobs() {
  const jobs = useLoad(() => get<{ jobs: Job[] }>("/jobs"), []);
  const [error, setError] = useState<Error | null>(null);
  const isBusy = jobs.data?.jobs.some((each) => !DONE.includes(each.state)) ?? false;
  useEffect(() => {
    if (!isBusy) return;
    const again = setInterval(jobs.reload, LOOK_AGAIN_MS);
    return () => clearInterval(again);
  }, [isBusy, jobs.reload]);
  const start = async (kind: string) => {
    setError(null);
    try {
      await post("/jobs", { kind });
      jobs.reload();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <Panel title="Jobs" tools={<>
      {KINDS.filter((each) => each !== "cleanup" && may(each)).map((each) => <button key={each} onClick={() => start(each)}>{each[0].toUpperCase() + each.slice(1)}</button>)}
      <button onClick={jobs.reload}>Look again</button>
    </>}>
      <Problem error={error ?? jobs.error} />
      {jobs.data?.jobs.length === 0 && <Empty title="No jobs yet">Upkeep that this server was given appears here.</Empty>}
      <ul class="list">
        {jobs.data?.jobs.map((each) => (
          <li key={each.job_id}>
            <span class="grow"><strong>{each.kind}</strong> <span class="quiet"><Text value={each.actor_id ?? ""} /></span></span>
            <span class={`chip ${each.state === "succeeded" ? "good" : each.state === "failed" ? "bad" : "warn"}`}>{each.state}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

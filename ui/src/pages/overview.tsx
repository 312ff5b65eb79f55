import { catalog, get, ROOT, send } from "../api";
import { Diagram } from "../parts/diagram";
import { CommitLink, Empty, Loading, Panel, Text, useLoad } from "../parts/basics";
import { at, branch, branches, branchOf, go, address, revision, tags, writes } from "../state";
import { ago, count, moment, plural } from "../text";
import { typeColour } from "../colours";
import type { Commit, Snapshot } from "../types";

interface Health {
  version: string;
  state: string;
}

async function readHealth(): Promise<Health> {
  const health = await (await send("/healthz", {}, ROOT)).json();
  const ready = await (await send("/readyz", {}, ROOT)).json();
  return { version: health.version, state: ready.configuration.state };
}

export function readSnapshot(): Promise<Snapshot> {
  return get("/snapshot", at.value ? { snapshot: at.value } : { branch: branch.value });
}

export default function Overview() {
  const shown = useLoad(readSnapshot, [revision.value, writes.value]);
  const log = useLoad(() => get<{ commits: Commit[] }>("/log", { branch: branch.value, limit: "12" }), [branch.value, writes.value]);
  const health = useLoad(readHealth, []);
  const counts = Object.fromEntries((shown.data?.tables ?? []).map((each) => [each.table_key, each.row_count]));
  const total = (kind: string) => Object.entries(counts).reduce((sum, [key, rows]) => sum + (key.startsWith(kind) ? rows : 0), 0);
  const types = catalog.value!;
  const indexes = [...types.nodes, ...types.edges].flatMap((type) => type.indexes.map((columns) => ({ type: type.name, columns, property: type.properties.find((each) => each.name === columns[0]) })));
  return (
    <div class="page overview">
      <div class="figures">
        <Figure value={count(total("node:"))} name="nodes" />
        <Figure value={count(total("edge:"))} name="edges" />
        <Figure value={count(types.nodes.length)} name={types.nodes.length === 1 ? "node type" : "node types"} />
        <Figure value={count(types.edges.length)} name={types.edges.length === 1 ? "edge type" : "edge types"} />
        <Figure value={count(branches.value.length)} name={branches.value.length === 1 ? "branch" : "branches"} />
        <Figure value={health.error ? "down" : health.data?.state === "refused" ? "config refused" : "up"} name={health.data ? `server ${health.data.version}` : "server"} isGood={!health.error && health.data?.state !== "refused"} />
      </div>
      <Panel title="Schema" class="wide" tools={<span class="quiet">⚷ key · ⌕ index · choose a type to explore it</span>}>
        <Loading of={shown} />
        {types.nodes.length === 0 ? <Empty title="No types yet">Apply a schema with <code>omnigraph schema apply</code>.</Empty>
          : <Diagram catalog={types} counts={counts} colour={typeColour} onChoose={(type) => go("explore", { type })} />}
      </Panel>
      <Panel title="Last commits" tools={<a href={address("history")}>History</a>}>
        <Loading of={log} />
        <ul class="list">
          {log.data?.commits.map((each) => (
            <li key={each.graph_commit_id}>
              <CommitLink href={address("history", { commit: each.graph_commit_id })} id={each.graph_commit_id} />
              <span class="chip">{branchOf(each)}</span>
              <span class="grow"><Text value={each.message ?? each.actor_id ?? (each.merged_parent_commit_id ? "merge" : "–")} /></span>
              <time class="quiet" title={moment(each.created_at)}>{ago(each.created_at)}</time>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title="Branches and tags">
        <ul class="list">
          {branches.value.map((each) => (
            <li key={each}>
              <span class="grow">{each === branch.value ? <strong>{each}</strong> : <a href={address("overview", { branch: each, at: "" })}>{each}</a>}</span>
              {each !== "main" && <a href={address("review", { branch: each, at: "" })}>Review</a>}
            </li>
          ))}
          {tags.value.map((each) => (
            <li key={`tag:${each.name}`}>
              <span class="grow"><a href={address("overview", { at: `tag:${each.name}` })}>⚑ {each.name}</a></span>
              <time class="quiet">{ago(each.created_at)}</time>
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title="Indexes" tools={<span class="quiet">{plural(indexes.length, "index").replace("indexs", "indexes")}</span>}>
        {indexes.length === 0 ? <Empty title="No declared indexes">Keys are always indexed. <code>@index</code> on a property adds one.</Empty> : (
          <ul class="list">
            {indexes.map((each) => (
              <li key={`${each.type}.${each.columns}`}>
                <span class="grow"><code>{each.type}.{each.columns.join(", ")}</code></span>
                <span class="quiet">{each.property?.is_vector ? "vector" : each.property?.is_text ? "full text" : each.property?.type}</span>
              </li>
            ))}
          </ul>
        )}
      </Panel>
    </div>
  );
}

function Figure({ value, name, isGood }: { value: string; name: string; isGood?: boolean }) {
  return (
    <div class={`figure-box ${isGood === false ? "bad" : ""}`}>
      <strong>{value}</strong>
      <span>{name}</span>
    </div>
  );
}

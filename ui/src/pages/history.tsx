import { useMemo, useState } from "preact/hooks";
import { get, post, readLines } from "../api";
import { valueColour } from "../colours";
import { Changes } from "../parts/changes";
import { Empty, Loading, Panel, Problem, Text, useLoad } from "../parts/basics";
import { at, branch, branches, branchOf, go, refresh, route, setParams, tags, writes } from "../state";
import { ago, count, moment, plural, shortId } from "../text";
import { may } from "../api";
import type { Change, Commit, Snapshot } from "../types";

const COMMITS_MAX = 200;
const BRANCHES_MAX = 12;
const CHANGES_MAX = 500;
const ROW = 28;
const LANE = 16;

/** The commits that led to the branches, newest first. */
async function readCommits(): Promise<Commit[]> {
  const names = [branch.value, ...branches.value.filter((each) => each !== branch.value)].slice(0, BRANCHES_MAX);
  const logs = await Promise.all(names.map((each) => get<{ commits: Commit[] }>("/log", { branch: each, limit: String(COMMITS_MAX) })));
  const found = new Map(logs.flatMap((log) => log.commits).map((each) => [each.graph_commit_id, each]));
  return [...found.values()].sort((a, b) => b.created_at - a.created_at || (a.graph_commit_id < b.graph_commit_id ? 1 : -1)).slice(0, COMMITS_MAX);
}

export default function History() {
  const log = useLoad(readCommits, [branch.value, branches.value.join(), writes.value]);
  const commits = log.data ?? [];
  const chosen = commits.find((each) => each.graph_commit_id === (route.value.params.commit ?? at.value)) ?? commits.find((each) => branchOf(each) === branch.value) ?? commits[0];
  const from = route.value.params.from ?? "";
  const line = useMemo(() => ancestors(commits, chosen, branch.value), [commits, branch.value]);
  const place = chosen ? line.findIndex((each) => each.graph_commit_id === chosen.graph_commit_id) : -1;
  return (
    <div class="page history">
      <Panel title="Commits" class="dag" tools={<span class="quiet">{plural(commits.length, "commit")}{commits.length === COMMITS_MAX ? ", the newest" : ""}</span>}>
        <Loading of={log} />
        {log.data && <Dag commits={commits} chosen={chosen?.graph_commit_id ?? ""} from={from} onChoose={(id) => setParams({ commit: id })} onFrom={(id) => setParams({ from: id === from ? "" : id })} />}
      </Panel>
      <div class="state">
        <Panel title="Through time" tools={chosen && <>
          <button onClick={() => go("query", { at: chosen.graph_commit_id })}>Query this state</button>
          <button onClick={() => go("overview", { at: chosen.graph_commit_id })}>Look around then</button>
        </>}>
          {line.length > 1 ? (
            <label class="slider">
              <span>{chosen && moment(chosen.created_at)}</span>
              <input type="range" aria-label="Commit" min={0} max={line.length - 1} value={line.length - 1 - Math.max(place, 0)}
                onInput={(event) => setParams({ commit: line[line.length - 1 - Number(event.currentTarget.value)].graph_commit_id }, true)} />
            </label>
          ) : <p class="quiet">This branch has one commit.</p>}
          {chosen && <State commit={chosen} />}
        </Panel>
        {chosen && <Compared from={from} commit={chosen} />}
      </div>
    </div>
  );
}

/** The line of first parents that led to the newest commit of a branch, newest first. */
function ancestors(commits: Commit[], fallback: Commit | undefined, name: string): Commit[] {
  const byId = new Map(commits.map((each) => [each.graph_commit_id, each]));
  const line: Commit[] = [];
  let next = commits.find((each) => branchOf(each) === name) ?? fallback;
  while (next) {
    line.push(next);
    next = next.parent_commit_id ? byId.get(next.parent_commit_id) : undefined;
  }
  return line;
}

function Dag(props: { commits: Commit[]; chosen: string; from: string; onChoose: (id: string) => void; onFrom: (id: string) => void }) {
  const { commits } = props;
  const lanes = useMemo(() => {
    const names = [...new Set(commits.map(branchOf))].sort((a, b) => Number(b === "main") - Number(a === "main") || a.localeCompare(b));
    return new Map(names.map((each, place) => [each, place]));
  }, [commits]);
  const places = new Map(commits.map((each, row) => [each.graph_commit_id, { x: 10 + lanes.get(branchOf(each))! * LANE, y: row * ROW + ROW / 2, lane: lanes.get(branchOf(each))! }]));
  const width = lanes.size * LANE + 12;
  const tagged = new Map(tags.value.map((each) => [each.commit_id, each.name]));
  return (
    <div class="commits" style={{ "--lanes": `${width}px` }}>
      <svg width={width} height={commits.length * ROW} aria-hidden="true">
        {commits.flatMap((each) => {
          const here = places.get(each.graph_commit_id)!;
          return [each.parent_commit_id, each.merged_parent_commit_id].map((parent, which) => {
            const there = parent ? places.get(parent) : undefined;
            if (!there) return null;
            const lane = which === 0 && here.lane !== there.lane ? here : there;
            const path = here.x === there.x ? `M${here.x} ${here.y}V${there.y}` : `M${here.x} ${here.y}C${here.x} ${here.y + ROW} ${there.x} ${there.y - ROW} ${there.x} ${there.y}`;
            return <path key={`${each.graph_commit_id} ${which}`} d={path} style={{ stroke: valueColour(lane.lane) }} class={which ? "merge" : ""} />;
          });
        })}
        {commits.map((each) => {
          const { x, y, lane } = places.get(each.graph_commit_id)!;
          return <circle key={each.graph_commit_id} cx={x} cy={y} r={each.graph_commit_id === props.chosen ? 5.5 : 4} style={{ fill: valueColour(lane) }} />;
        })}
      </svg>
      <ol>
        {commits.map((each) => (
          <li key={each.graph_commit_id} class={each.graph_commit_id === props.chosen ? "chosen" : ""}>
            <button class="link" title={each.graph_commit_id} aria-current={each.graph_commit_id === props.chosen} onClick={() => props.onChoose(each.graph_commit_id)}><code>{shortId(each.graph_commit_id)}</code></button>
            <span class="chip" style={{ borderColor: valueColour(lanes.get(branchOf(each))!) }}>{branchOf(each)}</span>
            {tagged.has(each.graph_commit_id) && <span class="chip warn">⚑ {tagged.get(each.graph_commit_id)}</span>}
            <span class="grow"><Text value={[each.actor_id ?? "", each.message ?? (each.merged_parent_commit_id ? "merged" : "")].filter(Boolean).join(" · ")} /></span>
            <time class="quiet" title={moment(each.created_at)}>{ago(each.created_at)}</time>
            <button class={each.graph_commit_id === props.from ? "small past" : "small"} onClick={() => props.onFrom(each.graph_commit_id)} aria-pressed={each.graph_commit_id === props.from}>from</button>
          </li>
        ))}
      </ol>
    </div>
  );
}

function State({ commit }: { commit: Commit }) {
  const shown = useLoad(() => get<Snapshot>("/snapshot", { snapshot: commit.graph_commit_id }), [commit.graph_commit_id]);
  const [name, setName] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const make = async (path: string, body: object) => {
    setError(null);
    try {
      await post(path, body);
      setName("");
      await refresh();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <>
      <Problem error={shown.error ?? error} />
      <p class="counts">
        {shown.data?.tables.map((each) => <span key={each.table_key} class="chip">{each.table_key.split(":")[1]} {count(each.row_count)}</span>)}
      </p>
      {may("branch_create") && (
        <form class="pair" onSubmit={(event) => event.preventDefault()}>
          <input aria-label="Name" placeholder="name of a new branch or tag" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button disabled={!name} onClick={() => make("/branches", { name, from: commit.graph_commit_id })}>Branch from here</button>
          <button disabled={!name} onClick={() => make("/tags", { name, at: commit.graph_commit_id })}>Tag</button>
        </form>
      )}
    </>
  );
}

async function readChanges(from: string, to: string): Promise<{ rows: Change[]; isCut: boolean }> {
  return readLines<Change>("/diff", { from, to, format: "jsonl" }, CHANGES_MAX);
}

function Compared({ from, commit }: { from: string; commit: Commit }) {
  const earlier = from || commit.parent_commit_id || "";
  const changes = useLoad(() => (earlier ? readChanges(earlier, commit.graph_commit_id) : Promise.resolve({ rows: [], isCut: false })), [earlier, commit.graph_commit_id]);
  const title = from ? <>From <code>{shortId(from)}</code> to <code>{shortId(commit.graph_commit_id)}</code></> : <>What <code>{shortId(commit.graph_commit_id)}</code> changed</>;
  return (
    <Panel title={title} class="compared" tools={from && <button onClick={() => setParams({ from: "" })}>Against its parent</button>}>
      {!earlier ? <Empty title="The beginning">This commit has no parent.</Empty> : changes.error ? <Problem error={changes.error} retry={changes.reload} />
        : changes.data ? <Changes changes={changes.data.rows} isCut={changes.data.isCut} /> : <p class="quiet">Comparing…</p>}
    </Panel>
  );
}

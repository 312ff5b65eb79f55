import { useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, catalog, may, post } from "../api";
import { CHANGE_COLOURS, typeColour } from "../colours";
import { canMix, type Choice, conflictKey, type Heads, isDecided, merge, properties, readHeads, type Side, suggest, wholeSide } from "../merging";
import { Changes } from "../parts/changes";
import { CommitLink, Empty, Panel, Problem, Tabs, Text, useLoad } from "../parts/basics";
import Picture, { type Dot, Legend, type Line } from "../parts/picture";
import { address, at, branch, branches, go, route, setParams, writes, wrote } from "../state";
import { brief, count, plural, show } from "../text";
import type { Change, Conflict, MergePreview, ReadOutput } from "../types";

const CHANGES_MAX = 1000;
const CONTEXT_MAX = 40;

interface Reviewed {
  preview: MergePreview;
  heads: Heads;
}

async function readReview(source: string, target: string): Promise<Reviewed> {
  const heads = await readHeads(source, target);
  const preview = await post<MergePreview>("/branches/merge/preview", { source, target, changes_max: CHANGES_MAX });
  return { preview, heads };
}

export default function Review() {
  const source = branch.value;
  const others = branches.value.filter((each) => each !== source);
  const target = route.value.params.target || (source === "main" ? "" : "main");
  if (source === "main" && !route.value.params.target) {
    return (
      <div class="page">
        <Panel title="Review a branch">
          {others.length === 0 ? <Empty title="There is only main">Make a branch in History, or with <code>omnigraph branch create</code>; what it changes is reviewed here.</Empty> : (
            <ul class="list">{others.map((each) => <li key={each}><a class="grow" href={address("review", { branch: each, at: "" })}>{each}</a><span class="quiet">into main</span></li>)}</ul>
          )}
        </Panel>
      </div>
    );
  }
  return <Reviewing key={`${source} ${target}`} source={source} target={target} others={others} />;
}

function Reviewing({ source, target, others }: { source: string; target: string; others: string[] }) {
  const reviewed = useLoad(() => readReview(source, target), [source, target, writes.value]);
  const [choices, setChoices] = useState<Map<string, Choice>>(new Map());
  const [deletes, setDeletes] = useState(false);
  const [step, setStep] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const [moved, setMoved] = useState("");
  const [done, setDone] = useState<{ outcome: string; commit: string | null } | null>(null);
  const [view, setView] = useState<"conflicts" | "changes" | "picture">("changes");
  const preview = reviewed.data?.preview;
  const conflicts = preview?.conflicts ?? [];
  const open = conflicts.filter((each) => !isDecided(choices.get(conflictKey(each)), each));
  const stats = preview?.changes.stats;
  const broken = conflicts.some((each) => RULES.includes(each.kind));
  useEffect(() => {
    if (conflicts.length) setView("conflicts");
  }, [preview !== undefined && conflicts.length > 0]);

  const choose = (conflict: Conflict, choice: Choice) => setChoices((before) => new Map(before).set(conflictKey(conflict), choice));
  async function run() {
    setError(null);
    setMoved("");
    setStep("Looking again…");
    try {
      const heads = await readHeads(source, target);
      const names = [heads.source !== reviewed.data!.heads.source && source, heads.target !== reviewed.data!.heads.target && target].filter(Boolean);
      if (names.length) {
        setMoved(`${names.join(" and ")} changed after this preview was made. Nothing was merged; this is the new preview, with your choices kept. Look at it, and merge again.`);
        reviewed.reload();
        return;
      }
      const merged = await merge(source, target, conflicts, choices, deletes, setStep);
      setDone({ outcome: merged.outcome, commit: merged.commit_id });
      await wrote();
      if (merged.branch_deleted) go("history", { branch: target });
    } catch (problem) {
      setError(problem as Error);
      if (problem instanceof ApiError && problem.status === 409) {
        setMoved("The branches changed while they were merged. " + `${target} is as it was; this is the new preview, with your choices kept.`);
        reviewed.reload();
      }
    } finally {
      setStep("");
    }
  }

  const isNothing = preview?.outcome === "already_up_to_date";
  const refusal = at.value ? "Leave the past to merge." : !may("branch_merge") ? "You may review here, not merge." : open.length ? `${plural(open.length, "conflict")} to decide.` : null;
  return (
    <div class="page review">
      <Panel class="summary" title={<>Merge <span class="chip">{source}</span> into <select aria-label="Target" value={target} onChange={(event) => setParams({ target: event.currentTarget.value })}>{others.map((each) => <option key={each}>{each}</option>)}</select></>}
        tools={<>
          <label><input type="checkbox" checked={deletes} disabled={!may("branch_delete")} onChange={(event) => setDeletes(event.currentTarget.checked)} /> delete the branch afterwards</label>
          <button onClick={reviewed.reload}>Preview again</button>
          <button class="primary" disabled={!preview || reviewed.isLoading || isNothing || refusal !== null || step !== ""} onClick={run}>{step ? "Merging…" : "Merge"}</button>
        </>}>
        <Problem error={reviewed.error} retry={reviewed.reload} />
        <Problem error={error} />
        {moved && <p class="note warn" role="alert">{moved}</p>}
        {step && <p class="note">{step}</p>}
        {done && <p class="note good">{done.outcome === "already_up_to_date" ? "There was nothing to merge." : <>Merged ({done.outcome.replace("_", " ")}){done.commit && <> as <CommitLink href={address("history", { branch: target, commit: done.commit })} id={done.commit} /></>}.</>}</p>}
        {!preview && !reviewed.error && <p class="quiet">Making a preview…</p>}
        {preview && stats && (
          <div class="checks">
            <span class="chip good">{outcomeText(preview.outcome)}</span>
            <span class="chip insert">{count(stats.inserts)} inserted</span>
            <span class="chip update">{count(stats.updates)} updated</span>
            <span class="chip delete">{count(stats.deletes)} deleted</span>
            <span class={conflicts.length ? "chip bad" : "chip good"}>{conflicts.length ? `${plural(conflicts.length, "conflict")}, ${count(conflicts.length - open.length)} decided` : "no conflicts"}</span>
            <span class={broken ? "chip bad" : "chip good"}>{broken ? "rules of the schema broken" : "rules of the schema hold"}</span>
            {refusal && !isNothing && <span class="bad">{refusal}</span>}
          </div>
        )}
      </Panel>
      {preview && !isNothing && (
        <Panel class="what" title={<Tabs label="What to look at" value={view} options={conflicts.length ? (["conflicts", "changes", "picture"] as const) : (["changes", "picture"] as const)} names={{ conflicts: `Conflicts ${conflicts.length}`, changes: "Changes", picture: "Picture" }} onChange={setView} />}>
          {view === "conflicts" && conflicts.map((each) => <Decision key={conflictKey(each)} conflict={each} choice={choices.get(conflictKey(each))} source={source} target={target} onChoose={(choice) => choose(each, choice)} />)}
          {view === "changes" && <Changes changes={preview.changes.changes} isCut={preview.changes.changes.length === CHANGES_MAX} />}
          {view === "picture" && <Changed changes={preview.changes.changes} source={source} />}
        </Panel>
      )}
      {isNothing && !done && <Panel title="Changes"><Empty title="Nothing to merge">{target} has everything that {source} has.</Empty></Panel>}
    </div>
  );
}

function outcomeText(outcome: MergePreview["outcome"]): string {
  return { already_up_to_date: "up to date", fast_forward: "fast forward", merged: "both sides changed" }[outcome];
}

const RULES = ["orphan_edge", "unique_violation", "cardinality_violation", "value_constraint_violation"];
const KINDS: Record<string, string> = {
  divergent_update: "both sides changed it", divergent_insert: "both sides added it", delete_vs_update: "one side deleted it, the other changed it",
  orphan_edge: "an edge would lose its node", unique_violation: "a value would be there twice", cardinality_violation: "too many edges", value_constraint_violation: "a value breaks a rule", embedding_models: "vectors of two models",
};

function Decision(props: { conflict: Conflict; choice: Choice | undefined; source: string; target: string; onChoose: (choice: Choice) => void }) {
  const { conflict, choice, onChoose } = props;
  const names = properties(conflict);
  const isMixable = canMix(conflict);
  const suggestion = suggest(conflict);
  const whole = wholeSide(choice, conflict);
  const sideOf = (name: string): Side | undefined => (typeof choice === "string" ? choice : choice?.[name]);
  const pick = (name: string, side: Side) => {
    if (!isMixable) return onChoose(side);
    const before = typeof choice === "string" ? Object.fromEntries(names.map((each) => [each, choice])) : (choice ?? {});
    onChoose({ ...before, [name]: side });
  };
  const group = conflictKey(conflict);
  return (
    <fieldset class="decision">
      <legend><strong>{conflict.type_name} <Text value={conflict.row_id ?? ""} /></strong> <span class="quiet">{KINDS[conflict.kind] ?? conflict.kind}</span></legend>
      <p class="quiet"><Text value={conflict.message} /></p>
      <div class="pair">
        <label><input type="radio" name={`${group} whole`} checked={whole === "ours"} onChange={() => onChoose("ours")} /> keep all of {props.target}</label>
        <label><input type="radio" name={`${group} whole`} checked={whole === "theirs"} onChange={() => onChoose("theirs")} /> take all of {props.source}</label>
        {isMixable && Object.keys(suggestion).length > 0 && <button onClick={() => onChoose({ ...(typeof choice === "object" ? choice : {}), ...suggestion })}>keep what only one side changed</button>}
      </div>
      {names.length > 0 && (
        <table class="plain">
          <thead><tr><th>property</th><th>was</th><th>{props.target}</th><th>{props.source}</th></tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td><code>{name}</code></td>
                <td class="quiet"><bdi>{conflict.base ? shown(conflict.base[name]) : "–"}</bdi></td>
                {(["ours", "theirs"] as const).map((side) => (
                  <td key={side} class={sideOf(name) === side ? "taken" : ""}>
                    <label><input type="radio" name={`${group} ${name}`} aria-label={`${name}: ${side === "ours" ? props.target : props.source}`} checked={sideOf(name) === side} onChange={() => pick(name, side)} /> <bdi>{shown(conflict[side]![name])}</bdi></label>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {!isMixable && names.length > 1 && <p class="quiet">The values of this row can only be kept or taken together.</p>}
      {isMixable && choice !== undefined && whole === null && isDecided(choice, conflict) && <p class="quiet">Mixed: the branch takes {props.target} in and gets these values first, as commits of its own.</p>}
    </fieldset>
  );
}

function shown(value: unknown): string {
  return value === null || value === undefined ? "null" : brief(value, 300);
}

function labelOf(change: Change): string {
  const image = change.after ?? change.before ?? {};
  return show(image.name ?? image.title ?? change.id);
}

/** What changed, with the nodes around it. */
function toPicture(changes: Change[]): { dots: Map<string, Dot>; lines: Map<string, Line> } {
  const dots = new Map<string, Dot>();
  const lines = new Map<string, Line>();
  for (const each of changes.filter((change) => change.kind === "node")) {
    const id = `${each.type}\u0000${each.id}`;
    dots.set(id, { id, type: each.op, label: labelOf(each), colour: CHANGE_COLOURS[each.op], size: 8 });
  }
  for (const each of changes.filter((change) => change.kind === "edge")) {
    const type = catalog.value!.edges.find((edge) => edge.name === each.type);
    const ends = each.endpoints;
    if (!type || !ends) continue;
    const [source, target] = [`${type.source}\u0000${ends.src ?? ends.from}`, `${type.target}\u0000${ends.dst ?? ends.to}`];
    for (const [id, name] of [[source, ends.src ?? ends.from], [target, ends.dst ?? ends.to]]) {
      if (!dots.has(id!)) dots.set(id!, { id: id!, type: "context", label: show(name), colour: CHANGE_COLOURS.context, size: 5 });
    }
    lines.set(`${each.type} ${each.id}`, { id: `${each.type} ${each.id}`, source, target, type: each.type, colour: CHANGE_COLOURS[each.op] });
  }
  return { dots, lines };
}

/** One hop around the nodes that changed, as the source has it. */
async function readContext(changes: Change[], source: string, dots: Map<string, Dot>, lines: Map<string, Line>): Promise<void> {
  for (const type of catalog.value!.nodes) {
    const key = type.key.length === 1 ? type.properties.find((each) => each.name === type.key[0] && each.is_text) : undefined;
    const ids = changes.filter((each) => each.kind === "node" && each.type === type.name && each.op !== "delete").slice(0, CONTEXT_MAX).map((each) => each.id);
    if (!key || ids.length === 0) continue;
    for (const edge of catalog.value!.edges.filter((each) => each.source === type.name || each.target === type.name)) {
      const isOut = edge.source === type.name;
      const query = `query around($ids: [String]) { match { $x: ${type.name} $x.${key.name} in $ids ${isOut ? `$x $e:${edge.word} $y` : `$y $e:${edge.word} $x`} } return { $x as x, $y as y, $e.id as e } limit ${CONTEXT_MAX} }`;
      const found = await post<ReadOutput>("/query", { query, params: { ids }, branch: source });
      for (const row of found.rows) {
        const other = isOut ? edge.target : edge.source;
        const [near, far] = [`${type.name}\u0000${row.x}`, `${other}\u0000${row.y}`];
        if (!dots.has(far)) dots.set(far, { id: far, type: "context", label: show(row.y), colour: CHANGE_COLOURS.context, size: 5 });
        const id = `${edge.name} ${row.e}`;
        if (!lines.has(id)) lines.set(id, { id, source: isOut ? near : far, target: isOut ? far : near, type: edge.name });
      }
    }
  }
}

function Changed({ changes, source }: { changes: Change[]; source: string }) {
  const [drawn, setDrawn] = useState<{ dots: Dot[]; lines: Line[] } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const first = useMemo(() => toPicture(changes), [changes]);
  useEffect(() => {
    readContext(changes, source, first.dots, first.lines)
      .catch(setError)
      .finally(() => setDrawn({ dots: [...first.dots.values()], lines: [...first.lines.values()] }));
  }, [first, source]);
  const choose = (id: string) => {
    const [type, key] = id.split("\u0000");
    go("explore", { type, id: key });
  };
  return (
    <div class="changed">
      <Problem error={error} />
      {drawn && <Picture dots={drawn.dots} lines={drawn.lines} label="What changes" onChoose={choose} />}
      <Legend types={["insert", "update", "delete", "context"]} colours={(each) => CHANGE_COLOURS[each as keyof typeof CHANGE_COLOURS] ?? typeColour(each)} />
    </div>
  );
}

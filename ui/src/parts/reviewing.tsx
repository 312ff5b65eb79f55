// What a merge would do, its conflicts to be decided, and the merge itself: of a branch, or of a merge request.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, may } from "../api";
import { type Choice, conflictKey, decide, type Decided, findBroken, type Heads, isDecided, type Merged, readHeads } from "../merging";
import { address, at, go, writes, wrote } from "../state";
import { count, plural, visible } from "../text";
import type { Check, Conflict, MergePreview } from "../types";
import { CommitLink, Empty, Panel, Problem, Tabs, useLoad } from "./basics";
import { Changed } from "./changed";
import { Changes, type Commenting } from "./changes";
import { Decision, RULES } from "./decision";

export const CHANGES_MAX = 1000;

interface Props {
  source: string;
  target: string;
  title: ComponentChildren;
  tools?: ComponentChildren;
  readPreview: () => Promise<MergePreview>;
  /** The merge: `head` is where the source was when it was looked at. */
  send: (decided: Decided & { head?: string }) => Promise<Merged>;
  /** What else is in the way. */
  refusal?: string | null;
  commenting?: Commenting;
  onMerged?: () => void;
  children?: ComponentChildren;
}

interface Reviewed {
  preview: MergePreview;
  heads: Heads;
}

export function Reviewing(props: Props) {
  const { source, target } = props;
  const reviewed = useLoad<Reviewed>(async () => ({ heads: await readHeads(source, target), preview: await props.readPreview() }), [source, target, writes.value]);
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
  const tried = useLoad(() => findBroken(source, target, conflicts, choices), [reviewed.data, choices]);
  const broken = tried.isLoading ? [] : (tried.data ?? []);
  const isBeside = (one: Conflict) => conflicts.some((each) => conflictKey(each) === conflictKey(one));
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
      const seen = reviewed.data!.heads;
      const names = [heads.source !== seen.source && source, heads.target !== seen.target && target].filter(Boolean);
      if (names.length) {
        setMoved(`${names.join(" and ")} changed after this preview was made. Nothing was merged; this is the new preview, with your choices kept. Look at it, and merge again.`);
        reviewed.reload();
        return;
      }
      setStep(`Merging ${source} into ${target}…`);
      const merged = await props.send({ delete_branch: deletes, ...decide(conflicts, choices), head: seen.source });
      setDone({ outcome: merged.outcome, commit: merged.commit_id });
      await wrote();
      props.onMerged?.();
      if (merged.branch_deleted && !props.onMerged) go("history", { branch: target });
    } catch (problem) {
      setError(problem as Error);
      if (problem instanceof ApiError && problem.status === 409) {
        setMoved(`Nothing was merged, and ${target} is as it was. This is the new preview, with your choices kept.`);
        reviewed.reload();
      }
    } finally {
      setStep("");
    }
  }

  const isNothing = preview?.outcome === "already_up_to_date";
  const refusal = at.value ? "Leave the past to merge." : !may("branch_merge") ? "You may review here, not merge." : open.length ? `${plural(open.length, "conflict")} to decide.` : broken.length ? "These choices break a rule." : (props.refusal ?? null);
  return (
    <>
      <Panel class="summary" title={props.title}
        tools={<>
          {props.tools}
          <label><input type="checkbox" checked={deletes} disabled={!may("branch_delete")} onChange={(event) => setDeletes(event.currentTarget.checked)} /> delete the branch afterwards</label>
          <button onClick={reviewed.reload}>Preview again</button>
          <button class="primary" disabled={!preview || reviewed.isLoading || isNothing || refusal !== null || step !== ""} onClick={run}>{step ? "Merging…" : "Merge"}</button>
        </>}>
        {props.children}
        <Problem error={reviewed.error} retry={reviewed.reload} />
        <Problem error={error} />
        {error instanceof ApiError && error.body.merge_conflicts && <ul class="bad-rows" aria-label="What stands in the way">{error.body.merge_conflicts.map((each) => <li key={each.message}>{visible(each.message)}</li>)}</ul>}
        <Problem error={tried.error} retry={tried.reload} />
        {broken.some((each) => !isBeside(each)) && <ul class="bad-rows" aria-label="What these choices break">{broken.filter((each) => !isBeside(each)).map((each) => <li key={each.message}>{visible(each.message)}</li>)}</ul>}
        {moved && <p class="note warn" role="alert">{visible(moved)}</p>}
        {step && <p class="note" role="status">{visible(step)}</p>}
        {done && <p class="note good" role="status">{done.outcome === "already_up_to_date" ? "There was nothing to merge." : <>Merged ({done.outcome.replace("_", " ")}){done.commit && <> as <CommitLink href={address("history", { branch: target, commit: done.commit })} id={done.commit} /></>}.</>}</p>}
        {!preview && !reviewed.error && <p class="quiet">Making a preview…</p>}
        {preview && <Facts preview={preview} decided={conflicts.length - open.length} broken={broken} refusal={isNothing ? null : refusal} />}
      </Panel>
      {preview && !isNothing && (
        <Panel class="what" title={<Tabs label="What to look at" value={view} options={conflicts.length ? (["conflicts", "changes", "picture"] as const) : (["changes", "picture"] as const)} names={{ conflicts: `Conflicts ${conflicts.length}`, changes: "Changes", picture: "Picture" }} onChange={setView} />}>
          {view === "conflicts" && conflicts.map((each) => <Decision key={conflictKey(each)} conflict={each} choice={choices.get(conflictKey(each))} broken={broken.filter((other) => conflictKey(other) === conflictKey(each))} source={source} target={target} onChoose={(choice) => choose(each, choice)} />)}
          {view === "changes" && <Changes changes={preview.changes.changes} isCut={preview.changes.changes.length === CHANGES_MAX} commenting={props.commenting} />}
          {view === "picture" && <Changed changes={preview.changes.changes} source={source} />}
        </Panel>
      )}
      {isNothing && !done && <Panel title="Changes"><Empty title="Nothing to merge">{target} has everything that {source} has.</Empty></Panel>}
    </>
  );
}

function Facts({ preview, decided, broken, refusal }: { preview: MergePreview; decided: number; broken: Conflict[]; refusal: string | null }) {
  const { stats } = preview.changes;
  const { conflicts } = preview;
  const isBroken = [...conflicts, ...broken].some((each) => RULES.includes(each.kind));
  return (
    <div class="checks">
      <span class="chip good">{{ already_up_to_date: "up to date", fast_forward: "fast forward", merged: "both sides changed" }[preview.outcome]}</span>
      <span class="chip insert">{count(stats.inserts)} inserted</span>
      <span class="chip update">{count(stats.updates)} updated</span>
      <span class="chip delete">{count(stats.deletes)} deleted</span>
      <span class={conflicts.length ? "chip bad" : "chip good"}>{conflicts.length ? `${plural(conflicts.length, "conflict")}, ${count(decided)} decided` : "no conflicts"}</span>
      <span class={isBroken ? "chip bad" : "chip good"}>{isBroken ? "rules of the schema broken" : "rules of the schema hold"}</span>
      {preview.checks?.map((each) => <span key={each.name} class={`chip ${checkClass(each)}`}>{visible(each.name)}: {each.holds === null ? "known at the merge" : each.holds ? "holds" : "fails"}</span>)}
      {refusal && <span class="bad">{refusal}</span>}
    </div>
  );
}

function checkClass(check: Check): string {
  return check.holds === null ? "" : check.holds ? "good" : "bad";
}

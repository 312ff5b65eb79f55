// One merge request: what it is, who said what about it, and the merge.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, may, post, remove } from "../api";
import type { Decided, Merged } from "../merging";
import { address, go } from "../state";
import { ago, brief, moment, plural, visible } from "../text";
import type { MergePreview, MergeRequest, RequestComment, Verdict } from "../types";
import { CommitLink, Loading, Panel, Problem, Text, useLoad } from "./basics";
import type { Anchor } from "./changes";
import { CHANGES_MAX, Reviewing } from "./reviewing";

const EVENTS_MAX = 1000;

export default function Request({ number }: { number: number }) {
  const path = `/merge-requests/${number}`;
  const found = useLoad(() => get<MergeRequest>(path, { limit: String(EVENTS_MAX) }), [number]);
  const [error, setError] = useState<Error | null>(null);
  const [anchor, setAnchor] = useState<Anchor | null>(null);
  const request = found.data;
  /** Whatever is said to a request is told in place if it is refused; true if it was not. */
  const attempt = async (work: () => Promise<unknown>): Promise<boolean> => {
    setError(null);
    try {
      await work();
      return true;
    } catch (problem) {
      setError(problem as Error);
      return false;
    } finally {
      found.reload();
    }
  };
  if (!request) return <div class="page"><Panel title={`Merge request ${number}`}><Loading of={found} /></Panel></div>;
  const send = (decided: Decided & { head?: string }) => post<Merged>(`${path}/merge`, decided);
  const readPreview = () => get<MergePreview>(`${path}/preview`, { changes_max: String(CHANGES_MAX) });
  const title = <><span class="quiet">#{number}</span> <Text value={request.title} /> <span class={`chip ${STATE_CLASSES[request.state]}`}>{request.state}</span></>;
  const about = <About request={request} error={error ?? found.error} attempt={attempt} path={path} />;
  const isGone = request.review !== null && (request.review.source_state !== "present" || request.review.target_state !== "present");
  return (
    <div class="page review">
      {request.state === "open" && !isGone ? (
        <Reviewing source={request.source} target={request.target} title={title} readPreview={readPreview} send={send} onMerged={found.reload}
          refusal={standsInTheWay(request)} commenting={may("merge_request") ? { comments: request.comments, onComment: setAnchor } : undefined}>
          {about}
        </Reviewing>
      ) : <Panel title={title} class="summary">{about}</Panel>}
      <Talk request={request} anchor={anchor} onAnchor={setAnchor} attempt={attempt} path={path} />
    </div>
  );
}

const STATE_CLASSES = { open: "warn", merged: "good", closed: "bad" };

function standsInTheWay({ review }: MergeRequest): string | null {
  if (review === null || review.is_approved || review.required === 0) return null;
  if (review.objectors.length) return `${review.objectors.join(", ")} asked for changes.`;
  return `${plural(review.missing, "approval")} missing.`;
}

interface AboutProps {
  request: MergeRequest;
  error: Error | null;
  attempt: (work: () => Promise<unknown>) => Promise<boolean>;
  path: string;
}

function About({ request, error, attempt, path }: AboutProps) {
  const [text, setText] = useState("");
  const { review } = request;
  const say = (where: string, body: object = {}) => attempt(() => post(`${path}/${where}`, { ...body, ...(text && { text }) })).then((isDone) => isDone && setText(""));
  return (
    <div class="about">
      <p>
        <span class="chip"><Text value={request.source} /></span> into <span class="chip"><Text value={request.target} /></span>
        <span class="quiet"> by <Text value={request.author ?? "–"} />, <time title={moment(request.created_at)}>{ago(request.created_at)}</time>{request.reviewers.length > 0 && <>; asked to look: <Text value={request.reviewers.join(", ")} /></>}</span>
        {request.commit_id && <> merged as <CommitLink href={address("history", { branch: request.target, commit: request.commit_id })} id={request.commit_id} /></>}
      </p>
      {request.description && <p class="description"><Text value={request.description} /></p>}
      <Problem error={error} />
      {review && <>
        {review.source_state !== "present" && <p class="note warn">The branch {visible(request.source)} was {review.source_state === "replaced" ? "deleted and made again since" : "deleted"}: there is nothing to merge.</p>}
        {review.target_state !== "present" && <p class="note warn">The branch {visible(request.target)} was deleted.</p>}
        <ul class="verdicts" aria-label="Approvals">
          {review.verdicts.map((each) => <li key={each.actor}><Said verdict={each} /></li>)}
          {review.required > 0 && <li class="quiet">{plural(review.required, "approval")} needed{review.missing > 0 ? <>, <strong class="bad">{review.missing} missing</strong>{review.approvers.length > 0 && <>; may approve: <Text value={review.approvers.join(", ")} /></>}</> : ", all there"}</li>}
        </ul>
        {may("merge_approve") && <div class="pair">
          <input aria-label="Remark" placeholder="a remark, if you like" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <button onClick={() => say("approvals", { head: review.head })}>Approve</button>
          <button onClick={() => say("changes-requested")}>Ask for changes</button>
          {review.verdicts.length > 0 && <button onClick={() => attempt(() => remove(`${path}/approvals`))}>Take mine back</button>}
        </div>}
      </>}
      {may("merge_request") && request.state !== "merged" && <div class="pair">
        {request.state === "open" ? <button onClick={() => say("close")}>Close</button> : <button onClick={() => say("reopen")}>Open again</button>}
        <button onClick={() => go("review", { request: "", branch: request.source, target: request.target })} disabled={review?.source_state !== "present"}>Look at the branch</button>
      </div>}
    </div>
  );
}

function Said({ verdict }: { verdict: Verdict }) {
  const isApproval = verdict.verdict === "approved";
  return (
    <>
      <span class={`chip ${verdict.is_stale ? "warn" : isApproval ? "good" : "bad"}`}>{isApproval ? "approved" : "asked for changes"}{verdict.is_stale && ", before the branch changed"}</span>
      {" "}<Text value={verdict.actor} />{!verdict.counts && !verdict.is_stale && <span class="quiet"> (does not count)</span>} <time class="quiet" title={moment(verdict.at)}>{ago(verdict.at)}</time> {verdict.text && <Text value={verdict.text} />}
    </>
  );
}

interface TalkProps {
  request: MergeRequest;
  anchor: Anchor | null;
  onAnchor: (anchor: Anchor | null) => void;
  attempt: (work: () => Promise<unknown>) => Promise<boolean>;
  path: string;
}

function Talk({ request, anchor, onAnchor, attempt, path }: TalkProps) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (anchor) box.current?.focus();
  }, [anchor]);
  const send = async (event: Event) => {
    event.preventDefault();
    // What was typed stays until it is there.
    if (await attempt(() => post(`${path}/comments`, { text, ...anchor }))) (setText(""), onAnchor(null));
  };
  return (
    <Panel title="Conversation" tools={<span class="quiet">{plural(request.event_count, "event")}</span>}>
      <ol class="talk">
        {request.events.map((each) => {
          const comment = request.comments.find((other) => other.sequence === each.sequence);
          return (
            <li key={each.sequence}>
              <strong><Text value={each.actor ?? "–"} /></strong> <span class="quiet">{each.kind.replace(/_/g, " ")} <time title={moment(each.at)}>{ago(each.at)}</time></span>
              {comment && <Comment comment={comment} />}
              {!comment && typeof each.facts.text === "string" && <p><Text value={each.facts.text} /></p>}
            </li>
          );
        })}
      </ol>
      {may("merge_request") && <form class="form" onSubmit={send}>
        {anchor && <p>on <AnchorText {...anchor} /> <button type="button" class="small" onClick={() => onAnchor(null)}>on all of it instead</button></p>}
        <textarea aria-label="Comment" rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} ref={box} />
        <div><button disabled={!text.trim()}>Comment</button></div>
      </form>}
    </Panel>
  );
}

function Comment({ comment }: { comment: RequestComment }) {
  if (comment.is_hidden) return <p class="quiet">About a type that you may not read.</p>;
  return <p>{comment.type && <><AnchorText type={comment.type} id={comment.id} property={comment.property} /> </>}<Text value={comment.text ?? ""} /></p>;
}

function AnchorText({ type, id, property }: { type: string; id?: string | null; property?: string | null }) {
  return <span class="chip"><Text value={[type, id && brief(id, 60), property].filter(Boolean).join(" · ")} /></span>;
}

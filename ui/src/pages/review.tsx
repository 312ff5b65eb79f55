// Review: merge requests, and branches that have none.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, may, post } from "../api";
import type { Decided, Merged } from "../merging";
import { Empty, Panel, Problem, Tabs, Text, useLoad } from "../parts/basics";
import { CHANGES_MAX, Reviewing } from "../parts/reviewing";
import Request from "../parts/request";
import { address, at, branch, branches, go, route, setParams, writes } from "../state";
import { ago, count, moment, plural, visible } from "../text";
import type { MergePreview, MergeRequest, RequestSummary } from "../types";

export default function Review() {
  const source = branch.value;
  const { request, target } = route.value.params;
  if (request) return <Request key={request} number={Number(request)} />;
  if (source === "main" && !target) {
    return (
      <div class="page review-list">
        <Requests />
        <Branches />
      </div>
    );
  }
  return <BranchReview key={`${source} ${target}`} source={source} target={target || "main"} />;
}

function Requests() {
  const [state, setState] = useState<"open" | "merged" | "closed">("open");
  const [pages, setPages] = useState<RequestSummary[]>([]);
  const first = useLoad(() => (setPages([]), readRequests(state)), [state, writes.value]);
  const [rest, setRest] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const next = pages.length ? rest : (first.data?.next_before ?? null);
  const more = () => readRequests(state, next!).then((found) => (setPages([...pages, ...found.merge_requests]), setRest(found.next_before)), setError);
  const listed = [...(first.data?.merge_requests ?? []), ...pages];
  return (
    <Panel title="Merge requests" tools={<Tabs label="State" value={state} options={["open", "merged", "closed"] as const} onChange={setState} />}>
      <Problem error={first.error ?? error} retry={first.reload} />
      {first.data && listed.length === 0 && <Empty title={`No ${state} request`}>{state === "open" ? "Choose a branch below, look at it, and open a request for it." : ""}</Empty>}
      <ul class="list">
        {listed.map((each) => (
          <li key={each.number}>
            <span class="quiet">#{each.number}</span>
            <a class="grow" href={address("review", { request: String(each.number), branch: "", at: "" })}><Text value={each.title} /></a>
            <span class="chip"><Text value={each.source} /> → <Text value={each.target} /></span>
            {each.comment_count > 0 && <span class="quiet">{plural(each.comment_count, "comment")}</span>}
            <span class="quiet"><Text value={each.author ?? ""} /></span>
            <time class="quiet" title={moment(each.updated_at)}>{ago(each.updated_at)}</time>
          </li>
        ))}
      </ul>
      {next !== null && <button onClick={more}>Show more</button>}
    </Panel>
  );
}

function readRequests(state: string, before?: number): Promise<{ merge_requests: RequestSummary[]; next_before: number | null }> {
  return get("/merge-requests", { state, limit: "50", before: before === undefined ? undefined : String(before) });
}

function Branches() {
  const others = branches.value.filter((each) => each !== "main");
  return (
    <Panel title="Branches" tools={<span class="quiet">{count(others.length)}</span>}>
      {others.length === 0 ? <Empty title="There is only main">Make a branch in History, or with <code>omnigraph branch create</code>; what it changes is reviewed here.</Empty> : (
        <ul class="list">{others.map((each) => <li key={each}><a class="grow" href={address("review", { branch: each, at: "" })}><Text value={each} /></a><span class="quiet">into main</span></li>)}</ul>
      )}
    </Panel>
  );
}

function BranchReview({ source, target }: { source: string; target: string }) {
  const [isAsking, setIsAsking] = useState(false);
  const others = branches.value.filter((each) => each !== source);
  const readPreview = () => post<MergePreview>("/branches/merge/preview", { source, target, changes_max: CHANGES_MAX });
  const send = ({ delete_branch, resolve }: Decided) => post<Merged>("/branches/merge", { source, target, delete_branch, ...(resolve && { resolve }) });
  return (
    <div class="page review">
      <Reviewing source={source} target={target} readPreview={readPreview} send={send}
        title={<>Merge <span class="chip">{visible(source)}</span> into <select aria-label="Target" value={target} onChange={(event) => setParams({ target: event.currentTarget.value })}>{others.map((each) => <option key={each}>{each}</option>)}</select></>}
        tools={may("merge_request") && !at.value && !isAsking && <button onClick={() => setIsAsking(true)}>Open a request</button>}>
        {isAsking && <OpenRequest source={source} target={target} onCancel={() => setIsAsking(false)} />}
      </Reviewing>
    </div>
  );
}

function OpenRequest({ source, target, onCancel }: { source: string; target: string; onCancel: () => void }) {
  const [title, setTitle] = useState("");
  const [description, setDescription] = useState("");
  const [reviewers, setReviewers] = useState("");
  const [error, setError] = useState<Error | null>(null);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const open = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      const names = reviewers.split(/[\s,]+/).filter(Boolean);
      const made = await post<MergeRequest>("/merge-requests", { source, target, title, reviewers: names, ...(description && { description }) });
      go("review", { request: String(made.number), branch: "" });
    } catch (problem) {
      setError(problem as Error);
    }
  };
  return (
    <form class="form request-form" onSubmit={open}>
      <Problem error={error} />
      <label><span>title</span><input aria-label="Title" value={title} onInput={(event) => setTitle(event.currentTarget.value)} ref={first} /></label>
      <label><span>description</span><textarea aria-label="Description" rows={3} value={description} onInput={(event) => setDescription(event.currentTarget.value)} /></label>
      <label><span>reviewers</span><input aria-label="Reviewers" placeholder="names, with blanks between" value={reviewers} onInput={(event) => setReviewers(event.currentTarget.value)} /></label>
      <div class="pair"><button class="primary" disabled={!title.trim()}>Open the request</button><button type="button" onClick={onCancel}>Not now</button></div>
    </form>
  );
}

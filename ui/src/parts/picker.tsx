// Which branch and which time, for every page.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { at, branch, branches, branchOf, setParams, tags, writes } from "../state";
import { ago, moment, shortId } from "../text";
import type { Commit } from "../types";

export function Picker() {
  const [isOpen, setIsOpen] = useState(false);
  const [commits, setCommits] = useState<Commit[]>([]);
  const [when, setWhen] = useState("");
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isOpen) get<{ commits: Commit[] }>("/log", { branch: branch.value, limit: "40" }).then((found) => setCommits(found.commits), () => setCommits([]));
  }, [isOpen, branch.value, writes.value]);
  useEffect(() => {
    const close = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(event.target as Node)) setIsOpen(false);
    };
    addEventListener("mousedown", close);
    addEventListener("keydown", close);
    return () => (removeEventListener("mousedown", close), removeEventListener("keydown", close));
  }, []);
  const choose = (revision: string) => {
    setParams({ at: revision });
    setIsOpen(false);
  };
  const label = at.value === "" ? "now" : at.value.length > 22 ? shortId(at.value) : at.value;
  return (
    <div class="picker" ref={box}>
      <select aria-label="Branch" value={branch.value} onChange={(event) => setParams({ branch: event.currentTarget.value, at: "" })}>
        {!branches.value.includes(branch.value) && <option>{branch.value}</option>}
        {branches.value.map((each) => <option key={each}>{each}</option>)}
      </select>
      <button aria-haspopup="dialog" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)} class={at.value ? "past" : ""}>◷ {label}</button>
      {isOpen && (
        <div class="popover" role="dialog" aria-label="Time">
          <form onSubmit={(event) => { event.preventDefault(); if (when) choose(`${branch.value}@{${new Date(when).toISOString()}}`); }}>
            <input type="datetime-local" step="1" aria-label="At a time" value={when} onInput={(event) => setWhen(event.currentTarget.value)} />
            <button disabled={!when}>Go</button>
          </form>
          <ul class="list">
            <li><button class="link grow" onClick={() => choose("")}><strong>Now</strong></button></li>
            {tags.value.map((each) => <li key={each.name}><button class="link grow" onClick={() => choose(`tag:${each.name}`)}>⚑ {each.name}</button><span class="quiet">{ago(each.created_at)}</span></li>)}
            {commits.map((each) => (
              <li key={each.graph_commit_id}>
                <button class="link grow" onClick={() => choose(each.graph_commit_id)}><code>{shortId(each.graph_commit_id)}</code> {branchOf(each)}</button>
                <time class="quiet" title={moment(each.created_at)}>{ago(each.created_at)}</time>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

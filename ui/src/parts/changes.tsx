// Changes between two states: property by property, with a filter, and in pages.
import { useState } from "preact/hooks";
import { brief, count, plural, show } from "../text";
import type { Change, RequestComment } from "../types";
import { Empty, Tabs, Text } from "./basics";

const STEP = 50;

/** What a comment is about: a row, or one property of it. */
export interface Anchor {
  type: string;
  id: string;
  property?: string;
}

export interface Commenting {
  comments: RequestComment[];
  onComment: (anchor: Anchor) => void;
}

function value(given: unknown): string {
  return given === null || given === undefined ? "null" : brief(given, 400);
}

/** The properties of a change that are worth a row: those that differ, or all that have a value. */
function differences(change: Change): string[] {
  if (change.op === "update") return change.changed ?? [];
  const image = (change.op === "insert" ? change.after : change.before) ?? {};
  return Object.keys(image).filter((name) => image[name] !== null && !["id", "src", "dst"].includes(name));
}

function CommentButton({ commenting, anchor }: { commenting: Commenting; anchor: Anchor }) {
  const there = commenting.comments.filter((each) => each.type === anchor.type && each.id === anchor.id && (each.property ?? undefined) === anchor.property).length;
  const what = [anchor.type, brief(anchor.id, 60), anchor.property].filter(Boolean).join(" ");
  return <button class="small remark" aria-label={`Comment on ${what}`} title={there ? plural(there, "comment") : "Comment"} onClick={() => commenting.onComment(anchor)}>✎{there > 0 && ` ${there}`}</button>;
}

export function Changes({ changes, isCut, commenting }: { changes: Change[]; isCut?: boolean; commenting?: Commenting }) {
  const [op, setOp] = useState<"all" | Change["op"]>("all");
  const [most, setMost] = useState(STEP);
  const shown = changes.filter((each) => op === "all" || each.op === op);
  const number = (which: Change["op"]) => changes.filter((each) => each.op === which).length;
  if (changes.length === 0) return <Empty title="Nothing differs" />;
  return (
    <div class="changes">
      <p>
        <Tabs label="Kind of change" value={op} options={["all", "insert", "update", "delete"] as const} onChange={(next) => (setOp(next), setMost(STEP))}
          names={{ all: `all ${count(changes.length)}${isCut ? "+" : ""}`, insert: `inserted ${number("insert")}`, update: `updated ${number("update")}`, delete: `deleted ${number("delete")}` }} />
      </p>
      <table class="plain">
        <thead><tr><th>what</th><th>property</th><th>before</th><th>after</th></tr></thead>
        {shown.slice(0, most).map((each) => {
          const names = differences(each);
          const ends = each.endpoints;
          return (
            <tbody key={`${each.type} ${each.id} ${each.op}`} class={each.op}>
              {(names.length ? names : [""]).map((name, place) => (
                <tr key={name}>
                  {place === 0 && <td rowSpan={Math.max(names.length, 1)}>
                    <span class={`chip ${each.op}`}>{each.op}</span> {each.type} <Text value={ends ? `${show(ends.src ?? ends.from)} → ${show(ends.dst ?? ends.to)}` : brief(each.id, 60)} />
                    {commenting && <> <CommentButton commenting={commenting} anchor={{ type: each.type, id: each.id }} /></>}
                  </td>}
                  <td><code>{name}</code>{commenting && name && <> <CommentButton commenting={commenting} anchor={{ type: each.type, id: each.id, property: name }} /></>}</td>
                  <td class="before">{name && each.before ? <bdi>{value(each.before[name])}</bdi> : ""}</td>
                  <td class="after">{name && each.after ? <bdi>{value(each.after[name])}</bdi> : ""}</td>
                </tr>
              ))}
            </tbody>
          );
        })}
      </table>
      {shown.length > most && <button onClick={() => setMost(most + STEP * 4)}>Show more: {plural(shown.length - most, "change")} left</button>}
      {isCut && <p class="quiet">Only the first {count(changes.length)} changes were read. `omnigraph branch diff` writes all of them.</p>}
    </div>
  );
}

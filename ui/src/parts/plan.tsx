// A plan as a tree, and beside it what running it did.
import { count, visible } from "../text";

export interface Explained {
  ir: string;
  plan: string;
  stages: { text: string; rows: number | null; elapsed_ms: number }[];
  row_count?: number;
}

interface Branch {
  text: string;
  parts: Branch[];
}

function toTree(text: string): Branch[] {
  const roots: Branch[] = [];
  const open: { depth: number; node: Branch }[] = [];
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const depth = line.length - line.trimStart().length;
    const node = { text: line.trim(), parts: [] };
    while (open.length && open[open.length - 1].depth >= depth) open.pop();
    (open.length ? open[open.length - 1].node.parts : roots).push(node);
    open.push({ depth, node });
  }
  return roots;
}

function Tree({ branches }: { branches: Branch[] }) {
  return (
    <ul class="tree">
      {branches.map((each, place) => (
        <li key={place}>
          <code><b>{visible(each.text.split(" ")[0])}</b> {visible(each.text.split(" ").slice(1).join(" "))}</code>
          {each.parts.length > 0 && <Tree branches={each.parts} />}
        </li>
      ))}
    </ul>
  );
}

export function Plan({ explained }: { explained: Explained }) {
  // Times are counted from the beginning: a step took what passed since the one before.
  const stages = explained.stages.map((each, place) => ({ ...each, took: each.elapsed_ms - (explained.stages[place - 1]?.elapsed_ms ?? 0) }));
  const longest = Math.max(...stages.map((each) => each.took), 0.001);
  return (
    <div class="plan">
      <div>
        <h3>Plan</h3>
        <Tree branches={toTree(explained.plan)} />
      </div>
      <div>
        <h3>What running it did</h3>
        <table class="plain">
          <thead><tr><th>step</th><th class="figure">rows</th><th class="figure">ms</th><th /></tr></thead>
          <tbody>
            {stages.map((each, place) => (
              <tr key={place}>
                <td><code>{visible(each.text)}</code></td>
                <td class="figure">{each.rows === null ? "" : count(each.rows)}</td>
                <td class="figure">{each.took.toFixed(2)}</td>
                <td class="bar-cell"><span class="bar" style={{ width: `${Math.round((each.took / longest) * 100)}%` }} /></td>
              </tr>
            ))}
          </tbody>
        </table>
        <h3>Typed form</h3>
        <pre>{visible(explained.ir)}</pre>
      </div>
    </div>
  );
}

// What a branch changes as a picture: changed nodes and edges in colour, and one hop around them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { catalog, post } from "../api";
import { CHANGE_COLOURS, typeColour } from "../colours";
import { go } from "../state";
import { show } from "../text";
import type { Change, ReadOutput } from "../types";
import { Problem } from "./basics";
import Picture, { type Dot, Legend, type Line } from "./picture";

const CONTEXT_MAX = 40;

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

export function Changed({ changes, source }: { changes: Change[]; source: string }) {
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

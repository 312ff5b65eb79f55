// The schema as a diagram: boxes of node types in columns, edges as curves between them.
import { count, visible } from "../text";
import type { Catalog, NodeType } from "../types";

const WIDTH = 190;
const LINE = 18;
const HEAD = 30;
const GAP_X = 150;
const GAP_Y = 34;
const SHOWN = 9;

interface Box {
  type: NodeType;
  x: number;
  y: number;
  height: number;
}

/** A type stands right of those that lead to it, as far as edges do not run in circles. */
function rank(catalog: Catalog): Map<string, number> {
  const ranks = new Map(catalog.nodes.map((each) => [each.name, 0]));
  for (let round = 0; round < Math.min(catalog.nodes.length, 4); round++) {
    for (const edge of catalog.edges) {
      const [from, to] = [ranks.get(edge.source), ranks.get(edge.target)];
      if (from === undefined || to === undefined || edge.source === edge.target) continue;
      const isMutual = catalog.edges.some((each) => each.source === edge.target && each.target === edge.source);
      if (to <= from && !isMutual && from + 1 < 4) ranks.set(edge.target, from + 1);
    }
  }
  return ranks;
}

function place(catalog: Catalog): Box[] {
  const ranks = rank(catalog);
  const columns: NodeType[][] = [];
  for (const type of catalog.nodes) (columns[ranks.get(type.name)!] ??= []).push(type);
  const boxes: Box[] = [];
  columns.filter(Boolean).forEach((types, column) => {
    let y = 24;
    for (const type of types) {
      const height = HEAD + Math.min(type.properties.length, SHOWN + 1) * LINE + 8;
      boxes.push({ type, x: column * (WIDTH + GAP_X) + 8, y, height });
      y += height + GAP_Y;
    }
  });
  return boxes;
}

interface Drawn {
  path: string;
  x: number;
  y: number;
  anchor: "start" | "middle";
}

/** Curves leave and reach a box one below the other, so that none hides another. */
class Ports {
  private readonly taken = new Map<string, number>();

  next(box: Box, side: "left" | "right"): number {
    const key = `${side} ${box.type.name}`;
    const place = this.taken.get(key) ?? 0;
    this.taken.set(key, place + 1);
    return box.y + HEAD / 2 + Math.min(place * 19, box.height - HEAD);
  }
}

function curve(from: Box, to: Box, ports: Ports): Drawn {
  const right = from.x + WIDTH;
  if (from === to || to.x === from.x) {
    const y1 = ports.next(from, "right");
    const y2 = from === to ? ports.next(from, "right") : ports.next(to, "right");
    return { path: `M${right} ${y1} C${right + 52} ${y1} ${right + 52} ${y2} ${right + 2} ${y2}`, x: right + 43, y: (y1 + y2) / 2 + 4, anchor: "start" };
  }
  const isRight = to.x > from.x;
  const [y1, y2] = [ports.next(from, isRight ? "right" : "left"), ports.next(to, isRight ? "left" : "right")];
  const [x1, x2] = isRight ? [right, to.x - 2] : [from.x, to.x + WIDTH + 2];
  const bend = (x2 - x1) / 2;
  return { path: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, x: x1 + bend * 1.15, y: (y1 + y2) / 2 - 5, anchor: "middle" };
}

export function Diagram(props: { catalog: Catalog; counts: Record<string, number>; onChoose: (type: string) => void; colour: (type: string) => string }) {
  const { catalog, counts, onChoose, colour } = props;
  const boxes = place(catalog);
  const byName = new Map(boxes.map((each) => [each.type.name, each]));
  const width = Math.max(...boxes.map((each) => each.x)) + WIDTH + 130;
  const height = Math.max(...boxes.map((each) => each.y + each.height)) + 12;
  const ports = new Ports();
  // Loops come last, below the curves that lead to other types.
  const edges = [...catalog.edges].sort((a, b) => Number(a.source === a.target) - Number(b.source === b.target));
  return (
    <div class="diagram">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={`Schema: ${catalog.nodes.length} node types, ${catalog.edges.length} edge types`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0 8 4 0 8z" class="arrow" />
          </marker>
        </defs>
        {edges.map((edge) => {
          const [from, to] = [byName.get(edge.source), byName.get(edge.target)];
          if (!from || !to) return null;
          const drawn = curve(from, to, ports);
          return (
            <g key={edge.name} class="edge">
              <path d={drawn.path} marker-end="url(#arrow)" />
              <text x={drawn.x} y={drawn.y} text-anchor={drawn.anchor}>
                {visible(edge.name)}
                <tspan class="figure"> {count(counts[edge.table_key] ?? 0)}</tspan>
              </text>
            </g>
          );
        })}
        {boxes.map(({ type, x, y, height: tall }) => (
          <g key={type.name} class="type" transform={`translate(${x} ${y})`} role="button" tabindex={0} aria-label={`Explore ${type.name}`}
            onClick={() => onChoose(type.name)} onKeyDown={(event) => event.key === "Enter" && onChoose(type.name)}>
            <rect width={WIDTH} height={tall} rx="5" />
            <rect class="bar" width={4} height={tall} rx="2" style={{ fill: colour(type.name) }} />
            <text class="name" x="14" y="20">{visible(type.name)}</text>
            <text class="figure" x={WIDTH - 10} y="20" text-anchor="end">{count(counts[type.table_key] ?? 0)}</text>
            <line x1="4" x2={WIDTH} y1={HEAD} y2={HEAD} />
            {type.properties.slice(0, SHOWN).map((each, row) => (
              <g key={each.name} transform={`translate(0 ${HEAD + 15 + row * LINE})`}>
                <title>{each.description ?? `${each.name}: ${each.type}`}</title>
                <text class={type.key.includes(each.name) ? "property key" : "property"} x="14">
                  {visible(each.name)}
                  {type.key.includes(each.name) ? " ⚷" : each.indexed ? " ⌕" : ""}
                </text>
                <text class="kind" x={WIDTH - 10} text-anchor="end">{visible(each.type.length > 16 ? `${each.type.slice(0, 15)}…` : each.type)}{each.nullable ? "?" : ""}</text>
              </g>
            ))}
            {type.properties.length > SHOWN && <text class="kind" x="14" y={HEAD + 15 + SHOWN * LINE}>and {type.properties.length - SHOWN} more</text>}
          </g>
        ))}
      </svg>
    </div>
  );
}

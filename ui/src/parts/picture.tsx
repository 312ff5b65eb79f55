// A picture of nodes and edges as a part of a page.
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "../text";
import { type Dot, Drawing, type Line } from "./drawing";
import layoutUrl from "./layout.worker?worker&url";

export type { Dot, Line } from "./drawing";

interface Props {
  dots: Dot[];
  lines: Line[];
  onChoose?: (id: string) => void;
  chosen?: string | null;
  label: string;
}

const trusted = window.trustedTypes?.createPolicy("workbench", {
  createScriptURL(url) {
    if (new URL(url, location.href).origin !== location.origin) throw new TypeError("workers come from this server");
    return url;
  },
});

function startWorker(): Worker {
  return new Worker(trusted ? trusted.createScriptURL(layoutUrl) : layoutUrl, { type: "module" });
}

export default function Picture({ dots, lines, onChoose, chosen, label }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const drawing = useRef<Drawing | null>(null);
  const latest = useRef(onChoose);
  latest.current = onChoose;

  useEffect(() => {
    const layout = startWorker();
    try {
      drawing.current = new Drawing(host.current!, { layout, onChoose: (id) => latest.current?.(id) });
    } catch {
      layout.terminate();
      setProblem("This browser cannot draw the picture: it has no WebGL.");
      return;
    }
    return () => {
      drawing.current?.close();
      drawing.current = null;
    };
  }, []);

  useEffect(() => void drawing.current?.show(dots, lines), [dots, lines]);
  useEffect(() => drawing.current?.choose(chosen ?? null), [chosen]);

  if (problem) return <div class="empty"><strong>No picture</strong><div>{problem}</div></div>;
  return (
    <div class="picture" role="group" aria-label={`${label}: ${dots.length} nodes, ${lines.length} edges`}>
      <div class="canvas" ref={host} role="application" aria-label="Picture: arrow keys go from node to node, Enter opens one, + − 0 zoom" />
      <div class="zoom">
        <button aria-label="Zoom in" onClick={() => drawing.current?.zoom("in")}>+</button>
        <button aria-label="Zoom out" onClick={() => drawing.current?.zoom("out")}>−</button>
        <button aria-label="Show all" onClick={() => drawing.current?.zoom("fit")}>⤢</button>
      </div>
    </div>
  );
}

export function Legend({ types, colours, counts }: { types: string[]; colours: (type: string) => string; counts?: Record<string, number> }) {
  return (
    <ul class="legend">
      {types.map((each) => (
        <li key={each}>
          <i style={{ background: colours(each) }} />
          {visible(each)}
          {counts && <span class="quiet"> {counts[each] ?? 0}</span>}
        </li>
      ))}
    </ul>
  );
}

// A picture of nodes and edges: drawn by WebGL, laid out in a worker.
import Graph from "graphology";
import Sigma from "sigma";
import { useEffect, useRef, useState } from "preact/hooks";
import { visible } from "../text";
import layoutUrl from "./layout.worker?worker&url";

export interface Dot {
  id: string;
  type: string;
  label: string;
  /** Overrides the colour of the type: what happened to it, or a value. */
  colour?: string;
  size?: number;
}

export interface Line {
  id: string;
  source: string;
  target: string;
  type: string;
  colour?: string;
}

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

function themeColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Where a new node begins: near a neighbour that is there, or somewhere that depends on its id only. */
function placeOf(graph: Graph, dot: Dot, lines: Line[], index: number): { x: number; y: number } {
  const angle = index * 2.399963;
  const line = lines.find((each) => (each.source === dot.id && graph.hasNode(each.target)) || (each.target === dot.id && graph.hasNode(each.source)));
  const near = line && (line.source === dot.id ? line.target : line.source);
  const reach = near ? 3 : Math.sqrt(index + 1) * 4;
  const from = near ? graph.getNodeAttributes(near) : { x: 0, y: 0 };
  return { x: from.x + Math.cos(angle) * reach, y: from.y + Math.sin(angle) * reach };
}

/** A node that is pointed at or chosen: a ring, and its label on the ground of the page. */
function drawChosen(context: CanvasRenderingContext2D, data: { x: number; y: number; size: number; label: string | null }): void {
  context.strokeStyle = themeColour("--accent");
  context.lineWidth = 2;
  context.beginPath();
  context.arc(data.x, data.y, data.size + 3, 0, Math.PI * 2);
  context.stroke();
  if (!data.label) return;
  context.font = "600 11px system-ui, sans-serif";
  const left = data.x + data.size + 6;
  context.fillStyle = themeColour("--raised");
  context.fillRect(left - 3, data.y - 9, context.measureText(data.label).width + 6, 18);
  context.fillStyle = themeColour("--text");
  context.fillText(data.label, left, data.y + 4);
}

export default function Picture({ dots, lines, onChoose, chosen, label }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const kept = useRef<{ graph: Graph; sigma: Sigma; worker: Worker } | null>(null);
  const latest = useRef(onChoose);
  latest.current = onChoose;

  useEffect(() => {
    const graph = new Graph({ multi: true });
    let sigma: Sigma;
    try {
      sigma = new Sigma(graph, host.current!, {
        allowInvalidContainer: true,
        defaultEdgeType: "arrow",
        labelFont: "system-ui, sans-serif",
        labelSize: 11,
        labelColor: { color: themeColour("--text") },
        labelDensity: 0.5,
        labelGridCellSize: 130,
        labelRenderedSizeThreshold: 2,
        renderEdgeLabels: true,
        edgeLabelSize: 10,
        edgeLabelColor: { color: themeColour("--quiet") },
        stagePadding: 50,
        zIndex: true,
        defaultDrawNodeHover: drawChosen,
        minEdgeThickness: 1.2,
      });
    } catch {
      setProblem("This browser cannot draw the picture: it has no WebGL.");
      return;
    }
    sigma.on("clickNode", ({ node }) => latest.current?.(node));
    const worker = startWorker();
    kept.current = { graph, sigma, worker };
    return () => {
      worker.terminate();
      sigma.kill();
      kept.current = null;
    };
  }, []);

  useEffect(() => {
    if (!kept.current) return;
    const { graph, worker, sigma } = kept.current;
    const wanted = new Set(dots.map((each) => each.id));
    const linked = new Set(lines.map((each) => each.id));
    let isMoved = false;
    graph.forEachEdge((edge) => linked.has(edge) || graph.dropEdge(edge));
    graph.forEachNode((node) => wanted.has(node) || graph.dropNode(node));
    const shrink = dots.length > 4000 ? 0.3 : dots.length > 1200 ? 0.45 : dots.length > 300 ? 0.7 : 1;
    dots.forEach((dot, index) => {
      const look = { label: visible(dot.label), color: dot.colour ?? "#888", size: (dot.size ?? 7) * shrink };
      if (graph.hasNode(dot.id)) graph.mergeNodeAttributes(dot.id, look);
      else {
        graph.addNode(dot.id, { ...placeOf(graph, dot, lines, index), ...look });
        isMoved = true;
      }
    });
    const many = lines.length > 300;
    for (const line of lines) {
      if (!graph.hasNode(line.source) || !graph.hasNode(line.target)) continue;
      const look = { label: many ? undefined : visible(line.type), color: line.colour ?? themeColour("--edge"), size: many ? 1 : 2 };
      if (graph.hasEdge(line.id)) graph.mergeEdgeAttributes(line.id, look);
      else {
        graph.addDirectedEdgeWithKey(line.id, line.source, line.target, look);
        isMoved = true;
      }
    }
    if (!isMoved) return;
    const ids = graph.nodes();
    const places = new Map(ids.map((id, place) => [id, place]));
    const positions = new Float32Array(ids.flatMap((id) => [graph.getNodeAttribute(id, "x"), graph.getNodeAttribute(id, "y")]));
    const edges = new Uint32Array(graph.edges().flatMap((edge) => [places.get(graph.source(edge))!, places.get(graph.target(edge))!]));
    worker.onmessage = ({ data }: MessageEvent<{ positions: Float32Array; isDone: boolean }>) => {
      graph.updateEachNodeAttributes((id, attributes) => {
        const place = places.get(id);
        return place === undefined ? attributes : { ...attributes, x: data.positions[place * 2], y: data.positions[place * 2 + 1] };
      }, { attributes: ["x", "y"] });
      if (data.isDone) host.current?.setAttribute("data-still", "true");
      else requestAnimationFrame(() => worker.postMessage("drawn"));
    };
    host.current!.removeAttribute("data-still");
    worker.postMessage({ positions, edges });
    sigma.refresh();
  }, [dots, lines]);

  useEffect(() => {
    const sigma = kept.current?.sigma;
    sigma?.setSetting("nodeReducer", (id, data) => (id === chosen ? { ...data, highlighted: true, zIndex: 1 } : data));
  }, [chosen]);

  const zoom = (how: "in" | "out" | "fit") => {
    const camera = kept.current?.sigma.getCamera();
    if (how === "fit") camera?.animatedReset({ duration: 150 });
    else if (how === "in") camera?.animatedZoom({ duration: 150 });
    else camera?.animatedUnzoom({ duration: 150 });
  };
  if (problem) return <div class="empty"><strong>No picture</strong><div>{problem}</div></div>;
  return (
    <div class="picture" role="img" aria-label={`${label}: ${dots.length} nodes, ${lines.length} edges`}>
      <div class="canvas" ref={host} data-nodes={dots.length} data-edges={lines.length} />
      <div class="zoom">
        <button aria-label="Zoom in" onClick={() => zoom("in")}>+</button>
        <button aria-label="Zoom out" onClick={() => zoom("out")}>−</button>
        <button aria-label="Show all" onClick={() => zoom("fit")}>⤢</button>
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

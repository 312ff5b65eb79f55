// Nodes and edges, drawn by WebGL and laid out in a worker: the workbench and notebooks show the same.
import Graph from "graphology";
import Sigma from "sigma";
import { visible } from "../text";
import type { Moved, Start } from "./layout";

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

/** What lays out: a worker, or something that does the same where there can be none. */
export interface Layouter {
  onmessage: ((event: MessageEvent<Moved>) => void) | null;
  postMessage(message: Start | "drawn" | null): void;
  terminate(): void;
}

export interface Options {
  layout: Layouter;
  onChoose?: (id: string) => void;
}

/** How much is added to a picture before the page may do something else. */
const SLICE_MS = 8;

export class Drawing {
  private readonly graph = new Graph({ multi: true });
  private readonly sigma: Sigma;
  private chosen: string | null = null;
  private edition = 0;
  private pinned: string | null = null;
  /** Whether the last press moved a node: its release is no click. */
  private isDragged = false;

  /** Throws where the browser has no WebGL. */
  constructor(private readonly host: HTMLElement, private readonly options: Options) {
    this.sigma = new Sigma(this.graph, host, {
      allowInvalidContainer: true,
      defaultEdgeType: "arrow",
      labelFont: "system-ui, sans-serif",
      labelSize: 11,
      labelColor: { color: this.themeColour("--text") },
      labelDensity: 0.5,
      labelGridCellSize: 130,
      labelRenderedSizeThreshold: 2,
      renderEdgeLabels: true,
      edgeLabelSize: 10,
      edgeLabelColor: { color: this.themeColour("--quiet") },
      stagePadding: 50,
      zIndex: true,
      defaultDrawNodeHover: (context, data) => this.drawChosen(context, data),
      minEdgeThickness: 1.2,
      nodeReducer: (id, data) => (id === this.chosen ? { ...data, highlighted: true, zIndex: 1 } : data),
    });
    this.sigma.on("clickNode", ({ node }) => this.isDragged || options.onChoose?.(node));
    this.letDrag();
    host.tabIndex = 0;
    host.addEventListener("keydown", (event) => this.press(event));
  }

  /** Draw these, and let them find their places; what was drawn before stays where it is. */
  async show(dots: Dot[], lines: Line[]): Promise<void> {
    const edition = ++this.edition;
    this.host.removeAttribute("data-still");
    this.host.dataset.nodes = String(dots.length);
    this.host.dataset.edges = String(lines.length);
    const { graph } = this;
    const wanted = new Set(dots.map((each) => each.id));
    const linked = new Set(lines.map((each) => each.id));
    graph.forEachEdge((edge) => linked.has(edge) || graph.dropEdge(edge));
    graph.forEachNode((node) => wanted.has(node) || graph.dropNode(node));
    const near = findNeighbours(graph, lines);
    const shrink = dots.length > 4000 ? 0.3 : dots.length > 1200 ? 0.45 : dots.length > 300 ? 0.7 : 1;
    const edgeColour = this.themeColour("--edge");
    const many = lines.length > 300;
    let isMoved = false;
    const addDot = (dot: Dot, index: number) => {
      const look = { label: visible(dot.label), color: dot.colour ?? "#888", size: (dot.size ?? 7) * shrink };
      if (graph.hasNode(dot.id)) graph.mergeNodeAttributes(dot.id, look);
      else {
        graph.addNode(dot.id, { ...placeOf(graph, near.get(dot.id), index), ...look });
        isMoved = true;
      }
    };
    const addLine = (line: Line) => {
      if (!graph.hasNode(line.source) || !graph.hasNode(line.target)) return;
      const look = { label: many ? undefined : visible(line.type), color: line.colour ?? edgeColour, size: many ? 1 : 2 };
      if (graph.hasEdge(line.id)) graph.mergeEdgeAttributes(line.id, look);
      else {
        graph.addDirectedEdgeWithKey(line.id, line.source, line.target, look);
        isMoved = true;
      }
    };
    const isCurrent = () => edition === this.edition;
    if (!(await addAll(dots, addDot, isCurrent)) || !(await addAll(lines, addLine, isCurrent))) return;
    if (isMoved) this.layOut(edition);
    else this.host.setAttribute("data-still", "true");
  }

  choose(id: string | null): void {
    this.chosen = id;
    this.sigma.refresh({ skipIndexation: true });
  }

  zoom(how: "in" | "out" | "fit"): void {
    const camera = this.sigma.getCamera();
    if (how === "fit") void camera.animatedReset({ duration: 150 });
    else if (how === "in") void camera.animatedZoom({ duration: 150 });
    else void camera.animatedUnzoom({ duration: 150 });
  }

  /** Where a node is on the page, in pixels from the corner of the picture. */
  placeOnScreen(id: string): { x: number; y: number } {
    const { x, y } = this.graph.getNodeAttributes(id);
    return this.sigma.graphToViewport({ x, y });
  }

  close(): void {
    this.edition += 1;
    this.options.layout.terminate();
    this.sigma.kill();
  }

  private layOut(edition: number): void {
    const { graph } = this;
    const { layout } = this.options;
    const ids = graph.nodes();
    const places = new Map(ids.map((id, place) => [id, place]));
    const positions = new Float32Array(ids.length * 2);
    ids.forEach((id, place) => {
      const { x, y } = graph.getNodeAttributes(id);
      positions[place * 2] = x;
      positions[place * 2 + 1] = y;
    });
    const edges = new Uint32Array(graph.size * 2);
    let end = 0;
    graph.forEachEdge((_edge, _attributes, source, target) => {
      edges[end++] = places.get(source)!;
      edges[end++] = places.get(target)!;
    });
    layout.onmessage = ({ data }: MessageEvent<Moved>) => {
      if (edition !== this.edition) return;
      graph.updateEachNodeAttributes((id, attributes) => {
        const place = places.get(id);
        if (place === undefined || id === this.pinned) return attributes;
        attributes.x = data.positions[place * 2];
        attributes.y = data.positions[place * 2 + 1];
        return attributes;
      }, { attributes: ["x", "y"] });
      if (data.isDone) this.host.setAttribute("data-still", "true");
      else requestAnimationFrame(() => layout.postMessage("drawn"));
    };
    layout.postMessage({ positions, edges });
  }

  private letDrag(): void {
    const { sigma, graph } = this;
    sigma.on("downNode", ({ node }) => {
      this.pinned = node;
      this.isDragged = false;
      // Without a box of its own the picture would rescale while a node is pulled out of it.
      if (!sigma.getCustomBBox()) sigma.setCustomBBox(sigma.getBBox());
    });
    sigma.on("moveBody", ({ event }) => {
      if (this.pinned === null) return;
      this.isDragged = true;
      this.edition += 1; // a hand on a node ends the layout
      this.options.layout.postMessage(null);
      this.host.setAttribute("data-still", "true");
      const { x, y } = sigma.viewportToGraph(event);
      graph.mergeNodeAttributes(this.pinned, { x, y });
      event.preventSigmaDefault();
      event.original.preventDefault();
    });
    const drop = () => (this.pinned = null);
    sigma.on("upNode", drop);
    sigma.on("upStage", drop);
  }

  private press(event: KeyboardEvent): void {
    const ids = this.graph.nodes();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && ids.length) {
      const place = this.chosen === null ? (step > 0 ? -1 : 0) : ids.indexOf(this.chosen);
      const next = ids[(place + step + ids.length) % ids.length];
      this.choose(next);
      this.host.setAttribute("aria-description", this.graph.getNodeAttribute(next, "label"));
    } else if (event.key === "Enter" && this.chosen !== null) this.options.onChoose?.(this.chosen);
    else if (event.key === "+") this.zoom("in");
    else if (event.key === "-") this.zoom("out");
    else if (event.key === "0") this.zoom("fit");
    else return;
    event.preventDefault();
  }

  private themeColour(name: string): string {
    return getComputedStyle(this.host).getPropertyValue(name).trim();
  }

  /** A node that is pointed at or chosen: a ring, and its label on the ground of the page. */
  private drawChosen(context: CanvasRenderingContext2D, data: { x: number; y: number; size: number; label?: string | null }): void {
    context.strokeStyle = this.themeColour("--accent");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, Math.PI * 2);
    context.stroke();
    if (!data.label) return;
    context.font = "600 11px system-ui, sans-serif";
    const left = data.x + data.size + 6;
    context.fillStyle = this.themeColour("--raised");
    context.fillRect(left - 3, data.y - 9, context.measureText(data.label).width + 6, 18);
    context.fillStyle = this.themeColour("--text");
    context.fillText(data.label, left, data.y + 4);
  }
}

/** Add one after the other, and let the page do something else in between; false if it wants another picture by then. */
async function addAll<T>(all: T[], add: (each: T, index: number) => void, isCurrent: () => boolean): Promise<boolean> {
  let until = performance.now() + SLICE_MS;
  for (let place = 0; place < all.length; place++) {
    if (performance.now() > until) {
      await new Promise((resolve) => setTimeout(resolve));
      if (!isCurrent()) return false;
      until = performance.now() + SLICE_MS;
    }
    add(all[place], place);
  }
  return true;
}

/** For each end of a line one node at the other end, preferably one that is drawn already. */
function findNeighbours(graph: Graph, lines: Line[]): Map<string, string> {
  const found = new Map<string, string>();
  const note = (node: string, other: string) => {
    const before = found.get(node);
    if (before === undefined || (!graph.hasNode(before) && graph.hasNode(other))) found.set(node, other);
  };
  for (const { source, target } of lines) {
    note(source, target);
    note(target, source);
  }
  return found;
}

/** Where a new node begins: near a neighbour that is there, or somewhere that depends on its place in the list only. */
function placeOf(graph: Graph, near: string | undefined, index: number): { x: number; y: number } {
  const angle = index * 2.399963;
  const isNear = near !== undefined && graph.hasNode(near);
  const reach = isNear ? 3 : Math.sqrt(index + 1) * 4;
  const from = isNear ? graph.getNodeAttributes(near) : { x: 0, y: 0 };
  return { x: from.x + Math.cos(angle) * reach, y: from.y + Math.sin(angle) * reach };
}

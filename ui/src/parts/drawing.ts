// Nodes and edges, drawn by WebGL and laid out in a worker: the workbench and notebooks show the same.
import { visible } from "../text";
import { Camera } from "./camera";
import { Labels } from "./labels";
import type { Moved, Start } from "./layout";
import { FULL, Pace } from "./pace";
import { emptyScene, makePlaces, Painter, type Scene } from "./painter";

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

/** How long a picture is put together before the page may do something else. */
const SLICE_MS = 8;
/** More than these are drawn thinner, without arrows, or without names while they move. */
const LABELLED_LINES = 300;
const ARROWED_LINES = 5000;
const NAMED_WHILE_MOVING = 300;
const NEAR_PIXELS = 5;
/** So long after the hand rests, all of it is drawn. */
const REST_MS = 160;

export class Drawing {
  private readonly painter: Painter;
  private readonly labels: Labels;
  private readonly camera: Camera;
  private readonly watch: ResizeObserver;
  private scene: Scene = emptyScene();
  private ids: string[] = [];
  private places = new Map<string, number>();
  private lineIds: string[] = [];
  private names: string[] = [];
  private lineNames: string[] = [];
  private chosen: string | null = null;
  private hovered: number | null = null;
  private edition = 0;
  private frame = 0;
  private pace = new Pace(0);
  /** What the frame that is being drawn was paced by; null if it is drawn in full. */
  private paced: Pace | null = null;
  private isStale = true;
  private restsAt = 0;
  private rest = 0;

  /** Throws where the browser has no WebGL. */
  constructor(private readonly host: HTMLElement, private readonly options: Options) {
    const [below, above] = [0, 1].map(() => document.createElement("canvas"));
    for (const each of [below, above]) Object.assign(each.style, { position: "absolute", inset: "0", width: "100%", height: "100%" });
    this.painter = new Painter(below, () => this.repaint());
    host.replaceChildren(below, above);
    this.camera = new Camera(host, {
      find: (x, y) => this.find(x, y),
      press: (place) => options.onChoose?.(this.ids[place]),
      drag: (place, x, y) => this.drag(place, x, y),
      hover: (place) => this.hover(place),
      redraw: () => this.pull(),
    });
    this.labels = new Labels(above, this.camera);
    this.watch = new ResizeObserver(() => this.measure());
    this.watch.observe(host);
    this.measure();
    host.tabIndex = 0;
    host.addEventListener("keydown", (event) => this.press(event));
  }

  /** Draw these, and let them find their places; what was drawn before stays where it is. */
  async show(dots: Dot[], lines: Line[]): Promise<void> {
    const edition = ++this.edition;
    const wasMoving = this.scene.size > 0 && !this.host.hasAttribute("data-still");
    this.options.layout.postMessage(null);
    this.host.removeAttribute("data-still");
    this.host.dataset.nodes = String(dots.length);
    this.host.dataset.edges = String(lines.length);
    const made = new Composer(this.scene, this.places, dots.length, lines.length);
    const isCurrent = () => edition === this.edition;
    if (!(await forAll(lines, (each) => made.note(each), isCurrent))) return;
    if (!(await forAll(dots, (each) => made.addDot(each), isCurrent))) return;
    if (!(await forAll(lines, (each) => made.addLine(each), isCurrent))) return;
    const known = new Set(this.lineIds);
    const isNew = wasMoving || made.isMoved || made.lineIds.some((each) => !known.has(each));
    ({ ids: this.ids, places: this.places, names: this.names, lineIds: this.lineIds, lineNames: this.lineNames } = made);
    this.scene = made.finish();
    this.hovered = null;
    this.painter.take(this.scene);
    this.pace = new Pace(this.lineIds.length);
    if (isNew) this.layOut(edition);
    else this.stand();
    this.repaint();
  }

  choose(id: string | null): void {
    this.chosen = id;
    this.redraw();
  }

  zoom(how: "in" | "out" | "fit"): void {
    this.camera.step(how);
  }

  /** Where a node is on the page, in pixels from the corner of the picture. */
  placeOnScreen(id: string): { x: number; y: number } {
    const place = this.places.get(id)!;
    return this.camera.toScreen(this.scene.places[place * 2], this.scene.places[place * 2 + 1]);
  }

  close(): void {
    this.edition += 1;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    this.watch.disconnect();
    this.options.layout.terminate();
    this.painter.close();
  }

  private layOut(edition: number): void {
    const { scene } = this;
    const { layout } = this.options;
    layout.onmessage = ({ data }: MessageEvent<Moved>) => {
      if (edition !== this.edition) return;
      scene.places.set(data.positions);
      this.painter.move();
      if (data.isDone) this.stand();
      this.repaint(() => data.isDone || edition !== this.edition || layout.postMessage("drawn"));
    };
    layout.postMessage({ positions: scene.places.slice(0, scene.size * 2), edges: scene.links });
  }

  private stand(): void {
    this.host.setAttribute("data-still", "true");
  }

  private measure(): void {
    this.camera.view.width = Math.max(1, this.host.clientWidth);
    this.camera.view.height = Math.max(1, this.host.clientHeight);
    this.repaint();
  }

  private after: (() => void)[] = [];

  /** A hand moves the picture: less of it may be drawn until it rests. */
  private pull(): void {
    this.restsAt = performance.now() + REST_MS;
    this.repaint();
  }

  /** Draw nodes and lines anew. */
  private repaint(after?: () => void): void {
    this.isStale = true;
    this.redraw(after);
  }

  /** Draw once with the next frame, however often it is asked for. */
  private redraw(after?: () => void): void {
    if (after) this.after.push(after);
    this.frame ||= requestAnimationFrame(() => this.next());
  }

  private next(): void {
    this.frame = 0;
    const spent = this.painter.finish();
    // While a frame is drawn the next one waits: those that pile up would lag behind the hand.
    if (this.isStale && spent === null) return this.redraw();
    if (spent) this.paced?.note(spent);
    this.paint();
    for (const each of this.after.splice(0)) each();
  }

  private get isMoving(): boolean {
    return !this.host.hasAttribute("data-still") || performance.now() < this.restsAt;
  }

  private paint(): void {
    const { scene, camera } = this;
    const style = getComputedStyle(this.host);
    const read = (name: string) => style.getPropertyValue(name).trim();
    camera.follow(scene.places, scene.size);
    const detail = this.isMoving ? this.pace.detail : FULL;
    if (this.isStale) {
      this.painter.paint(camera.view, readColour(read("--edge")), detail);
      this.paced = this.isMoving && scene.size > 0 ? this.pace : null;
      this.isStale = false;
      clearTimeout(this.rest);
      if (detail !== FULL && this.host.hasAttribute("data-still")) this.rest = setTimeout(() => this.repaint(), REST_MS);
    }
    const chosen = this.chosen === null ? undefined : this.places.get(this.chosen);
    const ringed = [chosen, this.hovered ?? undefined].filter((each) => each !== undefined);
    const isNamed = this.host.hasAttribute("data-still") || scene.size <= NAMED_WHILE_MOVING;
    this.labels.paint({ scene, labels: this.names, edgeLabels: this.lineNames, ringed, isNamed, isBare: detail !== FULL }, { text: read("--text"), quiet: read("--quiet"), accent: read("--accent"), raised: read("--raised") });
  }

  /** The node at a place on the screen: of several the nearest, of equally near ones the one on top. */
  private find(x: number, y: number): number | null {
    const { scene, camera } = this;
    const at = camera.toGraph(x, y);
    let [found, least] = [-1, Infinity];
    for (let place = 0; place < scene.size; place++) {
      const away = Math.hypot(scene.places[place * 2] - at.x, scene.places[place * 2 + 1] - at.y) * camera.view.scale;
      if (away <= least && away <= Math.max(scene.radii[place] * camera.view.grow + 1, NEAR_PIXELS)) [found, least] = [place, away];
    }
    return found < 0 ? null : found;
  }

  private hover(place: number | null): void {
    if (place === this.hovered) return;
    this.hovered = place;
    this.host.style.cursor = place === null ? "" : "pointer";
    this.redraw();
  }

  /** A hand on a node ends the layout. */
  private drag(place: number, x: number, y: number): void {
    this.edition += 1;
    this.options.layout.postMessage(null);
    this.stand();
    this.scene.places[place * 2] = x;
    this.scene.places[place * 2 + 1] = y;
    this.painter.move();
    this.pull();
  }

  private press(event: KeyboardEvent): void {
    const { ids } = this;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && ids.length) {
      const place = this.chosen === null ? (step > 0 ? -1 : 0) : (this.places.get(this.chosen) ?? -1);
      const next = (place + step + ids.length) % ids.length;
      this.choose(ids[next]);
      this.host.setAttribute("aria-description", this.names[next]);
    } else if (event.key === "Enter" && this.chosen !== null) this.options.onChoose?.(this.chosen);
    else if (event.key === "+") this.zoom("in");
    else if (event.key === "-") this.zoom("out");
    else if (event.key === "0") this.zoom("fit");
    else return;
    event.preventDefault();
  }
}

/** Puts a scene together; nodes of the scene before keep their places. */
class Composer {
  readonly ids: string[] = [];
  readonly names: string[] = [];
  readonly lineIds: string[] = [];
  readonly lineNames: string[] = [];
  readonly places = new Map<string, number>();
  /** Whether a node is here that was not before. */
  isMoved = false;
  private readonly near = new Map<string, string>();
  private readonly scene: Scene;
  private readonly shrink: number;

  constructor(private readonly before: Scene, private readonly placesBefore: Map<string, number>, dots: number, private readonly lines: number) {
    this.shrink = dots > 4000 ? 0.3 : dots > 1200 ? 0.45 : dots > 300 ? 0.7 : 1;
    this.scene = {
      size: dots, places: makePlaces(dots), radii: new Float32Array(dots), colours: new Uint8Array(dots * 4),
      links: new Uint32Array(lines * 2), linkColours: new Uint8Array(lines * 4), linkWidth: lines > LABELLED_LINES ? 1 : 1.6, hasArrows: lines <= ARROWED_LINES,
    };
  }

  /** Remember for each end of a line one node at the other end, preferably one that is drawn already. */
  note({ source, target }: Line): void {
    for (const [node, other] of [[source, target], [target, source]]) {
      const known = this.near.get(node);
      if (known === undefined || (!this.placesBefore.has(known) && this.placesBefore.has(other))) this.near.set(node, other);
    }
  }

  addDot(dot: Dot): void {
    const place = this.ids.length;
    const { x, y } = this.begin(dot.id, place);
    this.scene.places[place * 2] = x;
    this.scene.places[place * 2 + 1] = y;
    this.scene.radii[place] = (dot.size ?? 7) * this.shrink;
    this.scene.colours.set([...readColour(dot.colour ?? "#888888"), 255], place * 4);
    this.places.set(dot.id, place);
    this.ids.push(dot.id);
    this.names.push(visible(dot.label));
  }

  addLine(line: Line): void {
    const [source, target] = [this.places.get(line.source), this.places.get(line.target)];
    if (source === undefined || target === undefined) return;
    const place = this.lineIds.length;
    this.scene.links[place * 2] = source;
    this.scene.links[place * 2 + 1] = target;
    if (line.colour) this.scene.linkColours.set([...readColour(line.colour), 255], place * 4);
    this.lineIds.push(line.id);
    if (this.lines <= LABELLED_LINES) this.lineNames.push(visible(line.type));
  }

  /** Without the lines whose ends are not shown. */
  finish(): Scene {
    return { ...this.scene, links: this.scene.links.slice(0, this.lineIds.length * 2), linkColours: this.scene.linkColours.slice(0, this.lineIds.length * 4) };
  }

  /** Where a node begins: where it was, near a neighbour, or somewhere that depends on its place in the list only. */
  private begin(id: string, place: number): { x: number; y: number } {
    const at = (known: number) => ({ x: this.before.places[known * 2], y: this.before.places[known * 2 + 1] });
    const known = this.placesBefore.get(id);
    if (known !== undefined) return at(known);
    this.isMoved = true;
    const near = this.near.get(id);
    const beside = near === undefined ? undefined : this.placesBefore.get(near);
    const angle = place * 2.399963;
    const reach = beside === undefined ? Math.sqrt(place + 1) * 4 : 3;
    const from = beside === undefined ? { x: 0, y: 0 } : at(beside);
    return { x: from.x + Math.cos(angle) * reach, y: from.y + Math.sin(angle) * reach };
  }
}

/** One after the other, and the page does something else in between; false if it wants another picture by then. */
async function forAll<T>(all: T[], act: (each: T) => void, isCurrent: () => boolean): Promise<boolean> {
  let until = performance.now() + SLICE_MS;
  for (const each of all) {
    if (performance.now() > until) {
      await new Promise((resolve) => setTimeout(resolve));
      if (!isCurrent()) return false;
      until = performance.now() + SLICE_MS;
    }
    act(each);
  }
  return true;
}

const colours = new Map<string, [number, number, number]>();
let reader: CanvasRenderingContext2D | null = null;

/** Any colour of CSS as bytes. */
function readColour(text: string): [number, number, number] {
  const known = colours.get(text);
  if (known) return known;
  reader ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  reader.fillStyle = "#888888";
  reader.fillStyle = text;
  reader.fillRect(0, 0, 1, 1);
  const [red, green, blue] = reader.getImageData(0, 0, 1, 1).data;
  colours.set(text, [red, green, blue]);
  return [red, green, blue];
}

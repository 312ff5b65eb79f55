// Names of nodes and edges, and the node that is chosen, on a plain canvas above the picture.
import type { Camera } from "./camera";
import type { Scene } from "./painter";

const CELL_WIDTH = 120;
const CELL_HEIGHT = 34;
const LENGTH_MAX = 42;
const FONT = "11px system-ui, sans-serif";

export interface Named {
  scene: Scene;
  labels: string[];
  /** Empty where there are too many. */
  edgeLabels: string[];
  /** Nodes with a ring: the one that is chosen, and the one under the pointer. */
  ringed: number[];
  /** Whether names other than those of ringed nodes are wanted: not while thousands of nodes move. */
  isNamed: boolean;
  /** Whether even less is wanted: what is ringed, and nothing else. */
  isBare: boolean;
}

export interface Theme {
  text: string;
  quiet: string;
  accent: string;
  raised: string;
}

/** One line of text on the screen, by the middle of its height. */
interface Place {
  left: number;
  right: number;
  y: number;
}

function isFree(taken: Place[], { left, right, y }: Place): boolean {
  return !taken.some((each) => Math.abs(each.y - y) < 13 && left < each.right && right > each.left);
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX)}…` : line;
}

export class Labels {
  private readonly context: CanvasRenderingContext2D;
  private isBlank = false;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly camera: Camera) {
    this.context = canvas.getContext("2d")!;
  }

  paint(named: Named, theme: Theme): void {
    const { context, canvas } = this;
    const { width, height } = this.camera.view;
    const [wide, tall] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
    if (canvas.width !== wide || canvas.height !== tall) [canvas.width, canvas.height] = [wide, tall];
    const isEmpty = named.isBare && named.ringed.length === 0;
    if (isEmpty && this.isBlank) return; // an empty canvas that is not touched costs nothing to show
    this.isBlank = isEmpty;
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.textAlign = "left";
    if (!named.isBare) this.paintLoops(named, theme);
    if (named.isNamed && !named.isBare) {
      this.paintEdges(named, this.paintNodes(named, theme), theme);
    }
    for (const place of named.ringed) this.paintRinged(named, place, theme);
  }

  private at(scene: Scene, place: number): { x: number; y: number } {
    return this.camera.toScreen(scene.places[place * 2], scene.places[place * 2 + 1]);
  }

  private radius(scene: Scene, place: number): number {
    return scene.radii[place] * this.camera.view.grow;
  }

  /** Names do not lie over each other: the one that comes later is left out. Returns where they are. */
  private paintNodes(named: Named, theme: Theme): Place[] {
    const { context } = this;
    const taken: Place[] = [];
    context.fillStyle = theme.text;
    for (const place of this.chooseNodes(named)) {
      const at = this.at(named.scene, place);
      const text = shorten(named.labels[place]);
      const left = at.x + this.radius(named.scene, place) + 3;
      const right = left + context.measureText(text).width;
      if (!isFree(taken, { left, right, y: at.y })) continue;
      taken.push({ left, right, y: at.y });
      context.fillText(text, left, at.y + 4);
    }
    return taken;
  }

  /** One node per cell of the screen, the largest. */
  private chooseNodes({ scene }: Named): number[] {
    const { width, height } = this.camera.view;
    const columns = Math.ceil(width / CELL_WIDTH);
    const best = new Int32Array(columns * Math.ceil(height / CELL_HEIGHT)).fill(-1);
    for (let place = 0; place < scene.size; place++) {
      const { x, y } = this.at(scene, place);
      if (x < 0 || y < 0 || x >= width || y >= height || this.radius(scene, place) < 2) continue;
      const cell = Math.floor(y / CELL_HEIGHT) * columns + Math.floor(x / CELL_WIDTH);
      if (best[cell] < 0 || scene.radii[place] > scene.radii[best[cell]]) best[cell] = place;
    }
    return [...best].filter((each) => each >= 0);
  }

  private paintEdges({ scene, edgeLabels }: Named, taken: Place[], theme: Theme): void {
    const { context } = this;
    context.fillStyle = theme.quiet;
    context.textAlign = "center";
    edgeLabels.forEach((label, place) => {
      const [from, to] = [this.at(scene, scene.links[place * 2]), this.at(scene, scene.links[place * 2 + 1])];
      const [x, y] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
      if (Math.hypot(to.x - from.x, to.y - from.y) < 70) return;
      const text = shorten(label);
      const half = context.measureText(text).width / 2;
      const wanted = { left: x - half, right: x + half, y: y - 7 };
      if (!isFree(taken, wanted)) return;
      taken.push(wanted);
      context.fillText(text, x, y - 3);
    });
    context.textAlign = "left";
  }

  /** Edges from a node to itself: lines from rim to rim have no length there. */
  private paintLoops({ scene }: Named, theme: Theme): void {
    const { context } = this;
    context.strokeStyle = theme.quiet;
    context.lineWidth = 1;
    for (let place = 0; place < scene.links.length; place += 2) {
      if (scene.links[place] !== scene.links[place + 1]) continue;
      const { x, y } = this.at(scene, scene.links[place]);
      const radius = this.radius(scene, scene.links[place]);
      context.beginPath();
      context.arc(x, y - radius - 5, 6, 0, Math.PI * 2);
      context.stroke();
    }
  }

  private paintRinged({ scene, labels }: Named, place: number, theme: Theme): void {
    const { context } = this;
    const { x, y } = this.at(scene, place);
    const radius = this.radius(scene, place);
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x, y, radius + 3, 0, Math.PI * 2);
    context.stroke();
    context.font = `600 ${FONT}`;
    const text = shorten(labels[place]);
    context.fillStyle = theme.raised;
    context.fillRect(x + radius + 3, y - 9, context.measureText(text).width + 6, 18);
    context.fillStyle = theme.text;
    context.fillText(text, x + radius + 6, y + 4);
    context.font = FONT;
  }
}

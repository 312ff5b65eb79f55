// Where a picture is looked at from, and the hand on it: drag, wheel, two fingers.
import type { View } from "./painter";

const PADDING = 46;
/** Few nodes are not pulled apart to the rims. */
const SCALE_MAX = 12;
const STEP = 1.5;

export interface Hand {
  /** The node at a place on the screen, or null. */
  find(x: number, y: number): number | null;
  press(node: number): void;
  drag(node: number, x: number, y: number): void;
  hover(node: number | null): void;
  redraw(): void;
}

export class Camera {
  readonly view: View = { x: 0, y: 0, scale: 1, grow: 1, width: 1, height: 1 };
  /** Shows everything until a person moves it. */
  isFollowing = true;
  private fitting = 1;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private held: number | null = null;
  private start = { x: 0, y: 0 };
  private isMoved = false;

  constructor(private readonly host: HTMLElement, private readonly hand: Hand) {
    host.style.touchAction = "none";
    host.addEventListener("pointerdown", (event) => this.down(event));
    host.addEventListener("pointermove", (event) => this.move(event));
    host.addEventListener("pointerup", (event) => this.up(event));
    host.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    host.addEventListener("pointerleave", () => hand.hover(null));
    host.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)), this.at(event));
    }, { passive: false });
  }

  toScreen(x: number, y: number): { x: number; y: number } {
    const { view } = this;
    return { x: (x - view.x) * view.scale + view.width / 2, y: (y - view.y) * view.scale + view.height / 2 };
  }

  toGraph(x: number, y: number): { x: number; y: number } {
    const { view } = this;
    return { x: (x - view.width / 2) / view.scale + view.x, y: (y - view.height / 2) / view.scale + view.y };
  }

  /** Look at all of it, if nothing else is wanted. */
  follow(places: Float32Array, size: number): void {
    const { view } = this;
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let place = 0; place < size; place++) {
      const [x, y] = [places[place * 2], places[place * 2 + 1]];
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < top) top = y;
      if (y > bottom) bottom = y;
    }
    if (size === 0) [left, right, top, bottom] = [0, 0, 0, 0];
    const room = (length: number) => Math.max(length - 2 * PADDING, length / 4, 1);
    this.fitting = Math.min(room(view.width) / Math.max(right - left, 1e-6), room(view.height) / Math.max(bottom - top, 1e-6), SCALE_MAX);
    if (this.isFollowing) Object.assign(view, { x: (left + right) / 2, y: (top + bottom) / 2, scale: this.fitting });
    view.grow = Math.min(4, Math.max(0.6, Math.sqrt(view.scale / this.fitting)));
  }

  step(how: "in" | "out" | "fit"): void {
    if (how === "fit") this.isFollowing = true;
    else this.zoom(how === "in" ? STEP : 1 / STEP, { x: this.view.width / 2, y: this.view.height / 2 });
    this.hand.redraw();
  }

  private zoom(factor: number, around: { x: number; y: number }): void {
    const { view } = this;
    const before = this.toGraph(around.x, around.y);
    view.scale = Math.min(this.fitting * 200, Math.max(this.fitting / 20, view.scale * factor));
    const after = this.toGraph(around.x, around.y);
    view.x += before.x - after.x;
    view.y += before.y - after.y;
    this.isFollowing = false;
    this.hand.redraw();
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const box = this.host.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const here = this.at(event);
    this.pointers.set(event.pointerId, here);
    this.host.setPointerCapture(event.pointerId);
    this.held = this.pointers.size === 1 ? this.hand.find(here.x, here.y) : null;
    this.start = here;
    this.isMoved = this.pointers.size > 1;
  }

  private move(event: PointerEvent): void {
    const here = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.hand.hover(this.hand.find(here.x, here.y));
    if (!this.isMoved && Math.hypot(here.x - this.start.x, here.y - this.start.y) < 4) return;
    this.isMoved = true;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, here);
    const { view } = this;
    if (other) {
      const apart = (one: { x: number; y: number }) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
      return this.zoom(apart(here) / apart(before), { x: (here.x + other.x) / 2, y: (here.y + other.y) / 2 });
    }
    // Nothing rescales while it is pulled at.
    this.isFollowing = false;
    if (this.held === null) {
      view.x -= (here.x - before.x) / view.scale;
      view.y -= (here.y - before.y) / view.scale;
      this.hand.redraw();
    } else {
      const { x, y } = this.toGraph(here.x, here.y);
      this.hand.drag(this.held, x, y);
    }
  }

  private up(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId)) return;
    if (this.held !== null && !this.isMoved) this.hand.press(this.held);
    this.held = null;
  }
}

// A picture outside of the workbench: in a notebook (anywidget calls `render`), or as a page of its own, which
// says so by an attribute of its root and brings its data along. Values become text, never markup.
import { type Dot, Drawing, type Layouter, type Line } from "../parts/drawing";
import { begin, type Moved, type Start } from "../parts/layout";
import LayoutWorker from "../parts/layout.worker?worker&inline";
import { valueColour } from "../palette";
import { count, plural, show } from "../text";

interface Data {
  nodes: { type: string; id: string; label: string; properties: Record<string, unknown> }[];
  /** Type, id and the places of both ends in `nodes`. */
  edges: [string, string, number, number][];
  note: string;
}

interface Model {
  get(name: "data"): Data;
}

/** A front end may forbid workers: the layout then takes short turns with the page. */
class LayoutHere implements Layouter {
  onmessage: ((event: MessageEvent<Moved>) => void) | null = null;
  private goOn: (() => Moved | null) | null = null;

  postMessage(message: Start | "drawn" | null): void {
    if (message !== "drawn") this.goOn = message === null ? null : begin(message, 8);
    setTimeout(() => {
      const moved = this.goOn?.();
      if (moved) this.onmessage?.(new MessageEvent("message", { data: moved }));
    });
  }

  terminate(): void {
    this.goOn = null;
  }
}

/** The worker, and the layout here should it turn out that no worker may run. */
class LayoutSomewhere implements Layouter {
  onmessage: ((event: MessageEvent<Moved>) => void) | null = null;
  private inner: Layouter;
  private last: Start | null = null;

  constructor() {
    try {
      const worker = new LayoutWorker();
      worker.onerror = () => this.stayHere();
      this.inner = worker;
    } catch {
      this.inner = new LayoutHere();
    }
    this.listen();
  }

  postMessage(message: Start | "drawn" | null): void {
    if (message !== "drawn") this.last = message;
    this.inner.postMessage(message);
  }

  terminate(): void {
    this.inner.terminate();
  }

  private stayHere(): void {
    this.inner.terminate();
    this.inner = new LayoutHere();
    this.listen();
    if (this.last) this.inner.postMessage(this.last);
  }

  private listen(): void {
    this.inner.onmessage = (event) => this.onmessage?.(event);
  }
}

function make(tag: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function makeButton(label: string, text: string, act: () => void): HTMLElement {
  const made = make("button", "", text);
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

/** Everything that is known of a node, and who its neighbours are. */
function fillCard(card: HTMLElement, data: Data, place: number, choose: (place: number | null) => void): void {
  const node = data.nodes[place];
  const head = make("header", "");
  head.append(make("strong", "", `${show(node.type)} `), make("bdi", "", show(node.id)), makeButton("Close", "×", () => choose(null)));
  const list = make("dl", "");
  for (const [name, value] of Object.entries(node.properties)) list.append(make("dt", "", show(name)), make("dd", "", show(value)));
  const around = make("ul", "");
  for (const [type, , source, target] of data.edges) {
    if (source !== place && target !== place) continue;
    const other = source === place ? target : source;
    const item = make("li", "", `${source === place ? "→" : "←"} ${show(type)} `);
    item.append(makeButton(`Choose ${data.nodes[other].label}`, show(data.nodes[other].label), () => choose(other)));
    around.append(item);
    if (around.childElementCount >= 50) break;
  }
  card.replaceChildren(head, list, around);
  card.hidden = false;
}

export function mount(host: HTMLElement, data: Data): () => void {
  host.classList.add("omnigraph-picture");
  const canvas = make("div", "canvas");
  const zoom = make("div", "zoom");
  const legend = make("div", "legend");
  const card = make("aside", "card");
  const note = make("p", "note", [`${plural(data.nodes.length, "node")}, ${plural(data.edges.length, "edge")}`, show(data.note)].filter(Boolean).join("; "));
  card.hidden = true;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", "Picture: arrow keys go from node to node, Enter opens one, + − 0 zoom");
  host.replaceChildren(canvas, legend, zoom, note, card);

  const types = [...new Set(data.nodes.map((each) => each.type))];
  const colours = new Map(types.map((each, place) => [each, valueColour(place)]));
  const hidden = new Set<string>();
  let drawing: Drawing;
  const choose = (place: number | null) => {
    drawing.choose(place === null ? null : String(place));
    if (place === null) card.hidden = true;
    else fillCard(card, data, place, choose);
  };
  const layout = new LayoutSomewhere();
  try {
    drawing = new Drawing(canvas, { layout, onChoose: (id) => choose(Number(id)) });
  } catch {
    layout.terminate();
    canvas.append(make("p", "note", "This browser cannot draw the picture: it has no WebGL."));
    return () => {};
  }
  const draw = () => {
    const isShown = (place: number) => !hidden.has(data.nodes[place].type);
    const dots: Dot[] = data.nodes.flatMap((each, place) => (isShown(place) ? [{ id: String(place), type: each.type, label: each.label, colour: colours.get(each.type) }] : []));
    const lines: Line[] = data.edges.flatMap(([type, , source, target], place) => (isShown(source) && isShown(target) ? [{ id: String(place), type, source: String(source), target: String(target) }] : []));
    void drawing.show(dots, lines);
  };
  for (const type of types) {
    const label = make("label", "");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.style.accentColor = colours.get(type)!;
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(type);
      else hidden.add(type);
      draw();
    });
    label.append(box, `${show(type)} ${count(data.nodes.filter((each) => each.type === type).length)}`);
    legend.append(label);
  }
  zoom.append(
    makeButton("Zoom in", "+", () => drawing.zoom("in")),
    makeButton("Zoom out", "−", () => drawing.zoom("out")),
    makeButton("Show all", "⤢", () => drawing.zoom("fit")),
  );
  draw();
  (host as HTMLElement & { drawing?: Drawing }).drawing = drawing; // for a person at the console, and for tests
  return () => drawing.close();
}

export default {
  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    return mount(el, model.get("data"));
  },
};

if (document.documentElement.hasAttribute("data-omnigraph-page")) {
  mount(document.getElementById("picture")!, JSON.parse(document.getElementById("data")!.textContent!));
}

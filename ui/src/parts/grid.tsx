// A table of any length: only the rows in view exist, and those not read yet are asked for by page.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { brief, show } from "../text";
import type { Row } from "../types";

export const PAGE_ROWS = 200;
const HEIGHT = 26;
/** Browsers cut elements that are taller than this: longer tables scroll in larger steps. */
const TALLEST = 12_000_000;
const SPARE = 8;
const REST_MS = 60;

interface Props {
  columns: string[];
  total: number;
  get: (index: number) => Row | undefined;
  /** Called with the first row of a page that is in view and not there. */
  need?: (first: number) => void;
  onRow?: (row: Row, index: number) => void;
  label: string;
}

function widthOf(column: string, get: Props["get"]): number {
  let longest = column.length + 2;
  for (let index = 0; index < 50; index++) {
    const value = get(index)?.[column];
    if (value !== undefined) longest = Math.max(longest, Math.min(show(value).length, 52));
  }
  return Math.max(56, Math.round(longest * 7.4 + 20));
}

export function Grid({ columns, total, get, need, onRow, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const [current, setCurrent] = useState<number | null>(null);
  const widths = columns.map((each) => widthOf(each, get));
  const tall = Math.min(total * HEIGHT, TALLEST);
  const scale = tall > 0 ? (total * HEIGHT) / tall : 1;
  const first = Math.max(0, Math.floor((view.top * scale) / HEIGHT) - SPARE);
  const last = Math.min(total, Math.ceil((view.top * scale + view.height) / HEIGHT) + SPARE);

  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  // Only what stays in view is asked for: a hand that pulls through a million rows asks for none on the way.
  useEffect(() => {
    const rest = setTimeout(() => {
      for (let page = Math.floor(first / PAGE_ROWS); page * PAGE_ROWS < last; page++) {
        if (get(page * PAGE_ROWS) === undefined) need?.(page * PAGE_ROWS);
      }
    }, REST_MS);
    return () => clearTimeout(rest);
  }, [first, last, total]);

  const press = (event: KeyboardEvent) => {
    const element = box.current!;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = current === null ? undefined : get(current);
    if (event.key === "Enter" && row && onRow) onRow(row, current!);
    else if (step !== undefined && total > 0) {
      const next = Math.min(total - 1, Math.max(0, current === null ? Math.ceil((view.top * scale) / HEIGHT) : current + step));
      const top = (next * HEIGHT) / scale;
      // The head covers the first row in view.
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + 2 * HEIGHT > element.scrollTop + element.clientHeight) element.scrollTop = top + 2 * HEIGHT - element.clientHeight;
      setCurrent(next);
    } else return;
    event.preventDefault();
  };

  const template = `48px ${widths.map((each, place) => (place === widths.length - 1 ? `minmax(${each}px, 1fr)` : `${each}px`)).join(" ")}`;
  const rows = [];
  for (let index = first; index < last; index++) rows.push(index);
  return (
    <div class="grid" ref={box} tabIndex={0} role="grid" aria-label={label} aria-rowcount={total} aria-activedescendant={current === null ? undefined : `${label} ${current}`} onKeyDown={press}
      onScroll={() => setView({ top: box.current!.scrollTop, height: box.current!.clientHeight })}>
      <div class="head row" role="row" style={{ gridTemplateColumns: template }}>
        <span class="number" role="columnheader" />
        {columns.map((each) => <span key={each} role="columnheader" title={each}>{show(each)}</span>)}
      </div>
      <div class="rows" style={{ height: `${tall}px` }}>
        <div class="window" style={{ transform: `translateY(${Math.max(0, view.top - ((view.top * scale) / HEIGHT - first) * HEIGHT)}px)` }}>
          {rows.map((index) => {
            const row = get(index);
            return (
              <div key={index} id={`${label} ${index}`} class={index === current ? "row current" : "row"} role="row" aria-selected={index === current} aria-rowindex={index + 1} style={{ gridTemplateColumns: template }}
                onClick={row && onRow ? () => (setCurrent(index), onRow(row, index)) : undefined}>
                <span class="number">{index + 1}</span>
                {columns.map((each) => <Cell key={each} value={row?.[each]} isThere={row !== undefined} />)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Cell({ value, isThere }: { value: unknown; isThere: boolean }) {
  if (!isThere) return <span role="gridcell" class="waiting">…</span>;
  if (value === null || value === undefined) return <span role="gridcell" class="null">null</span>;
  const kind = typeof value === "number" ? "figure" : typeof value;
  return <span role="gridcell" class={kind}><bdi>{brief(value, 300)}</bdi></span>;
}

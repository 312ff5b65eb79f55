// A table of any length: only the rows in view exist, and those not read yet are asked for by page.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
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

/** How many pixels of rows one pixel of the scroll bar stands for: its two ends are theirs. */
function scaleOf(total: number, height: number): number {
  const scrolled = Math.min(total * HEIGHT, TALLEST) + HEIGHT - height;
  return scrolled > 0 ? (total * HEIGHT + HEIGHT - height) / scrolled : 1;
}

export function Grid({ columns, total, get, need, onRow, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [view, setView] = useState({ top: 0, height: 400, offset: 0 });
  const [current, setCurrent] = useState<number | null>(null);
  const widths = columns.map((each) => widthOf(each, get));
  const first = Math.max(0, Math.floor(view.offset / HEIGHT) - SPARE);
  const last = Math.min(total, Math.ceil((view.offset + view.height) / HEIGHT) + SPARE);

  /** Where the scroll bar says, but what a key or the wheel has reached stays as it is. */
  const place = useRef({ top: 0, offset: 0 });
  const follow = () => {
    const { scrollTop: top, clientHeight: height } = box.current!;
    if (top !== place.current.top) place.current = { top, offset: top * scaleOf(total, height) };
    setView({ ...place.current, height });
  };
  const reach = (offset: number) => {
    const element = box.current!;
    const { clientHeight: height } = element;
    const reached = Math.max(0, Math.min(offset, total * HEIGHT + HEIGHT - height));
    element.scrollTop = reached / scaleOf(total, height);
    place.current = { top: element.scrollTop, offset: reached };
    setView({ ...place.current, height });
  };
  const followed = useRef(follow);
  followed.current = follow;
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => followed.current());
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    place.current.top = -1;
    setCurrent(null);
    follow();
  }, [total]);
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
    const whole = Math.max(1, Math.floor(view.height / HEIGHT) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: whole, PageUp: -whole, Home: -total, End: total }[event.key];
    const row = current === null ? undefined : get(current);
    if (event.key === "Enter" && row && onRow) onRow(row, current!);
    else if (step !== undefined && total > 0) {
      const { offset } = place.current;
      const start = current ?? Math.ceil(offset / HEIGHT) - Math.sign(step);
      const next = Math.min(total - 1, Math.max(0, start + step));
      // The head covers the first row in view.
      if (next * HEIGHT < offset) reach(next * HEIGHT);
      else if ((next + 2) * HEIGHT > offset + view.height) reach((next + 2) * HEIGHT - view.height);
      setCurrent(next);
    } else return;
    event.preventDefault();
  };
  /** A wheel moves rows by as much as it turns, however many rows the scroll bar stands for. */
  const turn = (event: WheelEvent) => {
    const isSideways = event.shiftKey || event.deltaY === 0;
    if (scaleOf(total, view.height) === 1 || isSideways || event.ctrlKey) return;
    reach(place.current.offset + event.deltaY * [1, HEIGHT, view.height][event.deltaMode]);
    event.preventDefault();
  };

  const template = `48px ${widths.map((each, place) => (place === widths.length - 1 ? `minmax(${each}px, 1fr)` : `${each}px`)).join(" ")}`;
  const rows = [];
  for (let index = first; index < last; index++) rows.push(index);
  return (
    <div class="grid" ref={box} tabIndex={0} role="grid" aria-label={label} aria-rowcount={total} aria-activedescendant={current === null ? undefined : `${id}-${current}`} onKeyDown={press} onWheel={turn} onScroll={follow}>
      <div class="head row" role="row" style={{ gridTemplateColumns: template }}>
        <span class="number" role="columnheader" />
        {columns.map((each) => <span key={each} role="columnheader" title={each}>{show(each)}</span>)}
      </div>
      <div class="rows" style={{ height: `${Math.min(total * HEIGHT, TALLEST)}px` }}>
        <div class="window" style={{ transform: `translateY(${Math.max(0, view.top - view.offset + first * HEIGHT)}px)` }}>
          {rows.map((index) => {
            const row = get(index);
            return (
              <div key={index} id={`${id}-${index}`} class={index === current ? "row current" : "row"} role="row" aria-selected={index === current} aria-rowindex={index + 1} style={{ gridTemplateColumns: template }}
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

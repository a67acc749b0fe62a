/** A long list: only the rows in view are in the document. Arrow keys move, Enter opens. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";

/** A column. `width` is one of CSS grid, `wide` hides it on narrow screens. */
export interface Column<T> {
  key: string;
  head: string;
  width: string;
  wide?: boolean;
  end?: boolean;
  cell: (row: T) => ComponentChildren;
}

/** What a table shows. `row` gives undefined for a row that is not loaded yet; `onView` says which rows are looked at. */
export interface TableProps<T> {
  label: string;
  columns: Column<T>[];
  total: number;
  row: (index: number) => T | undefined;
  id: (row: T) => string;
  onView?: (from: number, to: number) => void;
  onOpen?: (row: T) => void;
  tone?: (row: T) => string;
}

const ROW = 44;
const OVERSCAN = 8;

/** A column on a narrow screen: its least width is its share, so that all columns fit. */
function shrinking(width: string): string {
  return width.replace(/^(?:minmax\()?([\d.]+)rem.*$/, "minmax(0, $1fr)");
}

/** Rows of a fixed height in a grid for assistive technology, with one tab stop. */
export function Table<T>({ label, columns, total, row, id, onView, onOpen, tone }: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const focusing = useRef(false);
  const from = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
  const to = Math.min(total, Math.ceil((top + height) / ROW) + OVERSCAN);
  const current = Math.min(active, Math.max(0, total - 1));
  // The row that Tab goes to: one that is in the document, also after scrolling by the wheel.
  const stop = Math.max(from, Math.min(current, to - 1));

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setHeight(element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [total === 0]);
  useEffect(() => onView?.(from, to), [from, to, total, onView]);
  useEffect(() => {
    // A row far away comes to the document with the scroll event only.
    const target = focusing.current && box.current?.querySelector<HTMLElement>(`[data-row="${current}"]`);
    if (!target) return;
    focusing.current = false;
    target.focus({ preventScroll: true });
  });

  const move = (to: number) => {
    const next = Math.max(0, Math.min(total - 1, to));
    const element = box.current;
    focusing.current = true;
    setActive(next);
    if (!element) return;
    const head = element.querySelector<HTMLElement>(".row.head")?.offsetHeight ?? 0;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    else if ((next + 1) * ROW + head > element.scrollTop + element.clientHeight) element.scrollTop = (next + 1) * ROW + head - element.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof Element && event.target.closest("button, a, input")) return;
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const steps: Record<string, number> = { ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page, PageUp: current - page, Home: 0, End: total - 1 };
    const next = steps[event.key];
    const at = row(current);
    if (next !== undefined) move(next);
    else if (event.key === "Enter" && at && onOpen) onOpen(at);
    else return;
    event.preventDefault();
  };

  const template = columns.map((column) => column.width).join(" ");
  const narrow = columns.filter((column) => !column.wide).map((column) => shrinking(column.width)).join(" ");
  const style = { "--cols": template, "--cols-narrow": narrow, "--rows": total };
  const shown: JSX.Element[] = [];
  for (let index = from; index < to; index += 1) {
    const value = row(index);
    shown.push(
      <div
        key={index}
        class={`row ${value && tone ? tone(value) : ""}`}
        {...(value === undefined ? {} : { "data-id": id(value) })}
        role="row"
        aria-rowindex={index + 2}
        data-row={index}
        tabIndex={index === stop ? 0 : -1}
        style={{ top: `${index * ROW}px` }}
        onFocus={() => setActive(index)}
        onClick={(event) => value !== undefined && !(event.target as Element).closest("button, a, input") && onOpen?.(value)}
      >
        {columns.map((column) => (
          <div key={column.key} role="gridcell" class={`cell ${column.wide ? "wide" : ""} ${column.end ? "end" : ""}`}>
            {value === undefined ? "…" : column.cell(value)}
          </div>
        ))}
      </div>,
    );
  }
  if (total === 0) return <p class="empty panel">{t("state.empty")}</p>;
  return (
    <div ref={box} class={`table ${onOpen ? "opens" : ""}`} role="grid" aria-label={label} aria-rowcount={total + 1} aria-colcount={columns.length} style={style} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onKeyDown={onKeyDown}>
      <div class="row head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <div key={column.key} role="columnheader" class={`cell ${column.wide ? "wide" : ""} ${column.end ? "end" : ""}`}>{column.head}</div>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${total * ROW}px` }}>{shown}</div>
    </div>
  );
}

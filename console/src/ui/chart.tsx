/** Lines over time, as SVG; the figures are in a table below. Colours come from the style sheet, so a change of theme draws nothing anew. */
import { ticks } from "d3-array";
import { line } from "d3-shape";
import { useMemo, useState } from "preact/hooks";
import { local, number, t } from "../i18n";
import { timeTicks } from "./time-ticks";

/** One line. `tone` is the name of its colour in the style sheet. */
export interface Line {
  label: string;
  tone: "bad" | "info";
  values: number[];
}

/** The drawing's own unit, in both directions: it is stretched to the size of its box. */
const SIZE = 1000;
/** The highest value of an empty chart. */
const LEAST_TOP = 4;

/** A chart of lines; `times` are milliseconds since 1970, ascending. */
export function Chart({ label, times, lines }: { label: string; times: number[]; lines: Line[] }) {
  const [at, point] = useState<number | null>(null);
  const { x, rows, paths, columns, grid } = useMemo(() => {
    const top = Math.max(LEAST_TOP, 1.1 * Math.max(0, ...lines.flatMap((line) => line.values)));
    const [first, last] = [times[0] ?? 0, times.at(-1) ?? 1];
    const x = (time: number) => (SIZE * (time - first)) / Math.max(1, last - first);
    const y = (value: number) => SIZE - (SIZE * value) / top;
    const draw = line<number>((_, index) => x(times[index] ?? first), y).digits(1);
    const rows = ticks(0, top, 4).map((value) => ({ text: number(value), y: y(value) }));
    const columns = timeTicks(first, last).map(({ time, text }) => ({ text, x: x(time) }));
    return {
      x,
      rows,
      columns,
      grid: rows.map((row) => `M0 ${row.y}H${SIZE}`).join("") + columns.map((column) => `M${column.x} 0V${SIZE}`).join(""),
      paths: lines.map(({ values, ...line }) => ({ ...line, path: draw(values) ?? "" })),
    };
  }, [times, lines]);
  const table = useMemo(() => <Table label={label} times={times} lines={lines} />, [label, times, lines]);
  const pointed = at === null ? undefined : times[at];
  const follow = (event: PointerEvent & { currentTarget: Element }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    point(Math.max(0, Math.min(times.length - 1, Math.round(share * (times.length - 1)))));
  };
  return (
    <figure class="chart">
      <figcaption>
        {lines.map((line) => (
          <span key={line.label} class="key"><i class={`swatch ${line.tone}`} aria-hidden="true" />{line.label}{at !== null && `: ${number(line.values[at] ?? 0)}`}</span>
        ))}
        {pointed !== undefined && <span>{local(pointed)}</span>}
      </figcaption>
      <div class="plot" aria-hidden="true" onPointerMove={follow} onPointerLeave={() => point(null)}>
        <svg viewBox={`0 0 ${SIZE} ${SIZE}`} preserveAspectRatio="none">
          <path d={grid} />
          {pointed !== undefined && <path class="pointer" d={`M${x(pointed)} 0V${SIZE}`} />}
          {paths.map((line) => <path key={line.label} class={line.tone} d={line.path} />)}
        </svg>
        {rows.map((row) => <span key={row.y} class="value" style={{ top: percent(row.y) }}>{row.text}</span>)}
        {columns.map((column) => <span key={column.x} class="time" style={{ left: percent(column.x) }}>{column.text}</span>)}
      </div>
      {table}
    </figure>
  );
}

/** The figures in words, made when they are asked for: a table of an hour has as many elements as the rest of the page. */
function Table({ label, times, lines }: { label: string; times: number[]; lines: Line[] }) {
  const [open, set] = useState(false);
  return (
    <details class="chart-table" onToggle={(event) => set(event.currentTarget.open)}>
      <summary>{t("chart.table")}</summary>
      {open && (
        <table class="plain-table">
          <caption>{label}</caption>
          <thead><tr><th scope="col">{t("col.time")}</th>{lines.map((line) => <th key={line.label} scope="col" class="end">{line.label}</th>)}</tr></thead>
          <tbody>
            {times.map((time, index) => lines.some((line) => line.values[index]) && (
              <tr key={time}><th scope="row">{local(time)}</th>{lines.map((line) => <td key={line.label} class="end">{number(line.values[index] ?? 0)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}

function percent(at: number): string {
  return `${(100 * at) / SIZE}%`;
}

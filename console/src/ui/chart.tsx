/** Lines over time, drawn by uPlot; the figures are in a table for screen readers. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock, local, number, t } from "../i18n";

/** One line. `colour` is the name of a custom property. */
export interface Line {
  label: string;
  colour: string;
  values: number[];
}

/** A chart of lines; `times` are milliseconds since 1970. */
export function Chart({ label, times, lines, height = 180 }: { label: string; times: number[]; lines: Line[]; height?: number }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let plot: uPlot | null = null;
    const draw = () => {
      plot?.destroy();
      const style = getComputedStyle(element);
      const colour = (name: string) => style.getPropertyValue(name).trim() || style.color;
      const probe = document.createElement("span");
      element.append(probe);
      // light-dark() is resolved by the browser, not by a canvas.
      const resolved = (name: string) => {
        probe.style.color = colour(name);
        return getComputedStyle(probe).color;
      };
      const grid = { stroke: resolved("--line"), width: 1 };
      const ink = resolved("--muted");
      const axis = { stroke: ink, grid, ticks: grid, font: `12px ${style.fontFamily}` };
      const long = (times.at(-1) ?? 0) - (times[0] ?? 0) > 172_800_000;
      plot = new uPlot(
        {
          width: element.clientWidth,
          height,
          legend: { show: false },
          cursor: { y: false },
          axes: [
            { ...axis, values: (_, ticks) => ticks.map((tick) => (long ? new Date(tick * 1000).toLocaleDateString(document.documentElement.lang, { weekday: "short", day: "numeric" }) : clock(tick * 1000, false))) },
            { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => number(tick)) },
          ],
          scales: { y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] } },
          series: [{}, ...lines.map((line) => ({ label: line.label, stroke: resolved(line.colour), width: 2, points: { show: false } }))],
        },
        [times.map((time) => time / 1000), ...lines.map((line) => line.values)],
        element,
      );
      probe.remove();
    };
    draw();
    const observer = new ResizeObserver(() => plot && Math.abs(plot.width - element.clientWidth) > 1 && plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    scheme.addEventListener("change", draw);
    return () => {
      observer.disconnect();
      theme.disconnect();
      scheme.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [times, lines, height]);
  return (
    <figure class="chart">
      <figcaption>
        {lines.map((line) => (
          <span key={line.label} class="key"><i class={`swatch ${line.colour.slice(2)}`} aria-hidden="true" />{line.label}</span>
        ))}
      </figcaption>
      <div ref={box} class="canvas" aria-hidden="true" />
      <div class="sr-only"><table>
        <caption>{label}</caption>
        <thead><tr><th scope="col">{t("col.time")}</th>{lines.map((line) => <th key={line.label} scope="col">{line.label}</th>)}</tr></thead>
        <tbody>
          {times.map((time, index) => lines.some((line) => line.values[index]) && (
            <tr key={time}><th scope="row">{local(time)}</th>{lines.map((line) => <td key={line.label}>{number(line.values[index] ?? 0)}</td>)}</tr>
          ))}
        </tbody>
      </table></div>
    </figure>
  );
}

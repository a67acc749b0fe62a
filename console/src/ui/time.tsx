/** A point of time: local, with UTC in the title. */
import { clock, local, millis, relative } from "../i18n";

/** `how`: how long ago, the time of the day, or date and time. */
export function Time({ at, how = "full" }: { at: number | string | null | undefined; how?: "full" | "relative" | "clock" }) {
  const time = millis(at);
  if (time === null) return <span>–</span>;
  const utc = new Date(time).toISOString();
  const text = how === "relative" ? relative(time) : how === "clock" ? clock(time) : local(time);
  return (
    <time dateTime={utc} title={`${how === "full" ? "" : `${local(time)} · `}${utc.replace("T", " ").replace("Z", " UTC")}`}>
      {text}
    </time>
  );
}

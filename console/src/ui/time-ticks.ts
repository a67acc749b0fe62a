/** The labelled points of a time axis. */
import { clock, weekday } from "../i18n";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR];
/** More labels than this run into each other on a phone. */
const MOST = 8;

/** A point of the axis: milliseconds since 1970 and its label. */
export interface TimeTick {
  time: number;
  text: string;
}

/** Round local times from `first` to `last`, at most nine: times of the day, or midnights where eight times of the day are not enough. */
export function timeTicks(first: number, last: number): TimeTick[] {
  const step = STEPS.find((step) => (last - first) / step <= MOST);
  return step === undefined ? days(first, last) : times(first, last, step);
}

/** Steps from the local midnight, by the offset at the start: on the day that daylight saving time changes, labels after the change are less round. */
function times(first: number, last: number, step: number): TimeTick[] {
  const offset = new Date(first).getTimezoneOffset() * MINUTE;
  const ticks: TimeTick[] = [];
  for (let time = Math.ceil((first - offset) / step) * step + offset; time <= last; time += step) ticks.push({ time, text: clock(time, false) });
  return ticks;
}

function days(first: number, last: number): TimeTick[] {
  const ticks: TimeTick[] = [];
  const every = Math.ceil((last - first) / DAY / MOST);
  const day = new Date(first);
  day.setHours(24, 0, 0, 0);
  // The hour of midnight moves with daylight saving time, so the calendar counts.
  for (; day.getTime() <= last; day.setDate(day.getDate() + every)) ticks.push({ time: day.getTime(), text: weekday(day) });
  return ticks;
}

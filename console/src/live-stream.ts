/**
 * The stream of events behind the page: parses once for each picture of the screen, keeps the last events, and counts all of them.
 * Texts wait unparsed, so a burst costs the page no more than it can show.
 */
import { liveUrl, type Filters, type Stored } from "./api/events";

/** Events that are kept. */
export const KEPT = 2000;
/** Pictures a second, at most. */
const PICTURE = 100;

/** What the page shows. */
export interface StreamState {
  /** The oldest first. */
  rows: Stored[];
  connection: "connecting" | "open" | "ended" | "busy";
  /** Events a second, over the last seconds. */
  rate: number;
  seen: number;
  /** Events that the server left out because this page was too slow. */
  dropped: number;
  paused: boolean;
  /** Events that came during the pause and are kept. */
  waiting: number;
}

/** One connection, with its events. */
export class Stream {
  private readonly source: EventSource;
  private texts: string[] = [];
  private rows: Stored[] = [];
  private connection: StreamState["connection"] = "connecting";
  private seen = 0;
  private dropped = 0;
  private paused = false;
  private asked = false;
  private drawn = 0;
  private readonly marks: [number, number][] = [];
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(filters: Filters, private show: (state: StreamState) => void) {
    this.source = new EventSource(liveUrl(filters), { withCredentials: true });
    this.source.addEventListener("hello", () => this.connected("open"));
    this.source.addEventListener("event", (message) => this.take(message.data as string));
    this.source.addEventListener("dropped", (message) => {
      this.dropped += Number((JSON.parse(message.data as string) as { count?: number }).count ?? 0);
      this.ask();
    });
    this.source.addEventListener("end", () => {
      this.source.close();
      this.connected("ended");
    });
    this.source.addEventListener("error", () => this.connected(this.source.readyState === EventSource.CLOSED ? "busy" : "connecting"));
    this.timer = setInterval(() => {
      this.marks.push([performance.now(), this.seen]);
      if (this.marks.length > 5) this.marks.shift();
      this.ask();
    }, 1000);
  }

  /** Holds the picture, or goes on with what came meanwhile. */
  pause(paused: boolean): void {
    this.paused = paused;
    this.draw();
  }

  /** Forgets what is shown. */
  clear(): void {
    this.rows = [];
    this.texts = [];
    this.draw();
  }

  /** Ends the connection. */
  close(): void {
    clearInterval(this.timer);
    this.source.close();
    this.show = () => {};
  }

  private connected(connection: StreamState["connection"]): void {
    this.connection = connection;
    this.ask();
  }

  private take(text: string): void {
    this.seen += 1;
    this.texts.push(text);
    if (this.texts.length >= 2 * KEPT) this.texts = this.texts.slice(-KEPT);
    this.ask();
  }

  private ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      if (now - this.drawn < PICTURE) setTimeout(() => this.ask(), PICTURE);
      else {
        this.drawn = now;
        this.draw();
      }
    });
  }

  private draw(): void {
    if (!this.paused && this.texts.length > 0) {
      const fresh: Stored[] = [];
      for (const text of this.texts.slice(-KEPT)) {
        try {
          fresh.push(JSON.parse(text) as Stored);
        } catch {
          // A line that is no JSON is counted and not shown.
        }
      }
      this.texts = [];
      this.rows = [...this.rows, ...fresh].slice(-KEPT);
    }
    const first = this.marks[0];
    const seconds = first ? (performance.now() - first[0]) / 1000 : 0;
    const rate = first && seconds > 0.5 ? (this.seen - first[1]) / seconds : 0;
    this.show({ rows: this.rows, connection: this.connection, rate, seen: this.seen, dropped: this.dropped, paused: this.paused, waiting: this.paused ? Math.min(KEPT, this.texts.length) : 0 });
  }
}

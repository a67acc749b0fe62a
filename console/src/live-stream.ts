/**
 * The stream of events behind the page: parses once for each picture of the screen, keeps the last events, and counts all of them.
 * Texts wait unparsed, so a burst costs the page no more than it can show.
 */
import { livePath, liveUrl, type Filters, type Stored } from "./api/events";
import { ApiError, refusal, sessionEnded } from "./api/http";
import { me } from "./api/session";

/** Events that are kept. */
export const KEPT = 2000;
/** Pictures a second, at most. */
const PICTURE = 100;

/** What the page shows. */
export interface StreamState {
  /** The oldest first. */
  rows: Stored[];
  connection: "connecting" | "open" | "retrying" | "busy";
  /** Spans without a connection, in milliseconds: their events are stored and were not seen here. The last ones. */
  gaps: { from: number; until: number }[];
  /** Events a second, over the last seconds. */
  rate: number;
  seen: number;
  /** Events that the server left out because this page was too slow. */
  dropped: number;
  paused: boolean;
  /** Events that came during the pause and are kept. */
  waiting: number;
}

/** Milliseconds until a connection that has ended is made again: at first, and at most. */
const [SOON, LATE] = [1000, 30_000];
/** A connection without a sign for so long, three heartbeats, is none any more: milliseconds. */
const SILENCE = 45_000;
/** A connection that lasts for so long is no failed try: milliseconds. */
const LASTING = 10_000;
/** Gaps that are told. */
const GAPS = 5;

/** A connection that is made again when it ends, with its events. The browser's own attempts to connect again end at once: they neither wait longer each time nor look at the session. */
export class Stream {
  private source: EventSource | null = null;
  private wait = SOON;
  private again: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;
  /** When the stream was heard last; 0 before it has begun. */
  private heard = 0;
  /** When the connection that is asked for or open gave its last sign: that it was asked for is the first one. */
  private sign = 0;
  /** When the connection that is open has begun; 0 without one. */
  private begun = 0;
  private gaps: StreamState["gaps"] = [];
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

  constructor(private readonly filters: Filters, private show: (state: StreamState) => void) {
    this.connect();
    this.timer = setInterval(() => {
      this.marks.push([performance.now(), this.seen]);
      if (this.marks.length > 5) this.marks.shift();
      if (this.source && this.source.readyState !== EventSource.CLOSED && Date.now() - this.sign > SILENCE) this.end(this.source);
      this.ask();
    }, 1000);
  }

  /** Connects at once where it waits. */
  retry(): void {
    this.wait = SOON;
    clearTimeout(this.again);
    void this.reconnect();
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
    this.gaps = [];
    this.draw();
  }

  /** Ends the connection. */
  close(): void {
    this.isClosed = true;
    clearInterval(this.timer);
    clearTimeout(this.again);
    this.source?.close();
    this.show = () => {};
  }

  private connect(): void {
    const source = new EventSource(liveUrl(this.filters), { withCredentials: true });
    this.source = source;
    this.sign = Date.now();
    source.addEventListener("hello", () => {
      const before = this.heard;
      this.hear();
      if (before) this.gaps = [...this.gaps, { from: before, until: this.heard }].slice(-GAPS);
      this.begun = this.heard;
      this.connected("open");
    });
    source.addEventListener("heartbeat", () => this.hear());
    source.addEventListener("event", (message) => this.take(message.data as string));
    source.addEventListener("dropped", (message) => {
      this.dropped += Number((JSON.parse(message.data as string) as { count?: number }).count ?? 0);
      this.ask();
    });
    source.addEventListener("end", () => this.end(source));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) void this.refused();
      else this.end(source);
    });
  }

  private hear(): void {
    this.heard = Date.now();
    this.sign = this.heard;
  }

  private end(source: EventSource): void {
    source.close();
    this.later("retrying");
  }

  /** The browser gives up after any answer but a stream, and does not say which it was. */
  private async refused(): Promise<void> {
    const why = await refusal(livePath(this.filters));
    if (this.isClosed) return;
    if (why?.status === 401) sessionEnded();
    this.later(why?.status === 503 && why.word === "busy" ? "busy" : "retrying");
  }

  /** Connects again after a while, which grows: a control plane that starts has many to answer. */
  private later(connection: "retrying" | "busy"): void {
    if (this.isClosed) return;
    if (this.begun && this.heard - this.begun > LASTING) this.wait = SOON;
    this.begun = 0;
    this.connected(connection);
    clearTimeout(this.again);
    this.again = setTimeout(() => void this.reconnect(), this.wait * (1 + Math.random() / 2));
    this.wait = Math.min(2 * this.wait, LATE);
  }

  private async reconnect(): Promise<void> {
    this.connected("connecting");
    try {
      await me();
    } catch (error) {
      if (this.isClosed) return;
      if (error instanceof ApiError && error.status === 401) sessionEnded();
      return this.later("retrying");
    }
    if (!this.isClosed) this.connect();
  }

  private connected(connection: StreamState["connection"]): void {
    this.connection = connection;
    this.ask();
  }

  private take(text: string): void {
    this.hear();
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
    this.show({ rows: this.rows, connection: this.connection, gaps: this.gaps, rate, seen: this.seen, dropped: this.dropped, paused: this.paused, waiting: this.paused ? Math.min(KEPT, this.texts.length) : 0 });
  }
}

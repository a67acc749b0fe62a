/** A long list of the server, page by page: what is looked at is loaded, and all of it only for a search. */
import { call, query } from "./http";

/** Entries of a page that is looked at. */
const SIZE = 1000;
/** Entries of a page when all of a list is loaded: few calls, and none whose answer takes the page long to read. */
const WHOLE = 2500;

/** The entries with exactly this identity: the server finds them at once, however long the list is. */
export async function withIdentity<T>(path: string, field: string, filters: Record<string, string | undefined>, key: string, signal: AbortSignal): Promise<T[]> {
  return (await call<Record<string, T[]>>("GET", path + query({ ...filters, "filter.ref": key }), { signal })).body[field] ?? [];
}

/** A list below `path` whose entries are in the field `field` of its pages. */
export class PagedList<T> {
  /** Entries on all pages; 0 until the first page is there. */
  total = 0;
  loaded = false;
  error: unknown = null;
  private rows: (T | undefined)[] = [];
  /** How many entries are there. */
  private filled = 0;
  private done = false;
  private whole: Promise<void> | null = null;
  private readonly asked = new Set<string>();
  private readonly abort = new AbortController();

  constructor(
    private readonly path: string,
    private readonly field: string,
    private readonly filters: Record<string, string | undefined>,
    private readonly changed: () => void,
  ) {
    void this.page(1, SIZE);
  }

  /** An entry, if its page is there. */
  row(index: number): T | undefined {
    return this.rows[index];
  }

  /** Loads the pages of these rows. */
  ensure(from: number, to: number): void {
    for (let page = Math.floor(from / SIZE) + 1; page <= Math.ceil(Math.min(to, this.total) / SIZE); page += 1) void this.page(page, SIZE);
  }

  /** Loads all pages; resolves when they are there. */
  all(): Promise<void> {
    this.whole ??= this.loadAll();
    return this.whole;
  }

  private async loadAll(): Promise<void> {
    if (this.isComplete()) return;
    const pages = Math.ceil(this.total / WHOLE);
    for (let page = 1; page <= pages; page += 3) await Promise.all([0, 1, 2].map((more) => (page + more <= pages ? this.page(page + more, WHOLE) : null)));
    // The list may have become shorter or longer meanwhile; what there was is there.
    this.done = !this.error;
    this.changed();
  }

  /** The entries that are there, in order. */
  present(): T[] {
    return this.rows.filter((row): row is T => row !== undefined);
  }

  /** Whether every entry is there. */
  isComplete(): boolean {
    return this.loaded && (this.done || this.filled >= this.total);
  }

  /** Ends calls that are under way. */
  close(): void {
    this.abort.abort();
  }

  private async page(page: number, size: number): Promise<void> {
    const key = `${size} ${page}`;
    if (this.asked.has(key)) return;
    this.asked.add(key);
    try {
      const answer = await call<Record<string, T[]>>("GET", this.path + query({ ...this.filters, page, pageSize: size }), { signal: this.abort.signal });
      const list = answer.body[this.field] ?? [];
      this.total = Number(answer.headers.get("x-total") ?? list.length);
      list.forEach((row, index) => {
        const at = (page - 1) * size + index;
        if (this.rows[at] === undefined) this.filled += 1;
        this.rows[at] = row;
      });
      this.loaded = true;
      this.error = null;
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.asked.delete(key);
      this.error = error;
    }
    this.changed();
  }
}

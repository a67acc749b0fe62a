/** A long list of the server, page by page: what is looked at is loaded, and the server searches. */
import { call, query } from "./http";

/** Entries of a page. */
const SIZE = 1000;

/** A list below `path` whose entries are in the field `field` of its pages. */
export class PagedList<T> {
  /** Entries on all pages; 0 until the first page is there. */
  total = 0;
  loaded = false;
  error: unknown = null;
  private rows: (T | undefined)[] = [];
  private readonly asked = new Set<number>();
  private readonly abort = new AbortController();

  constructor(
    private readonly path: string,
    private readonly field: string,
    readonly filters: Record<string, string | undefined>,
    private readonly changed: () => void,
  ) {
    void this.page(1);
  }

  /** An entry, if its page is there. */
  row(index: number): T | undefined {
    return this.rows[index];
  }

  /** Loads the pages of these rows. */
  ensure(from: number, to: number): void {
    for (let page = Math.floor(from / SIZE) + 1; page <= Math.ceil(Math.min(to, this.total) / SIZE); page += 1) void this.page(page);
  }

  /** Ends calls that are under way. */
  close(): void {
    this.abort.abort();
  }

  private async page(page: number): Promise<void> {
    if (this.asked.has(page)) return;
    this.asked.add(page);
    try {
      const answer = await call<Record<string, T[]>>("GET", this.path + query({ ...this.filters, page, pageSize: SIZE }), { signal: this.abort.signal });
      const list = answer.body[this.field] ?? [];
      this.total = Number(answer.headers.get("x-total") ?? list.length);
      list.forEach((row, index) => (this.rows[(page - 1) * SIZE + index] = row));
      this.loaded = true;
      this.error = null;
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.asked.delete(page);
      this.error = error;
    }
    this.changed();
  }
}

/** A [`PagedList`] in a page: scrolling loads, and the server searches. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { PagedList } from "../api/paged";
import { t } from "../i18n";
import { useThrottled } from "./async";
import { Problem } from "./page";
import { Table, type Column } from "./table";

/** Milliseconds for which a search waits for the next key, where keys come faster. */
const PAUSE = 60;

/** What is shown of the list: entries that the filters and `text` leave. */
export interface PagedProps<T> {
  label: string;
  path: string;
  field: string;
  filters: Record<string, string | undefined>;
  text: string;
  columns: Column<T>[];
  id: (row: T) => string;
  onOpen: (row: T) => void;
  tone?: (row: T) => string;
  /** Another number loads the list again. */
  turn: number;
  /** Seconds after which the list is loaded again, while the page is visible and no answer is awaited; 0: never. */
  everySeconds?: number;
  /** Gets the list when it changes. */
  onList?: (list: PagedList<T>) => void;
}

/** The table with its search. */
export function PagedTable<T>(props: PagedProps<T>) {
  const { path, field, turn, everySeconds = 0 } = props;
  const [, bump] = useState(0);
  const [again, setAgain] = useState(0);
  const text = useThrottled(props.text.trim(), PAUSE);
  const filters = JSON.stringify({ ...props.filters, "filter.text": text || undefined });
  /** The list that is shown: it loads further pages until another one takes its place. */
  const kept = useRef<{ list: PagedList<T>; filters: string } | null>(null);
  const [failed, fail] = useState<unknown>(null);
  const newest = useRef<PagedList<T> | null>(null);
  useEffect(() => {
    const take = (list: PagedList<T>) => {
      const before = kept.current;
      // The list before stays until this one has its first page, so that nothing flickers. If that does not come, the same list as it was stays
      // below the error; that of another search does not.
      const fails = list.error !== null;
      if (list.loaded || !before || (fails && (before.filters !== filters || !before.list.loaded))) {
        if (before?.list !== list) before?.list.close();
        kept.current = { list, filters };
      }
      fail(list.error);
      if (list.loaded) props.onList?.(list);
    };
    const list = new PagedList<T>(path, field, JSON.parse(filters), () => {
      // Further pages of a list that waits for its successor are drawn alone.
      if (newest.current === list) take(list);
      bump((version) => version + 1);
    });
    newest.current = list;
    return () => {
      if (kept.current?.list !== list) list.close();
    };
  }, [path, field, filters, turn, again]);
  useEffect(() => () => kept.current?.list.close(), []);
  useEffect(() => {
    if (!everySeconds) return;
    const timer = setInterval(() => document.hidden || (newest.current && !newest.current.loaded && !newest.current.error) || setAgain((again) => again + 1), everySeconds * 1000);
    return () => clearInterval(timer);
  }, [everySeconds]);
  const shown = kept.current;
  const list = shown?.list;
  const row = useCallback((index: number) => list?.row(index), [list]);
  const onView = useCallback((from: number, to: number) => list?.ensure(from, to), [list]);
  if (!shown || !list) return <p class="empty" role="status">{t("state.loading")}</p>;
  const retry = () => setAgain((again) => again + 1);
  if (list.error && !list.loaded) return <Problem error={list.error} retry={retry} />;
  return (
    <>
      {failed ? <Problem error={failed} retry={retry} /> : null}
      <p class="count" role="status">
        {t(shown.filters === "{}" ? "list.total" : "list.matches", { count: list.total })}
        {shown.filters !== filters ? ` ${t("list.searching")}` : ""}
      </p>
      <Table label={props.label} columns={props.columns} total={list.total} row={row} id={props.id} onView={onView} onOpen={props.onOpen} {...(props.tone ? { tone: props.tone } : {})} />
    </>
  );
}

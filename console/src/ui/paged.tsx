/** A [`PagedList`] in a page: scrolling loads, a text searches all of it. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { PagedList, withIdentity } from "../api/paged";
import { parseKey } from "../api/security";
import { t } from "../i18n";
import { useDebounced } from "./async";
import { Problem } from "./page";
import { Table, type Column } from "./table";

/** What is shown of the list. `text` is looked for in what `haystack` makes of a row. */
export interface PagedProps<T> {
  label: string;
  path: string;
  field: string;
  filters: Record<string, string | undefined>;
  text: string;
  haystack: (row: T) => string;
  keep?: (row: T) => boolean;
  columns: Column<T>[];
  id: (row: T) => string;
  onOpen: (row: T) => void;
  tone?: (row: T) => string;
  /** Another number loads the list again. */
  turn: number;
  /** Gets the list when it changes. */
  onList?: (list: PagedList<T>) => void;
}

/** The table with its search. */
export function PagedTable<T>(props: PagedProps<T>) {
  const { path, field, filters, turn } = props;
  const [version, bump] = useState(0);
  const [again, setAgain] = useState(0);
  const filterText = JSON.stringify(filters);
  const text = useDebounced(props.text.trim().toLowerCase(), 60);
  const searching = text !== "" || props.keep !== undefined;
  const searchingNow = useRef(searching);
  searchingNow.current = searching;
  const [list, setList] = useState<PagedList<T> | null>(null);
  useEffect(() => {
    const made = new PagedList<T>(path, field, filters, () => {
      // The list before stays until this one has what is shown, so that nothing flickers.
      if (made.loaded && searchingNow.current) void made.all();
      setList((before) => (made.error || (made.loaded && (!before || !searchingNow.current || made.isComplete())) ? made : before));
      if (made.loaded) props.onList?.(made);
      bump((version) => version + 1);
    });
    return () => made.close();
  }, [path, field, filterText, turn, again]);
  useEffect(() => {
    if (searching && list) void list.all();
  }, [searching, list]);
  const [exact, setExact] = useState<{ text: string; rows: T[] } | null>(null);
  useEffect(() => {
    const key = parseKey(props.text);
    if (!key || !list || list.isComplete()) return;
    const abort = new AbortController();
    // What goes wrong here goes wrong for the pages too, and is shown there.
    withIdentity<T>(path, field, filters, key, abort.signal).then((rows) => setExact({ text, rows }), () => undefined);
    return () => abort.abort();
  }, [text, list]);
  const hay = useRef(new WeakMap<object, string>());
  const found = useMemo(() => {
    if (!searching || !list) return null;
    const of = (row: T) => {
      const known = hay.current.get(row as object);
      if (known !== undefined) return known;
      const made = props.haystack(row).toLowerCase();
      hay.current.set(row as object, made);
      return made;
    };
    const rows = list.present().filter((row) => (props.keep?.(row) ?? true) && (text === "" || of(row).includes(text)));
    if (exact?.text !== text) return rows;
    const there = new Set(rows.map(props.id));
    return [...exact.rows.filter((row) => !there.has(props.id(row)) && (props.keep?.(row) ?? true)), ...rows];
  }, [searching, list, text, version, props.keep, exact]);
  const row = useCallback((index: number) => (found ? found[index] : list?.row(index)), [found, list]);
  const onView = useCallback((from: number, to: number) => {
    if (!found) list?.ensure(from, to);
  }, [found, list]);
  if (!list) return <p class="empty" role="status">{t("state.loading")}</p>;
  if (list.error && !list.loaded) return <Problem error={list.error} retry={() => setAgain((again) => again + 1)} />;
  const total = found ? found.length : list.total;
  return (
    <>
      {list.error ? <Problem error={list.error} retry={() => setAgain((again) => again + 1)} /> : null}
      <p class="count" role="status">
        {found ? t("list.found", { found: total, count: list.total }) : t("list.total", { count: total })}
        {found && !list.isComplete() && !list.error ? ` ${t("list.searching")}` : ""}
      </p>
      <Table label={props.label} columns={props.columns} total={total} row={row} id={props.id} onView={onView} onOpen={props.onOpen} {...(props.tone ? { tone: props.tone } : {})} />
    </>
  );
}

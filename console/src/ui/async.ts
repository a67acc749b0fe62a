/** Data that a page waits for. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/** The state of a call. `data` of the call before stays while a new one runs. */
export interface Loaded<T> {
  data: T | null;
  error: unknown;
  loading: boolean;
  reload: () => void;
}

/** A call that has begun before its page is drawn. */
export interface Begun<T> {
  answer: Promise<T>;
  /** The answer, once it is there. */
  data: T | null;
}

/** Keeps the answer of a call for [`useLoaded`]. */
export function begun<T>(answer: Promise<T>): Begun<T> {
  const call: Begun<T> = { answer, data: null };
  answer.then((data) => (call.data = data), () => {});
  return call;
}

/** Runs `load` now, when `deps` change, and every `everySeconds` while the page is visible and no call is under way: a slow answer is awaited. `first` takes the place of the first call. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[], everySeconds = 0, first: Begun<T> | null = null): Loaded<T> {
  const [state, set] = useState<{ data: T | null; error: unknown; loading: boolean }>(() => ({ data: first?.data ?? null, error: null, loading: first?.data == null }));
  const early = useRef(first);
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const running = useRef<AbortController | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const end = () => {
      if (running.current === abort) running.current = null;
    };
    const call = early.current;
    early.current = null;
    // Its answer is the state already.
    if (call && call.data !== null && call.data === state.data) return;
    running.current = abort;
    set((before) => (before.loading ? before : { ...before, loading: true }));
    (call?.answer ?? latest.current(abort.signal)).finally(end).then(
      (data) => abort.signal.aborted || set({ data, error: null, loading: false }),
      (error: unknown) => abort.signal.aborted || set((before) => ({ data: before.data, error, loading: false })),
    );
    return () => abort.abort();
  }, [...deps, turn]);
  useEffect(() => {
    if (!everySeconds) return;
    const timer = setInterval(() => document.hidden || running.current || setTurn((turn) => turn + 1), everySeconds * 1000);
    return () => clearInterval(timer);
  }, [everySeconds]);
  return { ...state, reload: useCallback(() => setTurn((turn) => turn + 1), []) };
}

/** A value that follows another one after a pause. */
export function useDebounced<T>(value: T, millis: number): T {
  const [kept, keep] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => keep(value), millis);
    return () => clearTimeout(timer);
  }, [value, millis]);
  return kept;
}

/** A value that follows another one: at once where that one was the same for so many milliseconds, otherwise once it has been. */
export function useThrottled<T>(value: T, millis: number): T {
  const [kept, keep] = useState(value);
  const changed = useRef(-Infinity);
  useEffect(() => {
    const now = performance.now();
    const rested = now - changed.current >= millis;
    changed.current = now;
    const timer = setTimeout(() => keep(value), rested ? 0 : millis);
    return () => clearTimeout(timer);
  }, [value, millis]);
  return kept;
}

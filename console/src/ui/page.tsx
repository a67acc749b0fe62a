/** The frame of a page, and what stands in the place of data that is not there. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isMissing } from "../api/http";
import { t } from "../i18n";
import { problem } from "../problem";
import type { Loaded } from "./async";

export { problem };

let first = true;

/** A page: its title is the heading, the title of the window, and what gets the focus after navigation. */
export function Page({ title, intro, actions, children }: { title: string; intro?: string; actions?: ComponentChildren; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Palisade`;
  }, [title]);
  useEffect(() => {
    // The first page leaves the focus at the top, where the skip link is.
    const isFirst = first;
    first = false;
    if (isFirst) return;
    const at = document.activeElement;
    if (!at || at === document.body || at.id === "main" || at.closest("nav")) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>{title}</h1>
          {intro && <p class="muted">{intro}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** A box that explains an error, and tries again. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }) {
  if (isMissing(error)) {
    return (
      <div class="empty" data-state="unavailable">
        <p>{t("state.unavailable")}</p>
        <p class="muted">{t("state.unavailable.why")}</p>
      </div>
    );
  }
  return (
    <div class="notice bad" role="alert">
      <p>{problem(error)}</p>
      {retry && <button type="button" onClick={retry}>{t("action.retry")}</button>}
    </div>
  );
}

/** Shows `children` of loaded data, and otherwise why there is none. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (of.data === null && of.error) return <Problem error={of.error} retry={of.reload} />;
  if (of.data === null) return <p class="empty" role="status">{t("state.loading")}</p>;
  return (
    <>
      {of.error ? <Problem error={of.error} retry={of.reload} /> : null}
      {children(of.data)}
    </>
  );
}

/** What an empty list says. */
export function Empty({ text, children }: { text: string; children?: ComponentChildren }) {
  return <div class="empty"><p>{text}</p>{children}</div>;
}

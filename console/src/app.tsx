/** The frame of the console: session, navigation, pages and shortcuts. */
import { render, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { onSessionEnd } from "./api/http";
import { keep, logout, type Session } from "./api/session";
import { loadCatalogue, loadFrame, t, type Key } from "./i18n";
import { forgetDraft } from "./replay-draft";
import { current, followHistory, followLinks, hasEdits, href, mayLeave, navigate, useRoute } from "./router";
import { Shortcuts, useShortcuts } from "./shortcuts";
import { keepLogout } from "./start/parameters";
import { preferences } from "./start/preferences";
import { SessionContext, SetSessionContext } from "./session";
import "./first";
import type { Begun } from "./ui/async";
import { useFocusKept } from "./ui/focus";
import { Page, Problem } from "./ui/page";
import { RoleNote, useMay, type Role } from "./ui/role";
import { Toasts, clearToasts, tellProblem } from "./ui/toast";

/** What a page gets: the rest of its path, such as an id, and what its `begin` has returned if it is the first page. */
export interface PageProps {
  rest: string[];
  calls?: unknown;
}

/** The module of a page. `begin` starts the calls of the page that the address bar names, before anything is drawn. */
interface PageModule {
  default: ComponentType<PageProps>;
  begin?: () => Record<string, Begun<unknown>>;
}

interface Entry {
  path: string;
  label: Key;
  group: Key;
  /** The role without which none of its calls is answered. */
  least?: Role;
  load: () => Promise<PageModule>;
}

/** A page whose texts are not among those of the frame. */
function page(load: () => Promise<PageModule>): () => Promise<PageModule> {
  return async () => (await Promise.all([load(), loadCatalogue()]))[0];
}

const NAV: Entry[] = [
  { path: "/", label: "nav.overview", group: "nav.group.watch", load: () => import("./pages/overview") },
  { path: "/incidents", label: "nav.incidents", group: "nav.group.watch", load: page(() => import("./pages/incidents")) },
  { path: "/live", label: "nav.live", group: "nav.group.watch", load: page(() => import("./pages/live")) },
  { path: "/events", label: "nav.events", group: "nav.group.watch", load: page(() => import("./pages/events")) },
  { path: "/why", label: "nav.why", group: "nav.group.watch", load: page(() => import("./pages/why")) },
  { path: "/bans", label: "nav.bans", group: "nav.group.decide", load: page(() => import("./pages/bans")) },
  { path: "/policies", label: "nav.policies", group: "nav.group.decide", load: page(() => import("./pages/policies")) },
  { path: "/rules", label: "nav.rules", group: "nav.group.decide", load: page(() => import("./pages/rules")) },
  { path: "/tuning", label: "nav.tuning", group: "nav.group.decide", load: page(() => import("./pages/tuning")) },
  { path: "/learning", label: "nav.learning", group: "nav.group.decide", load: page(() => import("./pages/learning")) },
  { path: "/replay", label: "nav.replay", group: "nav.group.decide", load: page(() => import("./pages/replay")) },
  { path: "/lookup", label: "nav.lookup", group: "nav.group.look", load: page(() => import("./pages/lookup")) },
  { path: "/sources", label: "nav.sources", group: "nav.group.look", load: page(() => import("./pages/sources")) },
  { path: "/geography", label: "nav.geography", group: "nav.group.look", load: page(() => import("./pages/geography")) },
  { path: "/objects", label: "nav.objects", group: "nav.group.look", load: page(() => import("./pages/guards").then((module) => ({ default: module.ObjectGuard }))) },
  { path: "/logins", label: "nav.logins", group: "nav.group.look", load: page(() => import("./pages/guards").then((module) => ({ default: module.LoginGuard }))) },
  { path: "/api", label: "nav.api", group: "nav.group.look", load: page(() => import("./pages/api-report")) },
  { path: "/bots", label: "nav.bots", group: "nav.group.look", load: page(() => import("./pages/bots")) },
  { path: "/audit", label: "nav.audit", group: "nav.group.admin", load: page(() => import("./pages/audit")) },
  { path: "/operators", label: "nav.operators", group: "nav.group.admin", least: "admin", load: page(() => import("./pages/operators")) },
  { path: "/account", label: "nav.account", group: "nav.group.admin", load: page(() => import("./pages/account")) },
];
const GROUPS: Key[] = ["nav.group.watch", "nav.group.decide", "nav.group.look", "nav.group.admin"];

function entryOf(path: string): Entry | undefined {
  return NAV.find((entry) => entry.path === path) ?? NAV.find((entry) => entry.path !== "/" && path.startsWith(`${entry.path}/`));
}

/** How long the first drawing waits for the answers of the page's calls, so that all of it is drawn once: milliseconds. */
const PATIENCE_MS = 150;

/** A page whose module is there; its calls are taken by the first drawing. */
interface FirstPage {
  entry: Entry;
  page: ComponentType<PageProps>;
  calls: unknown;
}

/**
 * Shows the application in `root`: the page that the address bar names, for the operator of the session. `onEnd` is called after a logout, and
 * when the session has ended; `root` is empty then.
 */
export async function mount(root: HTMLElement, session: Session, onEnd: () => void): Promise<void> {
  let hasEnded = false;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    forget();
    render(null, root);
    onEnd();
  };
  /** The session has ended by itself: an operator with edits may stay, to copy them or to log in in another tab, and is asked once for each end. */
  const onSessionEnded = (again: boolean) => {
    if (!hasEdits() || (!again && confirm(t("edits.session")))) end();
  };
  const onLogout = (url: string | null) => {
    if (url !== null) {
      // No call of a page that is still shown may lead to the login meanwhile.
      hasEnded = true;
      forget();
      keepLogout(url);
      render(null, root);
      // Back from the provider the browser may show the page as it was left, which is empty.
      addEventListener("pageshow", (event) => event.persisted && location.reload());
      return location.assign(url);
    }
    navigate(href("/login"), "push", true);
    end();
  };
  keep(session);
  onSessionEnd(onSessionEnded);
  followHistory();
  document.addEventListener("click", followLinks);
  const first = await prepare();
  if (hasEnded) return;
  root.replaceChildren();
  render(<Shell begun={session} first={first} onLogout={onLogout} />, root);
}

/** What the next operator of this window must not find. */
function forget(): void {
  forgetDraft();
  clearToasts();
}

/** Loads the first page and, for a short while, its data: the frame and the page are one drawing then. What cannot be loaded is said in its place. */
async function prepare(): Promise<FirstPage | null> {
  const entry = entryOf(current().path);
  const [module] = await Promise.all([entry?.load().catch(() => null), loadFrame()]);
  if (!entry || !module) return null;
  const calls = module.begin?.();
  if (calls) {
    const answers = Promise.allSettled(Object.values(calls).map(({ answer }) => answer));
    await Promise.race([answers, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
  }
  return { entry, page: module.default, calls };
}

function Shell({ begun, first, onLogout }: { begun: Session; first: FirstPage | null; onLogout: (url: string | null) => void }) {
  const route = useRoute();
  const [session, setSession] = useState(begun);
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  const entry = entryOf(route.path);
  useShortcuts(() => setHelp(true));
  useFocusKept();
  useEffect(() => setOpen(false), [route.path]);
  const leave = async () => {
    if (!mayLeave()) return;
    try {
      onLogout(await logout());
    } catch (error) {
      tellProblem(error);
    }
  };
  const rest = entry ? route.path.slice(entry.path === "/" ? 1 : entry.path.length + 1).split("/").filter(Boolean).map(decode) : [];
  return (
    <SessionContext.Provider value={session}>
      <SetSessionContext.Provider value={setSession}>
        <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>{t("app.skip")}</a>
        <div class={`shell ${open ? "open" : ""}`}>
          <header class="bar">
            <button type="button" class="plain menu" aria-expanded={open} aria-controls="nav" onClick={() => setOpen(!open)}>
              <span aria-hidden="true">☰</span> {t("app.menu")}
            </button>
            <a class="brand" href={href("/")}>{t("app.name")}</a>
          </header>
          <nav id="nav" class="nav" aria-label={t("app.nav")}>
            <a class="brand" href={href("/")}>{t("app.name")}</a>
            {GROUPS.map((group) => (
              <div key={group} class="nav-group">
                <h2>{t(group)}</h2>
                <ul>
                  {NAV.filter((entry) => entry.group === group).map((item) => (
                    <li key={item.path}><a href={href(item.path)} {...(item === entry ? { "aria-current": "page" } : {})}>{t(item.label)}</a></li>
                  ))}
                </ul>
              </div>
            ))}
            <div class="nav-foot">
              <div class="preferences" ref={fillPreferences} />
              <p class="muted">{session.operator.name}</p>
              <button type="button" onClick={() => void leave()}>{t("action.logout")}</button>
              <button type="button" class="plain" onClick={() => setHelp(true)}>{t("shortcuts.title")} (?)</button>
            </div>
          </nav>
          <main id="main" tabIndex={-1}>
            {entry ? <Loader key={entry.path} entry={entry} rest={rest} first={first?.entry === entry ? first : null} /> : <Page title={t("app.missing")}><p><a href={href("/")}>{t("nav.overview")}</a></p></Page>}
          </main>
        </div>
        <Toasts />
        {help && <Shortcuts onClose={() => setHelp(false)} />}
      </SetSessionContext.Provider>
    </SessionContext.Provider>
  );
}

/** The element's content is not of this renderer: the login has the same one without it. */
function fillPreferences(place: HTMLElement | null): void {
  place?.append(...preferences());
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Loader({ entry, rest, first }: { entry: Entry; rest: string[]; first: FirstPage | null }) {
  const [loaded, set] = useState<{ page: ComponentType<PageProps> } | null>(first);
  // Taken once: they are of no use to the page when it is opened again.
  const [calls] = useState(() => {
    const taken = first?.calls;
    if (first) first.calls = undefined;
    return taken;
  });
  const [error, setError] = useState<unknown>(null);
  const may = useMay(entry.least ?? "viewer");
  useEffect(() => {
    if (loaded) return;
    let here = true;
    entry.load().then((module) => here && set({ page: module.default }), (error: unknown) => here && setError(error));
    return () => {
      here = false;
    };
  }, [entry]);
  if (error) return <Page title={t(entry.label)}><Problem error={error} retry={() => location.reload()} /></Page>;
  if (!may && entry.least) return <Page title={t(entry.label)}><RoleNote least={entry.least} /></Page>;
  if (!loaded) return <p class="empty" role="status">{t("state.loading")}</p>;
  const LoadedPage = loaded.page;
  return <LoadedPage key={rest.join("/")} rest={rest} calls={calls} />;
}

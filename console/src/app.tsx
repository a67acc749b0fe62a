/** The frame of the console: session, navigation, pages and shortcuts. */
import type { ComponentType } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { ApiError, onSessionEnd } from "./api/http";
import { logout, me, type Session } from "./api/session";
import { t, type Key } from "./i18n";
import { Login, takeAnswer, takeToken } from "./pages/login";
import { current, followLinks, href, navigate, useRoute } from "./router";
import { Shortcuts, useShortcuts } from "./shortcuts";
import { Preferences } from "./preferences";
import { SessionContext } from "./session";
import { Page, Problem } from "./ui/page";
import { RoleNote, useMay, type Role } from "./ui/role";
import { Late } from "./ui/late";
import { Toasts, tellProblem } from "./ui/toast";

/** What a page gets: the rest of its path, such as an id. */
export interface PageProps {
  rest: string[];
}

interface Entry {
  path: string;
  label: Key;
  group: Key;
  /** The role without which none of its calls is answered. */
  least?: Role;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

const NAV: Entry[] = [
  { path: "/", label: "nav.overview", group: "nav.group.watch", load: () => import("./pages/overview") },
  { path: "/incidents", label: "nav.incidents", group: "nav.group.watch", load: () => import("./pages/incidents") },
  { path: "/live", label: "nav.live", group: "nav.group.watch", load: () => import("./pages/live") },
  { path: "/events", label: "nav.events", group: "nav.group.watch", load: () => import("./pages/events") },
  { path: "/why", label: "nav.why", group: "nav.group.watch", load: () => import("./pages/why") },
  { path: "/bans", label: "nav.bans", group: "nav.group.decide", load: () => import("./pages/bans") },
  { path: "/policies", label: "nav.policies", group: "nav.group.decide", load: () => import("./pages/policies") },
  { path: "/rules", label: "nav.rules", group: "nav.group.decide", load: () => import("./pages/rules") },
  { path: "/tuning", label: "nav.tuning", group: "nav.group.decide", load: () => import("./pages/tuning") },
  { path: "/learning", label: "nav.learning", group: "nav.group.decide", load: () => import("./pages/learning") },
  { path: "/replay", label: "nav.replay", group: "nav.group.decide", load: () => import("./pages/replay") },
  { path: "/lookup", label: "nav.lookup", group: "nav.group.look", load: () => import("./pages/lookup") },
  { path: "/sources", label: "nav.sources", group: "nav.group.look", load: () => import("./pages/sources") },
  { path: "/geography", label: "nav.geography", group: "nav.group.look", load: () => import("./pages/geography") },
  { path: "/objects", label: "nav.objects", group: "nav.group.look", load: () => import("./pages/guards").then((module) => ({ default: module.ObjectGuard })) },
  { path: "/logins", label: "nav.logins", group: "nav.group.look", load: () => import("./pages/guards").then((module) => ({ default: module.LoginGuard })) },
  { path: "/api", label: "nav.api", group: "nav.group.look", load: () => import("./pages/api-report") },
  { path: "/bots", label: "nav.bots", group: "nav.group.look", load: () => import("./pages/bots") },
  { path: "/audit", label: "nav.audit", group: "nav.group.admin", load: () => import("./pages/audit") },
  { path: "/operators", label: "nav.operators", group: "nav.group.admin", least: "admin", load: () => import("./pages/operators") },
  { path: "/account", label: "nav.account", group: "nav.group.admin", load: () => import("./pages/account") },
];
const GROUPS: Key[] = ["nav.group.watch", "nav.group.decide", "nav.group.look", "nav.group.admin"];

function entryOf(path: string): Entry | undefined {
  return NAV.find((entry) => entry.path === path) ?? NAV.find((entry) => entry.path !== "/" && path.startsWith(`${entry.path}/`));
}

// Before anything else looks at the address: a token must not stay in it.
let token = takeToken();
let answer = takeAnswer();
let refused = false;

/** The application. */
export function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<unknown>(null);
  const route = useRoute();
  const start = useCallback(() => {
    setError(null);
    me().then((session) => {
      setSession(session);
      if (session.second_factor_required && current().path !== "/account") navigate(href("/account"), "replace");
    }, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) {
        refused = true;
        toLogin();
      } else setError(error);
    });
  }, []);
  useEffect(() => {
    onSessionEnd(() => {
      refused = true;
      setSession(null);
      toLogin();
    });
    document.addEventListener("click", followLinks);
    if (token) toLogin();
    else if (current().path !== "/login") start();
    return () => document.removeEventListener("click", followLinks);
  }, [start]);

  if (route.path === "/login") return <Login token={token} answer={answer} refused={refused} onDone={(session) => { token = answer = null; refused = false; setSession(session); }} />;
  if (error) return <main class="alone"><Page title={t("app.name")}><Problem error={error} retry={start} /></Page></main>;
  if (!session) return <main class="alone" aria-busy="true"><Late><p role="status">{t("state.loading")}</p></Late></main>;
  return (
    <SessionContext.Provider value={session}>
      <Shell session={session} onLogout={() => setSession(null)} />
    </SessionContext.Provider>
  );
}

function toLogin(): void {
  const { path } = current();
  if (path === "/login") return;
  const here = location.pathname + location.search;
  navigate(href("/login", { next: path === "/" && !location.search ? null : here }), "replace");
}

function Shell({ session, onLogout }: { session: Session; onLogout: () => void }) {
  const route = useRoute();
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  const entry = entryOf(route.path);
  useShortcuts(() => setHelp(true));
  useEffect(() => setOpen(false), [route.path]);
  const leave = async () => {
    try {
      await logout();
      onLogout();
      navigate(href("/login"));
    } catch (error) {
      tellProblem(error);
    }
  };
  const rest = entry ? route.path.slice(entry.path === "/" ? 1 : entry.path.length + 1).split("/").filter(Boolean).map(decode) : [];
  return (
    <>
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
            <Preferences />
            <p class="muted">{session.operator.name}</p>
            <button type="button" onClick={() => void leave()}>{t("action.logout")}</button>
            <button type="button" class="plain" onClick={() => setHelp(true)}>{t("shortcuts.title")} (?)</button>
          </div>
        </nav>
        <main id="main" tabIndex={-1}>
          {entry ? <Loader key={entry.path} entry={entry} rest={rest} /> : <Page title={t("app.missing")}><p><a href={href("/")}>{t("nav.overview")}</a></p></Page>}
        </main>
      </div>
      <Toasts />
      {help && <Shortcuts onClose={() => setHelp(false)} />}
    </>
  );
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Loader({ entry, rest }: { entry: Entry; rest: string[] }) {
  const [loaded, set] = useState<{ page: ComponentType<PageProps> } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const may = useMay(entry.least ?? "viewer");
  useEffect(() => {
    let here = true;
    entry.load().then((module) => here && set({ page: module.default }), (error: unknown) => here && setError(error));
    return () => {
      here = false;
    };
  }, [entry]);
  const key = useMemo(() => rest.join("/"), [rest.join("/")]);
  if (error) return <Page title={t(entry.label)}><Problem error={error} retry={() => location.reload()} /></Page>;
  if (!may && entry.least) return <Page title={t(entry.label)}><RoleNote least={entry.least} /></Page>;
  if (!loaded) return <p class="empty" role="status">{t("state.loading")}</p>;
  const LoadedPage = loaded.page;
  return <LoadedPage key={key} rest={rest} />;
}

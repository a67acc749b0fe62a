/** Entry of the console: the session decides between the login and the application. */
import { current, href } from "./address";
import { ApiError } from "./api/http";
import { me, type Session } from "./api/session";
import { startText as t } from "./i18n/start";
import { problem } from "./problem";
import { el } from "./start/dom";
import { showLogin, type Brought } from "./start/login";
import { loginAddress, takeAnswer, takeNext, takeToken } from "./start/parameters";
import "./styles/index.css";

/** A text that comes and goes at once only flickers, and costs a layout: milliseconds. */
const PATIENCE_MS = 300;

const root = document.getElementById("console");
// Before anything else looks at the address: a token must not stay in it.
const [token, answer] = [takeToken(), takeAnswer()];
if (root) void (token || answer ? enterByLogin(root, { token, answer }) : start(root));

async function start(root: HTMLElement): Promise<void> {
  const late = setTimeout(() => root.replaceChildren(el("main", { class: "alone", "aria-busy": "true" }, el("p", { role: "status" }, t("state.loading")))), PATIENCE_MS);
  let session: Session;
  try {
    session = await me().finally(() => clearTimeout(late));
  } catch (error) {
    if ((error instanceof ApiError && error.status === 401) || current().path === "/login") return await enterByLogin(root);
    return showProblem(root, error, () => void start(root));
  }
  if (current().path === "/login") history.replaceState(null, "", takeNext());
  await enter(root, session);
}

async function enterByLogin(root: HTMLElement, brought: Brought = {}): Promise<void> {
  const address = loginAddress();
  if (address !== location.pathname + location.search) history.replaceState(null, "", address);
  // Back from here leads to a page that wants a session.
  const again = () => location.reload();
  addEventListener("popstate", again);
  // The application is loaded while the operator types; an error of that is said after the login.
  const session = await showLogin(root, brought, () => void import("./app").catch(() => {}));
  removeEventListener("popstate", again);
  history.replaceState(null, "", takeNext());
  await enter(root, session);
}

async function enter(root: HTMLElement, session: Session): Promise<void> {
  if (session.second_factor_required && current().path !== "/account") history.replaceState(null, "", href("/account"));
  try {
    const { mount } = await import("./app");
    await mount(root, session, () => void enterByLogin(root));
  } catch (error) {
    // A new release has other files.
    showProblem(root, error, () => location.reload());
  }
}

function showProblem(root: HTMLElement, error: unknown, retry: () => void): void {
  document.title = t("app.name");
  const notice = el("div", { class: "notice bad", role: "alert" }, el("p", {}, problem(error)), el("button", { type: "button", onclick: retry }, t("action.retry")));
  root.replaceChildren(el("main", { class: "alone" }, el("div", { class: "page" }, el("header", { class: "page-head" }, el("h1", {}, t("app.name"))), notice)));
}

/**
 * The login: by password, by a one-time link, at the provider, and the code of a second factor.
 *
 * It is the first page of a browser without a session, and is made of elements without a renderer: loading and running one would take most of
 * the time that the page needs.
 */
import { ApiError } from "../api/http";
import { beginAtProvider, beginWithPasskey, endAtProvider, endWithPasskey, login, loginMethods, redeem, sendCode, type LoggedIn, type LoginMethods, type ProviderAnswer, type Session, type Ticket } from "../api/session";
import { startText as t } from "../i18n/start";
import { problem } from "../problem";
import { canUsePasskeys, usePasskey } from "../webauthn";
import { el, type Attributes } from "./dom";
import { keepNext } from "./parameters";
import { preferences } from "./preferences";

type Step = "password" | "link" | "provider" | "code" | "passkey";

/** How long the form waits for the ways to log in, so that its buttons come at once: milliseconds. */
const PATIENCE_MS = 200;

function told(error: unknown, step: Step): string {
  // The browser does not say whether the operator has cancelled or there is no passkey.
  if (error instanceof DOMException) return t("login.passkey.cancelled");
  if (!(error instanceof ApiError)) return problem(error);
  const reference = { reference: error.reference };
  if (error.word === "ticket_ended") return t("login.ticket_ended");
  if (error.word === "second_factor_locked") return t("login.code.locked", reference);
  if (error.word === "passkey_refused") return t("login.passkey.refused", reference);
  if (error.word === "provider_failed") return t("login.provider.failed", reference);
  if (error.word === "provider_key_unknown") return t("login.provider.key", { ...reference, seconds: error.retryAfter || 60 });
  if (error.word === "token_refused") return t("login.provider.token", reference);
  if (error.word === "provider_denied") return t("login.provider.denied", reference);
  if (error.word === "not_allowed") return t("login.provider.not_allowed", reference);
  if (error.word === "login_refused") return t("login.provider.refused", reference);
  if (error.status === 401) return t(step === "link" ? "login.link.wrong" : step === "code" ? "login.code.wrong" : "login.wrong");
  if (error.status === 429) return t("login.throttled", { seconds: error.retryAfter || 60 });
  if (error.status === 503) return t("login.busy", { seconds: error.retryAfter || 5 });
  return problem(error);
}

/** What the address bar brings: the token of a link, or the answer of the provider, which is `"out"` after a logout there. */
export interface Brought {
  token?: string | null;
  answer?: ProviderAnswer | "out" | null;
}

/** Shows the login in `root`, first with what the address bar brings; resolves with the session. `onTyping` is called once. */
export async function showLogin(root: HTMLElement, { token = null, answer = null }: Brought, onTyping: () => void): Promise<Session> {
  document.title = `${t("login.title")} · Palisade`;
  // Older releases have the password alone.
  const methods = loginMethods().catch(() => null);
  const login = answer === "out" ? null : answer;
  if (!token && !login) await Promise.race([methods, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
  return new Promise((resolve) => {
    const form = new LoginForm(root, token, onTyping, resolve);
    if (answer === "out") form.note(t("login.logged_out"));
    void form.open(methods, login);
  });
}

let wasShown = false;

class LoginForm {
  private step: Step = "password";
  private methods: LoginMethods | null = null;
  private ticket: Ticket | null = null;
  private isBusy = false;
  private readonly alert = el("p", { class: "notice bad", role: "alert" });
  /** What the step asks for. */
  private readonly fields = el("div", { class: "stack" });
  /** Its buttons, and what is to be said of them. */
  private readonly actions = el("div", { class: "stack" });
  private readonly form: HTMLFormElement;
  private notice: HTMLElement | null = null;

  constructor(private readonly root: HTMLElement, private readonly token: string | null, onTyping: () => void, private readonly done: (session: Session) => void) {
    this.form = el("form", { class: "login panel" }, el("p", { class: "brand" }, t("app.name")), el("h1", {}, t("login.title")), this.fields, this.actions, el("div", { class: "preferences" }, ...preferences()));
    this.form.addEventListener("submit", (event) => this.submit(event));
    this.form.addEventListener("input", onTyping, { once: true });
  }

  /** Says something above the form until the next step. */
  note(text: string): void {
    this.notice = el("p", { class: "notice good", role: "status" }, text);
  }

  async open(methods: Promise<LoginMethods | null>, answer: ProviderAnswer | null): Promise<void> {
    if (answer) {
      this.show("provider");
      void this.begin(endAtProvider(answer));
    } else if (this.token) this.show("link");
    // Answers that are here already are part of the first drawing.
    this.methods = await Promise.race([methods, null]);
    if (!answer && !this.token) this.show("password");
    if (this.notice) this.fields.before(this.notice);
    this.root.replaceChildren(el("main", { class: "alone" }, this.form));
    // The browser focuses the field with `autofocus` when it draws the first one of a document: cheaper than here, where it has to draw at once.
    if (this.step === "password" && wasShown) this.focus();
    wasShown = true;
    if (this.methods) return;
    this.methods = await methods;
    if (this.step === "passkey") this.show("passkey");
    else this.drawActions();
  }

  private show(step: Step): void {
    this.step = step;
    this.fields.replaceChildren(...this.fieldsOf(step));
    this.drawActions();
    if (step === "code") this.focus();
  }

  private focus(): void {
    this.form.querySelector("input")?.focus();
  }

  private fieldsOf(step: Step): Node[] {
    if (step === "provider") return [el("p", { role: "status" }, t("login.busy.now"))];
    if (step === "link") return [el("p", {}, t("login.link.help"))];
    if (step === "passkey") return [el("p", {}, this.usable() ? t("login.passkey.second") : t("login.passkey.elsewhere", { origin: this.methods?.passkeys?.origin ?? "" }))];
    if (step === "code") return [field(t("login.code"), { name: "code", class: "mono", autocomplete: "one-time-code" }, t("login.code.help"))];
    return [
      field(t("login.name"), { name: "name", autofocus: true, autocomplete: "username", autocapitalize: "none", spellcheck: "false" }),
      field(t("login.password"), { name: "password", type: "password", autocomplete: "current-password" }),
    ];
  }

  private drawActions(): void {
    const { step, methods, ticket } = this;
    const provider = methods?.provider;
    const button = (text: string, onclick: () => void) => el("button", { type: "button", disabled: this.isBusy, onclick }, text);
    const shown: Node[] = [];
    if (step !== "provider") shown.push(el("button", { type: "submit", class: "primary", disabled: this.isBusy }, this.submitText()));
    if (this.usable() && step === "password") shown.push(button(t("login.passkey"), () => this.withPasskey()));
    if (this.usable() && step === "code" && ticket?.passkey) shown.push(button(t("login.passkey"), () => this.withPasskey(ticket.ticket)));
    if (step === "password") {
      if (provider) shown.push(button(t("login.provider", { name: provider.name }), () => void this.toProvider()));
      if (provider && !provider.available) shown.push(el("p", { class: "notice warn" }, t("login.provider.unavailable", { name: provider.name })));
      if (methods?.passkeys && !this.usable()) shown.push(el("p", { class: "help" }, t("login.passkey.elsewhere", { origin: methods.passkeys.origin })));
      shown.push(el("p", { class: "help" }, t("login.help")));
    }
    this.actions.replaceChildren(...shown);
  }

  private submitText(): string {
    return t(this.isBusy ? "login.busy.now" : this.step === "passkey" ? "login.passkey" : "login.submit");
  }

  private usable(): boolean {
    return canUsePasskeys(this.methods?.passkeys);
  }

  /** Disables the buttons while a call is under way; a message of the call before goes. */
  private busy(isBusy: boolean, error = ""): void {
    this.isBusy = isBusy;
    this.notice?.remove();
    // In place, so that the focus stays.
    for (const button of this.actions.querySelectorAll("button")) button.disabled = isBusy;
    const submit = this.actions.querySelector("[type=submit]");
    if (submit) submit.textContent = this.submitText();
    this.alert.textContent = error;
    if (error) this.fields.before(this.alert);
    else this.alert.remove();
  }

  private async begin(call: Promise<LoggedIn>): Promise<void> {
    this.busy(true);
    const { step } = this;
    try {
      const begun = await call;
      if ("session" in begun) return this.done(begun.session);
      this.ticket = begun;
      this.busy(false);
      this.show(begun.code ? "code" : "passkey");
    } catch (error) {
      this.busy(false, told(error, step));
      if (step === "link" || step === "provider" || (error instanceof ApiError && error.word === "ticket_ended")) this.show("password");
      this.form.querySelector<HTMLInputElement>("[name=password], [name=code]")?.select();
    }
  }

  private async toProvider(): Promise<void> {
    this.busy(true);
    try {
      const { url } = await beginAtProvider();
      keepNext();
      location.assign(url);
    } catch (error) {
      this.busy(false, told(error, "provider"));
    }
  }

  private withPasskey(ticket?: string): void {
    void this.begin((async () => endWithPasskey(await usePasskey((await beginWithPasskey(ticket)).options), ticket))());
  }

  private submit(event: Event): void {
    event.preventDefault();
    const data = new FormData(this.form);
    const value = (name: string) => String(data.get(name) ?? "");
    if (this.step === "link") void this.begin(redeem(this.token ?? ""));
    else if (this.step === "code") void this.begin(sendCode(this.ticket?.ticket ?? "", value("code").trim()));
    else if (this.step === "passkey") this.withPasskey(this.ticket?.ticket);
    else void this.begin(login(value("name"), value("password")));
  }
}

/** A labelled field; `help` is read out with it. */
function field(label: string, attributes: Attributes & { name: string }, help = ""): HTMLElement {
  const id = `login-${attributes.name}`;
  const input = el("input", { id, required: true, ...attributes, ...(help ? { "aria-describedby": `${id}-help` } : {}) });
  return el("div", { class: "field" }, el("label", { for: id }, label), input, ...(help ? [el("p", { id: `${id}-help`, class: "help" }, help)] : []));
}

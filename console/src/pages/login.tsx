/** The login: by password, by a one-time link, at the provider, and the code of a second factor. */
import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/http";
import { beginAtProvider, beginWithPasskey, endAtProvider, endWithPasskey, login, loginMethods, me, redeem, sendCode, type LoggedIn, type LoginMethods, type ProviderAnswer, type Session, type Ticket } from "../api/session";
import { t } from "../i18n";
import { Preferences } from "../preferences";
import { current, href, navigate, safeNext } from "../router";
import { Field } from "../ui/bits";
import { problem } from "../ui/page";
import { canUsePasskeys, usePasskey } from "../webauthn";

type Step = "password" | "link" | "provider" | "code" | "passkey";

/** Where to go after a login at the provider, kept in this tab meanwhile. */
const NEXT = "palisade.next";

function told(error: unknown, step: Step): string {
  // The browser does not say whether the operator has cancelled or there is no passkey.
  if (error instanceof DOMException) return t("login.passkey.cancelled");
  if (!(error instanceof ApiError)) return problem(error);
  const reference = { reference: error.reference };
  if (error.word === "ticket_ended") return t("login.ticket_ended");
  if (error.word === "passkey_refused") return t("login.passkey.refused", reference);
  if (error.word === "provider_failed") return t("login.provider.failed", reference);
  if (error.word === "provider_denied") return t("login.provider.denied", reference);
  if (error.word === "not_allowed") return t("login.provider.not_allowed", reference);
  if (error.word === "login_refused") return t("login.provider.refused", reference);
  if (error.status === 401) return t(step === "link" ? "login.link.wrong" : step === "code" ? "login.code.wrong" : "login.wrong");
  if (error.status === 429) return t("login.throttled", { seconds: error.retryAfter || 60 });
  if (error.status === 503) return t("login.busy", { seconds: error.retryAfter || 5 });
  return problem(error);
}

/** The token of a one-time link, taken out of the address bar at once. */
export function takeToken(): string | null {
  const token = /^#login=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  return token;
}

/** What the provider has sent the browser back with, taken out of the address bar at once. */
export function takeAnswer(): ProviderAnswer | null {
  const { path, query } = current();
  const state = query.get("state");
  if (path !== "/login" || !state) return null;
  history.replaceState(null, "", href("/login"));
  const answer: ProviderAnswer = { state };
  for (const name of ["code", "iss", "error"] as const) {
    const value = query.get(name);
    if (value !== null) answer[name] = value;
  }
  return answer;
}

/** Where the operator wanted to be: in the address bar, or, after the way to the provider, in this tab. */
function wanted(): string | null {
  const kept = sessionStorage.getItem(NEXT);
  sessionStorage.removeItem(NEXT);
  return current().query.get("next") ?? kept;
}

/** Asks for what is needed, then goes to where the operator wanted to be. */
export function Login({ token, answer, refused, onDone }: { token: string | null; answer: ProviderAnswer | null; /** There is no session: the control plane has just said so. */ refused: boolean; onDone: (session: Session) => void }) {
  const [step, setStep] = useState<Step>(token ? "link" : answer ? "provider" : "password");
  const [methods, setMethods] = useState<LoginMethods | null>(null);
  const [ticket, setTicket] = useState<Ticket | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const done = (session: Session) => {
    onDone(session);
    navigate(safeNext(wanted()), "replace");
  };
  const focus = () => form.current?.querySelector("input")?.focus();
  useEffect(() => {
    document.title = `${t("login.title")} · Palisade`;
    // Older releases have the password alone.
    loginMethods().then(setMethods, () => setMethods(null));
    if (answer) void begin(endAtProvider(answer));
    // A session that is there needs no password; a link is for the operator that it names.
    else if (refused) focus();
    else if (!token) me().then(done, focus);
  }, []);
  useEffect(() => {
    if (step === "code") focus();
  }, [step]);
  const begin = async (call: Promise<LoggedIn>) => {
    setBusy(true);
    setError("");
    try {
      const begun = await call;
      if ("session" in begun) return done(begun.session);
      setTicket(begun);
      setStep(begun.code ? "code" : "passkey");
    } catch (error) {
      setError(told(error, step));
      if (step === "link" || step === "provider" || (error instanceof ApiError && error.word === "ticket_ended")) setStep("password");
      form.current?.querySelector<HTMLInputElement>("[name=password], [name=code]")?.select();
    }
    setBusy(false);
  };
  const toProvider = async () => {
    setBusy(true);
    setError("");
    try {
      const { url } = await beginAtProvider();
      sessionStorage.setItem(NEXT, safeNext(current().query.get("next")));
      location.assign(url);
    } catch (error) {
      setError(told(error, "provider"));
      setBusy(false);
    }
  };
  const withPasskey = (ticket?: string) => void begin((async () => endWithPasskey(await usePasskey((await beginWithPasskey(ticket)).options), ticket))());
  const submit = (event: Event) => {
    event.preventDefault();
    const data = new FormData(form.current ?? undefined);
    const field = (name: string) => String(data.get(name) ?? "");
    if (step === "link") void begin(redeem(token ?? ""));
    else if (step === "code") void begin(sendCode(ticket?.ticket ?? "", field("code").trim()));
    else if (step === "passkey") withPasskey(ticket?.ticket);
    else void begin(login(field("name"), field("password")));
  };
  const provider = methods?.provider;
  const usable = canUsePasskeys(methods?.passkeys);
  const elsewhere = methods?.passkeys && !usable ? methods.passkeys.origin : "";
  return (
    <main class="alone">
      <form ref={form} class="login panel" onSubmit={submit}>
        <p class="brand">{t("app.name")}</p>
        <h1>{t("login.title")}</h1>
        {error && <p class="notice bad" role="alert">{error}</p>}
        {step === "provider" && <p role="status">{t("login.busy.now")}</p>}
        {step === "password" && (
          // The key keeps what was typed when a message comes before the fields.
          <Fragment key="password">
            <Field label={t("login.name")}>{(props) => <input {...props} name="name" autocomplete="username" autocapitalize="none" spellcheck={false} required />}</Field>
            <Field label={t("login.password")}>{(props) => <input {...props} name="password" type="password" autocomplete="current-password" required />}</Field>
          </Fragment>
        )}
        {step === "code" && <Field key="code" label={t("login.code")} help={t("login.code.help")}>{(props) => <input {...props} name="code" class="mono" autocomplete="one-time-code" required />}</Field>}
        {step === "passkey" && <p>{usable ? t("login.passkey.second") : t("login.passkey.elsewhere", { origin: elsewhere })}</p>}
        {step === "link" && <p>{t("login.link.help")}</p>}
        {step !== "provider" && <button type="submit" class="primary" disabled={busy}>{busy ? t("login.busy.now") : step === "passkey" ? t("login.passkey") : t("login.submit")}</button>}
        {step === "password" && usable && <button type="button" disabled={busy} onClick={() => withPasskey()}>{t("login.passkey")}</button>}
        {step === "code" && ticket?.passkey && usable && <button type="button" disabled={busy} onClick={() => withPasskey(ticket.ticket)}>{t("login.passkey")}</button>}
        {step === "password" && provider && <button type="button" disabled={busy} onClick={() => void toProvider()}>{t("login.provider", { name: provider.name })}</button>}
        {step === "password" && provider && !provider.available && <p class="notice warn">{t("login.provider.unavailable", { name: provider.name })}</p>}
        {step === "password" && elsewhere && <p class="help">{t("login.passkey.elsewhere", { origin: elsewhere })}</p>}
        {step === "password" && <p class="help">{t("login.help")}</p>}
        <Preferences />
      </form>
    </main>
  );
}

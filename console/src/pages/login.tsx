/** The login: by password, by a one-time link, and the code of a second factor. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/http";
import { login, me, redeem, sendCode, type LoggedIn, type Session } from "../api/session";
import { t } from "../i18n";
import { Preferences } from "../preferences";
import { current, navigate, safeNext } from "../router";
import { Field } from "../ui/bits";
import { problem } from "../ui/page";

type Step = "password" | "link" | "code";

function told(error: unknown, step: Step): string {
  if (!(error instanceof ApiError)) return problem(error);
  if (error.word === "ticket_ended") return t("login.ticket_ended");
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

/** Asks for what is needed, then goes to where the operator wanted to be. */
export function Login({ token, onDone }: { token: string | null; onDone: (session: Session) => void }) {
  const [step, setStep] = useState<Step>(token ? "link" : "password");
  const [ticket, setTicket] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const done = (session: Session) => {
    onDone(session);
    navigate(safeNext(current().query.get("next")), "replace");
  };
  const focus = () => form.current?.querySelector("input")?.focus();
  useEffect(() => {
    document.title = `${t("login.title")} · Palisade`;
    // A session that is there needs no password; a link is for the operator that it names.
    if (!token) me().then(done, focus);
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
      setTicket(begun.ticket);
      setStep("code");
    } catch (error) {
      setError(told(error, step));
      if (step === "link" || (error instanceof ApiError && error.word === "ticket_ended")) setStep("password");
      form.current?.querySelector<HTMLInputElement>("[name=password], [name=code]")?.select();
    }
    setBusy(false);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const data = new FormData(form.current ?? undefined);
    const field = (name: string) => String(data.get(name) ?? "");
    if (step === "link") void begin(redeem(token ?? ""));
    else if (step === "code") void begin(sendCode(ticket, field("code").trim()));
    else void begin(login(field("name"), field("password")));
  };
  return (
    <main class="alone">
      <form ref={form} class="login panel" onSubmit={submit}>
        <p class="brand">{t("app.name")}</p>
        <h1>{t("login.title")}</h1>
        {error && <p class="notice bad" role="alert">{error}</p>}
        {step === "password" && (
          <>
            <Field label={t("login.name")}>{(props) => <input {...props} name="name" autocomplete="username" autocapitalize="none" spellcheck={false} required />}</Field>
            <Field label={t("login.password")}>{(props) => <input {...props} name="password" type="password" autocomplete="current-password" required />}</Field>
          </>
        )}
        {step === "code" && <Field label={t("login.code")} help={t("login.code.help")}>{(props) => <input {...props} name="code" class="mono" autocomplete="one-time-code" required />}</Field>}
        {step === "link" && <p>{t("login.link.help")}</p>}
        <button type="submit" class="primary" disabled={busy}>{busy ? t("login.busy.now") : t("login.submit")}</button>
        {step === "password" && <p class="help">{t("login.help")}</p>}
        <Preferences />
      </form>
    </main>
  );
}

/** The operator's own session, sessions, password and second factor. */
import { useState } from "preact/hooks";
import { confirmCode, enrol, me, removeFactor, revoke, revokeOthers, secondFactor, sessions, setPassword, type SecondFactor } from "../api/session";
import { t } from "../i18n";
import { prove } from "../proofs";
import { useSession, useSetSession } from "../session";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Field, Panel } from "../ui/bits";
import { Page, Show } from "../ui/page";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";
import { Passkeys } from "./passkeys";

/** Everything about one's own account. */
export default function Account() {
  const session = useSession();
  const factor = useLoaded(secondFactor, []);
  return (
    <Page title={t("nav.account")} intro={t("account.intro")}>
      {session?.second_factor_required && <p class="notice warn" role="alert">{t("account.factor.required")}</p>}
      <div class="columns two">
        <Panel title={t("account.session")}>
          {session && <Facts of={[[t("login.name"), session.operator.name], [t("account.email"), session.operator.email], [t("operators.role"), session.operator.role ?? ""], [t("account.since"), <Time at={session.created_at} />], [t("account.until"), <Time at={session.expires_at} />], [t("account.idle"), t("account.idle.value", { minutes: Math.round(session.idle_seconds / 60) })]]} />}
        </Panel>
        <Panel title={t("account.factor")}><Show of={factor}>{(of) => <Factor of={of} reload={factor.reload} />}</Show></Panel>
        <Panel title={t("account.passkeys")}><Passkeys changed={factor.reload} /></Panel>
        <Panel title={t("account.sessions")}><Sessions /></Panel>
        {session?.operator.has_password !== undefined && <Panel title={t("account.password")}><Password has={session.operator.has_password} app={factor.data?.enrolled ?? false} /></Panel>}
      </div>
    </Page>
  );
}

function Sessions() {
  const all = useLoaded(sessions, []);
  const run = async (call: () => Promise<unknown>) => {
    try {
      await call();
      tell(t("account.sessions.ended"));
      all.reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <Show of={all}>
      {(all) => (
        <div class="stack">
          <ul class="lines">
            {all.sessions.map((entry) => (
              <li key={entry.id}>
                {entry.current ? <Badge tone="good">{t("account.sessions.this")}</Badge> : <button type="button" class="small" onClick={() => void run(() => revoke(entry.id))}>{t("account.sessions.end")}<span class="sr-only"> {entry.address}</span></button>}{" "}
                <span class="mono">{entry.address}</span> <span class="muted">{entry.user_agent} · <Time at={entry.seen_at} how="relative" /></span>
              </li>
            ))}
          </ul>
          <div class="actions"><button type="button" onClick={() => void run(revokeOthers)}>{t("account.sessions.others")}</button></div>
        </div>
      )}
    </Show>
  );
}

function Factor({ of, reload }: { of: SecondFactor; reload: () => void }) {
  const setSession = useSetSession();
  const [begun, setBegun] = useState<{ secret: string; uri: string } | null>(null);
  const [codes, setCodes] = useState<string[]>([]);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const run = async (event: Event) => {
    event.preventDefault();
    try {
      if (of.enrolled) {
        await removeFactor(password, code);
        tell(t("account.factor.removed"));
        setPassword("");
        reload();
        setSession(await me());
      } else if (begun) {
        setCodes((await confirmCode(code)).recovery_codes);
        setBegun(null);
        reload();
        setSession(await me());
      } else setBegun(await prove(password ? { password } : {}, enrol));
      setCode("");
    } catch (error) {
      tellProblem(error);
    }
  };
  const asksCode = of.enrolled || begun !== null;
  return (
    <form class="stack" onSubmit={(event) => void run(event)}>
      <p><Badge tone={of.enrolled ? "good" : "warn"}>{of.enrolled ? t("entity.on") : t("entity.off")}</Badge> {of.enrolled && <span class="muted">{t("account.factor.codes", { count: of.recovery_codes })}</span>}</p>
      {codes.length > 0 && <><p>{t("account.factor.keep")}</p><pre tabIndex={0}>{codes.join("\n")}</pre></>}
      {begun && <Facts of={[[t("account.factor.secret"), <code>{begun.secret}</code>], [t("account.factor.uri"), <a href={begun.uri}>{t("account.factor.open")}</a>]]} />}
      {!begun && <Field label={t("login.password")}>{(props) => <input {...props} type="password" autocomplete="current-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} />}</Field>}
      {asksCode && <Field label={t("login.code")}>{(props) => <input {...props} class="mono" autocomplete="one-time-code" required value={code} onInput={(event) => setCode(event.currentTarget.value)} />}</Field>}
      <div class="actions"><button type="submit" class={of.enrolled ? "" : "primary"}>{of.enrolled ? t("account.factor.remove") : begun ? t("account.factor.confirm") : t("account.factor.begin")}</button></div>
    </form>
  );
}

/** `has`: there is a password. `app`: a code of the app is asked for; without it a passkey, if there is one. */
function Password({ has, app }: { has: boolean; app: boolean }) {
  const setSession = useSetSession();
  const [before, setBefore] = useState("");
  const [code, setCode] = useState("");
  const [next, setNext] = useState("");
  const run = async (event: Event) => {
    event.preventDefault();
    try {
      const session = await prove({ ...(before ? { password: before } : {}), ...(code ? { code: code.trim() } : {}) }, (proofs) => setPassword(next, proofs));
      setBefore("");
      setCode("");
      setNext("");
      setSession(session);
      tell(t("account.password.done"));
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void run(event)}>
      {has && <Field label={t("account.password.before")}>{(props) => <input {...props} type="password" autocomplete="current-password" required value={before} onInput={(event) => setBefore(event.currentTarget.value)} />}</Field>}
      {app && <Field label={t("login.code")}>{(props) => <input {...props} class="mono" autocomplete="one-time-code" value={code} onInput={(event) => setCode(event.currentTarget.value)} />}</Field>}
      <Field label={t("account.password.next")} help={t("account.password.help")}>{(props) => <input {...props} type="password" autocomplete="new-password" minLength={12} required value={next} onInput={(event) => setNext(event.currentTarget.value)} />}</Field>
      <div class="actions"><button type="submit" class="primary">{t("account.password.set")}</button></div>
    </form>
  );
}

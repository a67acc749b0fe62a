/** Operators with their roles, and admin keys. */
import { useEffect, useState } from "preact/hooks";
import { ROLES, addOperator, endSessions, loginLink, operators, removeOperator, removePasskeys, resetFactor, resetPassword, setRole, unlinkIdentity, type Link, type Operator } from "../api/operators";
import { t, word } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Page, Show } from "../ui/page";
import { SureButton } from "../ui/sure";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";
import { AdminKeys } from "./keys";

interface Secret {
  title: string;
  text: string;
}

/** Both lists. */
export default function OperatorsPage() {
  const people = useLoaded(operators, []);
  const [secret, show] = useState<Secret | null>(null);
  const run = async (call: () => Promise<unknown>, reload: () => void) => {
    try {
      await call();
      tell(t("sources.done"));
    } catch (error) {
      tellProblem(error);
    }
    // After a refusal too: a role that was not given must not stay in its field.
    reload();
  };
  const link = (of: Link) => show({ title: t("operators.link"), text: location.origin + of.path });
  return (
    <Page title={t("nav.operators")} intro={t("operators.intro")}>
      <Panel title={t("operators.people")}>
        <Show of={people}>
          {({ operators }) => (
            <div class="stack">
              <ul class="lines entries">{operators.map((of) => <Person key={of.name} of={of} run={(call) => void run(call, people.reload)} link={link} />)}</ul>
              <AddOperator onAdd={(name, email, role) => void run(async () => link((await addOperator(name, email, role)).link), people.reload)} />
            </div>
          )}
        </Show>
      </Panel>
      <AdminKeys show={show} />
      <Panel title={t("account.operators")}>
        <p>{t("account.operators.help")}</p>
        <pre tabIndex={0}>{"palisade operator add alice --email alice@example.com --data DIR\npalisade operator passwd alice --data DIR\npalisade operator remove alice --data DIR\npalisade admin-key create --data DIR --name ci --scopes read,report --expires-in 90d"}</pre>
      </Panel>
      {secret && (
        <Dialog title={secret.title} onClose={() => show(null)}>
          <div class="stack"><p>{t("operators.once")}</p><pre tabIndex={0}>{secret.text}</pre><div class="actions"><button type="button" onClick={() => void navigator.clipboard?.writeText(secret.text)}>{t("operators.copy")}</button></div></div>
        </Dialog>
      )}
    </Page>
  );
}

function Person({ of, run, link }: { of: Operator; run: (call: () => Promise<unknown>) => void; link: (link: Link) => void }) {
  const name = <span class="sr-only"> {of.name}</span>;
  // Arrow keys change a selection at once: a button sets it. A role that was not given does not stay in its field.
  const [role, choose] = useState(of.role);
  useEffect(() => choose(of.role), [of]);
  const give = () => run(() => setRole(of.name, role));
  return (
    <li>
      <strong>{of.name}</strong> <span class="muted">{of.email}</span> {of.you && <Badge tone="info">{t("operators.you")}</Badge>} {of.has_password && <Badge>{t("operators.password")}</Badge>} {of.provider && <Badge tone="info">{t("operators.provider")}</Badge>} {of.second_factor && <Badge tone="good">{t("operators.factor")}</Badge>} {!!of.passkeys && <Badge tone="good">{t("operators.passkeys", { count: of.passkeys })}</Badge>} {!of.second_factor && !of.passkeys && <Badge tone="warn">{t("operators.no_factor")}</Badge>} <span class="muted">{t("operators.sessions", { count: of.sessions })} · <Time at={of.seen_at} how="relative" /></span>
      <div class="actions">
        <select aria-label={t("operators.role.of", { name: of.name })} value={role} onChange={(event) => choose(event.currentTarget.value)}>
          {ROLES.map((role) => <option key={role} value={role}>{word("role", role)}</option>)}
        </select>
        {of.you && role !== of.role
          ? <SureButton label={t("operators.role.set")} name={of.name} about={t("operators.role.own")} onSure={give} />
          : <button type="button" class="small" disabled={role === of.role} onClick={give}>{t("operators.role.set")}{name}</button>}
        <button type="button" class="small" onClick={() => run(async () => link((await loginLink(of.name)).link))}>{t("operators.link")}{name}</button>
        <SureButton label={t("operators.reset_password")} name={of.name} about={t("operators.reset_password.about")} onSure={() => run(async () => link((await resetPassword(of.name)).link))} />
        {of.second_factor && <SureButton label={t("operators.reset_factor")} name={of.name} about={t("operators.reset_factor.about")} onSure={() => run(() => resetFactor(of.name))} />}
        {!!of.passkeys && <SureButton label={t("operators.remove_passkeys")} name={of.name} about={t("operators.remove_passkeys.about")} onSure={() => run(() => removePasskeys(of.name))} />}
        {of.provider && <SureButton label={t("operators.unlink")} name={of.name} about={t("operators.unlink.about")} onSure={() => run(() => unlinkIdentity(of.name))} />}
        {of.sessions > 0 && <button type="button" class="small" onClick={() => run(() => endSessions(of.name))}>{t("operators.end_sessions")}{name}</button>}
        {!of.you && <SureButton label={t("action.delete")} name={of.name} about={t("operators.remove.about")} onSure={() => run(() => removeOperator(of.name))} />}
      </div>
    </li>
  );
}

function AddOperator({ onAdd }: { onAdd: (name: string, email: string, role: string) => void }) {
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [role, setNewRole] = useState("viewer");
  return (
    <form class="filters" onSubmit={(event) => { event.preventDefault(); onAdd(name, email, role); }}>
      <label><span>{t("login.name")}</span><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <label class="grow"><span>{t("account.email")}</span><input type="email" required value={email} onInput={(event) => setEmail(event.currentTarget.value)} /></label>
      <label><span>{t("operators.role")}</span><select value={role} onChange={(event) => setNewRole(event.currentTarget.value)}>{ROLES.map((role) => <option key={role} value={role}>{word("role", role)}</option>)}</select></label>
      <button type="submit" class="primary">{t("operators.add")}</button>
    </form>
  );
}

/** Operators with their roles, and admin keys. */
import { useState } from "preact/hooks";
import { ROLES, SCOPES, addOperator, createKey, endSessions, keys, loginLink, operators, removeOperator, resetFactor, resetPassword, revokeKey, rotateKey, setRole, type AdminKey, type Link, type Operator } from "../api/operators";
import { t, word } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Field, Panel } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Page, Show } from "../ui/page";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";

interface Secret {
  title: string;
  text: string;
}

/** Both lists. */
export default function OperatorsPage() {
  const people = useLoaded(operators, []);
  const machines = useLoaded(keys, []);
  const [secret, show] = useState<Secret | null>(null);
  const run = async (call: () => Promise<unknown>, reload: () => void) => {
    try {
      await call();
      tell(t("sources.done"));
      reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  const link = (of: Link) => show({ title: t("operators.link"), text: location.origin + of.path });
  return (
    <Page title={t("nav.operators")} intro={t("operators.intro")}>
      <Panel title={t("operators.people")}>
        <Show of={people}>
          {({ operators }) => (
            <div class="stack">
              <ul class="lines">{operators.map((of) => <Person key={of.name} of={of} run={(call) => void run(call, people.reload)} link={link} />)}</ul>
              <AddOperator onAdd={(name, email, role) => void run(async () => link((await addOperator(name, email, role)).link), people.reload)} />
            </div>
          )}
        </Show>
      </Panel>
      <Panel title={t("operators.keys")}>
        <Show of={machines}>
          {({ keys }) => (
            <div class="stack">
              <ul class="lines">{keys.map((of) => <Key key={of.id} of={of} run={(call) => void run(call, machines.reload)} show={show} />)}</ul>
              <AddKey onAdd={(name, scopes, days) => void run(async () => { const made = await createKey(name, scopes, days ? days * 86_400 : null); show({ title: t("operators.secret"), text: `${made.key.id}:${made.secret}` }); }, machines.reload)} />
            </div>
          )}
        </Show>
      </Panel>
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
  return (
    <li>
      <strong>{of.name}</strong> <span class="muted">{of.email}</span> {of.you && <Badge tone="info">{t("operators.you")}</Badge>} <Badge tone={of.second_factor ? "good" : "warn"}>{of.second_factor ? t("operators.factor") : t("operators.no_factor")}</Badge> <span class="muted">{t("operators.sessions", { count: of.sessions })} · <Time at={of.seen_at} how="relative" /></span>
      <div class="actions">
        <select aria-label={t("operators.role.of", { name: of.name })} value={of.role} onChange={(event) => { const role = event.currentTarget.value; run(() => setRole(of.name, role)); }}>
          {ROLES.map((role) => <option key={role} value={role}>{word("role", role)}</option>)}
        </select>
        <button type="button" class="small" onClick={() => run(async () => link((await loginLink(of.name)).link))}>{t("operators.link")}{name}</button>
        <button type="button" class="small" onClick={() => run(async () => link((await resetPassword(of.name)).link))}>{t("operators.reset_password")}{name}</button>
        {of.second_factor && <button type="button" class="small" onClick={() => run(() => resetFactor(of.name))}>{t("operators.reset_factor")}{name}</button>}
        {of.sessions > 0 && <button type="button" class="small" onClick={() => run(() => endSessions(of.name))}>{t("operators.end_sessions")}{name}</button>}
        {!of.you && <button type="button" class="small danger" onClick={() => run(() => removeOperator(of.name))}>{t("action.delete")}{name}</button>}
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

function Key({ of, run, show }: { of: AdminKey; run: (call: () => Promise<unknown>) => void; show: (secret: Secret) => void }) {
  return (
    <li>
      <Badge tone={of.state === "active" ? "good" : ""}>{of.state}</Badge> <strong>{of.name}</strong> <span class="mono">{of.id}</span> {of.scopes.join(", ")} <span class="muted">{t("col.until")} {of.expires_at ? <Time at={of.expires_at} how="relative" /> : t("duration.ever")}</span>{" "}
      {of.state === "active" && (
        <>
          <button type="button" class="small" onClick={() => run(async () => { const made = await rotateKey(of.id); show({ title: t("operators.secret"), text: `${made.key.id}:${made.secret}` }); })}>{t("operators.rotate")}<span class="sr-only"> {of.name}</span></button>{" "}
          <button type="button" class="small danger" onClick={() => run(() => revokeKey(of.id))}>{t("operators.revoke")}<span class="sr-only"> {of.name}</span></button>
        </>
      )}
    </li>
  );
}

function AddKey({ onAdd }: { onAdd: (name: string, scopes: string[], days: number) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read"]);
  const [days, setDays] = useState(90);
  return (
    <form class="filters" onSubmit={(event) => { event.preventDefault(); onAdd(name, scopes, days); }}>
      <label><span>{t("login.name")}</span><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      {SCOPES.map((scope) => <label key={scope} class="inline"><input type="checkbox" checked={scopes.includes(scope)} onChange={(event) => setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((other) => other !== scope))} /> {scope}</label>)}
      <Field label={t("operators.days")}>{(props) => <input {...props} type="number" min={0} value={days} onInput={(event) => setDays(event.currentTarget.valueAsNumber || 0)} />}</Field>
      <button type="submit" class="primary">{t("operators.create")}</button>
    </form>
  );
}

/** Admin keys: programs use them in the place of an operator. */
import { useState } from "preact/hooks";
import { SCOPES, createKey, expireKey, keys, revokeKey, rotateKey, type AdminKey } from "../api/operators";
import { t, word } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Show } from "../ui/page";
import { SureButton } from "../ui/sure";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";

/** Shows a secret once. */
type ShowSecret = (secret: { title: string; text: string }) => void;

const DAY = 86_400;

/** The panel of all keys. */
export function AdminKeys({ show }: { show: ShowSecret }) {
  const all = useLoaded(keys, []);
  const run = async (call: () => Promise<string>) => {
    try {
      tell(await call());
      all.reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  const secret = (made: { key: AdminKey; secret: string }) => show({ title: t("operators.secret"), text: `${made.key.id}:${made.secret}` });
  const add = async (name: string, scopes: string[], days: number) => {
    secret(await createKey(name, scopes, days ? days * DAY : null));
    return t("keys.created", { name });
  };
  return (
    <Panel title={t("operators.keys")}>
      <Show of={all}>
        {({ keys }) => (
          <div class="stack">
            <ul class="lines entries">{keys.map((of) => <One key={of.id} of={of} run={(call) => void run(call)} secret={secret} />)}</ul>
            <AddKey onAdd={(name, scopes, days) => void run(() => add(name, scopes, days))} />
          </div>
        )}
      </Show>
    </Panel>
  );
}

function One({ of, run, secret }: { of: AdminKey; run: (call: () => Promise<string>) => void; secret: (made: { key: AdminKey; secret: string }) => void }) {
  // Arrow keys change a selection at once: a button sets it.
  const [days, choose] = useState("");
  const end = async (days: string) => {
    await expireKey(of.id, days === "never" ? null : Number(days) * DAY);
    choose("");
    return t("keys.ends", { name: of.name });
  };
  return (
    <li>
      <Badge tone={of.state === "active" ? "good" : ""}>{word("keys.state", of.state)}</Badge> <strong>{of.name}</strong> <span class="mono muted">{of.id}</span> {of.scopes.join(", ")}{" "}
      <span class="muted">{t("col.until")} {of.expires_at ? <Time at={of.expires_at} how="relative" /> : t("duration.ever")}</span>
      {of.state !== "revoked" && (
        <div class="actions">
          <select aria-label={t("keys.end.of", { name: of.name })} value={days} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">{t("keys.end")}</option>
            <option value="0">{t("keys.end.now")}</option>
            <option value="7">{t("duration.week")}</option>
            <option value="30">{t("duration.month")}</option>
            <option value="never">{t("duration.ever")}</option>
          </select>
          {days === "0"
            ? <SureButton label={t("keys.end.set")} name={of.name} about={t("keys.end.now.about")} onSure={() => run(() => end(days))} />
            : <button type="button" class="small" disabled={!days} onClick={() => run(() => end(days))}>{t("keys.end.set")}<span class="sr-only"> {of.name}</span></button>}
          {of.state === "active" && <button type="button" class="small" onClick={() => run(async () => { secret(await rotateKey(of.id)); return t("keys.rotated", { name: of.name }); })}>{t("operators.rotate")}<span class="sr-only"> {of.name}</span></button>}
          <SureButton label={t("operators.revoke")} name={of.name} about={t("keys.revoke.about")} onSure={() => run(async () => { await revokeKey(of.id); return t("keys.revoked", { name: of.name }); })} />
        </div>
      )}
    </li>
  );
}

function AddKey({ onAdd }: { onAdd: (name: string, scopes: string[], days: number) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read"]);
  const [days, setDays] = useState(90);
  return (
    <form class="filters" onSubmit={(event) => { event.preventDefault(); onAdd(name, scopes, days); setName(""); }}>
      <label><span>{t("keys.name")}</span><input required value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <fieldset class="bare">
        <legend>{t("keys.scopes")}</legend>
        {SCOPES.map((scope) => <label key={scope} class="inline"><input type="checkbox" checked={scopes.includes(scope)} onChange={(event) => setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((other) => other !== scope))} /> {scope}</label>)}
      </fieldset>
      <label><span>{t("operators.days")}</span><input type="number" min={0} value={days} onInput={(event) => setDays(event.currentTarget.valueAsNumber || 0)} /></label>
      <button type="submit" class="primary" disabled={scopes.length === 0}>{t("operators.create")}</button>
    </form>
  );
}

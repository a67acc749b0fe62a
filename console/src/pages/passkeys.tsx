/** The operator's passkeys: listed, added and removed. */
import { useState } from "preact/hooks";
import { addPasskey, beginPasskey, confirmPasskey, loginMethods, me, passkeys, removePasskey, type Passkey, type Proofs } from "../api/session";
import { t } from "../i18n";
import { useSession, useSetSession } from "../session";
import { useLoaded } from "../ui/async";
import { Badge, Field } from "../ui/bits";
import { Show } from "../ui/page";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";
import { canUsePasskeys, createPasskey, usePasskey } from "../webauthn";

/** The list, and what has to be shown before it changes. */
export function Passkeys({ changed }: { changed: () => void }) {
  const all = useLoaded(passkeys, []);
  const methods = useLoaded(loginMethods, []);
  return (
    <Show of={methods}>
      {(methods) => {
        const site = methods.passkeys;
        return (
          <div class="stack">
            {!canUsePasskeys(site) && <p class="notice">{site ? t("account.passkeys.elsewhere", { origin: site.origin }) : t("account.passkeys.none_here")}</p>}
            <Show of={all}>{({ passkeys, most }) => <List passkeys={passkeys} full={passkeys.length >= most} usable={canUsePasskeys(site)} reload={() => { all.reload(); changed(); }} />}</Show>
          </div>
        );
      }}
    </Show>
  );
}

function List({ passkeys, full, usable, reload }: { passkeys: Passkey[]; full: boolean; usable: boolean; reload: () => void }) {
  const session = useSession();
  const setSession = useSetSession();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [busy, setBusy] = useState(false);
  const hasApp = session?.operator.second_factor ?? false;
  /** The password, and the code of the app or, without one, a passkey. */
  const proofs = async (): Promise<Proofs> => {
    const shown: Proofs = password ? { password } : {};
    if (code) shown.code = code.trim();
    else if (passkeys.length > 0 && usable) shown.credential = await usePasskey((await confirmPasskey()).options);
    return shown;
  };
  const run = async (call: () => Promise<unknown>, done: string) => {
    setBusy(true);
    try {
      await call();
      tell(done);
      setName("");
      setPassword("");
      setCode("");
      reload();
      setSession(await me());
    } catch (error) {
      tellProblem(error);
    }
    setBusy(false);
  };
  const add = async (event: Event) => {
    event.preventDefault();
    await run(async () => {
      const { options } = await beginPasskey(await proofs());
      await addPasskey(name, await createPasskey(options));
    }, t("account.passkeys.added"));
  };
  const remove = (passkey: Passkey) => void run(async () => removePasskey(passkey.id, await proofs()), t("account.passkeys.removed"));
  if (!usable && passkeys.length === 0) return null;
  return (
    <form class="stack" onSubmit={(event) => void add(event)}>
      <p><Badge tone={passkeys.length > 0 ? "good" : "warn"}>{passkeys.length > 0 ? t("entity.on") : t("entity.off")}</Badge> <span class="muted">{t("account.passkeys.help")}</span></p>
      <ul class="lines">
        {passkeys.map((passkey) => (
          <li key={passkey.id}>
            <strong>{passkey.name}</strong> <span class="muted">{t("account.passkeys.since")} <Time at={passkey.created_at} how="relative" /> · {t("account.passkeys.used")} {passkey.used_at ? <Time at={passkey.used_at} how="relative" /> : t("account.passkeys.never")}</span>{" "}
            <button type="button" class="small danger" disabled={busy} onClick={() => remove(passkey)}>{t("account.passkeys.remove")}<span class="sr-only"> {passkey.name}</span></button>
          </li>
        ))}
      </ul>
      {session?.operator.has_password && <Field label={t("account.password.before")} help={t("account.passkeys.proofs")}>{(props) => <input {...props} type="password" autocomplete="current-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} />}</Field>}
      {hasApp && <Field label={t("login.code")}>{(props) => <input {...props} class="mono" autocomplete="one-time-code" value={code} onInput={(event) => setCode(event.currentTarget.value)} />}</Field>}
      {usable && !full && (
        <>
          <Field label={t("account.passkeys.name")}>{(props) => <input {...props} maxLength={64} required value={name} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
          <div class="actions"><button type="submit" class="primary" disabled={busy}>{t("account.passkeys.add")}</button></div>
        </>
      )}
    </form>
  );
}

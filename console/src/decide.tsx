/** Decisions about an identity: ban, extend, unban, allow, take off the allowlist; each with a way back. */
import { useState } from "preact/hooks";
import { allow, ban, disallow, extend, unban, type Allowance, type Ban } from "./api/security";
import { t, type Key } from "./i18n";
import { Field } from "./ui/bits";
import { Dialog } from "./ui/dialog";
import { problem } from "./ui/page";
import { tell, tellProblem } from "./ui/toast";

/** What a dialog is for. */
export type Deciding = "ban" | "extend" | "allow";

const DURATIONS: [number, Key][] = [[3600, "duration.hour"], [86_400, "duration.day"], [604_800, "duration.week"], [2_592_000, "duration.month"]];

/** Lifts a ban at once; the way back bans for the time that was left. */
export async function lift(key: string, before: Ban | null, done: () => void): Promise<void> {
  try {
    const answer = await unban(key);
    const wider = answer.still_banned_by ?? [];
    const left = before ? Math.max(60, Math.round((before.until - Date.now()) / 1000)) : 0;
    tell(
      wider.length ? t("toast.unbanned.wider", { key, by: wider.join(", ") }) : t("toast.unbanned", { key }),
      before ? async () => { await ban(key, left, before.reason); done(); } : null,
    );
    done();
  } catch (error) {
    tellProblem(error);
  }
}

/** Takes an identity off the allowlist; the way back puts it there for the time that was left. */
export async function take(key: string, before: Allowance | null, done: () => void): Promise<void> {
  try {
    await disallow(key);
    const left = before?.until ? Math.max(60, Math.round((before.until - Date.now()) / 1000)) : null;
    tell(t("toast.disallowed", { key }), before ? async () => { await allow(key, before.reason, left); done(); } : null);
    done();
  } catch (error) {
    tellProblem(error);
  }
}

/** Asks for time and reason, and decides. */
export function Decide({ what, target, before, onClose, onDone }: { what: Deciding; target: string; before: Ban | null; onClose: () => void; onDone: () => void }) {
  const [seconds, setSeconds] = useState(3600);
  const [reason, setReason] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async () => {
    if (what === "ban") {
      const answer = await ban(target, seconds, reason);
      const note = answer.enforced ? t("toast.banned", { key: target }) : t("toast.banned.not_enforced", { key: target, reason: answer.reason ?? "" });
      tell(note, async () => { await unban(target); onDone(); });
    } else if (what === "extend") {
      const left = before ? Math.max(60, Math.round((before.until - Date.now()) / 1000)) : null;
      await extend(target, seconds);
      tell(t("toast.extended", { key: target }), left === null ? null : async () => { await extend(target, left); onDone(); });
    } else {
      await allow(target, reason, seconds || null);
      tell(t("toast.allowed", { key: target }), async () => {
        await disallow(target);
        if (before) await ban(target, Math.max(60, Math.round((before.until - Date.now()) / 1000)), before.reason);
        onDone();
      });
    }
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await run();
      onDone();
      onClose();
    } catch (error) {
      setError(problem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t(`decide.${what}`, { key: target })} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <p class="muted">{t(`decide.${what}.help`)}</p>
        <Field label={t("decide.duration")}>
          {(props) => (
            <select {...props} value={seconds} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>
              {DURATIONS.map(([value, text]) => <option key={value} value={value}>{t(text)}</option>)}
              {what === "allow" && <option value={0}>{t("duration.ever")}</option>}
            </select>
          )}
        </Field>
        {what !== "extend" && (
          <Field label={t("decide.reason")} help={t("decide.reason.help")}>
            {(props) => <input {...props} value={reason} maxLength={500} required onInput={(event) => setReason(event.currentTarget.value)} />}
          </Field>
        )}
        {error && <p class="notice bad" role="alert">{error}</p>}
        <div class="actions">
          <button type="submit" class={what === "ban" ? "danger" : "primary"} disabled={busy}>{t(`action.${what}`)}</button>
          <button type="button" onClick={onClose}>{t("action.cancel")}</button>
        </div>
      </form>
    </Dialog>
  );
}

/** Decisions about an identity: ban, extend, unban, allow, take off the allowlist; each with a way back. */
import { useState } from "preact/hooks";
import { allow, allowanceOf, ban, banOf, bansWithin, disallow, extend, unban, type Allowance, type Ban } from "./api/security";
import { t, type Key } from "./i18n";
import { Field } from "./ui/bits";
import { Dialog } from "./ui/dialog";
import { problem } from "./ui/page";
import { tell, tellProblem } from "./ui/toast";

/** What a dialog is for. */
export type Deciding = "ban" | "extend" | "allow";

const DURATIONS: [number, Key][] = [[3600, "duration.hour"], [86_400, "duration.day"], [604_800, "duration.week"], [2_592_000, "duration.month"]];

/** Bans that an Undo makes again, each with a call: of more there is none. */
const MOST_AGAIN = 100;

/** Seconds that are left of a ban or an entry. */
function left(of: { until: number | null }): number {
  return Math.max(60, Math.round(((of.until ?? 0) - Date.now()) / 1000));
}

/** Lifts a ban at once; the way back bans for the time that was left. */
export async function lift(key: string, before: Ban | null, done: () => void): Promise<void> {
  try {
    const answer = await unban(key);
    const wider = answer.still_banned_by ?? [];
    tell(
      wider.length ? t("toast.unbanned.wider", { key, by: wider.join(", ") }) : t("toast.unbanned", { key }),
      before ? async () => { await ban(key, left(before), before.reason); done(); } : null,
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
    tell(t("toast.disallowed", { key }), before ? async () => { await allow(key, before.reason, before.until === null ? null : left(before)); done(); } : null);
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
    // The caller may be banned already: the way back leads to that ban.
    const there = what === "allow" ? null : before ?? (await banOf(target));
    if (what === "ban") {
      const answer = await ban(target, seconds, reason);
      const note = answer.enforced ? t("toast.banned", { key: target }) : t("toast.banned.not_enforced", { key: target, reason: answer.reason ?? "" });
      tell(note, async () => {
        await unban(target);
        if (there) await ban(target, left(there), there.reason);
        onDone();
      });
    } else if (what === "extend") {
      await extend(target, seconds);
      // An end is never moved back: the ban as it was takes the place of the extended one.
      tell(t("toast.extended", { key: target }), there ? async () => { await unban(target); await ban(target, left(there), there.reason); onDone(); } : null);
    } else {
      const [entry, bans] = await Promise.all([allowanceOf(target), bansWithin(target)]);
      const { lifted } = await allow(target, reason, seconds || null);
      const lost = bans.filter((ban) => lifted.includes(ban.key));
      const note = `${t("toast.allowed", { key: target })}${lifted.length > 0 ? ` ${t("toast.allowed.lifted", { count: lifted.length })}` : ""}`;
      // Half of the bans would be no way back.
      if (lifted.length > MOST_AGAIN || lost.length < lifted.length) return tell(note);
      tell(note, async () => {
        if (entry) await allow(target, entry.reason, entry.until === null ? null : left(entry));
        else await disallow(target);
        // A ban of an allowed identity is refused, and has no effect.
        if (!entry) for (const one of lost) await ban(one.key, left(one), one.reason);
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
        <Field label={what === "extend" ? t("decide.by") : t("decide.duration")}>
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

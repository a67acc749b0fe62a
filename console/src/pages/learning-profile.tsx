/** The profile of parameters: what their values look like, and the rules that report others. */
import { useState } from "preact/hooks";
import { learnProfile, unapply, type Profiled, type Report } from "../api/plugins";
import { number, t, word } from "../i18n";
import { Field, Panel } from "../ui/bits";
import { RoleNote, useMay } from "../ui/role";
import { tell, tellProblem } from "../ui/toast";

/** Parameters that are shown at most. */
const SHOWN = 200;

/** The table, with a form for the rules of those that are chosen. */
export function Profile({ of, config, reload }: { of: Report["profile"]; config: string; reload: () => void }) {
  const may = useMay("admin");
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const [reason, setReason] = useState("");
  const toggle = (key: string) => {
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    choose(next);
  };
  const write = async (event: Event) => {
    event.preventDefault();
    try {
      const { count, applied } = await learnProfile(config, [...chosen], reason);
      choose(new Set());
      setReason("");
      tell(t("learning.profile.written", { count }), async () => {
        // One after the other: each is a new revision of the ruleset.
        for (const { exclusion } of applied) await unapply(config, exclusion);
        reload();
      });
      reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <Panel title={t("learning.profile")}>
      <p class="help">{t("learning.profile.intro")}</p>
      {of.parameters.length === 0 ? <p class="empty">{t("learning.profile.none")}</p> : (
        <form class="stack" onSubmit={(event) => void write(event)}>
          <div class="scroll" tabIndex={0} role="group" aria-label={t("learning.profile")}>
            <table class="plain-table">
              <thead><tr><th scope="col">{t("tuning.target")}</th><th scope="col">{t("tuning.path")}</th><th scope="col">{t("learning.profile.kind")}</th><th scope="col">{t("learning.profile.values")}</th><th scope="col" class="end">{t("learning.profile.distinct")}</th><th scope="col" class="end">{t("tuning.requests")}</th><th scope="col" class="end">{t("tuning.callers")}</th></tr></thead>
              <tbody>{of.parameters.slice(0, SHOWN).map((one) => <Row key={one.key} of={one} chosen={chosen.has(one.key)} toggle={may ? () => toggle(one.key) : null} />)}</tbody>
            </table>
          </div>
          {chosen.size > 0 && (
            <>
              <pre class="code" tabIndex={0} aria-label={t("learning.profile.rules")}>{of.parameters.filter((one) => chosen.has(one.key)).map((one) => one.seclang).join("\n\n")}</pre>
              <Field label={t("decide.reason")}>{(props) => <input {...props} value={reason} required maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
              <div class="actions"><button type="submit" class="primary">{t("learning.profile.write", { count: chosen.size })}</button></div>
            </>
          )}
          <RoleNote least="admin" />
        </form>
      )}
    </Panel>
  );
}

function Row({ of, chosen, toggle }: { of: Profiled; chosen: boolean; toggle: (() => void) | null }) {
  return (
    <tr>
      <th scope="row" class="mono">
        {of.seclang && of.written === null ? <label><input type="checkbox" checked={chosen} disabled={!toggle} onChange={() => toggle?.()} /> {of.target.full}</label> : of.target.full}
        {of.written !== null && <span class="muted"> {t("learning.profile.is_written", { number: String(of.written) })}</span>}
      </th>
      <td class="mono">{of.path}{of.paths > 1 && <span class="muted"> {t("learning.profile.paths", { count: of.paths })}</span>}</td>
      <td>{word("learning.profile.kind", of.kind)}</td>
      <td>{of.values ?? <span class="muted">{of.note}</span>}</td>
      <td class="end">{number(of.distinct)}</td>
      <td class="end">{number(of.requests)}</td>
      <td class="end">{of.fitting === null ? number(of.callers) : t("learning.profile.fitting", { fitting: of.fitting, callers: of.callers })}</td>
    </tr>
  );
}

/** Learning windows: what the rules of a WAF config would refuse, and whether it can block. */
import { useState } from "preact/hooks";
import { list } from "../api/entities";
import { learn, learning, report, type Report } from "../api/plugins";
import { number, t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Field, Figure, Panel } from "../ui/bits";
import { Empty, Page, Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";
import { Profile } from "./learning-profile";

/** Chooses a config and shows its window. */
export default function Learning() {
  const { query } = useRoute();
  const configs = useLoaded((signal) => list("waf-configs", signal), []);
  return (
    <Page title={t("nav.learning")} intro={t("learning.intro")}>
      <Show of={configs}>
        {(configs) => {
          const chosen = query.get("config") ?? configs[0]?.id;
          if (!chosen) return <Empty text={t("learning.no_config")}><a href={href("/policies/waf-configs/_new")}>{t("policies.new")}</a></Empty>;
          return (
            <>
              <div class="filters">
                <label><span>{t("learning.config")}</span>
                  <select value={chosen} onChange={(event) => navigate(href("/learning", { config: event.currentTarget.value }), "replace")}>
                    {configs.map((config) => <option key={config.id} value={config.id}>{config.name || config.id}</option>)}
                  </select>
                </label>
              </div>
              <Window key={chosen} config={chosen} />
            </>
          );
        }}
      </Show>
    </Page>
  );
}

function Window({ config }: { config: string }) {
  const may = useMay("analyst");
  const found = useLoaded((signal) => report(config, signal), [config], 20);
  const there = found.data?.window;
  const act = async (what: "_start" | "_stop" | "_discard") => {
    try {
      await learning(what, config);
      tell(t(`learning.done${what}`));
      found.reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <>
      <div class="actions" role="group" aria-label={t("learning.actions")}>
        <button type="button" class={there ? "" : "primary"} disabled={!may} onClick={() => void act("_start")}>{there ? t("learning.restart") : t("learning.start")}</button>
        <button type="button" disabled={!may || !there?.running} onClick={() => void act("_stop")}>{t("learning.stop")}</button>
        <button type="button" disabled={!may || !there} onClick={() => void act("_discard")}>{t("learning.discard")}</button>
      </div>
      <RoleNote least="analyst" />
      <Show of={found}>{({ window }) => (window ? <Body of={window} config={config} reload={found.reload} /> : <Empty text={t("learning.none")}><p>{t("learning.none.help")}</p></Empty>)}</Show>
    </>
  );
}

/** What to change a setting to, and why; without a recommendation the setting as it is. */
function advice(of: { current: number; recommended: number | null; rationale: string }): string {
  return `${of.recommended === null || of.recommended === of.current ? of.current : `${of.current} → ${of.recommended}`} · ${of.rationale}`;
}

function Body({ of, config, reload }: { of: Report; config: string; reload: () => void }) {
  const may = useMay("admin");
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const verified = of.exclusions.filter((exclusion) => exclusion.accepted && !exclusion.ended);
  const unverified = of.exclusions.filter((exclusion) => !exclusion.accepted);
  const write = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      tell(t("learning.applied", { count: (await learn(config, reason)).count }));
      reload();
    } catch (error) {
      tellProblem(error);
    }
    setBusy(false);
  };
  return (
    <>
      <p class="notice" role="status"><Badge tone={of.running ? "good" : ""}>{of.running ? t("learning.running") : t("learning.stopped")}</Badge> <strong>{of.verdict}</strong> {of.mode.note}</p>
      <div class="figures">
        <Figure label={t("learning.requests")} value={number(of.run.requests)} note={<Time at={of.run.started_at} how="relative" />} />
        <Figure label={t("learning.matched")} value={number(of.run.matched)} />
        <Figure label={t("learning.would_block")} value={number(of.run.would_block)} note={`${number(of.run.would_block_rate * 100)} %`} tone="warn" />
        <Figure label={t("learning.attacks")} value={number(of.proof.attacks)} note={t("learning.missed", { before: of.proof.attacks_missed_before, after: of.proof.attacks_missed_after })} />
      </div>
      <div class="columns two">
        <Panel title={t("learning.advice")}>
          <Facts of={[[t("learning.paranoia"), advice(of.paranoia)], [t("learning.threshold"), advice(of.threshold)], [t("learning.impact"), of.impact.rationale]]} />
        </Panel>
        <Panel title={t("learning.exclusions")}>
          {verified.length === 0 ? <p class="empty">{t("learning.exclusions.none")}</p> : (
            <form class="stack" onSubmit={(event) => void write(event)}>
              <ul class="lines">{verified.map((exclusion) => <li key={exclusion.key}><code>{exclusion.entry.rule_id}</code> <span class="mono">{exclusion.entry.target.full} {exclusion.entry.path}</span> <span class="muted">{exclusion.note}</span></li>)}</ul>
              <Field label={t("decide.reason")}>{(props) => <input {...props} value={reason} required maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
              <RoleNote least="admin" />
              <div class="actions"><button type="submit" class="primary" disabled={!may || busy}>{t("learning.apply", { count: verified.length })}</button></div>
            </form>
          )}
          {unverified.length > 0 && (
            <details>
              <summary>{t("learning.unverified", { count: unverified.length })}</summary>
              <ul class="lines">{unverified.map((exclusion) => <li key={exclusion.key}><code>{exclusion.entry.rule_id}</code> <span class="mono">{exclusion.entry.target.full} {exclusion.entry.path}</span> <span class="muted">{exclusion.note}</span></li>)}</ul>
            </details>
          )}
        </Panel>
      </div>
      <Panel title={t("learning.entries")}>
        <div class="scroll" tabIndex={0} role="group" aria-label={t("learning.entries")}>
          <table class="plain-table">
            <thead><tr><th scope="col">{t("tuning.rule")}</th><th scope="col">{t("tuning.target")}</th><th scope="col">{t("tuning.path")}</th><th scope="col" class="end">{t("tuning.requests")}</th><th scope="col" class="end">{t("tuning.would_block")}</th><th scope="col" class="end">{t("tuning.callers")}</th></tr></thead>
            <tbody>
              {of.entries.slice(0, 200).map((entry) => (
                <tr key={`${entry.rule_id} ${entry.target.full} ${entry.path}`}><th scope="row"><code>{entry.rule_id}</code></th><td class="mono">{entry.target.full}</td><td class="mono">{entry.path}</td><td class="end">{number(entry.count)}</td><td class="end">{number(entry.would_block)}</td><td class="end">{number(entry.callers)}</td></tr>
              ))}
            </tbody>
          </table>
        </div>
      </Panel>
      <Profile of={of.profile} config={config} reload={reload} />
    </>
  );
}

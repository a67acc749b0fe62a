/** A test, step by step: by mouse in the list, by arrow keys anywhere in it. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TestResult } from "../api/plugins";
import { t } from "../i18n";
import { covered, isSilent, masked, stepsOf, type Step } from "../seclang/steps";
import { Badge, Facts } from "../ui/bits";

/** The verdict, the list of steps and the step that is looked at. */
export function Steps({ of }: { of: TestResult }) {
  const [silent, setSilent] = useState(false);
  const [open, setOpen] = useState(false);
  const steps = useMemo(() => stepsOf(of, silent), [of, silent]);
  const hidden = useMemo(() => of.matched_rules.filter(isSilent).length, [of]);
  // What matched comes first; what ran before it is one key away.
  const [chosen, choose] = useState(() => Math.max(0, steps.findIndex((step) => step.kind === "match")));
  const list = useRef<HTMLOListElement>(null);
  const moved = useRef(false);
  const at = Math.min(chosen, steps.length - 1);
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    list.current?.querySelectorAll<HTMLElement>("button")[at]?.focus();
  }, [at]);
  const go = (to: number) => choose(Math.max(0, Math.min(steps.length - 1, to)));
  const onKeyDown = (event: KeyboardEvent) => {
    const to: Record<string, number> = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1 };
    const next = to[event.key];
    if (next === undefined) return;
    event.preventDefault();
    moved.current = true;
    go(next);
  };
  const step = steps[at];
  return (
    <div class="stack">
      <Outcome of={of} open={open} />
      <div class="actions">
        <button type="button" disabled={at === 0} onClick={() => go(at - 1)}>← {t("rules.step.back")}</button>
        <button type="button" disabled={at === steps.length - 1} onClick={() => go(at + 1)}>{t("rules.step.next")} →</button>
        <span class="count">{t("rules.step.at", { at: at + 1, of: steps.length })}</span>
        {hidden > 0 && <label class="inline"><input type="checkbox" checked={silent} onChange={(event) => setSilent(event.currentTarget.checked)} /> {t("rules.silent", { silent: hidden })}</label>}
        <label class="inline"><input type="checkbox" checked={open} onChange={(event) => setOpen(event.currentTarget.checked)} /> {t("rules.unmask")}</label>
      </div>
      <div class="stepper">
        <ol ref={list} class="steps" aria-label={t("rules.result")} onKeyDown={onKeyDown}>
          {steps.map((step, index) => (
            <li key={index}>
              <button type="button" class={`plain step-${step.kind}`} tabIndex={index === at ? 0 : -1} {...(index === at ? { "aria-current": "step" } : {})} onClick={() => choose(index)}>
                <span class="muted">{step.kind === "verdict" ? "" : t("rules.phase", { phase: step.phase })}</span> {title(step, of, open)}
              </button>
            </li>
          ))}
        </ol>
        <div class="step" aria-live="polite">{step && <One step={step} of={of} open={open} />}</div>
      </div>
    </div>
  );
}

function Outcome({ of, open }: { of: TestResult; open: boolean }) {
  const { disposition, scores } = of;
  const blocked = disposition.action_type === "block";
  return (
    <p class={`notice ${blocked ? "bad" : "good"}`} role="status">
      <strong>{blocked ? t("rules.blocked", { status: String(disposition.status ?? ""), rule: String(disposition.rule_id ?? "") }) : t("rules.passes")}</strong> {shown(disposition.msg ?? "", of, open)}
      {disposition.would_block && ` ${t("rules.would_block", { rule: String(disposition.would_block.rule_id) })}`}
      {scores.inbound !== null && ` ${t("rules.score", { score: scores.inbound, threshold: scores.inbound_threshold ?? 0 })}`}
    </p>
  );
}

const shown = (text: string, of: TestResult, open: boolean) => (open ? text : covered(text, of));

function title(step: Step, of: TestResult, open: boolean) {
  switch (step.kind) {
    case "match":
      return <><code>{step.rule?.id}</code> {shown(step.rule?.msg ?? "", of, open)}</>;
    case "refused":
      return <strong>{t("rules.step.refused", { rule: String(step.interruption?.rule_id ?? "") })}</strong>;
    case "not_run":
      return <>{step.name} <span class="muted">({t("rules.not_run")})</span></>;
    case "quiet":
      return <>{step.name} <span class="muted">({t("rules.step.quiet")})</span></>;
    default:
      return <strong>{t("rules.step.verdict")}</strong>;
  }
}

function One({ step, of, open }: { step: Step; of: TestResult; open: boolean }) {
  const { rule, before, after } = step;
  const score = before === null || after === null ? null : before === after ? t("rules.step.score.same", { score: after }) : t("rules.step.score", { before, after });
  if (step.kind === "verdict") return <div class="stack"><h3>{t("rules.step.verdict")}</h3><Outcome of={of} open={open} /></div>;
  if (step.kind === "refused") {
    const { interruption } = step;
    return <div class="stack"><h3>{t("rules.step.refused", { rule: String(interruption?.rule_id ?? "") })}</h3><p>{t("rules.step.refused.how", { status: String(interruption?.status ?? ""), phase: step.phase })}</p></div>;
  }
  if (!rule) return <div class="stack"><h3>{step.name}</h3><p>{step.kind === "not_run" ? t("rules.step.not_run.why") : t("rules.step.quiet.why")}</p></div>;
  const did = [rule.disruptive ? t("rules.step.did.refuses") : "", before !== null && after !== null && after > before ? t("rules.step.did.points", { points: after - before }) : "", rule.logged ? t("rules.step.did.logs") : t("rules.step.did.silent")].filter(Boolean).join(", ");
  return (
    <div class="stack">
      <h3><code>{rule.id}</code> {shown(rule.msg, of, open)}</h3>
      <Facts
        of={[
          [t("rules.step.phase"), `${step.phase}, ${step.name}`],
          [t("rules.step.did"), <>{did} {rule.disruptive && <Badge tone="bad">{t("rules.disruptive")}</Badge>}</>],
          [t("col.score"), score],
          [t("rules.step.severity"), rule.severity ? String(rule.severity) : ""],
          [t("rules.step.count"), rule.count > 1 ? t("rules.step.times", { times: rule.count }) : ""],
          [t("rules.step.tags"), rule.tags.length > 0 && <span class="tags">{rule.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}</span>],
          [t("rules.step.logdata"), rule.data && <span class="mono">{open ? rule.data : logData(rule)}</span>],
        ]}
      />
      <table class="plain-table">
        <thead><tr><th scope="col">{t("rules.step.variable")}</th><th scope="col">{t("rules.step.value")}</th></tr></thead>
        <tbody>
          {rule.matched.map((match, index) => (
            <tr key={index}><th scope="row" class="mono">{match.variable}</th><td><mark class="mono">{open ? match.value : masked(match.variable, match.value)}</mark></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The log data; it quotes parts of what matched, so it is covered where any of that is. */
function logData({ data, matched }: NonNullable<Step["rule"]>): string {
  return matched.some(({ variable, value }) => masked(variable, value) !== value) ? "••••••••" : data;
}

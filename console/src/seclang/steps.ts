/** The result of a test as steps: what ran, what matched, what the score was before and after. */
import type { TestResult, TestedRule } from "../api/plugins";

/** One step. `before` and `after` are the anomaly scores around it; null where they are not known. */
export interface Step {
  kind: "match" | "quiet" | "not_run" | "refused" | "verdict";
  phase: number;
  name: string;
  rule: TestedRule | null;
  interruption: { rule_id: number; status: number } | null;
  before: number | null;
  after: number | null;
}

/** Points of the Core Rule Set by severity (crs-setup.conf: critical, error, warning, notice). */
const POINTS: Record<string, number> = { CRITICAL: 5, ERROR: 4, WARNING: 3, NOTICE: 2, 2: 5, 3: 4, 4: 3, 5: 2 };

/** Whether nothing is said of a match: rules that only set variables. */
export const isSilent = (rule: TestedRule) => !rule.disruptive && !rule.logged;

/**
 * The steps, in order. The engine reports the scores at the end alone; in between they follow from the severities of the rules of the Core
 * Rule Set. They are left out where their sum is not what the engine reports.
 */
export function stepsOf(result: TestResult, silent: boolean): Step[] {
  const steps: Step[] = [];
  const rises = result.matched_rules.map((rule) => (rule.phase <= 2 && isScored(rule) ? (POINTS[String(rule.severity)] ?? 0) : 0));
  const sum = rises.reduce((sum, points) => sum + points, 0);
  const inbound = result.scores.detection?.inbound ?? result.scores.inbound;
  let score: number | null = inbound !== null && sum === inbound ? 0 : null;
  for (const phase of result.phases) {
    const base = { phase: phase.phase, name: phase.name, interruption: phase.interruption };
    if (!phase.evaluated) {
      steps.push({ ...base, kind: "not_run", rule: null, before: score, after: score });
      continue;
    }
    let shown = 0;
    result.matched_rules.forEach((rule, index) => {
      if (rule.phase !== phase.phase) return;
      const before: number | null = score;
      if (score !== null) score += rises[index] ?? 0;
      if (isSilent(rule) && !silent) return;
      shown += 1;
      steps.push({ ...base, kind: "match", rule, before, after: score });
    });
    if (phase.interruption) steps.push({ ...base, kind: "refused", rule: null, before: score, after: score });
    else if (shown === 0) steps.push({ ...base, kind: "quiet", rule: null, before: score, after: score });
  }
  const last = result.phases.at(-1);
  steps.push({ kind: "verdict", phase: last?.phase ?? 5, name: "", rule: null, interruption: null, before: score, after: score });
  return steps;
}

/** Whether a rule of the Core Rule Set adds to the score: those that evaluate it (949, 959, 980) and those that prepare (901) do not. */
function isScored({ id, tags }: TestedRule): boolean {
  const family = Math.floor(id / 1000);
  return family >= 911 && family < 949 && tags.some((tag) => tag === "OWASP_CRS" || tag.startsWith("OWASP_CRS/"));
}

const SECRET = /pass|pwd|secret|token|authorization|cookie|session|card|api_?key/i;

/** A value with what may be a secret covered, by the name of what it belongs to. */
export function masked(variable: string, value: string): string {
  if (!SECRET.test(variable) || value.length === 0) return value;
  return `${value.slice(0, 2)}${"•".repeat(Math.min(12, Math.max(4, value.length - 2)))}`;
}

/** A text of a result, such as a message with `%{MATCHED_VAR}`, with the values in it that are covered. */
export function covered(text: string, { matched_rules }: TestResult): string {
  const values = matched_rules.flatMap((rule) => rule.matched).filter(({ variable, value }) => value.length > 2 && masked(variable, value) !== value);
  return values.reduce((text, { variable, value }) => text.replaceAll(value, masked(variable, value)), text);
}

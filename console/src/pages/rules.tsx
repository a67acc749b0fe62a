/** Rules written and tried: the compiler answers as they are typed, a request shows step by step what matches. */
import { useEffect, useState } from "preact/hooks";
import { compile, test, type Compiled, type Tested } from "../api/plugins";
import { t } from "../i18n";
import { useDebounced } from "../ui/async";
import { Badge, Field, Panel } from "../ui/bits";
import { Page, Problem, problem } from "../ui/page";

const START = `SecRule ARGS:q "@contains drop table" "id:10001,phase:2,deny,status:403,t:lowercase,msg:'no tables'"`;

/** Editor, request and answer. */
export default function Rules() {
  const [rules, setRules] = useState(START);
  const [crs, setCrs] = useState(false);
  const [method, setMethod] = useState("GET");
  const [uri, setUri] = useState("/search?q=DROP%20TABLE%20users");
  const [headers, setHeaders] = useState("host: shop.example\nuser-agent: curl/8.0");
  const [body, setBody] = useState("");
  const [said, say] = useState<Compiled | null>(null);
  const [failed, fail] = useState<unknown>(null);
  const [tested, setTested] = useState<Tested | null>(null);
  const [busy, setBusy] = useState(false);
  const settled = useDebounced(rules, 400);
  const composed = (text: string) => [...(crs ? ["@import_preset crs"] : []), text];
  useEffect(() => {
    let here = true;
    compile({ rules: composed(settled) }).then((said) => { if (here) { say(said); fail(null); } }, (error: unknown) => here && fail(error));
    return () => {
      here = false;
    };
  }, [settled, crs]);
  const run = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const named = headers.split("\n").map((line) => line.split(/:(.*)/s)).filter(([name]) => name?.trim()).map(([name, value]) => [name?.trim() ?? "", value?.trim() ?? ""]);
      setTested(await test({ rules: composed(rules), request: { method, uri, headers: Object.fromEntries(named), ...(body ? { body } : {}) } }));
    } catch (error) {
      setTested({ done: false, error: problem(error) });
    }
    setBusy(false);
  };
  return (
    <Page title={t("nav.rules")} intro={t("rules.intro")}>
      <div class="columns two">
        <Panel title={t("rules.editor")}>
          <div class="stack">
            <textarea class="mono" rows={12} spellcheck={false} aria-label={t("rules.editor")} aria-invalid={said?.done === false} value={rules} onInput={(event) => setRules(event.currentTarget.value)} />
            <label class="inline"><input type="checkbox" checked={crs} onChange={(event) => setCrs(event.currentTarget.checked)} /> {t("rules.crs")}</label>
            {failed ? <Problem error={failed} /> : null}
            <div role="status">
              {said?.done && <p><Badge tone="good">{t("rules.compiles")}</Badge> {said.warning}</p>}
              {said && !said.done && <><Badge tone="bad">{t("rules.errors", { count: said.errors?.length ?? 1 })}</Badge>{(said.errors ?? [{ index: 0, origin: "", message: said.error ?? "" }]).map((error, index) => <pre key={index} class="error" tabIndex={0}>{error.message}</pre>)}</>}
            </div>
          </div>
        </Panel>
        <Panel title={t("rules.request")}>
          <form class="stack" onSubmit={(event) => void run(event)}>
            <div class="filters">
              <label><span>{t("rules.method")}</span><input value={method} onInput={(event) => setMethod(event.currentTarget.value)} /></label>
              <label class="grow"><span>{t("rules.uri")}</span><input class="mono" value={uri} onInput={(event) => setUri(event.currentTarget.value)} /></label>
            </div>
            <Field label={t("rules.headers")} help={t("rules.headers.help")}>{(props) => <textarea {...props} class="mono" rows={3} value={headers} spellcheck={false} onInput={(event) => setHeaders(event.currentTarget.value)} />}</Field>
            <Field label={t("rules.body")}>{(props) => <textarea {...props} class="mono" rows={3} value={body} spellcheck={false} onInput={(event) => setBody(event.currentTarget.value)} />}</Field>
            <div class="actions"><button type="submit" class="primary" disabled={busy}>{busy ? t("rules.running") : t("rules.test")}</button></div>
          </form>
        </Panel>
      </div>
      {tested && <Panel title={t("rules.result")}><Result of={tested} /></Panel>}
    </Page>
  );
}

function Result({ of }: { of: Tested }) {
  const { result } = of;
  if (!result) return <p class="notice bad pre" role="alert">{of.error}</p>;
  const { disposition } = result;
  const blocked = disposition.action_type === "block";
  return (
    <div class="stack">
      <p class={`notice ${blocked ? "bad" : "good"}`} role="status">
        <strong>{blocked ? t("rules.blocked", { status: String(disposition.status ?? ""), rule: String(disposition.rule_id ?? "") }) : t("rules.passes")}</strong> {disposition.msg}
        {disposition.would_block && ` ${t("rules.would_block", { rule: String(disposition.would_block.rule_id) })}`}
        {result.scores.inbound !== null && ` ${t("rules.score", { score: result.scores.inbound, threshold: result.scores.inbound_threshold ?? 0 })}`}
      </p>
      <ol class="timeline">
        {result.phases.map((phase) => (
          <li key={phase.phase} class={phase.interruption ? "enforced" : ""}>
            <span>{t("rules.phase", { phase: phase.phase })} <span class="muted">{phase.name}</span></span>
            <ul>
              {result.matched_rules.filter((rule) => rule.phase === phase.phase).map((rule) => (
                <li key={rule.id}>
                  <code>{rule.id}</code> {rule.msg} {rule.disruptive && <Badge tone="bad">{t("rules.disruptive")}</Badge>}
                  {rule.matched.map((match, index) => <p key={index}><span class="mono">{match.variable}</span> <mark class="mono">{match.value}</mark></p>)}
                </li>
              ))}
            </ul>
            {!phase.evaluated && <span class="muted">{t("rules.not_run")}</span>}
          </li>
        ))}
      </ol>
    </div>
  );
}

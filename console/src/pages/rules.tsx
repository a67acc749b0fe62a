/** Rules written and tried: the compiler answers as they are typed, a request shows step by step what matches. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { compile, test, type Compiled, type RuleError, type Tested } from "../api/plugins";
import { t } from "../i18n";
import type { Handle } from "../seclang/codemirror";
import { SecLangEditor } from "../seclang/editor";
import { locate } from "../seclang/problems";
import { useDebounced } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Page, Problem, problem } from "../ui/page";
import { RequestForm, requestOf, type Typed } from "./rules-request";
import { Steps } from "./rules-steps";

const START = () => `# ${t("rules.start")}
SecRule ARGS:q "@contains drop table" \\
    "id:10001,phase:2,deny,status:403,t:lowercase,msg:'no tables'"
`;
const CRS = "@import_preset crs";

/** Editor, request and answer. */
export default function Rules() {
  const [rules, setRules] = useState(START);
  const [crs, setCrs] = useState(false);
  const [said, say] = useState<{ of: Compiled; text: string; at: number } | null>(null);
  const [failed, fail] = useState<unknown>(null);
  const [tested, setTested] = useState<Tested | null>(null);
  const [busy, setBusy] = useState(false);
  const editor = useRef<Handle | null>(null);
  const settled = useDebounced(rules, 400);
  const composed = (text: string) => [...(crs ? [CRS] : []), text];
  useEffect(() => {
    let here = true;
    compile({ rules: composed(settled) }).then((of) => { if (here) { say({ of, text: settled, at: crs ? 1 : 0 }); fail(null); } }, (error: unknown) => here && fail(error));
    return () => {
      here = false;
    };
  }, [settled, crs]);
  const errors: RuleError[] = useMemo(() => (!said || said.of.done ? [] : said.of.errors ?? [{ index: 0, origin: "", message: said.of.error ?? "" }]), [said]);
  // What the compiler said is about the text that it was sent: while another one is being typed, its places may be off, and are hidden.
  const placed = useMemo(() => errors.map((error) => (said && error.index === said.at ? locate(error, said.text) : null)), [errors, said]);
  const problems = useMemo(() => (said?.text === rules ? placed.filter((problem) => problem !== null) : []), [placed, rules, said]);
  const run = async (typed: Typed) => {
    setBusy(true);
    try {
      setTested(await test({ rules: composed(rules), request: requestOf(typed) }));
    } catch (error) {
      setTested({ done: false, error: problem(error) });
    }
    setBusy(false);
  };
  return (
    <Page title={t("nav.rules")} intro={t("rules.intro")}>
      <div class="columns edit">
        <Panel title={t("rules.editor")}>
          <div class="stack">
            <SecLangEditor label={t("rules.editor")} value={rules} problems={problems} onChange={setRules} rows={14} onReady={(handle) => (editor.current = handle)} />
            <label class="inline"><input type="checkbox" checked={crs} onChange={(event) => setCrs(event.currentTarget.checked)} /> {t("rules.crs")}</label>
            {failed ? <Problem error={failed} /> : null}
            <div role="status" class="stack">
              {said?.of.done && <p><Badge tone="good">{t("rules.compiles")}</Badge> {said.of.warning}</p>}
              {errors.length > 0 && <p><Badge tone="bad">{t("rules.errors", { count: errors.length })}</Badge></p>}
              {errors.map((error, index) => {
                const place = placed[index];
                return (
                  <div key={index}>
                    {place && <button type="button" class="small" onClick={() => editor.current?.goTo(place.from)}>{t("rules.goto", { line: place.line })}</button>}
                    <pre class="error" tabIndex={0}>{error.message}</pre>
                  </div>
                );
              })}
            </div>
          </div>
        </Panel>
        <Panel title={t("rules.request")}><RequestForm busy={busy} onRun={(typed) => void run(typed)} /></Panel>
      </div>
      {tested && <Panel title={t("rules.result")}>{tested.result ? <Steps key={JSON.stringify(tested.result.phases)} of={tested.result} /> : <p class="notice bad pre" role="alert">{tested.error}</p>}</Panel>}
    </Page>
  );
}

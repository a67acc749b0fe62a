/** State and note of an incident. Colleagues may write both meanwhile: nothing of theirs is written over unseen. */
import { useEffect, useRef, useState } from "preact/hooks";
import { setState, type Incident, type Workflow } from "../api/security";
import { t, word } from "../i18n";
import { Panel } from "../ui/bits";
import { useMay } from "../ui/role";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";

/** What tells one state from another. */
const markOf = (of: Workflow | null | undefined) => (of ? `${of.at} ${of.by}` : "");

/** `read` reads the incident as it is now; null if it is not listed any more. */
export function IncidentState({ incident, read, reload }: { incident: Incident; read: () => Promise<Incident | null>; reload: () => void }) {
  const may = useMay("analyst");
  /** What is typed; null follows the note that is kept. */
  const [typed, type] = useState<string | null>(null);
  /** The state that the operator has seen: what is typed is a change of it. */
  const seen = useRef(markOf(incident.workflow));
  /** A state that is newer than the incident that was loaded last: null after `open`, undefined where none is. */
  const [newer, setNewer] = useState<Workflow | null | undefined>(undefined);
  useEffect(() => setNewer(undefined), [incident]);
  const [busy, setBusy] = useState(false);
  const workflow = newer === undefined ? incident.workflow : newer;
  const kept = workflow?.note ?? "";
  const note = typed ?? kept;
  if (typed === null) seen.current = markOf(workflow);
  const other = markOf(workflow) === seen.current ? null : workflow;
  /** Goes on with their note, or with what is typed instead of it. */
  const decide = (next: string | null) => {
    seen.current = markOf(other);
    type(next);
  };
  const set = async (state: string) => {
    setBusy(true);
    try {
      const now = (await read())?.workflow ?? null;
      if (now && markOf(now) !== seen.current) {
        type(note);
        setNewer(now);
      } else {
        const before = { state: incident.state, note: kept };
        const written = await setState(incident.key, state, state === "open" ? "" : note);
        setNewer(state === "open" ? null : written.workflow);
        type(null);
        tell(t("toast.state", { state: word("incident.state", state) }), async () => { await setState(incident.key, before.state, before.note); reload(); });
        reload();
      }
    } catch (error) {
      tellProblem(error);
    }
    setBusy(false);
  };
  const hasTyped = typed !== null && typed !== kept;
  return (
    <Panel title={t("incident.work")}>
      {workflow && <p class="muted">{t("incident.work.by", { state: word("incident.state", workflow.state), by: workflow.by })} <Time at={workflow.at} how="relative" /></p>}
      {other && (
        <div class="notice warn" role="alert">
          <p>{t("incident.note.theirs", { by: other.by })}</p>
          <p class="pre">{other.note || t("incident.note.none")}</p>
          <div class="actions">
            <button type="button" onClick={() => decide(null)}>{t("incident.note.take")}</button>
            <button type="button" onClick={() => decide(note)}>{t("incident.note.mine")}</button>
          </div>
        </div>
      )}
      <label class="stack"><span>{t("incident.note")}</span><textarea rows={3} maxLength={2000} disabled={!may} value={note} onInput={(event) => type(event.currentTarget.value)} /></label>
      <p class="help">{t("incident.note.help")}</p>
      <div class="actions">
        {(["open", "acknowledged", "resolved"] as const).map((state) => (
          <button key={state} type="button" aria-pressed={incident.state === state} disabled={!may || busy || !!other || (state === "open" && hasTyped)} onClick={() => void set(state)}>{t(`incident.set.${state}`)}</button>
        ))}
      </div>
    </Panel>
  );
}

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
  // A resolved incident is not listed any more: what was written last has its state.
  const shown = newer === undefined ? incident.state : newer?.state ?? "open";
  const kept = workflow?.note ?? "";
  const note = typed ?? kept;
  if (typed === null) seen.current = markOf(workflow);
  const other = markOf(workflow) === seen.current ? null : workflow;
  /** Goes on with their note, or with what is typed instead of it. */
  const decide = (next: string | null) => {
    seen.current = markOf(other);
    type(next);
  };
  /** Writes a state, and shows it until the incident is loaded again. Answers its mark. */
  const write = async (state: string, note: string) => {
    const { workflow } = await setState(incident.key, state, state === "open" ? "" : note);
    const written = state === "open" ? null : workflow;
    seen.current = markOf(written);
    setNewer(written);
    reload();
    return seen.current;
  };
  /** What someone else has written since the state with this mark. */
  const since = async (mark: string) => {
    const now = (await read())?.workflow ?? null;
    return now && markOf(now) !== mark ? now : null;
  };
  const set = async (state: string) => {
    setBusy(true);
    try {
      const theirs = await since(seen.current);
      if (theirs) {
        type(note);
        setNewer(theirs);
        reload();
      } else {
        const before = { state: shown, note: kept };
        const mine = await write(state, note);
        type(null);
        tell(t("toast.state", { state: word("incident.state", state) }), async () => {
          const theirs = await since(mine);
          if (theirs) throw new Error(t("incident.undo.late", { by: theirs.by }));
          await write(before.state, before.note);
        });
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
          <button key={state} type="button" aria-pressed={shown === state} disabled={!may || busy || !!other || (state === "open" && hasTyped)} onClick={() => void set(state)}>{t(`incident.set.${state}`)}</button>
        ))}
      </div>
    </Panel>
  );
}

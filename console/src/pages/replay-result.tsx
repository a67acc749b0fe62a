/** One replay: how far it is, and then what a changed policy would do otherwise. */
import { useEffect, useState } from "preact/hooks";
import { cancelReplay, job as readJob, type Job } from "../api/replay";
import { t, word } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Panel } from "../ui/bits";
import { Page, Show } from "../ui/page";
import { RoleNote, useMay, useMayEnd } from "../ui/role";
import { Time } from "../ui/time";
import { tellProblem } from "../ui/toast";
import { progressOf, toneOfState } from "./replay";
import { DiffView } from "./replay-diff";

/** The page of a replay. */
export function Result({ id }: { id: string }) {
  const [ended, end] = useState(false);
  const found = useLoaded((signal) => readJob(id, signal), [id], ended ? 0 : 1);
  const state = found.data?.job.state;
  useEffect(() => end(state === "done" || state === "failed" || state === "cancelled"), [state]);
  return (
    <Page title={t("replay.result")} actions={<a class="button" href={href("/replay")}>{t("action.back")}</a>}>
      <Show of={found}>
        {({ job, diff }) => (
          <>
            <Head of={job} reload={found.reload} />
            {diff && <DiffView of={diff} id={id} />}
          </>
        )}
      </Show>
    </Page>
  );
}

function Head({ of, reload }: { of: Job; reload: () => void }) {
  const [analyst, mayEnd] = [useMay("analyst"), useMayEnd()];
  const running = of.state === "waiting" || of.state === "running";
  const { part, parts, bytes, bytes_read } = of.progress;
  const share = parts > 0 && bytes > 0 ? (part - 1 + Math.min(1, bytes_read / bytes)) / parts : 0;
  const cancel = async () => {
    try {
      await cancelReplay(of.id);
      reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <Panel title={of.changes.join(", ")} actions={<Badge tone={toneOfState(of.state)}>{word("replay.state", of.state)}</Badge>}>
      {running && (
        <div class="stack">
          <p role="status">{progressOf(of)}</p>
          <progress max={1} {...(of.state === "running" && share > 0 ? { value: share } : {})} aria-label={t("replay.running")} />
          <div class="actions"><button type="button" disabled={!mayEnd(of.by)} onClick={() => void cancel()}>{t("replay.cancel")}</button></div>
          {!mayEnd(of.by) && <RoleNote least={analyst ? "admin" : "analyst"} />}
        </div>
      )}
      {of.error && <p class="notice bad pre" role="alert">{of.error}</p>}
      <Facts of={[
        [t("replay.recording"), of.recording_name],
        [t("replay.route.of"), of.route],
        [t("replay.group"), of.group === "default" ? "" : of.group],
        [t("replay.by"), of.by],
        [t("replay.added"), <Time at={of.added_at} />],
        [t("replay.ended"), of.ended_at && <Time at={of.ended_at} />],
      ]} />
      {of.state === "done" && <p class="muted">{t("replay.limits")}</p>}
    </Panel>
  );
}

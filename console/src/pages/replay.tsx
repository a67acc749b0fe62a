/** Replays: recordings, a changed policy, and what it would do with recorded requests. */
import type { PageProps } from "../app";
import { jobs, recordings, type Job } from "../api/replay";
import { number, t, word } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Panel, type Tone } from "../ui/bits";
import { Page, Show } from "../ui/page";
import { Time } from "../ui/time";
import { Recordings } from "./replay-recordings";
import { Result } from "./replay-result";
import { Start } from "./replay-start";

/** The list, or one replay by its id. */
export default function Replay({ rest }: PageProps) {
  return rest[0] ? <Result id={rest[0]} /> : <Overview />;
}

function Overview() {
  const kept = useLoaded(recordings, []);
  const started = useLoaded((signal) => jobs(signal), [], 3);
  return (
    <Page title={t("nav.replay")} intro={t("replay.intro")}>
      <Show of={kept}>
        {(kept_) => (
          <>
            {kept_.unavailable && <p class="notice bad" role="alert">{t("replay.unavailable", { why: kept_.unavailable })}</p>}
            <p class="notice">{t("replay.limits")}</p>
            <div class="columns two">
              <Recordings kept={kept_} reload={kept.reload} />
              <Panel title={t("replay.jobs")}>
                <Show of={started}>{(started) => <Jobs of={started.jobs} />}</Show>
                <p class="muted">{t("replay.node", { node: kept_.node })}</p>
              </Panel>
            </div>
            <Start kept={kept_} />
          </>
        )}
      </Show>
    </Page>
  );
}

function Jobs({ of }: { of: Job[] }) {
  if (of.length === 0) return <p class="empty">{t("replay.jobs.none")}</p>;
  return (
    <ul class="lines">
      {of.map((job) => (
        <li key={job.id}>
          <Badge tone={toneOfState(job.state)}>{word("replay.state", job.state)}</Badge>{" "}
          <a href={href(`/replay/${job.id}`)}>{job.changes.join(", ")}</a>{" "}
          <span class="muted">{job.recording_name} · {job.by} · <Time at={job.added_at} how="relative" /></span>
        </li>
      ))}
    </ul>
  );
}

/** The colour of a state. */
export function toneOfState(state: Job["state"]): Tone {
  return state === "done" ? "good" : state === "failed" ? "bad" : state === "running" ? "info" : "";
}

/** How far a replay is, in words. */
export function progressOf(job: Job): string {
  const { part, parts, requests } = job.progress;
  if (job.state === "waiting" || part === 0) return word("replay.state", job.state);
  return t("replay.progress", { part, parts, requests: number(requests) });
}

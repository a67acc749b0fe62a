/** Recordings: upload by drag and drop or by a button, a recording of stored events, the list. */
import { useRef, useState } from "preact/hooks";
import { list } from "../api/entities";
import { deleteRecording, recordEvents, upload, type Recording, type Recordings as Kept } from "../api/replay";
import { bytes, number, t } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Field, Panel } from "../ui/bits";
import { problem } from "../ui/page";
import { RoleNote, useMay, useMayEnd } from "../ui/role";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";

/** What is kept, and the ways to more. */
export function Recordings({ kept, reload }: { kept: Kept; reload: () => void }) {
  const [may, mayEnd] = [useMay("analyst"), useMayEnd()];
  const drop = async (recording: Recording) => {
    try {
      await deleteRecording(recording.id);
      tell(t("replay.deleted", { name: recording.name }));
      reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <Panel title={t("replay.recordings")}>
      <Upload kept={kept} reload={reload} />
      {kept.recordings.length === 0 ? <p class="empty">{t("replay.recordings.none")}</p> : (
        <ul class="lines recordings">
          {kept.recordings.map((recording) => (
            <li key={recording.id}>
              <div>
                <strong>{recording.name}</strong> {recording.source === "events" && <Badge tone="warn">{t("replay.of_events")}</Badge>}
                <p class="muted">
                  {t("replay.requests", { count: recording.requests })} · {bytes(recording.bytes)} · {recording.by} · <Time at={recording.added_at} how="relative" />
                  {recording.first_at && <> · <Time at={recording.first_at} /></>}
                </p>
                {recording.unreadable > 0 && (
                  <details>
                    <summary>{t("replay.unreadable", { count: recording.unreadable })}</summary>
                    <ul class="lines">{recording.reasons.map((reason, index) => <li key={index} class="mono">{reason}</li>)}</ul>
                  </details>
                )}
              </div>
              <button type="button" aria-label={t("replay.delete", { name: recording.name })} disabled={!mayEnd(recording.by)} onClick={() => void drop(recording)}>{t("action.delete")}</button>
            </li>
          ))}
        </ul>
      )}
      <RoleNote least="analyst" />
      {may && !kept.recordings.every(({ by }) => mayEnd(by)) && <p class="help">{t("replay.others")}</p>}
      <p class="muted">{t("replay.room", { count: kept.recordings.length, most: kept.limits.recordings, bytes: bytes(kept.bytes), total: bytes(kept.limits.total_bytes) })}</p>
      {kept.stored_events && <OfEvents reload={reload} unavailable={kept.unavailable !== null} />}
    </Panel>
  );
}

function Upload({ kept, reload }: { kept: Kept; reload: () => void }) {
  const may = useMay("analyst");
  const input = useRef<HTMLInputElement>(null);
  const running = useRef<AbortController | null>(null);
  const [over, setOver] = useState(false);
  const [share, setShare] = useState<number | null>(null);
  const [name, setName] = useState("");
  const [failed, fail] = useState("");
  const send = async (file: File | undefined) => {
    if (!may || !file || running.current) return;
    fail("");
    setName(file.name);
    if (file.size > kept.limits.upload_bytes) return fail(t("replay.too_large", { size: bytes(file.size), most: bytes(kept.limits.upload_bytes) }));
    const abort = new AbortController();
    running.current = abort;
    setShare(0);
    try {
      const { recording } = await upload(file, setShare, abort.signal);
      tell(t("replay.uploaded", { name: recording.name, count: recording.requests }));
      reload();
    } catch (error) {
      if (!abort.signal.aborted) fail(problem(error));
    }
    running.current = null;
    setShare(null);
    if (input.current) input.current.value = "";
  };
  const percent = Math.round((share ?? 0) * 100);
  return (
    <div
      class={`drop ${over ? "over" : ""}`}
      onDragOver={(event) => { event.preventDefault(); setOver(may); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); void send(event.dataTransfer?.files[0]); }}
    >
      {share === null ? (
        <>
          <p>{t("replay.drop")}</p>
          <input ref={input} type="file" hidden aria-hidden="true" tabIndex={-1} data-upload onChange={(event) => void send(event.currentTarget.files?.[0])} />
          <button type="button" class="primary" disabled={!may || kept.unavailable !== null} onClick={() => input.current?.click()}>{t("replay.upload")}</button>
          <p class="muted">{t("replay.formats", { most: bytes(kept.limits.upload_bytes) })}</p>
        </>
      ) : (
        <>
          <p role="status">{share < 1 ? t("replay.uploading", { name }) : t("replay.reading", { name })}</p>
          <progress max={100} {...(share < 1 ? { value: percent } : {})} aria-label={t("replay.uploading", { name })} />
          <button type="button" onClick={() => running.current?.abort()}>{t("action.cancel")}</button>
        </>
      )}
      {failed && <p class="notice bad" role="alert">{name ? `${name}: ` : ""}{failed}</p>}
    </div>
  );
}

function OfEvents({ reload, unavailable }: { reload: () => void; unavailable: boolean }) {
  const may = useMay("analyst");
  const routes = useLoaded((signal) => list("routes", signal), []);
  const [name, setName] = useState("");
  const [route, setRoute] = useState("");
  const [hours, setHours] = useState("24");
  const [busy, setBusy] = useState(false);
  const [failed, fail] = useState("");
  const make = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    fail("");
    try {
      const from = new Date(Date.now() - Number(hours) * 3_600_000).toISOString();
      const { recording } = await recordEvents({ name: name || t("replay.events.name"), from, ...(route ? { route } : {}) });
      tell(t("replay.uploaded", { name: recording.name, count: recording.requests }));
      reload();
    } catch (error) {
      fail(problem(error));
    }
    setBusy(false);
  };
  return (
    <details class="group">
      <summary>{t("replay.events")}</summary>
      <form class="stack" onSubmit={(event) => void make(event)}>
        <p class="notice warn">{t("replay.events.lacks")}</p>
        <div class="filters">
          <label><span>{t("filter.route")}</span>
            <select value={route} onChange={(event) => setRoute(event.currentTarget.value)}>
              <option value="">{t("filter.all")}</option>
              {(routes.data ?? []).map((route) => <option key={route.id} value={route.id}>{route.name || route.id}</option>)}
            </select>
          </label>
          <label><span>{t("replay.events.hours")}</span>
            <select value={hours} onChange={(event) => setHours(event.currentTarget.value)}>
              {["1", "24", "168"].map((hours) => <option key={hours} value={hours}>{number(Number(hours))}</option>)}
            </select>
          </label>
        </div>
        <Field label={t("replay.name")}>{(props) => <input {...props} value={name} maxLength={120} placeholder={t("replay.events.name")} onInput={(event) => setName(event.currentTarget.value)} />}</Field>
        {failed && <p class="notice bad" role="alert">{failed}</p>}
        <div class="actions"><button type="submit" disabled={!may || busy || unavailable}>{t("replay.events.make")}</button></div>
      </form>
    </details>
  );
}

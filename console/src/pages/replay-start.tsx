/** The change that is tried: an entity as form or JSON, checked as a save would be, and the start of its replay. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { COLLECTIONS, fieldErrors, list, read, schema as readSchema, template, tryOut, type Entity, type Schema } from "../api/entities";
import type { FieldError } from "../api/http";
import { startReplay, type Recordings } from "../api/replay";
import { useDraft } from "../forms/draft";
import { Diff } from "../forms/diff-view";
import { Form } from "../forms/form";
import { t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useDebounced, useLoaded } from "../ui/async";
import { Badge, Choice, Panel } from "../ui/bits";
import { Show, problem } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { tellWarnings } from "../ui/toast";
import { draftOf } from "../replay-draft";

/** Recording, policy, document. */
export function Start({ kept }: { kept: Recordings }) {
  const { query } = useRoute();
  const collection = query.get("collection") ?? "threat-policies";
  const entities = useLoaded((signal) => list(collection, signal), [collection]);
  const draft = useMemo(() => (query.get("draft") ? draftOf(collection) : null), [collection, query.get("draft")]);
  const id = query.get("id") ?? "";
  const go = (more: Record<string, string>) => navigate(href("/replay", { ...Object.fromEntries(query), ...more }), "replace");
  const known = entities.data?.some((entity) => entity.id === id) ?? false;
  const chosen = draft && draft.document.id === (id || draft.document.id) ? draft.document.id ?? "" : known ? id : entities.data?.[0]?.id ?? "";
  return (
    <Panel title={t("replay.change")}>
      <div class="filters">
        <label><span>{t("replay.collection")}</span>
          <select value={collection} onChange={(event) => navigate(href("/replay", { collection: event.currentTarget.value }), "replace")}>
            {COLLECTIONS.map((name) => <option key={name} value={name}>{word("collection", name)}</option>)}
          </select>
        </label>
        <label class="grow"><span>{t("replay.entity")}</span>
          <select value={chosen} onChange={(event) => go({ id: event.currentTarget.value, draft: "" })}>
            {draft && !entities.data?.some((entity) => entity.id === draft.document.id) && <option value={draft.document.id ?? ""}>{draft.document.name || draft.document.id || t("replay.new")}</option>}
            {(entities.data ?? []).map((entity) => <option key={entity.id} value={entity.id}>{entity.name || entity.id}</option>)}
          </select>
        </label>
      </div>
      {draft && <p class="notice" role="status">{t("replay.draft")}</p>}
      <Show of={entities}>
        {(entities) => (entities.length === 0 && !draft ? <p class="empty">{t("state.empty")}</p> : (
          <Document key={`${collection}/${chosen}/${draft ? "draft" : ""}`} collection={collection} id={entities.some((entity) => entity.id === chosen) ? chosen : null} draft={draft?.document ?? null} kept={kept} />
        ))}
      </Show>
    </Panel>
  );
}

function Document({ collection, id, draft, kept }: { collection: string; id: string | null; draft: Entity | null; kept: Recordings }) {
  const found = useLoaded(async (signal): Promise<[Schema, Entity | null, Entity, Entity[], string[]]> => {
    const [schema, stored, routes, global] = await Promise.all([
      readSchema(collection, signal), id === null ? null : read(collection, id, signal), list("routes", signal), read("global-config", "global-config", signal),
    ]);
    const groups = Object.keys((global.entity["groups"] as Record<string, unknown> | undefined) ?? {});
    return [schema, stored?.entity ?? null, draft ?? stored?.entity ?? (await template(collection, signal)), routes, groups];
  }, [collection, id]);
  return <Show of={found}>{([schema, stored, start, routes, groups]) => <Editor collection={collection} schema={schema} stored={stored} start={start} routes={routes} groups={groups} kept={kept} />}</Show>;
}

interface EditorProps {
  collection: string;
  schema: Schema;
  stored: Entity | null;
  start: Entity;
  routes: Entity[];
  groups: string[];
  kept: Recordings;
}

function Editor({ collection, schema, stored, start, routes, groups, kept }: EditorProps) {
  const [view, setView] = useState<"form" | "json">("json");
  const { value, text, wrong, change, type } = useDraft(start);
  const [errors, setErrors] = useState<FieldError[]>([]);
  const [recording, setRecording] = useState("");
  const [route, setRoute] = useState("");
  const [group, setGroup] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, fail] = useState("");
  const may = useMay("analyst");
  const settled = useDebounced(value, 350);
  const chosen = kept.recordings.find((known) => known.id === recording) ?? kept.recordings[0];
  const changed = !stored || JSON.stringify(value) !== JSON.stringify(stored);
  useEffect(() => {
    if (!may || !changed || wrong) return;
    const abort = new AbortController();
    const told = (errors: FieldError[]) => abort.signal.aborted || setErrors(errors);
    tryOut(collection, settled, !stored, abort.signal).then(told, (error: unknown) => told(fieldErrors(error)));
    return () => abort.abort();
  }, [settled, wrong]);
  const run = async (event: Event) => {
    event.preventDefault();
    if (!chosen) return;
    setBusy(true);
    fail("");
    try {
      const { job, warnings } = await startReplay({
        recording: chosen.id,
        changes: [{ collection, ...(stored ? { id: stored.id } : {}), document: value }],
        ...(route && chosen.unrouted > 0 ? { route } : {}),
        ...(group ? { group } : {}),
      });
      tellWarnings(warnings);
      navigate(href(`/replay/${job.id}`));
    } catch (error) {
      const told = fieldErrors(error);
      setErrors(told.filter((error) => error.pointer));
      fail(problem(error));
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void run(event)}>
      <div class="actions">
        <Choice label={t("replay.view")} value={view} options={[["json", t("entity.json")], ["form", t("entity.form")]]} onChange={setView} />
        <span role="status">
          {wrong ? <Badge tone="bad">{t("entity.invalid", { count: 1 })}</Badge> : errors.length ? <Badge tone="bad">{t("entity.invalid", { count: errors.length })}</Badge> : changed ? <Badge tone="good">{t("replay.changed")}</Badge> : <Badge>{t("replay.unchanged")}</Badge>}
        </span>
      </div>
      {view === "json" ? <textarea class="mono json" aria-label={t("entity.json")} aria-invalid={!!wrong} spellcheck={false} rows={16} value={text} onInput={(event) => type(event.currentTarget.value)} />
        : <div class="stack"><Form root={schema} schema={schema} value={value} onChange={change} errors={errors} hidden={["kind", "metadata"]} locked={stored ? ["id"] : []} /></div>}
      {wrong && <p class="error">{wrong}</p>}
      {errors.length > 0 && <div class="notice bad" role="alert"><ul>{errors.map((error, index) => <li key={index}><code>{error.pointer}</code> <span class="pre">{error.message}</span></li>)}</ul></div>}
      {changed && !wrong && <details class="group"><summary>{t("entity.review.title")}</summary><Diff before={stored} after={value} /></details>}
      <div class="filters">
        <label class="grow"><span>{t("replay.recording")}</span>
          <select value={chosen?.id ?? ""} onChange={(event) => setRecording(event.currentTarget.value)}>
            {kept.recordings.length === 0 && <option value="">{t("replay.recordings.none")}</option>}
            {kept.recordings.map((recording) => <option key={recording.id} value={recording.id}>{`${recording.name} (${t("replay.requests", { count: recording.requests })})`}</option>)}
          </select>
        </label>
        {chosen && chosen.unrouted > 0 && routes.length > 0 && (
          <label><span>{t("replay.route", { count: chosen.unrouted })}</span>
            <select value={route} onChange={(event) => setRoute(event.currentTarget.value)}>
              <option value="">{t("replay.route.none")}</option>
              {routes.map((route) => <option key={route.id} value={route.id}>{route.name || route.id}</option>)}
            </select>
          </label>
        )}
        {groups.length > 0 && (
          <label><span>{t("replay.group")}</span>
            <select value={group} onChange={(event) => setGroup(event.currentTarget.value)}>
              <option value="">default</option>
              {groups.map((group) => <option key={group} value={group}>{group}</option>)}
            </select>
          </label>
        )}
      </div>
      {failed && <p class="notice bad pre" role="alert">{failed}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={!may || busy || !chosen || !changed || !!wrong || kept.unavailable !== null}>{busy ? t("replay.starting") : t("replay.start")}</button>
        {may && !changed && <span class="muted">{t("replay.change.first")}</span>}
      </div>
      <RoleNote least="analyst" />
    </form>
  );
}

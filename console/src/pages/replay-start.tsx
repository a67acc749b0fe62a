/** The change that is tried: an entity as form or JSON, checked as a save would be, and the start of its replay. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { COLLECTIONS, fieldErrors, list, read, schema as readSchema, template, type Entity, type Schema } from "../api/entities";
import { startReplay, type Recordings } from "../api/replay";
import { useChecks } from "../forms/checks";
import { useDraft } from "../forms/draft";
import { Diff } from "../forms/diff-view";
import { ErrorList } from "../forms/error-list";
import { HIDDEN, withoutControl } from "../forms/errors";
import { Form } from "../forms/form";
import { t, word } from "../i18n";
import { current, href, mayReplace, navigate, useEdits, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Choice, Panel } from "../ui/bits";
import { Show, problem } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { tellWarnings } from "../ui/toast";
import { draftOf, draftQuery, forgetDraft, keepDraft, keptQuery } from "../replay-draft";

/** Recording, policy, document. */
export function Start({ kept }: { kept: Recordings }) {
  const asked = useRoute().query;
  // A draft that was left is the first thing here, as after its replay.
  const query = asked.size > 0 ? asked : new URLSearchParams(keptQuery());
  const collection = query.get("collection") ?? "threat-policies";
  const entities = useLoaded((signal) => list(collection, signal), [collection]);
  const id = query.get("id") ?? "";
  const isDraft = query.has("draft");
  const draft = useMemo(() => (isDraft ? draftOf(collection, id) : null), [collection, id, isDraft]);
  const known = entities.data?.some((entity) => entity.id === id) ?? false;
  const chosen = draft ? draft.id : known ? id : entities.data?.[0]?.id ?? "";
  /** Shows another document; where the operator keeps the changes of this one, the selection is as it was. */
  const choose = (select: HTMLSelectElement, before: string, next: Record<string, string>) => {
    if (!mayReplace()) {
      select.value = before;
      return;
    }
    forgetDraft();
    navigate(href("/replay", next), "replace");
  };
  return (
    <Panel title={t("replay.change")}>
      <div class="filters">
        <label><span>{t("replay.collection")}</span>
          <select value={collection} onChange={(event) => choose(event.currentTarget, collection, { collection: event.currentTarget.value })}>
            {COLLECTIONS.map((name) => <option key={name} value={name}>{word("collection", name)}</option>)}
          </select>
        </label>
        <label class="grow"><span>{t("replay.entity")}</span>
          <select value={chosen} onChange={(event) => choose(event.currentTarget, chosen, { collection, id: event.currentTarget.value })}>
            {draft && !entities.data?.some((entity) => entity.id === draft.id) && <option value={draft.id}>{draft.document.name || draft.id || t("replay.new")}</option>}
            {(entities.data ?? []).map((entity) => <option key={entity.id} value={entity.id}>{entity.name || entity.id}</option>)}
          </select>
        </label>
      </div>
      <Show of={entities}>
        {(entities) => (entities.length === 0 && !draft ? <p class="empty">{t("state.empty")}</p> : (
          <Document key={`${collection}/${chosen}`} collection={collection} id={chosen} isNew={!entities.some((entity) => entity.id === chosen)} draft={draft?.document ?? null} kept={kept} />
        ))}
      </Show>
    </Panel>
  );
}

/** `id`: of the entity, or by which the draft of a new one is kept. */
function Document({ collection, id, isNew, draft, kept }: { collection: string; id: string; isNew: boolean; draft: Entity | null; kept: Recordings }) {
  const found = useLoaded(async (signal): Promise<[Schema, Entity | null, Entity, Entity[], string[]]> => {
    const [schema, stored, routes, global] = await Promise.all([
      readSchema(collection, signal), isNew ? null : read(collection, id, signal), list("routes", signal), read("global-config", "global-config", signal),
    ]);
    const groups = Object.keys((global.entity["groups"] as Record<string, unknown> | undefined) ?? {});
    return [schema, stored?.entity ?? null, draft ?? stored?.entity ?? (await template(collection, signal)), routes, groups];
  }, [collection, id]);
  return <Show of={found}>{([schema, stored, start, routes, groups]) => <Editor collection={collection} id={id} isDraft={draft !== null} schema={schema} stored={stored} start={start} routes={routes} groups={groups} kept={kept} />}</Show>;
}

interface EditorProps {
  collection: string;
  id: string;
  /** It begins with the draft that is kept. */
  isDraft: boolean;
  schema: Schema;
  stored: Entity | null;
  start: Entity;
  routes: Entity[];
  groups: string[];
  kept: Recordings;
}

function Editor({ collection, id, isDraft, schema, stored, start, routes, groups, kept }: EditorProps) {
  const [view, setView] = useState<"form" | "json">("json");
  const { value, text, wrong, change, type } = useDraft(start);
  const [recording, setRecording] = useState("");
  const [route, setRoute] = useState("");
  const [group, setGroup] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, fail] = useState("");
  const may = useMay("analyst");
  const chosen = kept.recordings.find((known) => known.id === recording) ?? kept.recordings[0];
  const changed = useMemo(() => !stored || JSON.stringify(value) !== JSON.stringify(stored), [value, stored]);
  const { errors, settled, show } = useChecks(collection, value, { isNew: !stored, changed, wrong });
  useEdits(changed || !!wrong);
  // Also for a page that is loaded again, and for the way back from the result.
  const keep = () => {
    const draft = { collection, id, document: value };
    keepDraft(draft);
    if (!current().query.has("draft")) navigate(href("/replay", draftQuery(draft)), "replace");
  };
  useEffect(() => {
    if (changed) keep();
    else if (isDraft) forgetDraft();
  }, [settled]);
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
      // The operator may have gone elsewhere meanwhile.
      if (current().path !== "/replay") return;
      keep();
      navigate(href(`/replay/${job.id}`), "push", true);
    } catch (error) {
      const told = fieldErrors(error);
      show(told.filter((error) => error.pointer));
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
        {stored && (changed || wrong) && <button type="button" onClick={() => change(stored)}>{t("entity.discard")}</button>}
      </div>
      {view === "json" ? <textarea class="mono json" aria-label={t("entity.json")} aria-invalid={!!wrong} spellcheck={false} rows={16} value={text} onInput={(event) => type(event.currentTarget.value)} />
        : <div class="stack"><Form root={schema} schema={schema} value={value} onChange={change} errors={errors} hidden={HIDDEN} locked={stored ? ["id"] : []} /></div>}
      {wrong && <p class="error">{wrong}</p>}
      <ErrorList errors={view === "form" ? withoutControl(errors, schema, value) : errors} />
      {changed && <p class="notice" role="status">{t("replay.draft")}</p>}
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

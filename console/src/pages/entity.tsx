/** One entity: form and JSON beside each other, checked as it is typed, shown as a difference before it is saved. */
import { useMemo, useState } from "preact/hooks";
import { read, remove, save, schema as readSchema, template, type Entity, type Schema, type Tagged } from "../api/entities";
import { useChecks } from "../forms/checks";
import { Diff } from "../forms/diff-view";
import { useDraft } from "../forms/draft";
import { ErrorList } from "../forms/error-list";
import { HIDDEN, withoutControl } from "../forms/errors";
import { Form } from "../forms/form";
import { t, word } from "../i18n";
import { current, href, navigate, useEdits } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Page, Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { tell, tellProblem, tellWarnings } from "../ui/toast";
import { pathOf, undoOf, undoOfCreation, writeProblem } from "../versions";
import { Chain } from "./chain";
import { Enforce, isInDryRun, policySubject } from "./enforce";
import { History } from "./history";
import { EntityState } from "./policies";
import { ReplayLink } from "./replay-link";

/** The page of an entity; `id` is null for a new one. */
export function EntityPage({ collection, id }: { collection: string; id: string | null }) {
  const found = useLoaded(async (signal): Promise<[Schema, Tagged | null, Entity]> => {
    const [schema, tagged] = await Promise.all([readSchema(collection, signal), id === null ? null : read(collection, id, signal)]);
    return [schema, tagged, tagged?.entity ?? (await template(collection, signal))];
  }, [collection, id]);
  const title = id === null ? t("entity.new", { collection: word("collection", collection) }) : (found.data?.[1]?.entity.name || id);
  return (
    <Page title={title} actions={<a class="button" href={href(`/policies/${collection}`)}>{t("action.back")}</a>}>
      <Show of={found}>
        {([schema, tagged, start]) => <Editor key={tagged?.etag ?? "new"} collection={collection} schema={schema} tagged={tagged} start={start} reload={found.reload} />}
      </Show>
    </Page>
  );
}

function Editor({ collection, schema, tagged, start, reload }: { collection: string; schema: Schema; tagged: Tagged | null; start: Entity; reload: () => void }) {
  const { value, text, wrong, change, type } = useDraft(start);
  const [reviewing, review] = useState(false);
  // A link from a chain or from the overview opens the step at once.
  const [enforcing, enforce] = useState(() => current().query.get("enforce") === "1");
  const closeEnforce = () => {
    enforce(false);
    if (current().query.has("enforce")) navigate(href(current().path), "replace");
  };
  const isNew = tagged === null;
  const isEdited = useMemo(() => !!wrong || JSON.stringify(value) !== JSON.stringify(start), [value, wrong, start]);
  // A template can be saved as it is.
  const changed = isNew || isEdited;
  useEdits(isEdited);
  const { errors, checked } = useChecks(collection, value, { isNew, changed, wrong });
  const drop = async () => {
    if (!tagged) return;
    try {
      await remove(collection, start.id, tagged.etag);
      tell(t("toast.deleted", { id: start.name || start.id }), undoOf(collection, start.id, tagged.etag, null, () => {}));
      navigate(href(`/policies/${collection}`), "push", true);
    } catch (error) {
      tellProblem(error);
    }
  };
  const may = useMay("admin");
  return (
    <>
      <div class="actions sticky" role="group" aria-label={t("entity.actions")}>
        <button type="button" class="primary" disabled={!changed || !!wrong || checked === "bad"} onClick={() => review(true)}>{t("entity.review")}</button>
        {changed && !wrong && <ReplayLink collection={collection} document={value} />}
        {isEdited && <button type="button" onClick={() => change(start)}>{t("entity.discard")}</button>}
        {!isNew && collection !== "global-config" && <button type="button" disabled={!may} onClick={() => void drop()}>{t("action.delete")}</button>}
        {!isNew && <EntityState of={value} />}
        <RoleNote least="admin" />
        <span role="status" class="check">
          {checked === "busy" && <Badge>{t("entity.checking")}</Badge>}
          {changed && !wrong && checked === "good" && <Badge tone="good">{t("entity.valid")}</Badge>}
          {(wrong || checked === "bad") && <Badge tone="bad">{t("entity.invalid", { count: wrong ? 1 : errors.length })}</Badge>}
        </span>
      </div>
      <ErrorList errors={withoutControl(errors, schema, value)} />
      {collection === "routes" && tagged && <Chain route={value} tagged={changed ? null : tagged} reload={reload} />}
      {collection === "global-config" && tagged && <Chain route={null} draft={value} tagged={changed ? null : tagged} reload={reload} />}
      {tagged && isInDryRun(collection, start) && <p class="notice warn">{t(collection === "waf-configs" ? "entity.detection.help" : collection === "honeypot-policies" ? "entity.watching.help" : "entity.dry_run.help")} <button type="button" onClick={() => enforce(true)}>{t("entity.enforce")}</button></p>}
      {tagged && enforcing && isInDryRun(collection, start) && <Enforce subject={policySubject(collection, tagged)} onClose={closeEnforce} reload={reload} />}
      <div class="columns edit">
        <Panel title={t("entity.form")}>
          <form class="stack" onSubmit={(event) => event.preventDefault()}>
            <Form root={schema} schema={schema} value={value} onChange={change} errors={errors} hidden={HIDDEN} locked={isNew ? [] : ["id"]} />
          </form>
        </Panel>
        <div class="stack">
          <Panel title={t("entity.json")}>
            <textarea class="mono json" aria-label={t("entity.json")} aria-invalid={!!wrong} spellcheck={false} rows={24} value={text} onInput={(event) => type(event.currentTarget.value)} />
            {wrong && <p class="error">{wrong}</p>}
          </Panel>
          {tagged && <History collection={collection} id={start.id} current={tagged} onReverted={reload} />}
        </div>
      </div>
      {reviewing && <Review collection={collection} tagged={tagged} before={isNew ? null : start} after={value} onClose={() => review(false)} reload={reload} />}
    </>
  );
}

function Review({ collection, tagged, before, after, onClose, reload }: { collection: string; tagged: Tagged | null; before: Entity | null; after: Entity; onClose: () => void; reload: () => void }) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const may = useMay("admin");
  const write = async () => {
    setBusy(true);
    try {
      const written = await save(collection, after, tagged?.etag ?? null);
      onClose();
      tell(t("toast.saved", { id: written.entity.name || written.entity.id }), tagged ? undoOf(collection, written.entity.id, tagged.etag, written.etag, reload) : undoOfCreation(collection, written.entity.id, written.etag));
      tellWarnings(written.warnings);
      if (before) reload();
      else navigate(href(pathOf(collection, written.entity.id)), "replace");
    } catch (error) {
      setError(writeProblem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t("entity.review.title")} onClose={onClose} wide>
      <div class="stack">
        <Diff before={before} after={after} />
        {error && <p class="notice bad" role="alert">{error}</p>}
        <div class="actions">
          <button type="button" class="primary" disabled={!may || busy} onClick={() => void write()}>{t("entity.save")}</button>
          <button type="button" onClick={onClose}>{t("action.cancel")}</button>
        </div>
      </div>
    </Dialog>
  );
}

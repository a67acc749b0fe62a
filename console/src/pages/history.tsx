/** The versions of an entity, with their differences and the way back. */
import { useState } from "preact/hooks";
import { history, revert, version, versionOf, type Entity, type Tagged, type Version } from "../api/entities";
import { Diff } from "../forms/diff-view";
import { lined } from "../forms/diff";
import { t, word } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { tell, tellWarnings } from "../ui/toast";
import { mayRewrite, writeProblem } from "../versions";
import { Time } from "../ui/time";

/** The panel below the editor. */
export function History({ collection, id, current, onReverted }: { collection: string; id: string; current: Tagged; onReverted: () => void }) {
  const versions = useLoaded((signal) => history(collection, id, signal), [collection, id]);
  const [shown, show] = useState<Version | null>(null);
  return (
    <Panel title={t("history.title")}>
      <Show of={versions}>
        {(versions) => (
          <ul class="lines">
            {versions.map((entry) => (
              <li key={entry.version}>
                <Badge tone={entry.in_force ? "good" : ""}>{entry.in_force ? t("history.current") : t("history.version", { version: String(entry.version) })}</Badge>{" "}
                <strong>{entry.author?.name ?? entry.author?.id ?? (entry.author ? word("history.author", entry.author.kind) : t("history.unknown"))}</strong>{" "}
                {word("history.action", entry.action)} {entry.detail && <span class="muted">{entry.detail}</span>} <Time at={entry.at} how="relative" />{" "}
                {!entry.in_force && <button type="button" class="small" onClick={() => show(entry)}>{t("history.compare")}<span class="sr-only"> {String(entry.version)}</span></button>}
              </li>
            ))}
          </ul>
        )}
      </Show>
      {shown && <Compare collection={collection} id={id} of={shown} current={current} onClose={() => show(null)} onReverted={onReverted} />}
    </Panel>
  );
}

function Compare({ collection, id, of, current, onClose, onReverted }: { collection: string; id: string; of: Version; current: Tagged; onClose: () => void; onReverted: () => void }) {
  const may = useMay("admin");
  const loaded = useLoaded((signal) => version(collection, id, of.version, versionOf(current.etag), signal), [of.version, current.etag]);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const back = async () => {
    if (!mayRewrite(collection, id)) return;
    setBusy(true);
    try {
      const written = await revert(collection, id, of.version, current.etag);
      tell(t("toast.reverted", { version: String(of.version) }));
      tellWarnings(written.warnings);
      onClose();
      onReverted();
    } catch (error) {
      setError(writeProblem(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t("history.compare.title", { version: String(of.version) })} onClose={onClose} wide>
      <div class="stack">
        <Show of={loaded}>{({ document, changes }) => <Changes before={current.entity} after={document ?? null} secrets={changes?.secrets ?? []} />}</Show>
        {error && <p class="notice bad" role="alert">{error}</p>}
        <RoleNote least="admin" />
        <div class="actions">
          <button type="button" class="primary" disabled={!may || busy || !loaded.data?.document} onClick={() => void back()}>{t("history.revert")}</button>
          <button type="button" onClick={onClose}>{t("action.close")}</button>
        </div>
      </div>
    </Dialog>
  );
}

/** What differs. Secrets are the same mask in both documents, so those that differ are named. */
function Changes({ before, after, secrets }: { before: Entity; after: Entity | null; secrets: string[] }) {
  const isSame = after !== null && lined(before) === lined(after);
  return (
    <>
      {secrets.length > 0 && <p class="notice warn">{t("history.secrets")} {secrets.map((pointer) => <span key={pointer}><code>{pointer}</code> </span>)}</p>}
      {!(isSame && secrets.length > 0) && <Diff before={before} after={after} />}
    </>
  );
}

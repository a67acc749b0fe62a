/** The way from a changed entity to a replay of it. */
import type { Entity } from "../api/entities";
import { t } from "../i18n";
import { href } from "../router";
import { draftQuery, keepDraft } from "../replay-draft";
import { useMay } from "../ui/role";

/** Keeps a draft and goes to the page of replays. Roles that start no replay have no link. */
export function ReplayLink({ collection, document }: { collection: string; document: Entity }) {
  const may = useMay("analyst");
  const draft = { collection, id: document.id ?? "", document };
  return may && (
    <a class="button" data-keeps href={href("/replay", draftQuery(draft))} onClick={() => keepDraft(draft)}>
      {t("replay.this")}
    </a>
  );
}

/** The way from a changed entity to a replay of it: the document is kept for this window alone, because it is not saved. */
import type { Entity } from "../api/entities";
import { t } from "../i18n";
import { href } from "../router";
import { useMay } from "../ui/role";

const KEY = "palisade.replay";

/** A changed document that is not saved. */
export interface Draft {
  collection: string;
  document: Entity;
}

/** Keeps a draft and goes to the page of replays. Roles that start no replay have no link. */
export function ReplayLink({ collection, document }: Draft) {
  const may = useMay("analyst");
  return may && (
    <a class="button" href={href("/replay", { collection, id: document.id ?? "", draft: "1" })} onClick={() => keepDraft({ collection, document })}>
      {t("replay.this")}
    </a>
  );
}

/** Keeps a draft. Where a browser keeps nothing, the page begins with what is in force. */
export function keepDraft(draft: Draft): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(draft));
  } catch {
    // Private windows may have no room.
  }
}

/** The draft of a collection, if there is one. */
export function draftOf(collection: string): Draft | null {
  try {
    const draft = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Draft | null;
    const { document } = draft ?? {};
    return draft && draft.collection === collection && document && typeof document === "object" && !Array.isArray(document) ? draft : null;
  } catch {
    return null;
  }
}

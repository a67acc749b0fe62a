/** A changed document that is tried in a replay: kept for this window alone, because it is not saved. */
import type { Entity } from "./api/entities";

const KEY = "palisade.replay";

/** A changed document that is not saved. */
export interface Draft {
  collection: string;
  /** The entity that it is a change of; of a new one its id, if it has one. */
  id: string;
  document: Entity;
}

/** The draft where the browser keeps nothing: until the page is loaded again, before which the browser asks. */
let held: Draft | null = null;

/** Keeps a draft, in the place of the one before. */
export function keepDraft(draft: Draft): void {
  forgetDraft();
  held = draft;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(draft));
  } catch {
    // Private windows may have no room.
  }
}

function keptDraft(): Draft | null {
  if (held) return held;
  try {
    const draft = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Draft | null;
    const { document } = draft ?? {};
    return draft && document && typeof document === "object" && !Array.isArray(document) ? draft : null;
  } catch {
    return null;
  }
}

/** The draft of an entity, if it is the one that is kept; of any entity of the collection if `id` is empty. */
export function draftOf(collection: string, id: string): Draft | null {
  const draft = keptDraft();
  return draft && draft.collection === collection && (!id || draft.id === id) ? draft : null;
}

/** The parameters with which the page of replays shows a draft. */
export const draftQuery = ({ collection, id }: Draft): Record<string, string> => ({ collection, id, draft: "1" });

/** Those of the draft that is kept; none if there is none. */
export function keptQuery(): Record<string, string> {
  const draft = keptDraft();
  return draft ? draftQuery(draft) : {};
}

/** Forgets the draft: it may have secrets, and the next operator of this window may be another one. */
export function forgetDraft(): void {
  held = null;
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Where a browser keeps nothing, there is none.
  }
}

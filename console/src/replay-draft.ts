/** A changed document on its way to a replay: kept for this window alone, because it is not saved. */
import type { Entity } from "./api/entities";

const KEY = "palisade.replay";

/** A changed document that is not saved. */
export interface Draft {
  collection: string;
  document: Entity;
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

/** Forgets the draft: it may have secrets, and the next operator of this window may be another one. */
export function forgetDraft(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Where a browser keeps nothing, there is none.
  }
}

/** Writes of entities: their errors in words, and the way back to a version. */
import { exists, remove, revert, versionOf, type Tagged } from "./api/entities";
import { ApiError } from "./api/http";
import { t } from "./i18n";
import { problem } from "./problem";
import { current, href, mayReplace, navigate } from "./router";

/** Why a write failed. That someone else has changed the entity is said in words of the console. */
export function writeProblem(error: unknown): string {
  return error instanceof ApiError && error.status === 412 ? t("entity.conflict") : problem(error);
}

/** The path of an entity's page. */
export const pathOf = (collection: string, id: string) => `/policies/${collection}/${encodeURIComponent(id)}`;

/** Asks before a write of an entity, after which its page begins anew, throws away edits there; true where there are none. */
export function mayRewrite(collection: string, id: string): boolean {
  return current().path !== pathOf(collection, id) || mayReplace();
}

/**
 * Leads back to the version that `before` stands for: over the version `now`, or, if that is null, where the entity is deleted. The control
 * plane has the secrets of a version, and a document that was read has their masks alone.
 */
async function goBack(collection: string, id: string, before: string, now: string | null): Promise<Tagged> {
  try {
    // A deleted entity has no tag that could be sent: one that was created meanwhile is not written over.
    if (now === null && (await exists(collection, id))) throw new Error(t("entity.conflict"));
    return await revert(collection, id, versionOf(before), now);
  } catch (error) {
    throw new Error(writeProblem(error));
  }
}

/** The Undo of a write (`now` is what was written) or a deletion (`now` is null). Answers false if the operator keeps newer edits instead. */
export function undoOf(collection: string, id: string, before: string, now: string | null, reload: () => void): () => Promise<boolean> {
  return async () => {
    if (!mayRewrite(collection, id)) return false;
    await goBack(collection, id, before, now);
    reload();
    return true;
  };
}

/** The Undo of a creation, which leads from the page of the entity to its collection. Answers false if the operator keeps newer edits instead. */
export function undoOfCreation(collection: string, id: string, etag: string): () => Promise<boolean> {
  return async () => {
    if (!mayRewrite(collection, id)) return false;
    try {
      await remove(collection, id, etag);
    } catch (error) {
      throw new Error(writeProblem(error));
    }
    if (current().path === pathOf(collection, id)) navigate(href(`/policies/${collection}`), "push", true);
    return true;
  };
}

/** Writes of entities: their errors in words, and the way back to a version. */
import { exists, revert, versionOf, type Tagged } from "./api/entities";
import { ApiError } from "./api/http";
import { t } from "./i18n";
import { problem } from "./problem";

/** Why a write failed. That someone else has changed the entity is said in words of the console. */
export function writeProblem(error: unknown): string {
  return error instanceof ApiError && error.status === 412 ? t("entity.conflict") : problem(error);
}

/**
 * Leads back to the version that `before` stands for: over the version `now`, or, if that is null, where the entity is deleted. The control
 * plane has the secrets of a version, and a document that was read has their masks alone.
 */
export async function goBack(collection: string, id: string, before: string, now: string | null): Promise<Tagged> {
  try {
    // A deleted entity has no tag that could be sent: one that was created meanwhile is not written over.
    if (now === null && (await exists(collection, id))) throw new Error(t("entity.conflict"));
    return await revert(collection, id, versionOf(before), now);
  } catch (error) {
    throw new Error(writeProblem(error));
  }
}

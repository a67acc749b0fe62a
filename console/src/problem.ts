/** Errors in words. */
import { ApiError } from "./api/http";
import { startText } from "./i18n/start";

/** An error in words. */
export function problem(error: unknown): string {
  if (error instanceof ApiError) {
    if (error.status === 0) return startText("error.unreachable");
    if (error.status === 401) return startText("error.session");
    if (error.word === "other_operator") return startText("error.other_operator");
    if (error.word === "role") return startText("error.role", { why: error.message });
    return error.message || startText("error.status", { status: String(error.status) });
  }
  return error instanceof Error ? error.message : String(error);
}

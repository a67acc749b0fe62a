/** Where a form shows the errors of the server: at the control of their pointer, so that none is shown nowhere. */
import type { Schema } from "../api/entities";
import type { FieldError } from "../api/http";
import { shape } from "./schema";

/** Fields of an entity that its form does not have. */
export const HIDDEN: readonly string[] = ["kind", "metadata"];

/** The pointer of a field of an object. */
export function pointerOf(at: string, name: string): string {
  return `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** The fields that a form of this schema has. */
export function fieldsOf(schema: Schema, hidden: readonly string[] = []): [string, Schema][] {
  return Object.entries(schema.properties ?? {}).filter(([name, field]) => !hidden.includes(name) && field.const === undefined);
}

/** The errors of a control, in words. With `below`, also those of parts that have no control of their own, each with the rest of its pointer. */
export function textOf(errors: readonly FieldError[], pointer: string, below = false): string | undefined {
  const found = errors.filter((error) => error.pointer === pointer || (below && error.pointer?.startsWith(`${pointer}/`)));
  return found.map((error) => `${(error.pointer ?? "").slice(pointer.length)} ${error.message}`.trim()).join("; ") || undefined;
}

/** The errors of an entity that no control of its form shows. */
export function withoutControl(errors: readonly FieldError[], schema: Schema, value: unknown): FieldError[] {
  return errors.filter(({ pointer }) => !pointer || !isShown(pointer, schema, schema, value, HIDDEN));
}

/** Whether a form of this schema and value shows what is wrong at a pointer below its own. */
function isShown(pointer: string, root: Schema, schema: Schema, value: unknown, hidden: readonly string[] = [], at = ""): boolean {
  const field = fieldsOf(schema, hidden).find(([name]) => pointer === pointerOf(at, name) || pointer.startsWith(`${pointerOf(at, name)}/`));
  if (!field) return false;
  const [name, part] = field;
  const [own, of] = [pointerOf(at, name), shape(part, root, name)];
  if (pointer === own) return true;
  const inner = (value as Record<string, unknown> | null | undefined)?.[name];
  const entries = Array.isArray(inner) ? inner : [];
  const index = Number(pointer.slice(own.length + 1).split("/")[0]);
  switch (of.control) {
    case "words":
    case "json":
      return true;
    case "group":
      return isShown(pointer, root, of.schema, inner, [], own);
    case "list":
      return index < entries.length && (pointer === `${own}/${index}` || isShown(pointer, root, shape(of.schema.items ?? {}, root).schema, entries[index], [], `${own}/${index}`));
    case "seclang":
      return index < entries.length && pointer === `${own}/${index}`;
    default:
      return false;
  }
}

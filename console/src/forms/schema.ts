/** What a form reads of a JSON Schema. */
import type { Schema } from "../api/entities";

/** How a field is edited. */
export type Control = "text" | "long" | "number" | "integer" | "switch" | "choice" | "words" | "list" | "group" | "json" | "seclang" | "secret";

/** A field, with references resolved. */
export interface FieldShape {
  control: Control;
  schema: Schema;
  nullable: boolean;
  /** For choices: the values, each with what it means. */
  options: { value: string; help: string }[];
}

/** Follows references and the single part of `allOf`; the description of the outer schema wins. */
export function resolve(schema: Schema, root: Schema): Schema {
  let found = schema;
  for (let depth = 0; depth < 8; depth += 1) {
    const name = found.$ref?.replace("#/$defs/", "");
    const inner = name ? root.$defs?.[name] : found.allOf?.length === 1 ? found.allOf[0] : undefined;
    if (!inner) return found;
    const { $ref: _, allOf: __, ...outer } = found;
    found = { ...inner, ...outer };
  }
  return found;
}

/** How a field of this schema is edited. */
export function shape(schema: Schema, root: Schema, name = ""): FieldShape {
  let found = resolve(schema, root);
  let nullable = false;
  const parts = found.anyOf ?? found.oneOf;
  if (parts) {
    const real = parts.map((part) => resolve(part, root)).filter((part) => part.type !== "null");
    nullable = real.length < parts.length;
    const [only] = real;
    if (real.length === 1 && only) found = { ...only, ...(found.description ? { description: found.description } : {}), ...("default" in found ? { default: found.default } : {}) };
    else if (real.every((part) => typeof part.const === "string" || part.enum?.every((value) => typeof value === "string"))) {
      const options = real.flatMap((part) => (part.enum ?? [part.const]).map((value) => ({ value: String(value), help: part.description ?? "" })));
      return { control: "choice", schema: found, nullable, options };
    } else return { control: "json", schema: found, nullable, options: [] };
  }
  let types = Array.isArray(found.type) ? found.type : found.type ? [found.type] : [];
  if (types.includes("null")) {
    nullable = true;
    types = types.filter((type) => type !== "null");
  }
  const base = { schema: found, nullable, options: [] as FieldShape["options"] };
  if (found.enum) return { ...base, control: "choice", options: found.enum.filter((value) => value !== null).map((value) => ({ value: String(value), help: "" })) };
  if (types.length > 1 || types.length === 0) return { ...base, control: "json" };
  switch (types[0]) {
    case "boolean":
      return nullable ? { ...base, control: "json" } : { ...base, control: "switch" };
    case "integer":
      return { ...base, control: "integer" };
    case "number":
      return { ...base, control: "number" };
    case "string":
      if (found.writeOnly) return { ...base, control: "secret" };
      return { ...base, control: /^(rules|content|pem|spec|document|body|description|robots_extra)$/.test(name) || /certificate|html/.test(name) ? "long" : "text" };
    case "array": {
      const items = found.items ? shape(found.items, root) : null;
      if (name === "rules" && items && ["text", "long"].includes(items.control)) return { ...base, control: "seclang" };
      if (items && ["text", "choice", "secret"].includes(items.control)) return { ...base, control: "words", options: items.options };
      if (items?.control === "long") return { ...base, control: "words" };
      return { ...base, control: items?.control === "group" ? "list" : "json" };
    }
    case "object":
      return { ...base, control: found.properties ? "group" : "json" };
    default:
      return { ...base, control: "json" };
  }
}

/** A value for a new entry of a list. */
export function blank(schema: Schema, root: Schema): Record<string, unknown> {
  const found = resolve(schema, root);
  const made: Record<string, unknown> = {};
  for (const name of found.required ?? []) {
    const field = shape(found.properties?.[name] ?? {}, root, name);
    const values: Record<Control, unknown> = { text: "", long: "", number: 0, integer: 0, switch: false, choice: field.options[0]?.value ?? "", words: [], list: [], group: {}, json: null, seclang: [], secret: "" };
    made[name] = field.schema.default ?? (field.control === "group" ? blank(field.schema, root) : values[field.control]);
  }
  return made;
}

/** The label of a field: its name with blanks. */
export function label(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A document that is edited in a form and as JSON at once. */
import { useState } from "preact/hooks";
import type { Entity } from "../api/entities";

/** What both editors show, and what each of them reports. */
export interface Draft {
  /** The last document that could be read. */
  value: Entity;
  /** The JSON as it was typed. */
  text: string;
  /** Why the JSON cannot be read; empty if it can. */
  wrong: string;
  /** A change by the form. */
  change: (next: Record<string, unknown>) => void;
  /** A change of the JSON. */
  type: (text: string) => void;
}

export function useDraft(start: Entity): Draft {
  const [value, setValue] = useState<Entity>(start);
  const [text, setText] = useState(() => JSON.stringify(start, null, 2));
  const [wrong, setWrong] = useState("");
  const change = (next: Record<string, unknown>) => {
    setValue(next as Entity);
    setText(JSON.stringify(next, null, 2));
    setWrong("");
  };
  const type = (text: string) => {
    setText(text);
    try {
      setValue(JSON.parse(text) as Entity);
      setWrong("");
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return { value, text, wrong, change, type };
}

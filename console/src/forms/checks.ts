/** What the control plane says of a document while it is edited. */
import { useEffect, useState } from "preact/hooks";
import { fieldErrors, tryOut, type Entity } from "../api/entities";
import type { FieldError } from "../api/http";
import { useDebounced } from "../ui/async";
import { useMay } from "../ui/role";

/** How long typing rests before the document is checked: milliseconds. */
const PAUSE = 350;

/** The result of the last check; `checked` is "" before there is one, and for a document that is not changed. */
export interface Checks {
  errors: FieldError[];
  /** The document after typing has rested. */
  settled: Entity;
  checked: "" | "busy" | "good" | "bad";
  /** Shows the errors of another call until the next check. */
  show: (errors: FieldError[]) => void;
}

/** Checks a document as a save would, once typing rests; a document that cannot be read or is not changed is not checked. */
export function useChecks(collection: string, value: Entity, { isNew, changed, wrong }: { isNew: boolean; changed: boolean; wrong: string }): Checks {
  const [errors, show] = useState<FieldError[]>([]);
  const [checked, setChecked] = useState<Checks["checked"]>("");
  const settled = useDebounced(value, PAUSE);
  // Checks are calls for analysts: of a viewer each would be refused, and noted in the audit log.
  const mayCheck = useMay("analyst");
  useEffect(() => {
    if (!changed && !wrong) {
      show([]);
      setChecked("");
    }
    if (!changed || wrong || !mayCheck) return;
    const abort = new AbortController();
    setChecked("busy");
    const told = (errors: FieldError[]) => {
      if (abort.signal.aborted) return;
      show(errors);
      setChecked(errors.length ? "bad" : "good");
    };
    tryOut(collection, settled, isNew, abort.signal).then(told, (error: unknown) => told(fieldErrors(error)));
    return () => abort.abort();
  }, [settled, wrong]);
  return { errors, settled, checked, show };
}

/** Errors that have no control. */
import type { FieldError } from "../api/http";

/** Errors of the server with their pointers; nothing if there are none. */
export function ErrorList({ errors }: { errors: readonly FieldError[] }) {
  return errors.length === 0 ? null : (
    <div class="notice bad" role="alert">
      <ul>{errors.map((error, index) => <li key={index}><code>{error.pointer}</code> <span class="pre">{error.message}</span></li>)}</ul>
    </div>
  );
}

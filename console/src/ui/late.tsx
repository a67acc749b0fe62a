/** What is shown only when something takes long. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

/** A text that comes and goes at once only flickers, and costs a layout. */
const PATIENCE_MS = 300;

/** Shows `children` after 300 milliseconds. */
export function Late({ children }: { children: ComponentChildren }) {
  const [late, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return late ? <>{children}</> : null;
}

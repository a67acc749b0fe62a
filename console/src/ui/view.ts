/** Parts of a page that wait until they are looked at. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** After this time a part is due in any case, so that a search in the page and a screen reader find it: milliseconds. */
const LATEST_MS = 3000;

/** A reference for an element, and whether what belongs there is due: the element has come into view, or it has been there for a while. */
export function useInView<E extends Element>(): [RefObject<E | null>, boolean] {
  const place = useRef<E>(null);
  const [isDue, set] = useState(false);
  useEffect(() => {
    if (isDue || !place.current) return;
    const due = () => set(true);
    const observer = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && due());
    observer.observe(place.current);
    const timer = setTimeout(due, LATEST_MS);
    return () => {
      observer.disconnect();
      clearTimeout(timer);
    };
  }, [isDue]);
  return [place, isDue];
}

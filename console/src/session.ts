/** The operator of the session, for all pages. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api/session";

/** Set by the frame once the session is known. */
export const SessionContext = createContext<Session | null>(null);

/** The session; null before it is known. */
export function useSession(): Session | null {
  return useContext(SessionContext);
}

/** The operator of the session, for all pages. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api/session";

/** Set by the frame once the session is known. */
export const SessionContext = createContext<Session | null>(null);

/** Sets the session after a call that has changed it: what its operator has to prove, and the token. */
export const SetSessionContext = createContext<(session: Session) => void>(() => {});

/** How a page says that the session has changed. */
export function useSetSession(): (session: Session) => void {
  return useContext(SetSessionContext);
}

/** The session; null before it is known. */
export function useSession(): Session | null {
  return useContext(SessionContext);
}

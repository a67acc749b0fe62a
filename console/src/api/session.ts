/** Login, logout, the operator of the session, and the operator's own sessions and second factor. */
import type { CreationOptions, NewCredential, RequestOptions, SignedCredential } from "../webauthn";
import { ApiError, call, get, post, renewCsrf, setCsrf } from "./http";

/** The session as the server describes it. Times are RFC 3339. */
export interface Session {
  operator: { name: string; email: string; role?: string; has_password?: boolean; second_factor?: boolean; passkeys?: number };
  csrf_token: string;
  created_at: string;
  expires_at: string;
  idle_seconds: number;
  second_factor_required?: boolean;
}

/** What a login gives: a session, or a ticket with which a code or the answer of a passkey has to be sent. */
export type LoggedIn = { session: Session } | Ticket;

/** What a second step needs. */
export interface Ticket {
  ticket: string;
  /** A code of the app ends the login. */
  code: boolean;
  /** A passkey ends it. */
  passkey: boolean;
}

/** A passkey of the operator. Times are RFC 3339. */
export interface Passkey {
  id: string;
  name: string;
  created_at: string;
  used_at: string | null;
}

/** What shows that the operator is still there. */
export interface Proofs {
  password?: string;
  code?: string;
  credential?: SignedCredential;
}

/** A session in a list. `user_agent` is what the client sent. */
export interface ListedSession {
  id: string;
  operator: string;
  current: boolean;
  created_at: string;
  seen_at: string;
  expires_at: string;
  address: string | null;
  user_agent: string;
  via: string;
}

/** The state of the second factor. */
export interface SecondFactor {
  enrolled: boolean;
  since: string | null;
  recovery_codes: number;
  required: boolean;
}

/** The session of this browser. A page that is shown to another operator is loaded again. */
export async function me(): Promise<Session> {
  return renewCsrf(await get<Session>("/session/_me"));
}

/** Begins a session by name and password. */
export const login = (name: string, password: string) => begin("/session/_login", { name, password });
/** Begins a session by the token of a one-time link. */
export const redeem = (token: string) => begin("/session/_redeem", { token });
/** Ends a login whose operator has a second factor. */
export const sendCode = (ticket: string, code: string) => begin("/session/_login_code", { ticket, code });

/** The ways to log in. */
export interface LoginMethods {
  /** The OpenID Connect provider. */
  provider: { name: string; available: boolean } | null;
  /** Where passkeys can be used. */
  passkeys?: { origin: string } | null;
}

/** What the provider has sent the browser back with. */
export interface ProviderAnswer {
  state: string;
  code?: string;
  iss?: string;
  error?: string;
}

/** The ways to log in. */
export const loginMethods = (signal?: AbortSignal) => get<LoginMethods>("/session/_methods", signal);
/** Begins a login at the provider: the address to go to. */
export const beginAtProvider = () => post<{ url: string }>("/session/_oidc_begin", {});
/** Ends it. */
export const endAtProvider = (answer: ProviderAnswer) => begin("/session/_oidc_finish", answer);

/** A challenge for a login by a passkey: alone, or as the second step. */
export const beginWithPasskey = (ticket?: string) => post<{ options: RequestOptions }>("/session/_passkey_login_begin", ticket ? { ticket } : {});
/** Its answer. */
export const endWithPasskey = (credential: SignedCredential, ticket?: string) => begin("/session/_passkey_login", { credential, ...(ticket ? { ticket } : {}) });

/** The own passkeys. */
export const passkeys = (signal?: AbortSignal) => get<{ passkeys: Passkey[]; most: number }>("/session/_passkeys", signal);
/** A challenge for a new one. */
export const beginPasskey = (proofs: Proofs) => post<{ options: CreationOptions }>("/session/_passkey_begin", proofs);
/** Adds it. */
export const addPasskey = (name: string, credential: NewCredential) => post("/session/_passkey_add", { name, credential });
/** A challenge for one that is there, as a proof. */
export const confirmPasskey = () => post<{ options: RequestOptions }>("/session/_passkey_confirm_begin", {});
/** Takes one away. */
export const removePasskey = (id: string, proofs: Proofs) => post("/session/_passkey_remove", { id, ...proofs });

async function begin(path: string, body: unknown): Promise<LoggedIn> {
  const answer = (await call<Session & { done?: boolean; ticket?: string; code?: boolean; passkey?: boolean }>("POST", path, { body })).body;
  return answer.done === false && answer.ticket ? { ticket: answer.ticket, code: answer.code ?? true, passkey: answer.passkey ?? false } : { session: keep(answer) };
}

/** Ends the session. What it answers is where the browser ends its session at the provider; null if there is nothing to end, as of a session that has ended. */
export async function logout(): Promise<string | null> {
  const answer = await post<{ url?: string | null }>("/session/_logout", {}).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    return { url: null };
  });
  setCsrf("");
  return answer.url ?? null;
}

/** The operator's own sessions. */
export const sessions = (signal?: AbortSignal) => get<{ sessions: ListedSession[] }>("/session/_sessions", signal);
/** Ends one of them. */
export const revoke = (id: string) => post("/session/_revoke", { id });
/** Ends all but this one. */
export const revokeOthers = () => post<{ ended: number }>("/session/_revoke_others", {});
/** The state of the second factor. */
export const secondFactor = (signal?: AbortSignal) => get<SecondFactor>("/session/_second_factor", signal);
/** Begins the enrolment: the secret is shown once. */
export const enrol = (proofs: Proofs) => post<{ secret: string; uri: string }>("/session/_second_factor_enrol", proofs);
/** Ends the enrolment: the recovery codes are shown once. */
export const confirmCode = (code: string) => post<{ recovery_codes: string[] }>("/session/_second_factor_confirm", { code });
/** Takes the second factor away. */
export const removeFactor = (password: string, code: string) => post("/session/_second_factor_remove", { ...(password ? { password } : {}), code });

/** Sets a password; all other sessions end. */
export async function setPassword(new_password: string, proofs: Proofs): Promise<Session> {
  return keep(await post<Session>("/session/_password", { ...proofs, new_password }));
}

/** Keeps the token of a session that begins here for further calls. */
export function keep(session: Session): Session {
  setCsrf(session.csrf_token, session.operator.name);
  return session;
}

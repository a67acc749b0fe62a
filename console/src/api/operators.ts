/** Operators and admin keys. */
import { get, post } from "./http";

/** An operator. Times are RFC 3339. */
export interface Operator {
  name: string;
  email: string;
  role: string;
  created_at: string;
  has_password: boolean;
  second_factor: boolean;
  /** Linked to a person at the login provider. */
  provider?: boolean;
  passkeys?: number;
  sessions: number;
  seen_at: string | null;
  you: boolean;
}

/** A one-time link, shown once. */
export interface Link {
  token: string;
  path: string;
  expires_at: string;
}

/** An admin key. */
export interface AdminKey {
  id: string;
  name: string;
  scopes: string[];
  state: string;
  created_at: string;
  expires_at: string | null;
}

/** The roles, from the least to the most. */
export const ROLES = ["viewer", "analyst", "admin"] as const;
/** What a key may do. */
export const SCOPES = ["read", "write", "report"] as const;

/** All operators. */
export const operators = (signal?: AbortSignal) => get<{ operators: Operator[] }>("/operators/_list", signal);
/** Adds an operator, and makes the first link. */
export const addOperator = (name: string, email: string, role: string) => post<{ link: Link }>("/operators/_add", { name, email, role });
/** Gives another role. */
export const setRole = (name: string, role: string) => post("/operators/_role", { name, role });
/** Removes an operator. */
export const removeOperator = (name: string) => post("/operators/_remove", { name });
/** A new link; earlier ones end. */
export const loginLink = (name: string) => post<{ link: Link }>("/operators/_login_link", { name });
/** Takes the password away, and makes a link. */
export const resetPassword = (name: string) => post<{ link: Link }>("/operators/_reset_password", { name });
/** Takes the second factor away. */
export const resetFactor = (name: string) => post("/operators/_reset_second_factor", { name });
/** Takes all passkeys away. */
export const removePasskeys = (name: string) => post("/operators/_remove_passkeys", { name });
/** Takes the link to the provider away. */
export const unlinkIdentity = (name: string) => post("/operators/_unlink_identity", { name });
/** Ends all sessions of an operator. */
export const endSessions = (name: string) => post<{ ended: number }>("/operators/_revoke_sessions", { name });
/** All admin keys. */
export const keys = (signal?: AbortSignal) => get<{ keys: AdminKey[] }>("/keys/_list", signal);
/** Makes a key; its secret is shown once. `seconds` is its life, null for no end. */
export const createKey = (name: string, scopes: string[], seconds: number | null) => post<{ key: AdminKey; secret: string }>("/keys/_create", { name, scopes, expires_in_seconds: seconds });
/** Moves the end of a key to `seconds` from now: 0 for now, null for no end. */
export const expireKey = (id: string, seconds: number | null) => post("/keys/_expire", { id, in_seconds: seconds });
/** Ends a key for good. */
export const revokeKey = (id: string) => post("/keys/_revoke", { id });
/** A new key in the place of one, which ends after a day. */
export const rotateKey = (id: string) => post<{ key: AdminKey; secret: string }>("/keys/_rotate", { id });

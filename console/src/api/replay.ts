/** Recordings, and replays of them with a changed policy. */
import type { Entity } from "./entities";
import { get, post, query, sendFile } from "./http";

/** A recording that is kept. */
export interface Recording {
  id: string;
  name: string;
  source: "upload" | "events";
  by: string;
  added_at: string;
  bytes: number;
  requests: number;
  unreadable: number;
  reasons: string[];
  first_at: string | null;
  last_at: string | null;
  unrouted: number;
}

/** What is kept, and how much may be. */
export interface Recordings {
  node: string;
  unavailable: string | null;
  stored_events: boolean;
  recordings: Recording[];
  bytes: number;
  limits: { upload_bytes: number; recordings: number; total_bytes: number; waiting: number; seconds: number; memory_mib: number };
}

/** A replay. */
export interface Job {
  id: string;
  recording: string;
  recording_name: string;
  by: string;
  changes: string[];
  group: string;
  route: string;
  state: "waiting" | "running" | "done" | "failed" | "cancelled";
  added_at: string;
  began_at: string | null;
  ended_at: string | null;
  progress: { part: number; parts: number; requests: number; bytes_read: number; bytes: number };
  error: string | null;
}

/** How a request differs, the gravest first. */
export type Kind = "failed" | "blocked" | "unblocked" | "answer" | "score" | "rules";
/** All of them. */
export const KINDS: readonly Kind[] = ["failed", "blocked", "unblocked", "answer", "score", "rules"];

/** How a request came out on one side. */
export interface Outcome {
  effect: string;
  status: number;
  action: string;
  score: number;
  plugin?: string;
  reason?: string;
}

/** A request that differs. */
export interface Changed {
  kind: Kind;
  id: string;
  at: number;
  request: string;
  host?: string;
  caller?: string;
  route?: string;
  before: Outcome;
  after: Outcome;
  rules_added?: number[];
  rules_removed?: number[];
}

/** Changes that have a route or a plugin in common. */
export type Group = { name: string; changed: number } & Record<Kind, number>;

/** Rules by how many requests they match. */
export interface Top {
  distinct: number;
  exact: boolean;
  entries: { name: string; label: string; count: number; blocked: number }[];
}

/** The document of `palisade-replay diff`. */
export interface Diff {
  result: "differs" | "same";
  a: Side;
  b: Side;
  counts: { compared: number; same: number; only_a: number; only_b: number } & Record<Kind, number>;
  changed: Changed[];
  rules_added: Top;
  rules_removed: Top;
  routes: Group[];
  plugins: Group[];
}

interface Side {
  totals: { requests: number; effects: Record<string, number>; bad_entries: { count: number; first: string[] }; notes: { requests: number } };
}

/** A change that is tried. */
export interface Change {
  collection: string;
  id?: string;
  document: Entity | null;
}

/** What is kept. */
export const recordings = (signal?: AbortSignal) => get<Recordings>("/replay/_recordings", signal);
/** Sends a recording. */
export const upload = (file: File, onProgress: (share: number) => void, signal: AbortSignal) =>
  sendFile<{ recording: Recording }>(`/replay/_upload${query({ name: file.name })}`, file, onProgress, signal);
/** Makes a recording of stored events. */
export const recordEvents = (of: { name: string; route?: string; from?: string; limit?: number }) => post<{ recording: Recording }>("/replay/_record_events", of);
/** Deletes a recording. */
export const deleteRecording = (id: string) => post<unknown>("/replay/_delete", { id });
/** Starts a replay. */
export const startReplay = (of: { recording: string; changes: Change[]; group?: string; route?: string }) => post<{ job: Job; warnings: string[] }>("/replay/_start", of);
/** The replays, newest first. */
export const jobs = (signal?: AbortSignal) => get<{ node: string; jobs: Job[] }>("/replay/_jobs", signal);
/** A replay, with its result once it is done. */
export const job = (id: string, signal?: AbortSignal) => get<{ node: string; job: Job; diff: Diff | null }>(`/replay/_job${query({ id })}`, signal);
/** Ends a replay. */
export const cancelReplay = (id: string) => post<unknown>("/replay/_cancel", { id });

/** Calls of the console's API: one place for the session, errors and the token against forged requests. */

/** The prefix of every endpoint of the console. */
export const NS = "/extensions/svc/extensions/waf";

/** One wrong field of a document. */
export interface FieldError {
  pointer?: string;
  message: string;
  expected?: string;
}

/** An answer that is not a success. `status` is 0 if there was no answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly word: string,
    message: string,
    readonly fields: FieldError[] = [],
    /** Seconds after which to try again, 0 if the server did not say. */
    readonly retryAfter = 0,
    readonly body: unknown = null,
    /** The id of the request, by which the log and the audit log have it. */
    readonly reference = "",
  ) {
    super(message);
  }
}

/** A success: the body, and the headers that some pages read. */
export interface Answer<T> {
  body: T;
  headers: Headers;
}

let csrf = "";
/** The operator whose token it is. */
let holder = "";
let ended: (again: boolean) => void = () => {};
/** A call was refused for want of a session, and none was answered since. */
let hasEnded = false;
/** The page is loaded again for another operator, or its operator has chosen to stay. */
let isReloading = false;

/** Keeps the token that changes need, and whose it is: after a login, and "" for both after a logout. */
export function setCsrf(token: string, operator = ""): void {
  csrf = token;
  holder = operator;
  isReloading = false;
}

/** Does what is to be done when the session has ended. */
export function sessionEnded(): void {
  const again = hasEnded;
  hasEnded = true;
  ended(again);
}

/** Sets what happens when the session has ended; `again` says that it was told before, and that no call was answered since. */
export function onSessionEnd(action: (again: boolean) => void): void {
  ended = action;
}

/** A session as `/session/_me` answers it, as far as calls need it. */
interface Held {
  operator: { name: string };
  csrf_token: string;
}

/**
 * Takes the token of the session that the browser has now, after a login in another tab. Throws `other_operator`, and loads the page again as
 * theirs, if another operator has logged in: what this page shows and does is of the one before.
 */
export function renewCsrf<T extends Held>(session: T): T {
  const { name } = session.operator;
  if (holder && name !== holder) {
    if (!isReloading) location.reload();
    isReloading = true;
    throw new ApiError(403, "other_operator", "");
  }
  setCsrf(session.csrf_token, name);
  return session;
}

/** How long a call that only reads is awaited: milliseconds. Pages ask again after it. */
const PATIENCE_MS = 60_000;

/** Options of a call. */
export interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  /** Ends the call. One that can be ended only reads. */
  signal?: AbortSignal;
  /** The body is sent as it is, with this media type. */
  type?: string;
}

/** Calls `path` below the namespace. Throws [`ApiError`] for anything but 2xx. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  return withToken(() => callOnce<T>(method, path, options));
}

/** A login in another tab has a token of its own: a change that is refused for that is made once more, with the new token. */
async function withToken<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403 || error.word !== "csrf" || !holder) throw error;
    renewCsrf((await callOnce<Held>("GET", "/session/_me")).body);
    return make();
  }
}

async function callOnce<T>(method: string, path: string, options: Options = {}): Promise<Answer<T>> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  if (method !== "GET" && csrf) headers["x-csrf-token"] = csrf;
  let body: string | undefined;
  if (options.body !== undefined) {
    headers["content-type"] = options.type ?? "application/json";
    body = options.type ? String(options.body) : JSON.stringify(options.body);
  }
  const [response, text] = await answered(NS + path, { method, headers, body: body ?? null }, method === "GET" || !!options.signal, options.signal);
  let value: unknown = null;
  // An error is JSON, whatever was sent.
  if (text && (!options.type || !response.ok)) {
    try {
      value = JSON.parse(text);
    } catch {
      value = text;
    }
  } else value = text;
  if (response.ok) {
    hasEnded = false;
    return { body: value as T, headers: response.headers };
  }
  if (response.status === 401 && !path.startsWith("/session/")) sessionEnded();
  throw failure(response, value);
}

/** The answer of a request with its text. A request that `ends` and is not answered in time fails as one that the control plane does not answer. */
async function answered(url: string, init: RequestInit, ends: boolean, signal?: AbortSignal): Promise<[Response, string]> {
  const abort = new AbortController();
  const end = () => abort.abort();
  const timer = ends ? setTimeout(end, PATIENCE_MS) : undefined;
  if (signal?.aborted) end();
  signal?.addEventListener("abort", end);
  try {
    const response = await fetch(url, { ...init, signal: abort.signal, credentials: "same-origin" });
    return [response, await response.text()];
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  }
}

function failure(response: Response, value: unknown): ApiError {
  const told = (value && typeof value === "object" ? value : {}) as Record<string, unknown>;
  const fields = Array.isArray(told["errors"]) ? (told["errors"] as FieldError[]) : [];
  const message = String(told["error_description"] ?? told["error"] ?? response.statusText ?? "");
  return new ApiError(response.status, String(told["error"] ?? ""), message, fields, Number(response.headers.get("retry-after") ?? 0), value, response.headers.get("x-request-id") ?? "");
}

/** Sends a file as it is. `onProgress` gets the share that is sent, 0 to 1; aborting `signal` ends it. */
export function sendFile<T>(path: string, file: Blob, onProgress: (share: number) => void, signal: AbortSignal): Promise<T> {
  return withToken(() => sendOnce(path, file, onProgress, signal));
}

function sendOnce<T>(path: string, file: Blob, onProgress: (share: number) => void, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    // fetch does not tell how much is sent.
    const request = new XMLHttpRequest();
    request.open("POST", NS + path);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("content-type", "application/octet-stream");
    if (csrf) request.setRequestHeader("x-csrf-token", csrf);
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.total ? event.loaded / event.total : 1);
    request.onerror = () => reject(new ApiError(0, "unreachable", ""));
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    request.onload = () => {
      let value: Record<string, unknown> = {};
      try {
        value = JSON.parse(request.responseText) as Record<string, unknown>;
      } catch {
        // What is no JSON says nothing more than its status.
      }
      if (request.status >= 200 && request.status < 300) return resolve(value as T);
      if (request.status === 401) sessionEnded();
      reject(new ApiError(request.status, String(value["error"] ?? ""), String(value["error_description"] ?? request.statusText)));
    };
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

/** Why a stream is refused: asks for it, and ends it at once if it begins; null then. */
export async function refusal(path: string): Promise<ApiError | null> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), PATIENCE_MS);
  try {
    const response = await fetch(NS + path, { headers: { accept: "text/event-stream" }, signal: abort.signal, credentials: "same-origin" });
    if (response.ok) return null;
    return failure(response, await response.json().catch(() => null));
  } catch (error) {
    return new ApiError(0, "unreachable", error instanceof Error ? error.message : String(error));
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

/** The body of a GET. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call<T>("GET", path, signal ? { signal } : {})).body;
}

/** The body of a POST. Calls that answer `done: false` throw, with their reason as the message. */
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const answer = (await call<T>("POST", path, { body, ...(signal ? { signal } : {}) })).body as T & { done?: boolean; error?: string; refused?: string };
  if (answer && typeof answer === "object" && answer.done === false) {
    throw new ApiError(200, answer.refused ?? "not_done", answer.error ?? answer.refused ?? "", [], 0, answer);
  }
  return answer;
}

/** Whether an error says that this release has no such endpoint. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405);
}

/** A query of those parameters that have a value. */
export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") list.set(name, String(value));
  }
  const text = list.toString();
  return text ? `?${text}` : "";
}

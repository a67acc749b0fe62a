/** The request of a test: written by hand, or rebuilt from a stored event. */
import { useEffect, useState } from "preact/hooks";
import { explain, type Explained } from "../api/events";
import { t } from "../i18n";
import { useRoute } from "../router";
import { Field } from "../ui/bits";
import { problem } from "../ui/page";

/** The fields of the form. */
export interface Typed {
  method: string;
  uri: string;
  headers: string;
  body: string;
  address: string;
}

const FIRST: Typed = { method: "GET", uri: "/search?q=DROP%20TABLE%20users", headers: "host: shop.example\nuser-agent: curl/8.0", body: "", address: "" };

/** The request as `_test` takes it. */
export function requestOf({ method, uri, headers, body, address }: Typed): Record<string, unknown> {
  const named: Record<string, string[]> = {};
  for (const line of headers.split("\n")) {
    const at = line.indexOf(":");
    const name = at < 0 ? line.trim() : line.slice(0, at).trim();
    if (name) (named[name] ??= []).push(at < 0 ? "" : line.slice(at + 1).trim());
  }
  return { method, uri, headers: named, ...(body ? { body } : {}), ...(address.trim() ? { remote_addr: address.trim() } : {}) };
}

/** What a stored event has of its request: its line, and the parts in which rules found something. */
export function rebuilt({ request, rules }: Explained): Typed | null {
  if (!request) return null;
  const query: string[] = [];
  const form: string[] = [];
  const headers = new Map<string, string>([["host", request.host]]);
  const cookies: string[] = [];
  let body = "";
  for (const { variable = "", value = "" } of rules) {
    const [collection = "", name = ""] = [variable.split(":")[0], variable.slice(variable.indexOf(":") + 1)];
    const pair = `${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
    if (collection === "ARGS_POST" || (collection === "ARGS" && request.method === "POST")) form.push(pair);
    else if (collection === "ARGS" || collection === "ARGS_GET") query.push(pair);
    else if (collection === "REQUEST_HEADERS") headers.set(name.toLowerCase(), value);
    else if (collection === "REQUEST_COOKIES") cookies.push(`${name}=${value}`);
    else if (collection === "REQUEST_BODY") body = value;
  }
  if (cookies.length) headers.set("cookie", cookies.join("; "));
  if (form.length && !body) {
    body = [...new Set(form)].join("&");
    headers.set("content-type", "application/x-www-form-urlencoded");
  }
  const path = encodeURI(request.path).replaceAll("%25", "%");
  return {
    method: request.method,
    uri: query.length && !path.includes("?") ? `${path}?${[...new Set(query)].join("&")}` : path,
    headers: [...headers].map(([name, value]) => `${name}: ${value.replaceAll(/[\r\n]+/g, " ")}`).join("\n"),
    body,
    address: request.source?.ip ?? "",
  };
}

/** The form. `?reference=` in the address bar fills it. */
export function RequestForm({ busy, onRun }: { busy: boolean; onRun: (typed: Typed) => void }) {
  const wanted = useRoute().query.get("reference") ?? "";
  const [typed, type] = useState(FIRST);
  const [reference, refer] = useState(wanted);
  const [told, tell] = useState("");
  const set = (more: Partial<Typed>) => type((before) => ({ ...before, ...more }));
  const take = async (reference: string) => {
    try {
      const found = await explain(reference);
      const made = rebuilt(found);
      if (made) type(made);
      tell(made ? t("rules.taken") : t("rules.taken.none"));
    } catch (error) {
      tell(problem(error));
    }
  };
  useEffect(() => {
    if (wanted) void take(wanted);
  }, [wanted]);
  return (
    <div class="stack">
      <form class="filters" onSubmit={(event) => { event.preventDefault(); if (reference.trim()) void take(reference.trim()); }}>
        <label class="grow"><span>{t("rules.reference")}</span><input class="mono" value={reference} onInput={(event) => refer(event.currentTarget.value)} /></label>
        <button type="submit">{t("rules.take")}</button>
      </form>
      <p role="status" class="help">{told || t("rules.reference.help")}</p>
      <form class="stack" onSubmit={(event) => { event.preventDefault(); onRun(typed); }}>
        <div class="filters">
          <label><span>{t("rules.method")}</span><input value={typed.method} onInput={(event) => set({ method: event.currentTarget.value })} /></label>
          <label class="grow"><span>{t("rules.uri")}</span><input class="mono" value={typed.uri} onInput={(event) => set({ uri: event.currentTarget.value })} /></label>
        </div>
        <Field label={t("rules.headers")} help={t("rules.headers.help")}>{(props) => <textarea {...props} class="mono" rows={3} value={typed.headers} spellcheck={false} onInput={(event) => set({ headers: event.currentTarget.value })} />}</Field>
        <Field label={t("rules.body")}>{(props) => <textarea {...props} class="mono" rows={3} value={typed.body} spellcheck={false} onInput={(event) => set({ body: event.currentTarget.value })} />}</Field>
        <Field label={t("rules.address")}>{(props) => <input {...props} class="mono" placeholder="192.0.2.1" value={typed.address} onInput={(event) => set({ address: event.currentTarget.value })} />}</Field>
        <div class="actions"><button type="submit" class="primary" disabled={busy}>{busy ? t("rules.running") : t("rules.test")}</button></div>
      </form>
    </div>
  );
}

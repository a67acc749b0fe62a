/** What feeds, decision services and databases know of an address. */
import { useEffect, useState } from "preact/hooks";
import { lookup, type Verdict } from "../api/plugins";
import { t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { Badge, Facts, Panel } from "../ui/bits";
import { Page, Problem } from "../ui/page";

/** Asks for an address and shows the verdict. */
export default function Lookup() {
  const ip = useRoute().query.get("ip") ?? "";
  const [typed, type] = useState(ip);
  const [verdict, set] = useState<Verdict | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!ip) return;
    let here = true;
    setBusy(true);
    setError(null);
    lookup(ip).then((answer) => here && set(answer.verdict), (error: unknown) => here && setError(error)).finally(() => here && setBusy(false));
    return () => {
      here = false;
    };
  }, [ip]);
  return (
    <Page title={t("nav.lookup")} intro={t("lookup.intro")}>
      <form class="filters" role="search" onSubmit={(event) => { event.preventDefault(); navigate(href("/lookup", { ip: typed.trim() })); }}>
        <label class="grow"><span>{t("lookup.address")}</span><input type="search" class="mono" value={typed} placeholder="203.0.113.7" onInput={(event) => type(event.currentTarget.value)} /></label>
        <button type="submit" class="primary">{t("lookup.submit")}</button>
      </form>
      {busy && <p class="empty" role="status">{t("state.loading")}</p>}
      {error ? <Problem error={error} /> : null}
      {verdict && !busy && !error && (
        <Panel title={verdict.ip}>
          <Facts
            of={[
              [t("col.score"), t("unit.points", { count: verdict.score })],
              [t("lookup.verdict"), <Badge tone={verdict.blocking ? "bad" : verdict.score ? "warn" : "good"}>{verdict.blocking ? t("lookup.blocking") : verdict.score ? t("lookup.suspicious") : t("lookup.unknown")}</Badge>],
              [t("lookup.place"), [verdict.location?.city, verdict.location?.country_name].filter(Boolean).join(", ")],
              [t("lookup.network"), [verdict.location?.org, verdict.location?.asn && `AS${verdict.location.asn}`].filter(Boolean).join(" · ")],
            ]}
          />
          <ul class="lines">{verdict.hits.map((hit, index) => <li key={index}><Badge>{hit.kind}</Badge> <strong>{hit.name ?? hit.id}</strong> {hit.weight !== undefined && t("unit.points", { count: hit.weight })} <span class="muted">{typeof hit.detail === "string" ? hit.detail : hit.detail ? JSON.stringify(hit.detail) : ""}</span></li>)}</ul>
          <div class="actions"><a class="button" href={href("/bans", { q: verdict.ip })}>{t("lookup.ban")}</a><a class="button" href={href("/events", { ref: `ip:${verdict.ip}` })}>{t("lookup.events")}</a></div>
        </Panel>
      )}
    </Page>
  );
}

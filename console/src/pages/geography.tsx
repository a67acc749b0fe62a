/** Where refused and observed callers come from: by country and by network, as a map and as tables that say the same. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Filters, Span } from "../api/events";
import { callersOfEvents, callersOfIncidents, grouped, locate, type GeoCaller, type GeoGroup, type Geography } from "../api/geo";
import { number, t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Choice, Panel } from "../ui/bits";
import { Empty, Page, Show } from "../ui/page";

type MapProps = { label: string; values: Record<string, number>; names: Record<string, string>; chosen: string; onChoose: (country: string) => void };

/** The page; its filters are in the address bar. */
export default function GeographyPage() {
  const { query } = useRoute();
  const span = (["hour", "day", "week"] as const).find((known) => known === query.get("span")) ?? "day";
  const of = query.get("of") === "incidents" ? "incidents" : "events";
  const outcome = (["blocked", "observed"] as const).find((known) => known === query.get("outcome")) ?? "";
  const [plugin, country, network] = [query.get("plugin") ?? "", query.get("country") ?? "", query.get("network") ?? ""];
  const change = (more: Record<string, string>) => navigate(href("/geography", { ...Object.fromEntries(query), ...more }), "replace");
  const filters: Filters = { ...(outcome ? { outcome } : {}), ...(plugin ? { plugin } : {}) };
  const found = useLoaded(async (signal) => locate(of === "incidents" ? await callersOfIncidents(signal) : await callersOfEvents(span, filters, signal)), [of, span, outcome, plugin]);
  return (
    <Page title={t("nav.geography")} intro={t("geo.intro")}>
      <div class="filters" role="search">
        <Choice label={t("geo.of")} value={of} options={[["events", t("geo.of.events")], ["incidents", t("geo.of.incidents")]]} onChange={(of) => change({ of: of === "events" ? "" : of })} />
        {of === "events" && (
          <>
            <Choice<Span> label={t("overview.span")} value={span} options={[["hour", t("overview.span.hour")], ["day", t("overview.span.day")], ["week", t("overview.span.week")]]} onChange={(span) => change({ span: span === "day" ? "" : span })} />
            <label><span>{t("filter.outcome")}</span>
              <select value={outcome} onChange={(event) => change({ outcome: event.currentTarget.value })}>
                <option value="">{t("filter.all")}</option>
                <option value="blocked">{t("overview.refused")}</option>
                <option value="observed">{t("overview.observed")}</option>
              </select>
            </label>
            <label><span>{t("col.plugin")}</span><input value={plugin} onChange={(event) => change({ plugin: event.currentTarget.value.trim() })} /></label>
          </>
        )}
        {country && <button type="button" class="chip" aria-label={t("filter.remove", { name: t("geo.country") })} onClick={() => change({ country: "" })}>{t("geo.country")}: {country} ✕</button>}
        {network && <button type="button" class="chip" aria-label={t("filter.remove", { name: t("geo.network") })} onClick={() => change({ network: "" })}>{t("geo.network")}: {network} ✕</button>}
      </div>
      <Show of={found}>{(found) => <World of={found} country={country} network={network} change={change} filters={of === "events" ? { ...filters, since: span } : {}} />}</Show>
    </Page>
  );
}

const countryOf = ({ place }: GeoCaller) => ({ key: place?.country ?? "", name: place?.country_name ?? place?.country ?? t("geo.unknown") });
const networkOf = ({ place }: GeoCaller) => ({ key: place?.asn ? `AS${place.asn}` : "", name: place?.asn ? [`AS${place.asn}`, place.org].filter(Boolean).join(" ") : t("geo.unknown") });

function World({ of, country, network, change, filters }: { of: Geography; country: string; network: string; change: (more: Record<string, string>) => void; filters: Record<string, string> }) {
  const [WorldMap, setMap] = useState<{ map: FunctionComponent<MapProps>; isDrawn: (country: string) => boolean } | null>(null);
  useEffect(() => {
    let here = true;
    import("../geo/map").then((module) => here && setMap({ map: module.default, isDrawn: module.isDrawn }), () => {});
    return () => {
      here = false;
    };
  }, []);
  const countries = grouped(of.callers, countryOf);
  const inCountry = country ? of.callers.filter((caller) => countryOf(caller).key === country) : of.callers;
  const networks = grouped(inCountry, networkOf);
  const callers = network ? inCountry.filter((caller) => networkOf(caller).key === network) : inCountry;
  const values = Object.fromEntries(countries.filter(({ key }) => key).map(({ key, refused, observed }) => [key, refused + observed]));
  const names = Object.fromEntries(countries.map(({ key, name }) => [key, name]));
  const hidden = WorldMap ? countries.filter(({ key }) => key && !WorldMap.isDrawn(key)) : [];
  const LoadedMap = WorldMap?.map;
  return (
    <>
      <p class="count" role="status">{t("geo.count", { callers: of.callers.length, countries: Object.keys(values).length })} {of.partial && t("geo.partial")}</p>
      {of.sources.length === 0 && (
        <div class="notice warn">
          <p>{t("geo.no_database")}</p>
          <p class="actions"><a class="button" href={href("/policies/geo-databases/_new")}>{t("geo.add.geo")}</a> <a class="button" href={href("/policies/asn-databases/_new")}>{t("geo.add.asn")}</a> <a href={href("/sources")}>{t("nav.sources")}</a></p>
        </div>
      )}
      {of.callers.length === 0 ? <Empty text={t("geo.none")} /> : (
        <>
          {of.sources.length > 0 && (
            <Panel title={t("geo.map")}>
              {LoadedMap && <LoadedMap label={t("geo.map.label")} values={values} names={names} chosen={country} onChoose={(chosen) => change({ country: chosen === country ? "" : chosen, network: "" })} />}
              {hidden.length > 0 && <p class="muted">{t("geo.small")} {hidden.map(({ name }) => name).join(", ")}</p>}
            </Panel>
          )}
          <div class="columns two">
            <Panel title={t("geo.countries")}><Groups caption={t("geo.countries")} of={countries} chosen={country} onChoose={(key) => change({ country: key === country ? "" : key, network: "" })} /></Panel>
            <Panel title={country ? t("geo.networks.of", { country: names[country] ?? country }) : t("geo.networks")}><Groups caption={t("geo.networks")} of={networks} chosen={network} onChoose={(key) => change({ network: key === network ? "" : key })} /></Panel>
          </div>
          <Panel title={t("geo.callers")}><Callers of={callers} filters={filters} /></Panel>
        </>
      )}
      {of.attributions.length > 0 && <p class="muted">{of.attributions.map(({ text, url }, index) => <span key={index}>{/^https?:\/\//.test(url) ? <a href={url} target="_blank" rel="noreferrer noopener">{text}</a> : text} </span>)}</p>}
    </>
  );
}

const SHOWN = 25;

function Groups({ caption, of, chosen, onChoose }: { caption: string; of: GeoGroup[]; chosen: string; onChoose: (key: string) => void }) {
  const [all, setAll] = useState(false);
  return (
    <div class="scroll">
      <table class="plain-table counts">
        <caption class="sr-only">{caption}</caption>
        <thead><tr><th scope="col">{t("col.name")}</th><th scope="col" class="end">{t("geo.callers")}</th><th scope="col" class="end">{t("overview.refused")}</th><th scope="col" class="end">{t("overview.observed")}</th></tr></thead>
        <tbody>
          {of.slice(0, all ? of.length : SHOWN).map((group) => (
            <tr key={group.key}>
              <th scope="row">{group.key ? <button type="button" class="plain small" aria-pressed={group.key === chosen} onClick={() => onChoose(group.key)}>{group.name}</button> : <span class="muted">{group.name}</span>}</th>
              <td class="end">{number(group.callers)}</td><td class="end">{number(group.refused)}</td><td class="end">{number(group.observed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.length > SHOWN && !all && <button type="button" onClick={() => setAll(true)}>{t("geo.more", { more: of.length - SHOWN })}</button>}
    </div>
  );
}

function Callers({ of, filters }: { of: GeoCaller[]; filters: Record<string, string> }) {
  return (
    <div class="scroll">
      <table class="plain-table counts">
        <caption class="sr-only">{t("geo.callers")}</caption>
        <thead><tr><th scope="col">{t("col.identity")}</th><th scope="col">{t("geo.place")}</th><th scope="col" class="end">{t("overview.refused")}</th><th scope="col" class="end">{t("overview.observed")}</th></tr></thead>
        <tbody>
          {of.slice(0, SHOWN).map((caller) => (
            <tr key={caller.ref}>
              <th scope="row"><a class="mono" href={href("/events", { ...filters, ref: caller.ref })}>{caller.ref.replace(/^ip:/, "")}</a></th>
              <td>{[caller.place?.city, countryOf(caller).name, caller.place?.org].filter(Boolean).join(" · ")} {caller.place && !caller.place.located && <span class="muted">{t("geo.registered")}</span>}</td>
              <td class="end">{number(caller.refused)}</td><td class="end">{number(caller.observed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.length > SHOWN && <p class="muted">{t("geo.callers.more", { more: of.length - SHOWN })}</p>}
    </div>
  );
}

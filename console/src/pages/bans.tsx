/** Bans and the allowlist. */
import { useState } from "preact/hooks";
import { parseKey, type Allowance, type Ban } from "../api/security";
import { Decide, lift, take, type Deciding } from "../decide";
import { t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { Badge, Choice, Facts } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Signals } from "../ui/event";
import { Page } from "../ui/page";
import { PagedTable } from "../ui/paged";
import { RoleNote, useMay } from "../ui/role";
import type { Column } from "../ui/table";
import { Time } from "../ui/time";

type View = "bans" | "allowlist";

const BANS: Column<Ban>[] = [
  { key: "who", head: t("col.identity"), width: "minmax(11rem, 1.2fr)", cell: (row) => <span class="mono who">{row.key}</span> },
  { key: "why", head: t("col.reason"), width: "minmax(8rem, 2fr)", cell: (row) => <span title={row.reason}>{row.reason}</span> },
  { key: "by", head: t("col.by"), width: "minmax(6rem, 1fr)", wide: true, cell: (row) => row.issued_by },
  { key: "score", head: t("col.score"), width: "6rem", wide: true, end: true, cell: (row) => t("unit.points", { count: row.score }) },
  { key: "since", head: t("col.since"), width: "8rem", wide: true, cell: (row) => <Time at={row.issued_at} how="relative" /> },
  { key: "until", head: t("col.until"), width: "8rem", cell: (row) => <Time at={row.until} how="relative" /> },
];

const ENTRIES: Column<Allowance>[] = [
  { key: "who", head: t("col.identity"), width: "minmax(11rem, 1.2fr)", cell: (row) => <span class="mono who">{row.key}</span> },
  { key: "why", head: t("col.reason"), width: "minmax(8rem, 2fr)", cell: (row) => <span title={row.reason}>{row.reason}</span> },
  { key: "by", head: t("col.by"), width: "minmax(6rem, 1fr)", wide: true, cell: (row) => row.added_by },
  { key: "since", head: t("col.since"), width: "8rem", wide: true, cell: (row) => <Time at={row.added_at} how="relative" /> },
  { key: "until", head: t("col.until"), width: "8rem", cell: (row) => (row.until === null ? t("duration.ever") : <Time at={row.until} how="relative" />) },
];

/** The two lists. */
export default function Bans() {
  const { query } = useRoute();
  const may = useMay("analyst");
  const view: View = query.get("view") === "allowlist" ? "allowlist" : "bans";
  const text = query.get("q") ?? "";
  const [turn, setTurn] = useState(0);
  const [shown, show] = useState<Ban | Allowance | null>(null);
  const [deciding, decide] = useState<{ what: Deciding; target: string; before: Ban | null } | null>(null);
  const reload = () => setTurn((turn) => turn + 1);
  const change = (more: Record<string, string>) => navigate(href("/bans", { view: view === "bans" ? "" : view, q: text, ...more }), "replace");
  const key = parseKey(text);
  const add = (what: Deciding) => key && decide({ what, target: key, before: null });
  return (
    <Page
      title={t("nav.bans")} intro={t("bans.intro")}
      actions={<Choice label={t("bans.view")} value={view} options={[["bans", t("bans.bans")], ["allowlist", t("bans.allowlist")]]} onChange={(view) => change({ view: view === "bans" ? "" : view, q: "" })} />}
    >
      <div class="filters" role="search">
        <label class="grow"><span>{t("filter.search")}</span><input type="search" value={text} placeholder={t("bans.search")} onInput={(event) => change({ q: event.currentTarget.value })} /></label>
        <button type="button" class="danger" disabled={!key || !may} onClick={() => add("ban")}>{t("action.ban")}</button>
        <button type="button" disabled={!key || !may} onClick={() => add("allow")}>{t("action.allow")}</button>
        <button type="button" onClick={reload}>{t("action.reload")}</button>
      </div>
      {may ? <p class="help">{t("bans.add.help")}</p> : <RoleNote least="analyst" />}
      {view === "bans" ? (
        <PagedTable<Ban> key="bans" label={t("bans.bans")} path="/security/_bans" field="bans" filters={{}} text={text} columns={BANS} id={(row) => row.key} turn={turn} onOpen={show} />
      ) : (
        <PagedTable<Allowance> key="allowlist" label={t("bans.allowlist")} path="/security/_allowlist" field="entries" filters={{}} text={text} columns={ENTRIES} id={(row) => row.key} turn={turn} onOpen={show} />
      )}
      {shown && "issued_at" in shown && (
        <BanDetails ban={shown} onClose={() => show(null)} onLift={() => { show(null); void lift(shown.key, shown, reload); }} onDecide={(what) => { show(null); decide({ what, target: shown.key, before: shown }); }} />
      )}
      {shown && "added_at" in shown && (
        <Dialog title={shown.key} onClose={() => show(null)}>
          <div class="stack">
            <Facts of={[[t("col.reason"), shown.reason], [t("col.by"), shown.added_by], [t("col.since"), <Time at={shown.added_at} />], [t("col.until"), shown.until === null ? t("duration.ever") : <Time at={shown.until} />]]} />
            <RoleNote least="analyst" />
            <div class="actions"><button type="button" disabled={!may} onClick={() => { show(null); void take(shown.key, shown, reload); }}>{t("action.disallow")}</button></div>
          </div>
        </Dialog>
      )}
      {deciding && <Decide {...deciding} onClose={() => decide(null)} onDone={reload} />}
    </Page>
  );
}

function BanDetails({ ban, onClose, onLift, onDecide }: { ban: Ban; onClose: () => void; onLift: () => void; onDecide: (what: Deciding) => void }) {
  const may = useMay("analyst");
  return (
    <Dialog title={ban.key} onClose={onClose} wide>
      <div class="stack">
        <Facts of={[[t("col.reason"), ban.reason], [t("col.by"), ban.issued_by], [t("col.score"), t("unit.points", { count: ban.score })], [t("col.since"), <Time at={ban.issued_at} />], [t("col.until"), <Time at={ban.until} />], [t("incident.tags"), ban.tags.length > 0 && <span class="tags">{ban.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}</span>]]} />
        <Signals of={ban.signals} />
        {ban.timeline.length > 0 && (
          <ol class="timeline">
            {ban.timeline.map((step, index) => <li key={index}><Time at={step.at} /><span>{step.action} <span class="muted">{step.by} {step.reason}</span></span></li>)}
          </ol>
        )}
        <RoleNote least="analyst" />
        <div class="actions">
          <button type="button" class="primary" disabled={!may} onClick={onLift}>{t("action.unban")}</button>
          <button type="button" disabled={!may} onClick={() => onDecide("extend")}>{t("action.extend")}</button>
          <button type="button" disabled={!may} onClick={() => onDecide("allow")}>{t("action.allow")}</button>
          <a class="button" href={href(`/incidents/${encodeURIComponent(ban.key)}`)}>{t("bans.incident")}</a>
        </div>
      </div>
    </Dialog>
  );
}

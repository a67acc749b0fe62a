/** Who has done what: audit events. */
import { useState } from "preact/hooks";
import { search, type Stored } from "../api/events";
import { t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { EventDetails } from "../ui/event";
import { Page, Show } from "../ui/page";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";

const COLUMNS: Column<Stored>[] = [
  { key: "at", head: t("col.time"), width: "8rem", cell: (row) => <Time at={row.at} how="relative" /> },
  { key: "who", head: t("audit.who"), width: "minmax(6rem, 1fr)", cell: (row) => row.event.user?.name ?? (row.event.source?.ip ? t("history.unknown") : t("history.author.command_line")) },
  { key: "what", head: t("col.action"), width: "minmax(8rem, 1fr)", cell: (row) => row.event.action ?? "" },
  { key: "ref", head: t("audit.ref"), width: "minmax(8rem, 1.5fr)", wide: true, cell: (row) => <span class="mono">{row.event.ref ?? ""}</span> },
  { key: "detail", head: t("audit.detail"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => (typeof row.event.detail === "string" ? row.event.detail : row.event.detail ? JSON.stringify(row.event.detail) : "") },
  { key: "from", head: t("audit.from"), width: "minmax(7rem, 1fr)", wide: true, cell: (row) => <span class="mono">{row.event.source?.ip ?? ""}</span> },
];

/** The last 500, filtered here. */
export default function Audit() {
  const text = useRoute().query.get("q") ?? "";
  const found = useLoaded((signal) => search({ type: "audit" }, { limit: 500 }, signal), [], 20);
  const [shown, show] = useState<Stored | null>(null);
  return (
    <Page title={t("nav.audit")} intro={t("audit.intro")}>
      <div class="filters" role="search">
        <label class="grow"><span>{t("filter.search")}</span><input type="search" value={text} onInput={(event) => navigate(href("/audit", { q: event.currentTarget.value }), "replace")} /></label>
      </div>
      <Show of={found}>
        {(found) => {
          const rows = found.events.filter((row) => !text || `${row.event.user?.name ?? ""} ${row.event.action ?? ""} ${row.event.ref ?? ""}`.toLowerCase().includes(text.toLowerCase()));
          return (
            <>
              <p class="count" role="status">{t("list.found", { found: rows.length, count: found.events.length })}{found.next && <> <a href={href("/events", { type: "audit" })}>{t("audit.older")}</a></>}</p>
              <Table label={t("nav.audit")} columns={COLUMNS} total={rows.length} row={(index) => rows[index]} id={(row) => row.id} onOpen={show} />
            </>
          );
        }}
      </Show>
      {shown && <EventDetails of={shown} onClose={() => show(null)} />}
    </Page>
  );
}

/** Bots that are known, and the robots.txt that a policy makes. */
import { useState } from "preact/hooks";
import { list } from "../api/entities";
import { botCatalog, robots, type BotSignature } from "../api/reports";
import { t } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Show } from "../ui/page";
import { Table, type Column } from "../ui/table";

const COLUMNS: Column<BotSignature>[] = [
  { key: "name", head: t("col.name"), width: "minmax(8rem, 1fr)", cell: (row) => <strong>{row.name}</strong> },
  { key: "category", head: t("col.category"), width: "8rem", cell: (row) => row.category },
  { key: "agent", head: t("bots.agent"), width: "minmax(8rem, 1.5fr)", wide: true, cell: (row) => <span class="mono">{texts(row.ua_contains)}</span> },
  { key: "proof", head: t("bots.verifiable"), width: "8rem", cell: (row) => <Badge tone={row.verifiable ? "good" : ""}>{row.verifiable ? t("word.yes") : t("word.no")}</Badge> },
  { key: "by", head: t("bots.verified_by"), width: "minmax(8rem, 1.5fr)", wide: true, cell: (row) => <span class="mono">{texts(row.rdns_suffixes) || row.ip_ranges || row.key_directory || ""}</span> },
];

function texts(of: string | string[] | null): string {
  return Array.isArray(of) ? of.join(", ") : (of ?? "");
}

/** The catalog, with a search of its own: the address bar has the page's. */
export function BotCatalog() {
  const all = useLoaded(botCatalog, []);
  const [text, type] = useState("");
  return (
    <Panel title={t("bots.catalog")}>
      <div class="filters" role="search"><label class="grow"><span>{t("filter.search")}</span><input type="search" value={text} onInput={(event) => type(event.currentTarget.value)} /></label></div>
      <Show of={all}>
        {({ entries }) => {
          const wanted = text.trim().toLowerCase();
          const found = wanted ? entries.filter((row) => `${row.name}\n${row.category}\n${texts(row.ua_contains)}`.toLowerCase().includes(wanted)) : entries;
          return (
            <>
              <p class="count" role="status">{t("list.found", { found: found.length, count: entries.length })}</p>
              <Table label={t("bots.catalog")} columns={COLUMNS} total={found.length} row={(index) => found[index]} id={(row) => row.name} />
            </>
          );
        }}
      </Show>
    </Panel>
  );
}

/** A button for the robots.txt of each policy. */
export function Robots() {
  const policies = useLoaded((signal) => list("bot-policies", signal), []);
  const [shown, show] = useState<{ id: string; name: string } | null>(null);
  const all = policies.data ?? [];
  return (
    <>
      {all.map((policy) => (
        <button key={policy.id} type="button" onClick={() => show({ id: policy.id, name: policy.name || policy.id })}>{t("bots.robots")}<span class={all.length > 1 ? "" : "sr-only"}> {policy.name || policy.id}</span></button>
      ))}
      {shown && <Text of={shown} onClose={() => show(null)} />}
    </>
  );
}

function Text({ of, onClose }: { of: { id: string; name: string }; onClose: () => void }) {
  const made = useLoaded(() => robots(of.id), [of.id]);
  return (
    <Dialog title={`robots.txt: ${of.name}`} onClose={onClose} wide>
      <Show of={made}>
        {(made) => (
          <div class="stack">
            <p class="muted">{t("bots.robots.help")}</p>
            <pre tabIndex={0}>{made.robots_txt}</pre>
            {made.llms_txt && <><h3>llms.txt</h3><pre tabIndex={0}>{made.llms_txt}</pre></>}
          </div>
        )}
      </Show>
    </Dialog>
  );
}

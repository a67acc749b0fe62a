/** Every collection of entities. */
import { useState } from "preact/hooks";
import { COLLECTIONS, count, heads, type Entity } from "../api/entities";
import type { PageProps } from "../app";
import { t, word } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded, useThrottled } from "../ui/async";
import { Badge } from "../ui/bits";
import { Page, Show } from "../ui/page";
import { useMay } from "../ui/role";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { EntityPage } from "./entity";

/** All collections, one of them, or one entity. */
export default function Policies({ rest }: PageProps) {
  const [collection, id] = rest;
  if (!collection) return <Overview />;
  if (id !== undefined) return <EntityPage collection={collection} id={id === "_new" ? null : id} />;
  return <Collection name={collection} />;
}

function Overview() {
  const counts = useLoaded(async (signal) => Promise.all(COLLECTIONS.map(async (name): Promise<[string, number]> => [name, (await count(name, signal)).count])), []);
  return (
    <Page title={t("nav.policies")} intro={t("policies.intro")}>
      <Show of={counts}>
        {(counts) => (
          <ul class="cards">
            {counts.map(([name, count]) => (
              <li key={name}><a href={href(`/policies/${name}`)}><strong>{word("collection", name)}</strong><span class="muted">{t("policies.count", { count })}</span></a></li>
            ))}
          </ul>
        )}
      </Show>
    </Page>
  );
}

const COLUMNS: Column<Entity>[] = [
  { key: "name", head: t("col.name"), width: "minmax(10rem, 1.5fr)", cell: (row) => <strong>{row.name || row.id}</strong> },
  { key: "id", head: t("col.id"), width: "minmax(8rem, 1fr)", wide: true, cell: (row) => <span class="mono">{row.id}</span> },
  { key: "state", head: t("col.state"), width: "8.5rem", cell: (row) => <EntityState of={row} /> },
  { key: "about", head: t("col.description"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => String(row.description ?? "") },
  { key: "changed", head: t("col.changed"), width: "8rem", wide: true, cell: (row) => <Time at={row["metadata.updated_at"] as string | undefined} how="relative" /> },
];

/** Off, in dry run, or on. */
export function EntityState({ of }: { of: Entity }) {
  if (of.enabled === false) return <Badge>{t("entity.off")}</Badge>;
  if (of["dry_run"] === true) return <Badge tone="warn">{t("entity.dry_run")}</Badge>;
  // Threat feeds and bouncers have actions as well, which only say what a hit adds.
  if (of["block"] === false || (of["kind"] === "honeypot-policy" && of["action"] === "monitor")) return <Badge tone="warn">{t("entity.monitors")}</Badge>;
  return <Badge tone="good">{t("entity.on")}</Badge>;
}

function Collection({ name }: { name: string }) {
  const may = useMay("admin");
  const { query } = useRoute();
  const text = query.get("q") ?? "";
  const wanted = useThrottled(text.trim().toLowerCase(), 60);
  const all = useLoaded((signal) => heads(name, signal), [name]);
  const [hay] = useState(() => new WeakMap<Entity, string>());
  const hayOf = (entity: Entity) => {
    const made = hay.get(entity) ?? `${entity.id}\n${entity.name ?? ""}\n${entity.description ?? ""}\n${Array.isArray(entity["tags"]) ? entity["tags"].join("\n") : ""}`.toLowerCase();
    hay.set(entity, made);
    return made;
  };
  return (
    <Page
      title={word("collection", name)}
      actions={<><a class="button" href={href("/policies")}>{t("policies.all")}</a>{name !== "global-config" && may && <a class="button primary" href={href(`/policies/${name}/_new`)}>{t("policies.new")}</a>}</>}
    >
      <div class="filters" role="search">
        <label class="grow"><span>{t("filter.search")}</span><input type="search" value={text} onInput={(event) => navigate(href(`/policies/${name}`, { q: event.currentTarget.value }), "replace")} /></label>
      </div>
      <Show of={all}>
        {(all) => {
          const found = wanted ? all.filter((entity) => hayOf(entity).includes(wanted)) : all;
          return (
            <>
              <p class="count" role="status">{wanted ? t("list.found", { found: found.length, count: all.length }) : t("list.total", { count: all.length })}</p>
              <Table label={word("collection", name)} columns={COLUMNS} total={found.length} row={(index) => found[index]} id={(row) => row.id} onOpen={(row) => navigate(href(`/policies/${name}/${encodeURIComponent(row.id)}`))} />
            </>
          );
        }}
      </Show>
    </Page>
  );
}

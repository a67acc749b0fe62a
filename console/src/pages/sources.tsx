/** Feeds and databases: what is in force, what fails, fetch and roll back. */
import { refresh, rollback, sources, type Source } from "../api/plugins";
import { t } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Empty, Page, Show } from "../ui/page";
import { Time } from "../ui/time";
import { RoleNote, useMay } from "../ui/role";
import { tell, tellProblem } from "../ui/toast";

/** All sources of the IP reputation. */
export default function SourcesPage() {
  const all = useLoaded(sources, [], 20);
  const act = async (call: () => Promise<unknown>) => {
    try {
      await call();
      tell(t("sources.done"));
      all.reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  return (
    <Page title={t("nav.sources")} intro={t("sources.intro")}>
      <RoleNote least="admin" />
      <Show of={all}>
        {(all) => (
          <>
            <Group title={t("collection.threat-feeds")} list={all.feeds} to="threat-feeds" onRefresh={(id) => void act(() => refresh({ feed: id }))} onRollback={(id) => void act(() => rollback(id))} />
            <Group title={t("collection.asn-databases")} list={all.asn} to="asn-databases" onRefresh={() => void act(() => refresh({ asn: true }))} />
            <Group title={t("collection.geo-databases")} list={all.geo} to="geo-databases" onRefresh={() => void act(() => refresh({ geo: true }))} />
            <Panel title={t("collection.svc-bouncers")}>
              {all.svc_bouncers.length === 0 ? <Empty text={t("sources.none")}><a href={href("/policies/svc-bouncers/_new")}>{t("policies.new")}</a></Empty> : (
                <ul class="lines">
                  {all.svc_bouncers.map((bouncer) => {
                    const error = bouncer.store?.last_error ?? bouncer.last_error;
                    return <li key={bouncer.id}><Badge tone={error ? "bad" : bouncer.enabled ? "good" : ""}>{error ? t("sources.fails") : bouncer.enabled ? t("entity.on") : t("entity.off")}</Badge> <strong>{bouncer.name || bouncer.id}</strong> {t("sources.decisions", { count: bouncer.store?.decisions ?? 0 })} {error}</li>;
                  })}
                </ul>
              )}
            </Panel>
          </>
        )}
      </Show>
    </Page>
  );
}

function Group({ title, list, to, onRefresh, onRollback }: { title: string; list: Source[]; to: string; onRefresh: (id: string) => void; onRollback?: (id: string) => void }) {
  const may = useMay("admin");
  return (
    <Panel title={title}>
      {list.length === 0 ? <Empty text={t("sources.none")}><a href={href(`/policies/${to}/_new`)}>{t("policies.new")}<span class="sr-only"> {title}</span></a></Empty> : (
        <ul class="lines">
          {list.map((source) => (
            <li key={source.id}>
              <Badge tone={source.snapshot?.error ? "bad" : source.enabled ? "good" : ""}>{source.snapshot?.error ? t("sources.fails") : source.enabled ? t("entity.on") : t("entity.off")}</Badge>{" "}
              <a href={href(`/policies/${to}/${encodeURIComponent(source.id)}`)}>{source.name || source.id}</a>{" "}
              {t("sources.entries", { count: source.snapshot?.entries ?? source.snapshot?.ranges ?? 0 })} <span class="muted">{t("sources.fetched")} <Time at={source.snapshot?.fetched_at} how="relative" /></span> {source.snapshot?.error}{" "}
              <button type="button" class="small" disabled={!may} onClick={() => onRefresh(source.id)}>{t("sources.refresh")}<span class="sr-only"> {source.name}</span></button>{" "}
              {onRollback && source.previous && <button type="button" class="small" disabled={!may} onClick={() => onRollback(source.id)}>{t("sources.rollback")}<span class="sr-only"> {source.name}</span></button>}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** What is not protected: routes without a plugin and policies in dry run, each with the page that mends it. */
import { list, type Entity } from "../api/entities";
import { t } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Panel } from "../ui/bits";
import { Show } from "../ui/page";
import { useInView } from "../ui/view";

/** Something without protection, and the page that mends it. */
interface Gap {
  id: string;
  text: string;
  what: string;
  to: string;
}

/** The gaps that the entities show. */
function gaps(routes: Entity[], policies: Entity[], configs: Entity[]): Gap[] {
  const found: Gap[] = [];
  const name = (entity: Entity) => entity.name || entity.id;
  for (const route of routes) {
    const plugins = Array.isArray(route["plugins"]) ? (route["plugins"] as { enabled?: boolean }[]) : [];
    if (route.enabled !== false && !plugins.some((plugin) => plugin.enabled !== false)) found.push({ id: `r${route.id}`, text: t("gaps.route"), what: name(route), to: href(`/policies/routes/${encodeURIComponent(route.id)}`) });
  }
  for (const policy of policies) {
    if (policy.enabled !== false && policy["dry_run"] === true) found.push({ id: `p${policy.id}`, text: t("gaps.policy"), what: name(policy), to: href(`/policies/threat-policies/${encodeURIComponent(policy.id)}`) });
  }
  for (const config of configs) {
    if (config.enabled !== false && config["block"] === false) found.push({ id: `w${config.id}`, text: t("gaps.waf"), what: name(config), to: href("/learning", { config: config.id }) });
  }
  return found;
}

/** The gaps that there are now. */
async function loadGaps(signal?: AbortSignal): Promise<Gap[]> {
  return gaps(...(await Promise.all([list("routes", signal), list("threat-policies", signal), list("waf-configs", signal)])));
}

/** The panel of the overview: the last one, whose three lists are asked for once it is in view, or after a while without that. */
export function Unprotected() {
  const [place, isDue] = useInView<HTMLParagraphElement>();
  return <Panel title={t("gaps.title")}>{isDue ? <Gaps /> : <p ref={place} class="empty" role="status">{t("state.loading")}</p>}</Panel>;
}

function Gaps() {
  const found = useLoaded(loadGaps, [], 60);
  return (
    <Show of={found}>
      {(found) => (
        found.length === 0 ? <p><Badge tone="good">{t("gaps.none")}</Badge></p> : (
          <ul class="lines">
            {found.slice(0, 20).map((gap) => (
              <li key={gap.id}><Badge tone="warn">{gap.text}</Badge> <strong>{gap.what}</strong> <a href={gap.to}>{t("gaps.mend")}<span class="sr-only"> {gap.what}</span></a></li>
            ))}
            {found.length > 20 && <li class="muted">{t("gaps.more", { count: found.length - 20 })}</li>}
          </ul>
        )
      )}
    </Show>
  );
}

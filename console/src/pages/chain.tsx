/** The chain of a route, in the order in which its plugins run. */
import type { Entity } from "../api/entities";
import { t } from "../i18n";
import { Badge, Panel } from "../ui/bits";

interface Slot {
  plugin?: string;
  class?: string;
  name?: string;
  enabled?: boolean;
  config?: Record<string, unknown>;
}

/** Drawn as a list of steps; fields that are switched on in a preset are named. */
export function Chain({ route }: { route: Entity }) {
  const slots = (Array.isArray(route["plugins"]) ? route["plugins"] : []) as Slot[];
  if (slots.length === 0) return <p class="notice warn">{t("chain.none")}</p>;
  return (
    <Panel title={t("chain.title")}>
      <ol class="chain">
        <li class="end">{t("chain.request")}</li>
        {slots.map((slot, index) => {
          const on = Object.entries(slot.config ?? {}).filter(([, value]) => value === true).map(([name]) => name);
          return (
            <li key={index} class={slot.enabled === false ? "off" : ""}>
              <strong>{(slot.plugin ?? slot.class ?? slot.name ?? "?").split(".").at(-1)}</strong> {slot.enabled === false && <Badge>{t("entity.off")}</Badge>}
              <span class="tags">{on.map((name) => <Badge key={name} tone="info">{name}</Badge>)}</span>
            </li>
          );
        })}
        <li class="end">{t("chain.backend")}</li>
      </ol>
    </Panel>
  );
}

/** The chain of a route, in the order in which its plugins run. */
import { useState } from "preact/hooks";
import type { Entity, Tagged } from "../api/entities";
import { chainOf, type ChainPhase, type ChainState, type ChainStep } from "../chain/chain";
import { loadPolicies } from "../chain/load";
import { t, word } from "../i18n";
import { href } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Panel, type Tone } from "../ui/bits";
import { Show } from "../ui/page";
import { Enforce, isEnforcedOnItsPage, pluginSubject, type Subject } from "./enforce";

const TONES: Record<ChainState, Tone> = { active: "good", dry_run: "warn", builtin: "warn", missing: "bad", off: "" };

interface ChainProps {
  /** The route; without one, the global chain alone is drawn. */
  route: Entity | null;
  /** The global configuration, if it is not the stored one. */
  draft?: Entity;
  /** The stored document of the page; null while it has changes that are not saved: no plugin is taken to enforcing from here then. */
  tagged: Tagged | null;
  reload: () => void;
}

/** Drawn as a list of phases with their plugins; each has its state, how it acts and its policy. */
export function Chain({ route, draft, tagged, reload }: ChainProps) {
  const [enforcing, enforce] = useState<Subject | null>(null);
  const loaded = useLoaded((signal) => loadPolicies(signal), []);
  return (
    <Panel title={t("chain.title")}>
      <Show of={loaded}>
        {({ global, stored, policies }) => {
          const steps = chainOf(route, draft ?? global, policies);
          if (steps.length === 0) return <p class="notice warn">{t(route ? "chain.none" : "chain.none.global")}</p>;
          const start = tagged && ((step: ChainStep) => {
            const document = step.global ? stored : tagged;
            enforce(document && pluginSubject(document, step));
          });
          let number = 0;
          const phases = [...new Set(steps.map((step) => step.phase))];
          return (
            <div class="flow">
              <p class="flow-end">{t("chain.request")}</p>
              {phases.map((phase) => (
                <Phase key={phase} phase={phase} steps={steps.filter((step) => step.phase === phase)} from={(number += steps.filter((step) => step.phase === phase).length)} start={start} />
              ))}
              {!phases.includes("response") && <p class="flow-end">{t("chain.backend")}</p>}
            </div>
          );
        }}
      </Show>
      {enforcing && <Enforce subject={enforcing} onClose={() => enforce(null)} reload={() => { loaded.reload(); reload(); }} />}
    </Panel>
  );
}

function Phase({ phase, steps, from, start }: { phase: ChainPhase; steps: ChainStep[]; from: number; start: ((step: ChainStep) => void) | null }) {
  return (
    <>
      {phase === "response" && <p class="flow-end">{t("chain.backend")}</p>}
      <section class="flow-phase" aria-label={word("chain.phase", phase)}>
        <h3>{word("chain.phase", phase)} <span class="muted">{word("chain.phase.help", phase)}</span></h3>
        <ol start={from - steps.length + 1}>
          {steps.map((step, index) => <Step key={`${step.title} ${index}`} of={step} enforce={start && step.enforcedBy ? () => start(step) : null} />)}
        </ol>
      </section>
    </>
  );
}

function Step({ of, enforce }: { of: ChainStep; enforce: (() => void) | null }) {
  const { state, policy } = of;
  return (
    <li class={`flow-step state-${state}`}>
      <strong>{of.title}</strong>{" "}
      <Badge tone={TONES[state]}>{stateWord(of)}</Badge>{" "}
      {state !== "off" && <span>{word("chain.effect", of.effect)}</span>}{" "}
      {policy && <a href={href(`/policies/${policy.collection}/${encodeURIComponent(policy.id)}`)}>{policy.name}</a>}{" "}
      {policy && state === "dry_run" && isEnforcedOnItsPage(policy.collection) && <a class="button small" href={href(`/policies/${policy.collection}/${encodeURIComponent(policy.id)}`, { enforce: "1" })}>{t("entity.enforce")}<span class="sr-only"> {of.title}</span></a>}
      {enforce && <button type="button" class="small" onClick={enforce}>{t("entity.enforce")}<span class="sr-only"> {of.title}</span></button>}{" "}
      <span class="muted">{[of.global ? t("chain.global") : of.fromPreset ? t("chain.preset") : "", of.index === null ? "" : t("chain.index", { index: String(of.index) })].filter(Boolean).join(", ")}</span>
    </li>
  );
}

/** The state in a word; what only scores or reports enforces nothing by itself, and is on. */
export function stateWord({ state, effect }: ChainStep): string {
  return state === "active" && (effect === "scores" || effect === "reports") ? t("entity.on") : word("chain.state", state);
}

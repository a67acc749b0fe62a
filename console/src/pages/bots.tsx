/** Bots: how they are verified, and fingerprints that were learned. */
import { botStatus, decideFingerprint, fingerprints, type Fingerprint } from "../api/reports";
import { number, t, word } from "../i18n";
import { useLoaded } from "../ui/async";
import { Badge, Figure, Panel } from "../ui/bits";
import { Page, Show } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { tell, tellProblem } from "../ui/toast";
import { BotCatalog, Robots } from "./bot-catalog";

type Decision = "accept" | "reject" | "forget";

/** State and decisions. */
export default function Bots() {
  const may = useMay("admin");
  const state = useLoaded(botStatus, [], 30);
  const learned = useLoaded(fingerprints, [], 30);
  const decide = async (of: Fingerprint, decision: Decision) => {
    try {
      await decideFingerprint(of, decision);
      // A candidate has no way back: forgetting a decision forgets the networks too.
      const before: Decision | null = of.state === "accepted" ? "accept" : of.state === "rejected" ? "reject" : null;
      const back = async () => { if (before) await decideFingerprint(of, before); learned.reload(); };
      tell(t(decision === "forget" ? "bots.forgotten" : "bots.decided", { ja4: of.ja4 }), before && decision !== "forget" ? back : null);
      learned.reload();
    } catch (error) {
      tellProblem(error);
    }
  };
  const button = (of: Fingerprint, decision: Decision) => <button key={decision} type="button" class="small" disabled={!may} onClick={() => void decide(of, decision)}>{t(`bots.${decision}`)}<span class="sr-only"> {of.family} {of.ja4}</span></button>;
  const columns: Column<Fingerprint>[] = [
    { key: "family", head: t("bots.software"), width: "8rem", cell: (row) => row.family },
    { key: "ja4", head: "JA4", width: "minmax(10rem, 2fr)", wide: true, cell: (row) => <span class="mono" title={row.ja4}>{row.ja4}</span> },
    { key: "state", head: t("col.state"), width: "8rem", cell: (row) => <Badge tone={row.state === "accepted" ? "good" : row.state === "rejected" ? "bad" : "warn"}>{word("bots.state", row.state)}</Badge> },
    { key: "networks", head: t("bots.networks"), width: "7rem", wide: true, end: true, cell: (row) => number(row.networks) },
    { key: "seen", head: t("col.last_seen"), width: "8rem", wide: true, cell: (row) => <Time at={row.last_seen} how="relative" /> },
    { key: "do", head: t("col.action"), width: "14rem", cell: (row) => <>{row.state !== "accepted" && button(row, "accept")} {row.state !== "rejected" && button(row, "reject")} {row.state !== "candidate" && button(row, "forget")}</> },
  ];
  return (
    <Page title={t("nav.bots")} intro={t("bots.intro")} actions={<Robots />}>
      <Show of={state}>
        {(state) => (
          <>
            {state.verification && (
              <>
                {state.verification.error && <p class="notice bad">{state.verification.error}</p>}
                <div class="figures">
                  <Figure label={t("bots.verified")} value={number(state.verification.verified)} note={t("bots.addresses")} tone={state.verification.verified ? "good" : ""} />
                  <Figure label={t("bots.impersonators")} value={number(state.verification.impersonators)} note={t("bots.addresses")} tone={state.verification.impersonators ? "bad" : ""} />
                  <Figure label={t("bots.unverifiable")} value={number(state.verification.unverifiable)} note={t("bots.addresses")} />
                  <Figure label={t("bots.waiting")} value={number(state.verification.waiting)} note={t("bots.addresses")} />
                </div>
              </>
            )}
            {state.ranges.length + state.key_directories.length > 0 && (
              <Panel title={t("bots.published")}>
                <ul class="lines">
                  {state.ranges.map((list) => <li key={list.url}><Badge tone={list.error ? "bad" : list.in_force ? "good" : "warn"}>{list.bot}</Badge> <span class="mono">{list.url}</span> {t("bots.ranges", { count: list.ranges })} {list.error}</li>)}
                  {state.key_directories.map((list) => <li key={list.url}><Badge tone={list.error ? "bad" : list.in_force ? "good" : "warn"}>{list.bot}</Badge> <span class="mono">{list.url}</span> {t("bots.keys", { count: list.keys })} {list.error}</li>)}
                </ul>
              </Panel>
            )}
          </>
        )}
      </Show>
      <h2>{t("bots.fingerprints")}</h2>
      <RoleNote least="admin" />
      <Show of={learned}>{({ entries }) => <Table label={t("bots.fingerprints")} columns={columns} total={entries.length} row={(index) => entries[index]} id={(row) => `${row.family}:${row.ja4}`} />}</Show>
      <BotCatalog />
    </Page>
  );
}

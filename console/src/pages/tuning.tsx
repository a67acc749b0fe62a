/** From a false positive to a verified exclusion: match, proposals, preview, apply. */
import { useEffect, useState } from "preact/hooks";
import { apply, matches, propose, unapply, type Match, type Proposal, type Proposed, type RecordedOutcome } from "../api/plugins";
import { number, t } from "../i18n";
import { href, navigate, useRoute } from "../router";
import { useLoaded } from "../ui/async";
import { Badge, Facts, Field } from "../ui/bits";
import { Dialog } from "../ui/dialog";
import { Page, Problem, Show, problem } from "../ui/page";
import { RoleNote, useMay } from "../ui/role";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

const COLUMNS: Column<Match>[] = [
  { key: "rule", head: t("tuning.rule"), width: "6rem", cell: (row) => <code>{row.rule_id}</code> },
  { key: "target", head: t("tuning.target"), width: "minmax(9rem, 1fr)", cell: (row) => <span class="mono">{row.target.full}</span> },
  { key: "path", head: t("tuning.path"), width: "minmax(8rem, 1.3fr)", cell: (row) => <span class="mono">{row.path}</span> },
  { key: "msg", head: t("col.message"), width: "minmax(8rem, 2fr)", wide: true, cell: (row) => <span title={row.msg}>{row.msg}</span> },
  { key: "count", head: t("tuning.requests"), width: "6rem", end: true, wide: true, cell: (row) => number(row.count) },
  { key: "block", head: t("tuning.would_block"), width: "10rem", end: true, wide: true, cell: (row) => number(row.would_block) },
  { key: "callers", head: t("tuning.callers"), width: "6rem", end: true, wide: true, cell: (row) => number(row.callers) },
  { key: "seen", head: t("col.last_seen"), width: "8rem", wide: true, cell: (row) => <Time at={row.last_seen} how="relative" /> },
];

/** The matches, or the proposals for the request that the address bar names. */
export default function Tuning() {
  const { query } = useRoute();
  const reference = query.get("reference");
  const text = (query.get("q") ?? "").toLowerCase();
  const may = useMay("analyst");
  const all = useLoaded(matches, [], 30);
  const [of, open] = useState<{ sample_id: string } | { reference: string } | null>(reference && may ? { reference } : null);
  const close = () => {
    open(null);
    if (reference) navigate(href("/tuning", { q: query.get("q") }), "replace");
  };
  return (
    <Page title={t("nav.tuning")} intro={t("tuning.intro")}>
      <div class="filters" role="search">
        <label class="grow"><span>{t("filter.search")}</span><input type="search" value={query.get("q") ?? ""} placeholder={t("tuning.search")} onInput={(event) => navigate(href("/tuning", { q: event.currentTarget.value }), "replace")} /></label>
        <ByReference may={may} onOpen={(reference) => open({ reference })} />
      </div>
      <RoleNote least="analyst" />
      <Show of={all}>
        {(all) => {
          const found = all.matches.filter((row) => !text || `${row.rule_id} ${row.target.full} ${row.path} ${row.msg} ${row.references.join(" ")}`.toLowerCase().includes(text));
          return (
            <>
              <p class="count" role="status">{t("tuning.kept", { count: all.store.retained, max: all.store.max })}</p>
              <Table label={t("nav.tuning")} columns={COLUMNS} total={found.length} row={(index) => found[index]} id={(row) => row.key} {...(may ? { onOpen: (row: Match) => open({ sample_id: row.id }) } : {})} tone={(row) => (row.blocked ? "tone-bad" : "")} />
            </>
          );
        }}
      </Show>
      {of && <Proposals of={of} onClose={close} onDone={all.reload} />}
    </Page>
  );
}

function ByReference({ may, onOpen }: { may: boolean; onOpen: (reference: string) => void }) {
  const [reference, set] = useState("");
  return (
    <form class="inline" onSubmit={(event) => { event.preventDefault(); if (reference.trim()) onOpen(reference.trim()); }}>
      <label><span>{t("col.reference")}</span><input class="mono" value={reference} onInput={(event) => set(event.currentTarget.value)} /></label>
      <button type="submit" disabled={!may}>{t("tuning.find")}</button>
    </form>
  );
}

function Proposals({ of, onClose, onDone }: { of: { sample_id: string } | { reference: string }; onClose: () => void; onDone: () => void }) {
  const [found, set] = useState<Proposed | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    propose(of).then(set, setError);
  }, []);
  return (
    <Dialog title={t("tuning.proposals")} onClose={onClose} wide>
      {error ? <Problem error={error} /> : !found ? <p class="empty" role="status">{t("tuning.trying")}</p> : (
        <div class="stack">
          <Facts of={[[t("tuning.rule"), String(found.rule_id)], [t("tuning.target"), <span class="mono">{found.target.full}</span>], [t("tuning.path"), <span class="mono">{found.path}</span>]]} />
          <ul class="proposals">
            {found.proposals.map((proposal) => <One key={proposal.seclang} found={found} proposal={proposal} onDone={() => { onClose(); onDone(); }} />)}
          </ul>
        </div>
      )}
    </Dialog>
  );
}

function recorded({ name, requests, refused_before, refused_after, matched_before, matched_after }: RecordedOutcome) {
  return t("tuning.recording.value", { name, requests, refused_before, refused_after, matched_before, matched_after });
}

function One({ found, proposal, onDone }: { found: Proposed; proposal: Proposal; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [force, setForce] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const may = useMay("admin");
  const { preview } = proposal;
  const write = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      const answer = await apply(found.sample_id ?? "", proposal, reason, force);
      tell(t("tuning.applied", { number: String(answer.applied.exclusion) }), async () => { await unapply(found.config.id, answer.applied.exclusion); onDone(); });
      onDone();
    } catch (error) {
      setError(problem(error));
      setBusy(false);
    }
  };
  return (
    <li class="panel">
      <h3>{proposal.title} {proposal.recommended && <Badge tone="good">{t("tuning.recommended")}</Badge>} <Badge tone={preview.safe ? "good" : "bad"}>{preview.safe ? t("tuning.safe") : t("tuning.unsafe")}</Badge></h3>
      <p>{proposal.reach} <span class="muted">{proposal.rationale}</span></p>
      <Facts
        of={[
          [t("tuning.corpus"), t("tuning.corpus.value", { before: preview.corpus.caught_before, after: preview.corpus.caught_after, attacks: preview.corpus.attacks })],
          [t("tuning.regressions"), preview.regressions.length > 0 && preview.regressions.slice(0, 5).map((attack) => attack.name).join(", ")],
          [t("tuning.recording"), preview.recording ? recorded(preview.recording) : preview.recording_error],
          [t("tuning.effective"), preview.effective ? t("word.yes") : t("word.no")],
          [t("tuning.error"), preview.error],
        ]}
      />
      <details><summary>{t("tuning.seclang")}</summary><pre tabIndex={0}>{proposal.seclang}</pre></details>
      {found.sample_id && (
        <form class="stack" onSubmit={(event) => void write(event)}>
          <Field label={t("decide.reason")}>{(props) => <input {...props} value={reason} required maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />}</Field>
          {!preview.safe && <label class="inline"><input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} /> {t("tuning.force")}</label>}
          {error && <p class="notice bad" role="alert">{error}</p>}
          <RoleNote least="admin" />
          <div class="actions"><button type="submit" class="primary" disabled={!may || busy || (!preview.safe && !force)}>{t("tuning.apply")}</button></div>
        </form>
      )}
    </li>
  );
}

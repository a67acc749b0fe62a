//! [`FabricStore`] on the embedded file.

use rusqlite::Connection;

use super::fabric::{
    Allowance, Ban, BanPage, BanQuery, Charge, FabricStore, IncidentRow, Issued, LedgerRules, MergeIncident, Note,
    Promotion, Standing, Step, Workflow,
};
use super::{Held, Pending, SqliteStore, access, ban_pages, bans, incidents, ledger, places};

impl SqliteStore {
    /// Writes, and keeps what is to be sent of it in the same transaction.
    fn write_noted<T: Send + 'static>(
        &self,
        note: Note<T>,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Pending<'_, T> {
        Box::pin(self.write(move |db| {
            let outcome = work(db)?;
            access::keep(db, &note.events(&outcome))?;
            Ok(outcome)
        }))
    }
}

impl FabricStore for SqliteStore {
    fn bans_issue(&self, bans: Vec<Ban>, now: u64, note: Note<Vec<Issued>>) -> Pending<'_, Vec<Issued>> {
        self.write_noted(note, move |db| bans::issue_all(db, bans, now))
    }

    fn bans_widen(&self, keys: Vec<String>, now: u64, note: Note<Vec<Ban>>) -> Pending<'_, Vec<Ban>> {
        Box::pin(async move {
            let around = places::around(&keys);
            // Most bans are no part of a run: finding that out does not keep other writes waiting.
            let runs = self.read(move |db| bans::runs(db, around, now)).await?;
            if runs.is_empty() {
                return Ok(Vec::new());
            }
            self.write_noted(note, move |db| bans::widen(db, &runs, now)).await
        })
    }

    fn ban_extend(&self, key: &str, by_millis: u64, step: Step, note: Note<Option<Ban>>) -> Pending<'_, Option<Ban>> {
        let key = key.to_owned();
        self.write_noted(note, move |db| bans::extend(db, &key, by_millis, step))
    }

    fn ban_lift(&self, key: &str, now: u64, note: Note<bool>) -> Pending<'_, bool> {
        let key = key.to_owned();
        self.write_noted(note, move |db| bans::lift(db, &key, now))
    }

    fn bans_lift_all(&self, now: u64, note: Note<Vec<String>>) -> Pending<'_, Vec<String>> {
        self.write_noted(note, move |db| bans::lift_all(db, now))
    }

    fn bans(&self, now: u64) -> Pending<'_, Vec<Ban>> {
        Box::pin(self.read(move |db| bans::live(db, now)))
    }

    fn bans_count(&self, now: u64) -> Pending<'_, u64> {
        Box::pin(self.read(move |db| ban_pages::count(db, now)))
    }

    fn bans_page(&self, now: u64, query: BanQuery) -> Pending<'_, BanPage> {
        Box::pin(self.read(move |db| ban_pages::page(db, now, query)))
    }

    fn bans_on(&self, now: u64, keys: Vec<String>) -> Pending<'_, Vec<Ban>> {
        Box::pin(self.read(move |db| ban_pages::on(db, now, &keys)))
    }

    fn bans_named(&self, now: u64, keys: Vec<String>) -> Pending<'_, Vec<Ban>> {
        Box::pin(self.read(move |db| ban_pages::named(db, now, &keys)))
    }

    fn bans_keys(&self, now: u64) -> Pending<'_, Vec<String>> {
        Box::pin(self.read(move |db| ban_pages::keys(db, now)))
    }

    fn ban(&self, key: &str, now: u64) -> Pending<'_, Option<Ban>> {
        let key = key.to_owned();
        Box::pin(self.read(move |db| bans::one(db, &key, now)))
    }

    fn bans_standing(&self, now: u64) -> Pending<'_, Vec<Standing>> {
        Box::pin(self.read_known(move |db| bans::standing(db, now)))
    }

    fn note_lost(&self, lost: Held, now: u64) -> Pending<'_, Held> {
        Box::pin(self.write(move |db| bans::note_lost(db, lost, now)))
    }

    fn lifted(&self, bans: bool) -> Pending<'_, Vec<String>> {
        Box::pin(self.read_known(move |db| bans::lifted(db, bans)))
    }

    fn allow(
        &self,
        entry: Allowance,
        charged: &str,
        lift: bool,
        note: Note<Option<Vec<String>>>,
    ) -> Pending<'_, Option<Vec<String>>> {
        let charged = charged.to_owned();
        self.write_noted(note, move |db| bans::allow(db, &entry, &charged, lift))
    }

    fn disallow(&self, key: &str, now: u64, note: Note<bool>) -> Pending<'_, bool> {
        let key = key.to_owned();
        self.write_noted(note, move |db| bans::disallow(db, &key, now))
    }

    fn allowlist(&self, now: u64) -> Pending<'_, Vec<Allowance>> {
        Box::pin(self.read_known(move |db| bans::allowlist(db, now)))
    }

    fn ledger_charge(
        &self,
        charges: Vec<Charge>,
        rules: LedgerRules,
        now: u64,
        note: Note<Vec<Promotion>>,
    ) -> Pending<'_, Vec<Promotion>> {
        self.write_noted(note, move |db| ledger::charge(db, charges, rules, now))
    }

    fn ledger_score(&self, key: &str, since: u64) -> Pending<'_, f64> {
        let key = key.to_owned();
        Box::pin(self.read(move |db| ledger::score(db, &key, since)))
    }

    fn ledger_top(&self, since: u64, limit: u32) -> Pending<'_, Vec<(String, f64)>> {
        Box::pin(self.read(move |db| ledger::top(db, since, limit)))
    }

    fn ledger_forget(&self, key: &str, note: Note<bool>) -> Pending<'_, bool> {
        let key = key.to_owned();
        self.write_noted(note, move |db| ledger::forget(db, &key))
    }

    fn ledger_sweep(&self, until: u64) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| ledger::sweep(db, until)))
    }

    fn workflow_put(&self, workflow: Workflow, note: Note<()>) -> Pending<'_, ()> {
        self.write_noted(note, move |db| incidents::put_workflow(db, &workflow))
    }

    fn workflows_clear(&self, cleared: Vec<(String, u64)>, note: Note<()>) -> Pending<'_, ()> {
        self.write_noted(note, move |db| incidents::clear_workflows(db, &cleared))
    }

    fn workflows(&self) -> Pending<'_, Vec<Workflow>> {
        Box::pin(self.read(|db| incidents::workflows(db)))
    }

    fn incidents_merge(
        &self,
        added: Vec<IncidentRow>,
        merge: MergeIncident,
        removed: Vec<(String, u64)>,
    ) -> Pending<'_, Vec<IncidentRow>> {
        Box::pin(self.write(move |db| incidents::merge(db, added, &merge, &removed)))
    }

    fn incidents_of(&self, keys: Vec<String>) -> Pending<'_, Vec<IncidentRow>> {
        Box::pin(self.read(move |db| incidents::of(db, &keys)))
    }

    fn incidents(&self, after: &str, limit: u32) -> Pending<'_, Vec<IncidentRow>> {
        let after = after.to_owned();
        Box::pin(self.read(move |db| incidents::page(db, &after, limit)))
    }

    fn fabric_sweep(&self, now: u64, workflows_until: u64) -> Pending<'_, ()> {
        Box::pin(self.write(move |db| {
            bans::sweep(db, now)?;
            incidents::sweep_workflows(db, workflows_until)
        }))
    }
}

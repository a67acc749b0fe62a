//! Tuning from recorded traffic, without a gateway and without a control plane: `palisade tune`.
//!
//! Recorded exchanges run through the plugin as gateways run it ([`worker`]), on all cores ([`replay`]). What it samples goes into the
//! same window and the same report as what gateways sample.

mod edits;
mod host;
mod replay;
#[cfg(test)]
mod tests;
mod text;
mod worker;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use kit::{
    EarlierDocument, Entity as _, EntityEdit, EntitySource, Item, OperationContext, RecordedExchange, Runtime, Tools,
    Tuner, Tuning, TuningInput, TuningReport, View,
};
use serde_json::{Value, json};
use snapshot::IdentitySource;

use super::keep::Known;
use super::learning::{Effort, ProfileRule, TradeOff, Verification, Verified, named_rules, report_with, verify_with};
use super::matches::MatchStore;
use super::operations::bench;
use super::windows::Window;
use super::written::free_numbers;
use crate::WafStep;
use crate::control::AtWork;
use crate::control::composition::elements;
use crate::control::config::WafConfig;
use crate::control::lookups::LookupSources;
use crate::control::operations::engines::Built;
use crate::control::step::step;
use replay::{Setup, replay};

/// What stands for the name of a node.
const NODE: &str = "recording";
/// The entries that are verified, at most, and the matches that are kept with a request.
const MAX_ENTRIES: usize = 3000;
const EMPTY: &str = "there are no requests in it";

/// Exclusions for a WAF config.
pub(in crate::control) const TUNING: Tuning = Tuning {
    collection: WafConfig::COLLECTION,
    open: |id, input| {
        let tuner = WafTuner::new(id, input)?;
        Ok(Box::new(tuner))
    },
};

/// Tunes one WAF config.
struct WafTuner<'a> {
    entities: &'a dyn EntitySource,
    /// The config as it is.
    given: &'a Item<WafConfig>,
    /// As it runs here: it detects and does not block.
    config: Item<WafConfig>,
    identity: IdentitySource,
    now_millis: u64,
    tools: Tools,
    runtime: Runtime,
    at_work: Arc<AtWork>,
    verified: Vec<Verified>,
    trade_offs: Vec<TradeOff>,
    /// Inputs whose trade-offs are accepted.
    accepts: Vec<String>,
    /// Inputs for which a rule of the profile is proposed, and these rules.
    profiles: Vec<String>,
    profiled: Vec<ProfileRule>,
    /// How many of the requests would be refused with the verified exclusions.
    refused_after: Option<u64>,
    measured: Option<Measured>,
}

/// What exchanges that nothing was learned from come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Measured {
    requests: u64,
    /// Those that would be refused without the verified exclusions, and with them.
    refused_before: u64,
    refused_after: u64,
}

impl Measured {
    fn shown(self) -> Value {
        json!({
            "requests": self.requests,
            "refused_before": self.refused_before,
            "refused_after": self.refused_after,
            "passed_before": self.requests.saturating_sub(self.refused_before),
            "passed_after": self.requests.saturating_sub(self.refused_after),
        })
    }
}

impl<'a> WafTuner<'a> {
    fn new(id: &str, input: TuningInput<'a>) -> Result<Self, String> {
        let TuningInput { entities, identity, now_millis } = input;
        let given = super::operations::config(id, &View::new(entities))?;
        let config =
            Item { head: given.head.clone(), body: WafConfig { enabled: true, block: false, ..given.body.clone() } };
        let at_work = Arc::new(AtWork::default());
        // Without a sample nothing is verified.
        let mut known = Known::default();
        known.matches = MatchStore::of(MAX_ENTRIES);
        at_work.reported.put(known);
        let tuner = Self {
            entities,
            given,
            config,
            identity,
            now_millis,
            tools: Tools::default(),
            runtime: Arc::clone(&at_work) as Runtime,
            at_work,
            verified: Vec::new(),
            trade_offs: Vec::new(),
            accepts: Vec::new(),
            profiles: Vec::new(),
            profiled: Vec::new(),
            refused_after: None,
            measured: None,
        };
        tuner.build(None)?;
        Ok(tuner)
    }

    fn context(&self) -> OperationContext<'_> {
        OperationContext {
            entities: self.entities,
            tools: &self.tools,
            at_work: Some(&self.runtime),
            now_millis: self.now_millis,
            writing: None,
            traffic: None,
        }
    }

    /// The engine of the config, with exclusions more.
    fn build(&self, exclusions: Option<&str>) -> Result<Setup, String> {
        let view = View::new(self.entities);
        let built = bench(&self.config, &self.context(), &view).build(exclusions);
        let built = built.map_err(|why| format!("the rules of the WAF config do not compile: {why}"))?;
        let Built { engine, lookups, .. } = built;
        let zones = LookupSources::of(&view).zones_of(&lookups);
        let step = WafStep { places: lookups.places, zones, ..step(&self.config) };
        Ok(Setup { engine, step, identity: self.identity.clone() })
    }

    /// The same with the verified exclusions and the rules of the profile.
    fn build_proposed(&self) -> Result<Setup, String> {
        let mut texts: Vec<String> = self.exclusions()?.into_iter().map(|(_, _, text)| text).collect();
        texts.extend(self.profiled.iter().map(|one| one.seclang.clone()));
        self.build((!texts.is_empty()).then(|| texts.join("\n")).as_deref())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Known) -> T) -> Result<T, String> {
        self.at_work.reported.with(work).ok_or_else(|| "nothing was learned".to_owned())
    }

    fn window(&self) -> Result<Window, String> {
        let window = self.with(|known| known.windows.get(&self.config.head.id).cloned())?;
        window.ok_or_else(|| "nothing was learned".to_owned())
    }

    /// The exclusions that may be written.
    fn accepted(&self) -> Vec<&Verified> {
        self.verified.iter().filter(|one| one.accepted).collect()
    }

    /// The verified exclusions with their numbers, each as a rule.
    fn exclusions(&self) -> Result<Vec<(u64, &Verified, String)>, String> {
        let accepted = self.accepted();
        let numbers = free_numbers(self.given, &View::new(self.entities), accepted.len())?;
        let numbered = accepted.into_iter().zip(numbers);
        Ok(numbered.filter_map(|(one, number)| Some((number, one, one.written(number)?))).collect())
    }
}

fn shown(trade_off: &TradeOff) -> Value {
    let TradeOff { target, path, rules, would_block, caught, passing, accepted } = trade_off;
    json!({
        "target": target,
        "path": path,
        "rule_ids": rules,
        "would_block": would_block,
        "attacks_caught": caught,
        "attacks_passing": passing,
        "accepted": accepted,
    })
}

/// How many exchanges there are, and how many of them would be refused by each of some engines.
fn refused(
    setups: &[Setup],
    exchanges: &mut dyn Iterator<Item = RecordedExchange>,
) -> Result<(u64, BTreeMap<usize, u64>), String> {
    let mut refused: BTreeMap<usize, u64> = BTreeMap::new();
    let requests = replay(setups, exchanges, &mut |engine, part| {
        let more = part.totals.map_or(0, |totals| totals.would_block);
        let sum = refused.entry(engine).or_default();
        *sum = sum.saturating_add(more);
    })?;
    if requests == 0 {
        return Err(EMPTY.to_owned());
    }
    Ok((requests, refused))
}

impl Tuner for WafTuner<'_> {
    fn notes(&self) -> Vec<String> {
        let id = &self.given.head.id;
        let mut notes = Vec::new();
        if !self.given.enabled {
            notes.push(format!("the WAF config `{id}` is disabled: it runs here as if it were enabled"));
        }
        if self.given.block {
            notes.push(format!(
                "the WAF config `{id}` blocks: it runs here as if it had `block: false`, so that each request is inspected to its end"
            ));
        }
        notes
    }

    fn learn(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String> {
        let setup = self.build(None)?;
        let id = self.config.head.id.clone();
        let mut first = exchanges.next().into_iter().peekable();
        let began = first.peek().and_then(|exchange| exchange.at_millis);
        let last = Cell::new(None);
        let ran = replay(&[setup], &mut first.chain(exchanges), &mut |_, part| {
            let now = part.now_millis;
            // It is always there: it was put there when this was made.
            let _ = self.with(|known| {
                if last.replace(Some(now)).is_none() {
                    known.windows.start(&id, began.unwrap_or(now));
                }
                let totals: Vec<_> = part.totals.into_iter().collect();
                known.learn(part.parameters, |config| config == id);
                known.count(NODE, (part.matches, &totals), |config| config == id, now);
            });
        })?;
        if ran == 0 {
            return Err(EMPTY.to_owned());
        }
        self.with(|known| known.windows.stop(&id, last.get().unwrap_or_default()))?;
        Ok(())
    }

    fn propose(&mut self, progress: &dyn Fn(usize, usize)) -> Result<(), String> {
        let window = self.window()?;
        let threads = Some(available_parallelism().map_or(1, NonZero::get));
        let effort = Effort {
            entries: MAX_ENTRIES,
            fresh: usize::MAX,
            threads,
            confirm: true,
            accepted: &self.accepts,
            progress,
        };
        let view = View::new(self.entities);
        let Verification { all, trade_offs } = verify_with(&effort, &window, &self.config, &self.context(), &view)?;
        let is_known = |text: &&String| trade_offs.iter().any(|one| one.is_named(text));
        if let Some(unknown) = self.accepts.iter().find(|text| !is_known(text)) {
            return Err(format!(
                "no trade-off is named `{}`: the report lists them, such as `ARGS:text on /preview`",
                unknown.escape_debug()
            ));
        }
        (self.verified, self.trade_offs) = (all, trade_offs);
        let rules = elements(self.given, &view);
        let named = named_rules(&window, &self.profiles, rules.iter().map(|element| element.text.as_str()))?;
        // Behind those of the exclusions.
        let exclusions = self.accepted().len();
        let numbers = free_numbers(self.given, &view, exclusions + named.ids())?;
        self.profiled = named.numbered(numbers.get(exclusions..).unwrap_or_default());
        Ok(())
    }

    fn accept(&mut self, inputs: &[String]) {
        self.accepts = inputs.to_vec();
    }

    fn profile(&mut self, names: &[String]) {
        self.profiles = names.to_vec();
    }

    fn has_proposals(&self) -> bool {
        !self.profiled.is_empty() || self.verified.iter().any(|one| one.accepted)
    }

    fn confirm(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String> {
        let (_, refused) = refused(&[self.build_proposed()?], exchanges)?;
        self.refused_after = Some(refused.get(&0).copied().unwrap_or_default());
        Ok(())
    }

    fn measure(&mut self, exchanges: &mut dyn Iterator<Item = RecordedExchange>) -> Result<(), String> {
        let (requests, refused) = refused(&[self.build(None)?, self.build_proposed()?], exchanges)?;
        let of = |engine| refused.get(&engine).copied().unwrap_or_default();
        self.measured = Some(Measured { requests, refused_before: of(0), refused_after: of(1) });
        Ok(())
    }

    fn report(&self) -> Result<TuningReport, String> {
        let (window, view) = (self.window()?, View::new(self.entities));
        let after = if self.has_proposals() { self.refused_after } else { Some(window.would_block) };
        let mut document = report_with(after, &window, &self.config, &self.verified, &self.context(), &view)?;
        if let Some(fields) = document.as_object_mut() {
            fields.insert("trade_offs".to_owned(), self.trade_offs.iter().map(shown).collect());
            let written = self.profiled.iter().map(|one| Value::from(one.key.as_str())).collect();
            fields.insert("profile_rules".to_owned(), written);
        }
        if let (Some(measured), Some(fields)) = (self.measured, document.as_object_mut()) {
            fields.insert("measured".to_owned(), measured.shown());
        }
        let text = text::text(&document);
        Ok(TuningReport { document, text })
    }

    fn edits(&self, reason: &str, earlier: &EarlierDocument<'_>) -> Result<Vec<EntityEdit>, String> {
        edits::edits(self, reason, earlier)
    }
}

//! Samples of matches, for the tuning of rules: which rule matched at which input on which path, how often, and a request to have the
//! match again with.
//!
//! An exchange in which no rule matched costs one addition and one look at a list. Matches lie in the worker's memory, whatever snapshots come and go,
//! and are sent as what was added since the last report of their key. While the node is without its control plane they are counted on.
//! A report is sent once: what is lost with a link is a part of the numbers.

pub(crate) mod callers;
pub(crate) mod cardinality;
mod mask;
pub mod messages;
mod method;
mod names;
mod parameters;
#[cfg(feature = "control")]
pub(crate) mod recorded;
mod request;
mod sampler;
pub(crate) mod shape;
pub(crate) mod target;
mod totals;

use std::cell::RefCell;
use std::rc::Rc;

use exchange::{Exchange, Host, Timer, Workers, fold};
use node_state::keyed_hash;
use seclang::vocabulary::Variable;
use seclang::{MatchedRule, Transaction};

use crate::{State, Waf};
use messages::{MAX_TEXT, Matched, Parameter, ValueShape};
#[cfg(feature = "control")]
pub(crate) use method::{PROGRAMS, WITH_ARGUMENT};
use request::{Source, text};
use sampler::{Hit, Sampler, Wanted};
use target::{Input, Target};
pub(crate) use totals::Counted;

/// The most keys that one exchange counts for.
const MAX_PER_EXCHANGE: usize = 64;
/// The most parameters of an exchange that are looked at.
const MAX_PARAMETERS: usize = 32;
/// The most bytes of a method.
const MAX_METHOD: usize = 32;

/// The matches of a worker.
#[derive(Debug, Default)]
struct Samples(RefCell<Sampler>);

impl Samples {
    fn of(host: &dyn Host) -> Rc<Self> {
        host.shared().memory().beside()
    }
}

impl Waf {
    /// Whether its matches are sampled. A dry run tells them to the one who watches.
    fn is_sampled(&self) -> bool {
        self.seen.is_none()
    }

    pub(crate) fn sampling_timer(&self) -> Option<Timer> {
        self.is_sampled().then_some(Timer { millis: sampler::TICK, on: Workers::All })
    }

    /// Sends what is due.
    pub(crate) fn report_samples(&self, host: &dyn Host) {
        // The timer never runs within an exchange; if it did, the next one would send what is due.
        if let Ok(mut sampler) = Samples::of(host).0.try_borrow_mut() {
            if let Some(totals) = self.counted.take(&self.step.id) {
                sampler.add(totals);
            }
            sampler.report(host);
        }
    }

    /// Samples what the rules matched in an exchange, at its end.
    pub(crate) fn sample(&self, state: &mut State, exchange: &Exchange, host: &dyn Host) {
        if !self.is_sampled() {
            return;
        }
        let first = !std::mem::replace(&mut state.counted, true);
        if first {
            self.counted.exchange();
        }
        if first && !self.suspect(exchange, host) {
            self.look_at_parameters(state, exchange, host);
        }
        // All but an exchange in which a rule matched ends here.
        if state.transaction.matched_rules().is_empty() {
            return;
        }
        let State { transaction, blocked, unenforced, .. } = &*state;
        let would_block = blocked.is_some() || unenforced.is_some() || transaction.would_block().is_some();
        if first && transaction.matched_rules().iter().any(|rule| rule.logged) {
            self.counted.matched(transaction, would_block);
        }
        // What is secret in a path is not known by a name.
        if exchange.target_is_secret {
            return;
        }
        let decompressed = state.transaction.rest_of_body().compressed;
        let State { transaction, sampled, blocked, has_body, .. } = state;
        let transaction = &*transaction;
        let logged = transaction.matched_rules().iter().filter(|rule| rule.logged);
        let inputs = logged.flat_map(|rule| rule.inputs().map(move |(variable, value)| (rule, variable, value)));
        let matches = inputs
            .filter_map(|(rule, variable, value)| Some((rule, method::target_of(rule, variable, exchange)?, value)));
        let mut matches = matches.peekable();
        if matches.peek().is_none() {
            return;
        }
        let samples = Samples::of(host);
        let Ok(mut sampler) = samples.0.try_borrow_mut() else { return };
        let source = Source::new(transaction, *has_body, decompressed, sampler.masks());
        let path = source.uri().split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        let Some(path) = fold::fold(path) else { return };
        let caller = callers::caller(exchange);
        let (now, mut last, alone) = (host.now(), None, is_alone(transaction));
        for (rule, target, value) in matches {
            let rule_id = rule.rule_id.to_le_bytes();
            let key = [self.step.id.as_bytes(), b"\0", &rule_id, target.text.as_bytes(), b"\0", path.as_bytes()];
            let key = keyed_hash(host.shared(), "waf.match", &key.concat());
            if sampled.contains(&key) || sampled.len() >= MAX_PER_EXCHANGE {
                continue;
            }
            sampled.push(key);
            let reference = exchange.request.id.as_slice();
            let shape = target.value(transaction).map(|value| ValueShape::of(caller, value));
            let teaches = target.input != Input::Method || method::is_use(exchange);
            let caller = teaches.then_some(caller);
            let hit = Hit { key, caller, shape, reference, blocked: blocked.is_some(), would_block, alone };
            let wanted = sampler.count(&hit, source.size(), now);
            if wanted == Wanted::Nothing {
                continue;
            }
            let Some(sample) = source.sample(target, value, rule, &mut last) else { continue };
            let matched = self.matched(rule, target, &path, exchange);
            let matched = Matched { value: sample.value, msg: text(&sample.msg), ..matched };
            let request = Some(sample.request).filter(|_| wanted == Wanted::Request);
            sampler.take(&hit, matched, request, now);
        }
    }

    /// Remembers a caller with other signs than matches; whether it has some. What it has taught is forgotten.
    pub(crate) fn suspect(&self, exchange: &Exchange, host: &dyn Host) -> bool {
        if !self.is_sampled() || !callers::has_signs(exchange) {
            return false;
        }
        let caller = callers::caller(exchange);
        if let Ok(mut sampler) = Samples::of(host).0.try_borrow_mut() {
            sampler.suspect(caller);
        }
        true
    }

    /// Counts what the parameters of a request look like, of some of those that the backend has answered well: paths that are not there and
    /// what was refused teach nothing.
    fn look_at_parameters(&self, state: &State, exchange: &Exchange, host: &dyn Host) {
        let transaction = &state.transaction;
        if !is_answered_well(exchange)
            || exchange.target_is_secret
            || transaction.arguments().next().is_none()
            || !self.counted.looks()
        {
            return;
        }
        let samples = Samples::of(host);
        let Ok(mut sampler) = samples.0.try_borrow_mut() else { return };
        let Some(path) = fold::fold(exchange.request.path_only()) else { return };
        let path = path.get(..MAX_TEXT).unwrap_or(&path);
        let caller = callers::caller(exchange);
        if sampler.is_suspect(caller) {
            return;
        }
        for (name, value) in transaction.arguments().take(MAX_PARAMETERS) {
            // Long names cost time, and no rule names them.
            if name.is_empty() || name.len() > target::MAX_ARGUMENT || names::is_secret(name) || names::is_value(name) {
                continue;
            }
            // Of a name that is there twice, it is not known which value the application takes.
            if transaction.only_value(Variable::Args, name).is_none() {
                continue;
            }
            // Rules do not tell names by their case.
            let folded = name.to_ascii_lowercase();
            let key = [self.step.id.as_bytes(), b"\0", &folded, b"\0", path.as_bytes()];
            let key = keyed_hash(host.shared(), "waf.parameter", &key.concat());
            sampler.parameters.add(key, (caller, value), || {
                let variable = [b"ARGS:", name].concat();
                let target = Target::read(&variable).filter(|target| matches!(target.input, Input::Argument(_)))?;
                let (config, target) = (text(self.step.id.as_bytes()), target.text.to_owned());
                Some(Parameter { config, target, path: path.to_owned(), ..Parameter::default() })
            });
        }
    }

    /// A match without its numbers, and without what is masked in it.
    fn matched(&self, rule: &MatchedRule, target: Target<'_>, path: &str, exchange: &Exchange) -> Matched {
        let route = &exchange.route;
        let name = if route.label.is_empty() { &route.name } else { &route.label };
        Matched {
            config: text(self.step.id.as_bytes()),
            route_id: text(route.id.as_bytes()),
            route_name: text(name.as_bytes()),
            rule_id: rule.rule_id,
            phase: rule.phase.into(),
            paranoia: paranoia(rule),
            target: target.text.to_owned(),
            path: path.get(..MAX_TEXT).unwrap_or(path).to_owned(),
            method: text(exchange.request.method.get(..MAX_METHOD).unwrap_or(&exchange.request.method)),
            ..Matched::default()
        }
    }
}

/// Whether one rule alone has matched at an input.
fn is_alone(transaction: &Transaction) -> bool {
    let has_input =
        |rule: &&MatchedRule| rule.logged && rule.inputs().any(|(variable, _)| Target::read(variable).is_some());
    let mut rules = transaction.matched_rules().iter().filter(has_input).map(|rule| rule.rule_id);
    let first = rules.next();
    rules.all(|rule| Some(rule) == first)
}

/// Whether the backend has answered a request with a success or a redirection.
fn is_answered_well(exchange: &Exchange) -> bool {
    exchange.response.as_ref().is_some_and(|response| (200..400).contains(&response.status))
}

/// The paranoia level that a rule of the core rule set has by its tags; 0 for none.
fn paranoia(rule: &MatchedRule) -> u32 {
    let levels = rule.tags.iter().filter_map(|tag| tag.strip_prefix(b"paranoia-level/"));
    let level = |level: &[u8]| std::str::from_utf8(level).ok()?.parse::<u32>().ok();
    levels.filter_map(level).next().filter(|level| (1..=4).contains(level)).unwrap_or(0)
}

#[cfg(test)]
#[cfg(feature = "control")]
mod crs_tests;
#[cfg(test)]
mod tests;

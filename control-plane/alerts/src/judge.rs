//! Which rules something concerns.

use std::collections::HashMap;

use entities::{AlertRule, AlertTrigger, EventCategory, Item};
use events::{BanMade, Place, Seen, Sighting};
use store::alerts::{Burst, Forgotten, Told};

use super::cooldown::Cooldown;
use super::message::Message;
use super::window::Window;

/// Decides what is told. It has no clock of its own.
#[derive(Debug, Default)]
pub(super) struct Judge {
    cooldown: Cooldown,
    /// The window of each rule that waits for a burst, and its last event.
    windows: HashMap<String, (Window, Sighting)>,
}

impl Judge {
    /// Takes over what an earlier process has told.
    pub(super) fn restore(&mut self, told: Vec<Told>) {
        self.cooldown.restore(told);
    }

    /// What rules may tell of again, since the last call.
    pub(super) fn unkept(&mut self) -> Vec<Forgotten> {
        self.cooldown.unkept()
    }

    /// Another control plane has told of the same as this message, at `at`.
    pub(super) fn told_elsewhere(&mut self, message: &Message, at: u64) {
        self.cooldown.told_elsewhere(&message.rule_id, &message.cools, at);
    }

    /// The events that rules wait for a burst of and that other control planes do not know of yet.
    pub(super) fn unshared(&mut self, now: u64) -> Vec<Burst> {
        self.windows.iter_mut().filter_map(|(rule, (window, _))| window.unshared(rule, now)).collect()
    }

    /// The store did not take them.
    pub(super) fn put_back(&mut self, burst: Burst) {
        if let Some((window, _)) = self.windows.get_mut(&burst.rule) {
            window.put_back(burst);
        }
    }

    /// The events of all control planes, as [`store::AlertStore::alerts_burst`] answers them; the message that they lead to.
    pub(super) fn counted(&mut self, rule: &Item<AlertRule>, parts: Vec<(u64, u64)>, now: u64) -> Option<Message> {
        let (window, last) = self.windows.get_mut(&rule.head.id)?;
        let count = window.take_all(parts, now);
        let last = last.clone();
        self.burst_of(rule, &last, count, now)
    }

    /// Takes these rules for those there are: what was kept for others is forgotten.
    pub(super) fn follow(&mut self, rules: &[&Item<AlertRule>]) {
        let waits = |id: &str| rules.iter().any(|rule| rule.head.id == id && rule.trigger == AlertTrigger::Burst);
        self.windows.retain(|id, _| waits(id));
    }

    /// The messages that something leads to, at most one for each rule. `now` is in milliseconds since 1970.
    pub(super) fn see(&mut self, seen: &Seen, rules: &[&Item<AlertRule>], now: u64) -> Vec<Message> {
        let messages = rules.iter().filter_map(|rule| match (seen, rule.trigger) {
            (Seen::Event(event), AlertTrigger::Incident) => self.incident(rule, event, now),
            (Seen::Event(event), AlertTrigger::Burst) => self.burst(rule, event, now),
            (Seen::Ban(made), AlertTrigger::Ban) => self.ban(rule, made, now),
            _ => None,
        });
        messages.collect()
    }

    /// A message that [`Judge::see`] has made was dropped before it was sent, so its cooldown does not run.
    pub(super) fn dropped(&mut self, rule: &str, cools: &str) {
        self.cooldown.drop(rule, cools);
    }

    fn incident(&mut self, rule: &Item<AlertRule>, event: &Sighting, now: u64) -> Option<Message> {
        let Place { id, count, reopened } = event.place.as_ref()?;
        let subject = format!("incident:{id}");
        if *reopened {
            self.cooldown.forget(&rule.head.id, &subject, now);
        }
        if *count < rule.min_count || !fits(rule, event) {
            return None;
        }
        let pass = self.cooldown.pass(&rule.head.id, &subject, cooldown(rule), now);
        pass.then(|| Message::incident(rule, event, id, *count, now).cooling(rule, subject))
    }

    fn burst(&mut self, rule: &Item<AlertRule>, event: &Sighting, now: u64) -> Option<Message> {
        if !fits(rule, event) {
            return None;
        }
        let (window, last) = self.windows.entry(rule.head.id.clone()).or_default();
        event.clone_into(last);
        let count = window.add(rule.burst_window_seconds.saturating_mul(1000), now);
        self.burst_of(rule, event, count, now)
    }

    fn burst_of(&mut self, rule: &Item<AlertRule>, last: &Sighting, count: u64, now: u64) -> Option<Message> {
        let pass = count >= rule.burst_threshold && self.cooldown.pass(&rule.head.id, "burst", cooldown(rule), now);
        pass.then(|| Message::burst(rule, last, count, now).cooling(rule, "burst".to_owned()))
    }

    fn ban(&mut self, rule: &Item<AlertRule>, made: &BanMade, now: u64) -> Option<Message> {
        // What is not known of a ban does not keep it from being told: one by hand has no score.
        let scored = made.score.is_none_or(|score| score >= rule.min_score);
        let placed = made.events.is_empty()
            || made.events.iter().any(|(category, route)| in_category(rule, category) && on_route(rule, route));
        if !scored || !placed {
            return None;
        }
        let subject = format!("ban:{}", made.ban.key);
        let pass = self.cooldown.pass(&rule.head.id, &subject, cooldown(rule), now);
        pass.then(|| Message::ban(rule, made, now).cooling(rule, subject))
    }
}

fn fits(rule: &AlertRule, event: &Sighting) -> bool {
    event.score >= rule.min_score
        && (event.enforced || !rule.enforced_only)
        && in_category(rule, &event.category)
        && on_route(rule, &event.route_id)
}

fn in_category(rule: &AlertRule, category: &str) -> bool {
    rule.categories.is_empty() || rule.categories.iter().copied().map(EventCategory::word).any(|word| word == category)
}

fn on_route(rule: &AlertRule, route: &str) -> bool {
    rule.routes.is_empty() || rule.routes.iter().any(|id| id == route)
}

pub(super) fn cooldown(rule: &AlertRule) -> u64 {
    rule.cooldown_seconds.saturating_mul(1000)
}

#[cfg(test)]
mod tests;

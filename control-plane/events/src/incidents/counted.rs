//! How an event counts in its incident.

use serde_json::Value;

use super::{Incident, MAX_SIGNALS, TimelineEntry, note, text};
use crate::event::SecurityEvent;

/// What an event adds to its incident.
pub(super) struct Counted {
    entry: TimelineEntry,
    tags: Vec<String>,
    node: String,
    /// None, or not empty.
    pub(super) signals: Option<Vec<Value>>,
}

impl Counted {
    pub(super) fn of(event: SecurityEvent, at: u64) -> Counted {
        let outcome_blocked = event.event.outcome.as_deref() == Some("blocked");
        let score = event.threat.score().unwrap_or(0.0);
        let signals = event.threat.signals.filter(|signals| !signals.is_empty()).map(|mut signals| {
            signals.truncate(MAX_SIGNALS);
            signals
        });
        Counted {
            entry: TimelineEntry {
                at,
                category: text(event.event.category),
                action: text(event.event.action),
                score,
                enforced: event.decision.enforced.unwrap_or(outcome_blocked),
                route_id: text(event.route.id),
                route_name: text(event.route.name),
                message: text(event.message),
            },
            tags: event.threat.tags.into_iter().flatten().map(|tag| text(Some(tag))).collect(),
            node: text(event.route.node),
            signals,
        }
    }
}

impl Incident {
    /// The same incident without any event; the first one comes at `at`.
    pub(super) fn nothing_yet(&self, at: u64) -> Incident {
        Incident {
            id: self.id.clone(),
            identity: self.identity.clone(),
            key: self.key.clone(),
            first_seen: at,
            last_seen: at,
            ..Incident::default()
        }
    }

    pub(super) fn count_in(&mut self, Counted { entry, tags, node, .. }: &Counted, timeline: usize) {
        self.first_seen = self.first_seen.min(entry.at);
        self.last_seen = self.last_seen.max(entry.at);
        self.count += 1;
        self.enforced_count += u64::from(entry.enforced);
        self.max_score = self.max_score.max(entry.score);
        note(&mut self.categories, &entry.category);
        note(&mut self.actions, &entry.action);
        note(&mut self.routes, if entry.route_name.is_empty() { &entry.route_id } else { &entry.route_name });
        for tag in tags {
            note(&mut self.tags, tag);
        }
        entry.message.clone_into(&mut self.last_message);
        node.clone_into(&mut self.node);
        note(&mut self.nodes, node);
        while self.timeline.len() >= timeline.max(1) {
            self.timeline.pop_front();
        }
        self.timeline.push_back(entry.clone());
    }
}

//! How an event counts in its incident.

use super::{Incident, MAX_SIGNALS, SharedText, Texts, TimelineEntry, note};
use crate::event::SecurityEvent;

/// The bytes of the signals of an event that are kept, at most: a gateway says what it likes. Of more, those of the event before stay.
const MAX_SIGNAL_BYTES: usize = 8 << 10;

/// What an event adds to its incident.
pub(super) struct Counted {
    entry: TimelineEntry,
    tags: Vec<SharedText>,
    node: SharedText,
    /// JSON; `None` where there are none.
    pub(super) signals: Option<Box<str>>,
}

impl Counted {
    pub(super) fn of(event: SecurityEvent, at: u64, texts: &mut Texts) -> Counted {
        let outcome_blocked = event.event.outcome.as_deref() == Some("blocked");
        let score = event.threat.score().unwrap_or(0.0);
        let signals = event.threat.signals.filter(|signals| !signals.is_empty()).and_then(|mut signals| {
            signals.truncate(MAX_SIGNALS);
            let json = serde_json::to_string(&signals).ok().filter(|json| json.len() <= MAX_SIGNAL_BYTES);
            json.map(String::into_boxed_str)
        });
        let mut text = |value: Option<String>| texts.cut(value.as_deref().unwrap_or_default());
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
        self.last_message.clone_from(&entry.message);
        self.node.clone_from(node);
        note(&mut self.nodes, node);
        while self.timeline.len() >= timeline.max(1) {
            self.timeline.pop_front();
        }
        // Twice as many, and no more than there will be: there are many timelines.
        let length = self.timeline.len();
        if length == self.timeline.capacity() {
            self.timeline.reserve_exact(length.clamp(1, timeline.max(length + 1) - length));
        }
        self.timeline.push_back(entry.clone());
    }

    /// Replaces its texts by those that others have as well, and gives back room that was not used.
    pub(super) fn share(&mut self, texts: &mut Texts) {
        for list in [&mut self.categories, &mut self.tags, &mut self.actions, &mut self.routes, &mut self.nodes] {
            list.iter_mut().for_each(|text| texts.share(text));
            list.shrink_to_fit();
        }
        for text in [&mut self.last_message, &mut self.node] {
            texts.share(text);
        }
        for entry in &mut self.timeline {
            let TimelineEntry { category, action, route_id, route_name, message, .. } = entry;
            for text in [category, action, route_id, route_name, message] {
                texts.share(text);
            }
        }
        self.timeline.shrink_to_fit();
    }
}

//! One incident of two parts: of what is kept of it, and what a control plane has counted in since.

use std::sync::Arc;

use super::{Incident, IncidentLimits, note};
use store::fabric::MergeIncident;

/// [`merged`] of documents as the store has them. What it has in another form is replaced.
pub(super) fn of_rows(limits: IncidentLimits) -> MergeIncident {
    Arc::new(move |kept, added| {
        let kept: Option<Incident> = kept.and_then(|kept| serde_json::from_str(kept).ok());
        let added: Option<Incident> = serde_json::from_str(added).ok();
        let one = match (kept, added) {
            (Some(kept), Some(added)) => merged(kept, added, &limits),
            (one, other) => one.or(other).unwrap_or_default(),
        };
        serde_json::to_string(&one).unwrap_or_default()
    })
}

/// Both parts as one. The order does not matter, but for which of two events at the same time is the later one. With more than the
/// window between them they are two incidents: the later one stays.
pub(super) fn merged(kept: Incident, added: Incident, limits: &IncidentLimits) -> Incident {
    if added.first_seen.saturating_sub(kept.last_seen) > limits.window {
        return added;
    }
    if kept.first_seen.saturating_sub(added.last_seen) > limits.window {
        return kept;
    }
    // Two that began at once without knowing of each other are the one that began first.
    let id = if added.first_seen < kept.first_seen { &added.id } else { &kept.id }.clone();
    let mut one = kept;
    one.id = id;
    if added.last_seen >= one.last_seen {
        one.last_message = added.last_message;
        one.node = added.node;
    }
    one.first_seen = one.first_seen.min(added.first_seen);
    one.last_seen = one.last_seen.max(added.last_seen);
    one.count = one.count.saturating_add(added.count);
    one.enforced_count = one.enforced_count.saturating_add(added.enforced_count);
    one.max_score = one.max_score.max(added.max_score);
    let lists = [
        (&mut one.categories, added.categories),
        (&mut one.tags, added.tags),
        (&mut one.actions, added.actions),
        (&mut one.routes, added.routes),
        (&mut one.nodes, added.nodes),
    ];
    for (list, values) in lists {
        values.iter().for_each(|value| note(list, value));
    }
    one.timeline.extend(added.timeline);
    one.timeline.make_contiguous().sort_by_key(|entry| entry.at);
    while one.timeline.len() > limits.timeline.max(1) {
        one.timeline.pop_front();
    }
    one
}

#[cfg(test)]
mod tests {
    use super::super::TimelineEntry;
    use super::*;

    const LIMITS: IncidentLimits =
        IncidentLimits { window: 1000, timeline: 3, kept: 100_000, reopen_grace: 0, held: 9 };

    fn part(id: &str, node: &str, times: &[u64]) -> Incident {
        Incident {
            id: id.into(),
            key: "ip:192.0.2.1".into(),
            first_seen: times[0],
            last_seen: times[times.len() - 1],
            count: times.len() as u64,
            enforced_count: 1,
            max_score: times[0] as f64,
            node: node.into(),
            nodes: vec![node.into()],
            timeline: times.iter().map(|at| TimelineEntry { at: *at, ..TimelineEntry::default() }).collect(),
            ..Incident::default()
        }
    }

    #[test]
    fn parts_of_two_control_planes_are_one_incident_in_any_order() {
        let (one, other) = (part("a", "n1", &[10, 30, 50]), part("b", "n2", &[20, 40]));
        let all = merged(one.clone(), other.clone(), &LIMITS);
        assert_eq!((&*all.id, all.count, all.enforced_count), ("a", 5, 2));
        assert_eq!((all.first_seen, all.last_seen, all.max_score, &*all.node), (10, 50, 20.0, "n1"));
        assert_eq!(all.nodes, ["n1", "n2"]);
        assert_eq!(all.timeline.iter().map(|entry| entry.at).collect::<Vec<_>>(), [30, 40, 50]);
        let turned = merged(other, one, &LIMITS);
        assert_eq!((&*turned.id, turned.count, &turned.timeline), ("a", 5, &all.timeline));
    }

    #[test]
    fn with_the_window_between_them_the_later_one_stays() {
        let (before, after) = (part("a", "n1", &[10, 20]), part("b", "n1", &[1021]));
        assert_eq!(merged(before.clone(), after.clone(), &LIMITS), after);
        assert_eq!(merged(after.clone(), before.clone(), &LIMITS), after);
        let within = part("b", "n1", &[1020]);
        assert_eq!(merged(before, within, &LIMITS).count, 3);
    }

    #[test]
    fn what_cannot_be_read_is_replaced() {
        let merge = of_rows(LIMITS);
        let row = serde_json::to_string(&part("a", "n1", &[10])).unwrap();
        assert_eq!(merge(Some("7"), &row), row);
        assert_eq!(merge(None, &row), row);
        let twice: Incident = serde_json::from_str(&merge(Some(&row), &row)).unwrap();
        assert_eq!(twice.count, 2);
    }
}

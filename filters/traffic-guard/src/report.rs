//! Events of surges.

use exchange::{Action, Category, Decision, Exchange, Host, Outcome, SecurityEvent};
use node_state::Windows;

use crate::messages::Dimension;
use crate::pace::{Moment, Turn};
use crate::{PLUGIN, TrafficGuard, causes};

/// The events of a dimension within the last minute on this node.
const REPORTED: Windows = Windows::new("traffic.reported", 60_000, 6, 16);
/// The most of them. A flood of many sources that all surge is one attack, not thousands of events.
const MAX_REPORTS: u32 = 30;

impl TrafficGuard {
    /// What is seen of a surge, for people.
    pub(crate) fn describe(&self, dimension: Dimension, key: &str, moment: &Moment) -> String {
        let pace = &moment.pace;
        let (count, seconds) = (pace.count.max(pace.before), self.seconds());
        let (usual, threshold) = (pace.usual, moment.threshold);
        let name = name(dimension, key);
        format!(
            "surge of {name}: {count} requests in {seconds} s; {usual:.1} are usual, and more than {threshold:.0} a surge"
        )
    }

    /// Emits the event of a turn.
    pub(crate) fn report(
        &self,
        dimension: Dimension,
        key: &str,
        moment: &Moment,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        let kind = [dimension.letter()];
        if REPORTED.add(host.shared(), &kind, 1, host.now()).total > MAX_REPORTS {
            return;
        }
        let made_up_by = |since| {
            let named = causes::named(causes::surge_id(dimension.letter(), key.as_bytes(), since), host);
            if named.is_empty() { named } else { format!("; most requests: {named}") }
        };
        let reason = match moment.turn {
            Turn::None => return,
            Turn::Begins => self.describe(dimension, key, moment),
            Turn::GoesOn => format!("{}{}", self.describe(dimension, key, moment), made_up_by(moment.pace.since)),
            Turn::Ends { buckets, peak, since } => {
                let lasted = buckets.max(1).saturating_mul(u64::from(self.limits.millis)).div_ceil(1000);
                let (name, seconds, usual) = (name(dimension, key), self.seconds(), moment.pace.usual);
                let causes = made_up_by(since);
                format!(
                    "end of the surge of {name} after {lasted} s with up to {peak} requests in {seconds} s; {usual:.1} are usual{causes}"
                )
            }
        };
        let decision = Decision::new(Action::Log, exchange.score.total(), reason);
        let event = SecurityEvent {
            category: Category::Traffic,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }

    /// The length of a bucket in seconds.
    fn seconds(&self) -> f64 {
        f64::from(self.limits.millis) / 1000.0
    }
}

fn name(dimension: Dimension, key: &str) -> String {
    match dimension {
        Dimension::Route if key.is_empty() => "requests without a route".to_owned(),
        Dimension::Route => format!("the route `{key}`"),
        Dimension::Source => format!("the source {key}"),
        Dimension::Consumer => format!("the consumer {key}"),
        Dimension::Asn => format!("the network {key}"),
    }
}

//! What the WAF tells the threat response.

use exchange::{Exchange, Host, Signal};
use seclang::MatchedRule;

use crate::{PLUGIN, State, Waf};

/// The detector, as signals name it.
const SOURCE: &str = "waf.seclang";

impl Waf {
    /// Matches that denied nothing still count.
    pub(crate) fn contribute(&self, state: &State, exchange: &mut Exchange, host: &dyn Host) {
        let matches = state.transaction.matched_rules();
        // What denied something is a signal already; where nothing is denied, it is a match like any other.
        let counts = |rule: &&MatchedRule| rule.logged && (!rule.disruptive || !self.step.block);
        let Some(found) = matches.iter().find(counts) else {
            return;
        };
        let more = matches.iter().filter(counts).count() - 1;
        let mut detail = format!("rule {}: {}", found.rule_id, String::from_utf8_lossy(&found.msg));
        if more > 0 {
            detail.push_str(&format!(" and {more} more"));
        }
        self.signal("waf:match", self.step.match_weight, detail, exchange, host);
    }

    pub(crate) fn signal(
        &self,
        tag: &'static str,
        weight: f64,
        detail: String,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if self.step.contribute {
            exchange.score.add(Signal {
                source: SOURCE.into(),
                kind: PLUGIN.name.into(),
                weight,
                confidence: 1.0,
                tag: tag.into(),
                detail,
                at: host.now(),
            });
        }
    }
}

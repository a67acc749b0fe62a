//! Signals and events of patterns.

use exchange::{About, Action, Category, Decision, Exchange, Host, Outcome, SecurityEvent, Signal, Table};

use crate::attempt::Attempt;
use crate::patterns::{Finding, Pattern, Subject};
use crate::{LoginGuard, PLUGIN};

/// What was reported within the last minute.
const REPORTED: Table = Table { name: "login.reported", shards: 32, entries_per_shard: 64 };
/// How long a pattern of one subject is not reported again, in milliseconds.
const REPORT_AFTER: u64 = 60_000;
/// What is added to a weight past twice a threshold.
const PAST_TWICE: f64 = 20.0;

impl LoginGuard {
    /// Adds a pattern to the score, once for each login.
    pub(crate) fn signal(&self, finding: &Finding, attempt: &mut Attempt, exchange: &mut Exchange, host: &dyn Host) {
        let (pattern, tag) = (finding.pattern, finding.pattern.tag());
        if attempt.signalled.contains(&tag) {
            return;
        }
        attempt.signalled.push(tag);
        let weight = pattern.weight(&self.limits);
        // A weight of 0 is an operator's: it stays.
        let more = if finding.times >= 2.0 && weight > 0.0 { PAST_TWICE } else { 0.0 };
        exchange.score.add(Signal {
            source: "login".into(),
            kind: "login".into(),
            weight: (weight + more).min(100.0),
            confidence: 1.0,
            tag: tag.into(),
            detail: self.describe(finding),
            at: host.now(),
        });
    }

    /// Emits the event of a pattern, once a minute for each source, network, account or password.
    pub(crate) fn report(&self, finding: &Finding, attempt: &Attempt, exchange: &mut Exchange, host: &dyn Host) {
        let subject: &[u8] = match finding.subject {
            Subject::Source => &attempt.source,
            Subject::Network => &attempt.network,
            Subject::Password => &attempt.seen.sprayed,
            Subject::Account => &attempt.seen.attacked,
            Subject::All => b"all",
        };
        let key = [finding.pattern.tag().as_bytes(), &[finding.subject as u8], subject].concat();
        if !REPORTED.is_due(host.shared(), &key, host.now(), REPORT_AFTER) {
            return;
        }
        let mut reason = self.describe(finding);
        let account = attempt.account().filter(|_| finding.subject == Subject::Account);
        let account = account.and_then(|account| self.pseudonyms.shown(account)).unwrap_or_default();
        if !account.is_empty() {
            reason.push_str("; the account is ");
            reason.push_str(&account);
        }
        let decision = Decision::new(Action::Log, exchange.score.total(), reason);
        let decision = decision.about(About::pattern(finding.pattern.tag(), account));
        let event = SecurityEvent {
            category: Category::Login,
            outcome: Outcome::Observed,
            module: PLUGIN.name,
            message: &decision.reason,
            decision: &decision,
        };
        exchange.emit(&event, host);
    }

    fn describe(&self, finding: &Finding) -> String {
        let name = match finding.pattern {
            Pattern::Stuffing => "credential stuffing",
            Pattern::Spraying => "password spraying",
            Pattern::AccountAttack => "account under attack",
            Pattern::Takeover => "account takeover",
            Pattern::BreachedPassword => "breached password",
        };
        let detail = &finding.detail;
        match finding.pattern {
            Pattern::BreachedPassword => format!("{name}: {detail}"),
            _ => format!("{name}: {detail} (window {} s)", self.window_millis / 1000),
        }
    }
}

//! `SvcWafTrailEvent`: what the rules saw in one exchange.
//!
//! `matches` lists the first matches in detail, `rule_ids` the id of every logged match in its order (a rule that matched
//! twice is there twice), and `matched` counts them; both lists have an end, the count has none. `limits` lists the rules
//! that gave up at a limit, with the first value each gave up on: what they would have found is not known.

use exchange::{Exchange, Host, Metric, Table, Update, event_timestamp};
use seclang::{ExceededLimit, Intervention, MatchedRule, Transaction};
use serde_json::{Value, json};
use snapshot::WafStep;

/// The most rules that one event lists in detail.
const MAX_MATCHES: usize = 32;
/// The most rules that one event lists by their id.
const MAX_RULE_IDS: usize = 512;
/// The longest text of a match that is shown, in bytes. Values come from callers: enough to see what it was, no more.
const MAX_TEXT: usize = 256;

/// How long nothing is said about a rule again that gave up and matched nothing, in milliseconds.
const LIMIT_SILENCE: u64 = 60_000;

/// The rules that gave up lately. A rule that is pushed out is told of again, which is no harm.
const LIMITS: Table = Table { name: "waf.limits", shards: 4, entries_per_shard: 64 };

/// The event; `None` where no rule had anything to say.
pub(crate) fn event(
    step: &WafStep,
    transaction: &Transaction,
    blocked: Option<&Intervention>,
    exchange: &Exchange,
    host: &dyn Host,
) -> Option<Value> {
    let logged: Vec<&MatchedRule> = transaction.matched_rules().iter().filter(|rule| rule.logged).collect();
    let limits = transaction.exceeded_limits();
    limits.iter().for_each(|_| host.count(Metric::RuleLimits));
    // Callers choose the values: a request that makes a rule give up must not be an event every time.
    let news = limits.iter().filter(|limit| is_news(limit, host)).count();
    if logged.is_empty() && blocked.is_none() && news == 0 {
        return None;
    }
    let score = |name: &str| {
        let text = transaction.variable(b"TX", name.as_bytes())?;
        std::str::from_utf8(&text).ok()?.parse::<i64>().ok()
    };
    Some(json!({
        "@type": "SvcWafTrailEvent",
        "@id": format!("event_{:016x}", host.random()),
        "@timestamp": event_timestamp(host.now()),
        "config": { "id": step.id, "name": step.name },
        "blocking": step.block,
        "block": blocked.or_else(|| transaction.would_block().filter(|_| step.block)).map(|block| json!({
            "status": block.status,
            "rule_id": block.rule_id,
            "msg": text(&block.msg),
        })),
        "matches": logged.iter().take(MAX_MATCHES).map(|rule| found(rule)).collect::<Vec<_>>(),
        "rule_ids": logged.iter().take(MAX_RULE_IDS).map(|rule| rule.rule_id).collect::<Vec<_>>(),
        "matched": logged.len(),
        "limits": limits.iter().map(|limit| json!({
            "rule_id": limit.rule_id,
            "variable": text(&limit.variable),
            "values": limit.searches,
        })).collect::<Vec<_>>(),
        "scores": {
            "inbound": score("blocking_inbound_anomaly_score").or_else(|| score("anomaly_score")),
            "outbound": score("blocking_outbound_anomaly_score").or_else(|| score("outbound_anomaly_score")),
        },
        "source": { "ip": exchange.caller.ip, "apikey": exchange.caller.apikey, "user": exchange.caller.user },
        "route": { "id": *exchange.route.id, "name": *exchange.route.name, "node": *exchange.route.node },
        "http": exchange.http(),
    }))
}

/// Whether nothing was said about the rule's limits for a while, on this node. It is about to be.
fn is_news(limit: &ExceededLimit, host: &dyn Host) -> bool {
    let (mut news, now) = (false, host.now());
    let told = LIMITS.update(host.shared(), &limit.rule_id.to_le_bytes(), now, |entry| {
        news = entry.is_none();
        if news { Update::Put(Vec::new(), now.saturating_add(LIMIT_SILENCE)) } else { Update::Keep }
    });
    told.is_ok() && news
}

fn found(rule: &MatchedRule) -> Value {
    json!({
        "rule_id": rule.rule_id,
        "phase": rule.phase,
        "msg": text(&rule.msg),
        "logdata": text(&rule.logdata),
        "severity": rule.severity.map(seclang::vocabulary::Severity::name),
        "tags": rule.tags.iter().map(|tag| text(tag)).collect::<Vec<_>>(),
        "variable": text(&rule.variable),
        "value": text(&rule.value),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes)).into_owned()
}

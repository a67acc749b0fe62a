//! `SvcWafTrailEvent`: what the rules saw in one exchange.
//!
//! `matches` lists the first matches in detail, as many as an event of 48 KiB has room for, `rule_ids` the id of every logged match in its order (a rule that matched
//! twice is there twice), and `matched` counts them, up to the 2,048 matches that the engine keeps. `limits` lists the rules
//! that gave up at a limit, with the first value each gave up on: what they would have found is not known. One with `cost`
//! is where the budget ended, and the phase with it. `uninspected` lists the collections that a limit cut short: what they
//! lack no rule has seen.

use std::borrow::Cow;

use crate::WafStep;
use exchange::{Exchange, Host, Metric, Table, Update, event_timestamp};
use seclang::{EngineMode, ExceededLimit, Intervention, MatchedRule, Uninspected};
use serde::Serialize;
use serde_json::Value;

use crate::State;

/// The most rules that one event lists in detail.
const MAX_MATCHES: usize = 32;
/// The most rules that one event lists by their id.
const MAX_RULE_IDS: usize = 512;
/// The longest text of a match that is shown, in bytes of JSON. Values come from callers: enough to see what it was, no more.
const MAX_TEXT: usize = 256;
/// The longest event, in bytes. Callers choose what rules find: a request must not take much of the room that the events of all share.
const MAX_LINE: usize = 48 * 1024;
/// How many limits an event keeps at least, if it is shortened.
const MAX_LIMITS: usize = 32;

/// How long nothing is said about a rule again that gave up and matched nothing, in milliseconds.
const LIMIT_SILENCE: u64 = 60_000;

/// The rules that gave up lately. A rule that is pushed out is told of again, which is no harm.
const LIMITS: Table = Table { name: "waf.limits", shards: 4, entries_per_shard: 64 };

/// The event as it is written: borrowed, because a refused request is not to cost more than it does already.
#[derive(Serialize)]
pub(crate) struct TrailEvent<'a> {
    #[serde(rename = "@type")]
    kind: &'static str,
    #[serde(rename = "@id")]
    id: String,
    #[serde(rename = "@timestamp")]
    timestamp: String,
    config: Config<'a>,
    /// Whether the WAF blocks: the configuration and the engine's mode, as rules left it.
    blocking: bool,
    /// The refusal.
    block: Option<Block<'a>>,
    /// The refusal that was demanded and not made.
    would_block: Option<Block<'a>>,
    matches: Vec<Match<'a>>,
    rule_ids: Vec<u64>,
    matched: usize,
    limits: Vec<Limit<'a>>,
    uninspected: Vec<LeftOut>,
    scores: Scores,
    source: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Value>,
    route: Route<'a>,
    http: Value,
}

#[derive(Serialize)]
struct Config<'a> {
    id: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct Block<'a> {
    status: u16,
    rule_id: u64,
    msg: Cow<'a, str>,
}

#[derive(Serialize)]
struct Match<'a> {
    rule_id: u64,
    phase: u8,
    msg: Cow<'a, str>,
    logdata: Cow<'a, str>,
    severity: Option<&'static str>,
    tags: Vec<Cow<'a, str>>,
    variable: Cow<'a, str>,
    value: Cow<'a, str>,
}

#[derive(Serialize)]
struct Limit<'a> {
    rule_id: u64,
    variable: Cow<'a, str>,
    values: u64,
    /// What the exchange had cost, where its budget ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

#[derive(Serialize)]
struct Cost {
    /// Units of work, and their ceiling.
    work: u64,
    work_ceiling: u64,
    /// Bytes of memory, and their ceiling.
    memory: u64,
    memory_ceiling: u64,
}

#[derive(Serialize)]
struct LeftOut {
    collection: &'static str,
    limit: &'static str,
    most: u64,
}

#[derive(Serialize)]
struct Scores {
    inbound: Option<i64>,
    outbound: Option<i64>,
}

#[derive(Serialize)]
struct Route<'a> {
    id: &'a str,
    name: &'a str,
    node: &'a str,
}

/// The event; `None` where no rule had anything to say.
pub(crate) fn event<'a>(
    step: &'a WafStep,
    state: &'a State,
    exchange: &'a Exchange,
    host: &dyn Host,
) -> Option<TrailEvent<'a>> {
    let State { transaction, blocked, unenforced, .. } = state;
    let would_block = unenforced.as_ref().or(transaction.would_block()).filter(|_| blocked.is_none());
    let logged: Vec<&MatchedRule> = transaction.matched_rules().iter().filter(|rule| rule.logged).collect();
    let limits = transaction.exceeded_limits();
    limits.iter().for_each(|_| host.count(Metric::RuleLimits));
    // Callers choose the values: a request that makes a rule give up must not be an event every time.
    let news = limits.iter().filter(|limit| is_news(limit, host)).count();
    let uninspected = transaction.uninspected();
    let silent = logged.is_empty() && blocked.is_none() && would_block.is_none() && uninspected.is_empty();
    if silent && news == 0 {
        return None;
    }
    let score = |name: &str| {
        let text = transaction.variable(b"TX", name.as_bytes())?;
        std::str::from_utf8(&text).ok()?.parse::<i64>().ok()
    };
    let block = |demanded: &'a Intervention| Block {
        status: demanded.status,
        rule_id: demanded.rule_id,
        msg: text(&demanded.msg),
    };
    let blocks = step.block && transaction.mode() == EngineMode::On;
    let limits = limits.iter().map(|limit| Limit {
        rule_id: limit.rule_id,
        variable: text(&limit.variable),
        values: limit.searches,
        cost: limit.spent.map(|spent| Cost {
            work: spent.work,
            work_ceiling: spent.work_ceiling,
            memory: spent.memory,
            memory_ceiling: spent.memory_ceiling,
        }),
    });
    Some(TrailEvent {
        kind: "SvcWafTrailEvent",
        id: format!("event_{:016x}", host.random()),
        timestamp: event_timestamp(host.now()),
        config: Config { id: &step.id, name: &step.name },
        blocking: blocked.is_some() || (blocks && would_block.is_none()),
        block: blocked.as_ref().map(block),
        would_block: would_block.map(block),
        matches: logged.iter().take(MAX_MATCHES).map(|rule| found(rule)).collect(),
        rule_ids: logged.iter().take(MAX_RULE_IDS).map(|rule| rule.rule_id).collect(),
        matched: logged.len(),
        limits: limits.collect(),
        uninspected: uninspected.iter().map(left_out).collect(),
        scores: Scores {
            inbound: score("blocking_inbound_anomaly_score").or_else(|| score("anomaly_score")),
            outbound: score("blocking_outbound_anomaly_score").or_else(|| score("outbound_anomaly_score")),
        },
        source: exchange.caller.source(),
        labels: exchange.caller.labels.event(),
        route: Route { id: &exchange.route.id, name: &exchange.route.name, node: &exchange.route.node },
        http: exchange.http(),
    })
}

/// Whether nothing was said about the rule's limits for a while, on this node. It is about to be.
fn is_news(limit: &ExceededLimit, host: &dyn Host) -> bool {
    // A whole budget costs more than an event does.
    if limit.spent.is_some() {
        return true;
    }
    let (mut news, now) = (false, host.now());
    let told = LIMITS.update(host.shared(), &limit.rule_id.to_le_bytes(), now, |entry| {
        news = entry.is_none();
        if news { Update::Put(Vec::new(), now.saturating_add(LIMIT_SILENCE)) } else { Update::Keep }
    });
    told.is_ok() && news
}

fn left_out(found: &Uninspected) -> LeftOut {
    LeftOut { collection: found.collection, limit: found.limit, most: found.most }
}

fn found(rule: &MatchedRule) -> Match<'_> {
    Match {
        rule_id: rule.rule_id,
        phase: rule.phase,
        msg: text(&rule.msg),
        logdata: text(&rule.logdata),
        severity: rule.severity.map(seclang::vocabulary::Severity::name),
        tags: rule.tags.iter().map(|tag| text(tag)).collect(),
        variable: text(&rule.variable),
        value: text(&rule.value),
    }
}

impl TrailEvent<'_> {
    /// The event as a line of JSON. If it has more than 48 KiB, it is shortened: first `limits` loses its last entries, down to 32, then
    /// `matches` its last ones, until the line fits. `matched` counts the matches that are left out as well. `None` if it cannot be written.
    pub(crate) fn line(mut self) -> Option<Vec<u8>> {
        let line = serde_json::to_vec(&self).ok()?;
        let mut excess = line.len().saturating_sub(MAX_LINE);
        if excess == 0 {
            return Some(line);
        }
        while self.limits.len() > MAX_LIMITS && excess > 0 {
            excess = excess.saturating_sub(length(&self.limits.pop()));
        }
        while excess > 0
            && let Some(last) = self.matches.pop()
        {
            excess = excess.saturating_sub(length(&last));
        }
        serde_json::to_vec(&self).ok()
    }
}

/// The length of an item as JSON, in bytes.
fn length(item: &impl Serialize) -> usize {
    serde_json::to_vec(item).map_or(0, |json| json.len())
}

/// The beginning of a text, as much as has room in JSON.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let shown = String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes));
    let mut length = 0_usize;
    let beyond = shown.char_indices().find(|(_, char)| {
        length = length.saturating_add(escaped(*char));
        length > MAX_TEXT
    });
    let Some((end, _)) = beyond else { return shown };
    match shown {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

/// How many bytes a character has in JSON.
fn escaped(char: char) -> usize {
    match char {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_its_length_in_json() {
        for (bytes, characters) in [
            ("x".repeat(300).into_bytes(), 256),
            (vec![1; 300], 42),
            ("\n\"".repeat(150).into_bytes(), 128),
            ("é".repeat(300).into_bytes(), 128),
            (vec![0xff; 300], 85),
            (b"short \x01".to_vec(), 7),
        ] {
            let text = text(&bytes);
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(text.chars().count(), characters, "{json}");
            assert!(json.len() <= MAX_TEXT + 2, "{json}");
        }
    }
}

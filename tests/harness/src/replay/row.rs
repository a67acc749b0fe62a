//! A report's row from what became of an exchange.

use exchange::{Caller, Headers};
use recording::Entry;
use report::{Effect, Row, Rule, Signal};
use serde_json::Value;
use snapshot::IdentitySource;

use proxy_host::Finished;
use proxy_host::traffic::{Outcome, Request};

/// The most bytes of a path that a row has.
const MAX_PATH: usize = 2048;
/// The most bytes of any other text from outside.
const MAX_TEXT: usize = 512;
/// The plugin whose trail events have no module.
const WAF: &str = "waf";
/// What the suite's filters say when they answer.
const OWN_REPLY: &str = "palisade";

/// How callers are named.
#[derive(Debug, Clone, Default)]
pub struct Naming {
    /// What identifies a caller, as the snapshot has it.
    pub identity: IdentitySource,
}

/// What is known of an entry before its exchange is over.
#[derive(Debug)]
pub(super) struct Opened {
    row: Row,
}

impl Naming {
    /// The row of an entry that begins at a time, as far as it is known.
    pub(super) fn open(&self, entry: &Entry, at: u64) -> Opened {
        let request = &entry.exchange.request;
        let text = |name: &str, limit| printable(request.header(name).unwrap_or_default(), limit);
        let row = Row {
            id: printable(entry.place.to_string().as_bytes(), MAX_PATH),
            at,
            method: text(":method", MAX_TEXT),
            host: text(":authority", MAX_TEXT),
            path: text(":path", MAX_PATH),
            caller: printable(self.caller(request).as_bytes(), MAX_TEXT),
            route: printable(request.route.as_bytes(), MAX_TEXT),
            recorded_status: entry.status,
            action: "none".to_owned(),
            notes: entry.notes.iter().map(|note| printable(note.as_bytes(), MAX_TEXT)).collect(),
            ..Row::default()
        };
        Opened { row }
    }

    /// As the filters name it: by key, else by user, else by address. Nothing in a recording was verified but api keys that the
    /// configuration knows; unverified claims identify no caller.
    fn caller(&self, request: &Request) -> String {
        let path = request.header(":path").unwrap_or_default();
        let query = path.iter().position(|&byte| byte == b'?').and_then(|at| path.get(at + 1..)).unwrap_or_default();
        let headers = Headers::new(&request.headers);
        let caller = Caller::read(&self.identity, request.peer.as_bytes(), &headers, query, &|_| None);
        match (caller.apikey, caller.user) {
            (Some(key), _) => format!("apikey:{key}"),
            (None, Some(user)) => format!("user:{user}"),
            (None, None) => caller.ip,
        }
    }
}

impl Opened {
    /// The whole row.
    pub(super) fn close(self, finished: &Finished) -> Row {
        let Finished { outcome, spent, notes, .. } = finished;
        let mut row = self.row;
        row.notes.extend(notes.iter().map(|note| printable(note.as_bytes(), MAX_TEXT)));
        row.status = outcome.status;
        row.held_millis = outcome.held_millis;
        row.micros = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        let of = |kind: &'static str| outcome.events.iter().filter(move |event| event["@type"] == kind);
        // The last word is the one that was kept; a refusal outweighs what was only observed.
        let blocked = of("SvcSecurityEvent").rfind(|event| event["event"]["outcome"] == "blocked");
        if let Some(event) = blocked.or_else(|| of("SvcSecurityEvent").next_back()) {
            row.action = line(&event["decision"]["action"]);
            row.score = event["decision"]["score"].as_f64().unwrap_or(0.0);
            row.reason = line(&event["decision"]["reason"]);
            row.plugin = line(&event["event"]["module"]);
            row.signals = list(&event["threat"]["signals"]).map(signal).collect();
            row.held_millis = row.held_millis.max(held(event, outcome));
        }
        for event in of("SvcWafTrailEvent") {
            if row.plugin.is_empty() {
                row.plugin = WAF.to_owned();
            }
            let known =
                list(&event["matches"]).filter_map(|found| Some((found["rule_id"].as_u64()?, line(&found["msg"]))));
            let others = list(&event["rule_ids"]).filter_map(|id| Some((id.as_u64()?, String::new())));
            for (id, msg) in known.chain(others) {
                if row.rules.iter().all(|rule| rule.id != id) {
                    row.rules.push(Rule { id, msg });
                }
            }
        }
        row.effect = effect(outcome, &row);
        if let Some(fault) = &outcome.fault {
            let text = format!("{} in {}\n{}", fault.request, fault.callback, fault.message);
            // Lines stay lines.
            row.fault =
                Some(text.lines().map(|line| printable(line.as_bytes(), MAX_PATH)).collect::<Vec<_>>().join("\n"));
        }
        if let Some(reply) = outcome.local_reply.as_ref().filter(|reply| reply.details != OWN_REPLY) {
            let details = printable(reply.details.as_bytes(), MAX_TEXT);
            if row.reason.is_empty() {
                row.reason = details;
            } else if !row.reason.contains(&details) {
                row.notes.push(format!("answered by `{details}`"));
            }
        } else if outcome.stalled && row.reason.is_empty() {
            row.reason = "a filter held it and never let it go on".to_owned();
        } else if outcome.status == 0 && row.reason.is_empty() {
            row.reason = "the connection was closed without an answer".to_owned();
        }
        row
    }
}

fn effect(outcome: &Outcome, row: &Row) -> Effect {
    if outcome.fault.is_some() || outcome.stalled {
        Effect::Failed
    } else if (outcome.local_reply.is_some() || outcome.status == 0) && row.action != "challenge" {
        Effect::Blocked
    } else if outcome.local_reply.is_some() || row.held_millis > 0 {
        Effect::Slowed
    } else if !outcome.events.is_empty() {
        Effect::Observed
    } else {
        Effect::Passed
    }
}

/// How long a gateway with a clock of its own held the exchange: what was decided, since it was not measured.
fn held(event: &Value, outcome: &Outcome) -> u64 {
    let enforced = event["decision"]["enforced"] == true && outcome.held_millis == 0 && outcome.filter_state.is_empty();
    if enforced { event["decision"]["held_ms"].as_u64().unwrap_or(0) } else { 0 }
}

fn signal(signal: &Value) -> Signal {
    let name = [&signal["tag"], &signal["kind"], &signal["source"]].into_iter().map(line).find(|name| !name.is_empty());
    Signal { name: name.unwrap_or_default(), weight: signal["effective_weight"].as_f64().unwrap_or(0.0) }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn line(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default().as_bytes(), MAX_TEXT)
}

/// Bytes as text that does nothing to a terminal, of at most `limit` bytes of them: control characters, marks that turn the
/// direction of writing or cannot be seen, and what is no UTF-8 are escaped.
#[must_use]
pub fn printable(bytes: &[u8], limit: usize) -> String {
    let cut = bytes.len() > limit;
    let mut out = String::new();
    for chunk in bytes.get(..limit).unwrap_or(bytes).utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                    out.extend(character.escape_unicode());
                }
                _ if character.is_control() => out.extend(character.escape_default()),
                _ => out.push(character),
            }
        }
        out.push_str(&chunk.invalid().escape_ascii().to_string());
    }
    if cut {
        out.push('…');
    }
    out
}

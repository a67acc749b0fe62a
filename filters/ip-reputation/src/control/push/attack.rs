//! What of an event of a gateway is worth an alert.

use std::net::IpAddr;

use base::identity::canonical;
use serde::Deserialize;
use serde_json::Value;

use crate::{OTHERS, REPORTED, SOURCE};

/// The categories of refusals that are alerts: what callers do. A caller that is refused for a ban that stands, for its volume or for a
/// contract is not told of.
const CATEGORIES: [&str; 6] = ["threat", "honeypot", "fail2ban", "login", "upload", "objects"];
/// The longest text of an event that is passed on, in characters.
const MAX_TEXT: usize = 256;
/// The rules and the tags of an event that are passed on, at most.
const MAX_LISTED: usize = 16;
/// An event is not older than this when it comes, in milliseconds, whatever the clock of its gateway says.
const MAX_AGE: u64 = 3_600_000;

/// An attack as an alert has it. A gateway sends the event and a caller chooses much of it: texts are bounded, and nothing is believed
/// but the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attack {
    /// When it was, in milliseconds since 1970.
    pub(super) at: u64,
    pub(super) address: IpAddr,
    pub(super) way: Way,
    /// What is known of it, each with its name.
    pub(super) facts: Vec<(&'static str, String)>,
    /// The ids of the feeds and bouncers that list the address, as far as the event says.
    listed_by: Vec<String>,
    message: String,
}

/// How an attack was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Way {
    /// A request was refused.
    Refused,
    /// Rules refused a request: it is told of where a bouncer asks for it.
    Rules,
    /// Rules have matched, and refuse nothing: it is told of where a bouncer asks for it.
    Monitored,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "@type")]
    kind: String,
    #[serde(rename = "@timestamp")]
    timestamp: String,
    event: Classed,
    source: Source,
    threat: Threat,
    route: Route,
    http: Http,
    decision: Decision,
    message: Option<String>,
    blocking: bool,
    block: Option<Match>,
    would_block: Option<Match>,
    matches: Vec<Match>,
    rule_ids: Vec<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Classed {
    category: Option<String>,
    action: Option<String>,
    outcome: Option<String>,
    module: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Source {
    ip: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Threat {
    score: Value,
    tags: Vec<String>,
    signals: Vec<Signal>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Signal {
    source: String,
    kind: String,
    effective_weight: f64,
    tag: String,
    detail: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Route {
    name: Option<String>,
    node: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Http {
    method: Option<String>,
    host: Option<String>,
    path: Option<String>,
    status: Option<u16>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Decision {
    enforced: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Match {
    msg: String,
}

impl Attack {
    /// Reads an event; `None` for one that is no attack, or none with an address. `has_trail` says of which modules trail events tell the
    /// refusals, `now` is in milliseconds since 1970.
    pub(super) fn read(line: &[u8], has_trail: impl Fn(&str) -> bool, now: u64) -> Option<Attack> {
        let event: Event = serde_json::from_slice(line).ok()?;
        let address = canonical(event.source.ip.as_deref()?.parse().ok()?);
        let way = if event.kind == "SvcWafTrailEvent" { event.of_rules()? } else { event.of_refusal(has_trail)? };
        let at = base::clock::rfc3339_millis(&event.timestamp).unwrap_or(now).clamp(now.saturating_sub(MAX_AGE), now);
        Some(Attack { at, address, way, listed_by: event.listed_by(), message: event.sentence(), facts: event.facts() })
    }

    /// Whether the service with these bouncers has told of the address itself.
    pub(super) fn is_known_to(&self, bouncers: &[String]) -> bool {
        self.listed_by.iter().any(|id| bouncers.contains(id))
    }

    /// A sentence for people.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

impl Event {
    fn of_rules(&self) -> Option<Way> {
        match (self.blocking, &self.block) {
            (true, Some(_)) => Some(Way::Rules),
            (true, None) => None,
            // An event without a match tells of a rule that gave up.
            (false, _) => (self.would_block.is_some() || !self.matches.is_empty()).then_some(Way::Monitored),
        }
    }

    fn of_refusal(&self, has_trail: impl Fn(&str) -> bool) -> Option<Way> {
        let is = |field: &Option<String>, words: &[&str]| field.as_deref().is_some_and(|word| words.contains(&word));
        let refused = is(&self.event.action, &["deny", "ban"]) && is(&self.event.outcome, &["blocked"]);
        let module = self.event.module.as_deref().unwrap_or_default();
        if !refused || !self.decision.enforced || !is(&self.event.category, &CATEGORIES) || has_trail(module) {
            return None;
        }
        let weighty = self.threat.signals.iter().filter(|signal| signal.effective_weight > 0.0);
        let (mut any, mut all_listed, mut all_rules) = (false, true, true);
        for signal in weighty {
            any = true;
            all_listed &= signal.source == SOURCE;
            all_rules &= signal.source.split('.').next().is_some_and(&has_trail);
        }
        let is_reported = self.threat.signals.iter().any(|signal| signal.source == SOURCE && signal.kind == REPORTED);
        match () {
            // The caller is refused for what others say of it, and for nothing else.
            () if module == crate::PLUGIN.name || (any && all_listed) => is_reported.then_some(Way::Refused),
            () if any && all_rules => Some(Way::Rules),
            () => Some(Way::Refused),
        }
    }

    /// As tags say, and where many list the address, the text of the signal that names the rest.
    fn listed_by(&self) -> Vec<String> {
        let rest = self.threat.signals.iter().find(|signal| signal.tag == OTHERS);
        let rest = rest.and_then(|signal| signal.detail.split_once(": ")).map_or("", |(_, ids)| ids);
        let tagged = self.threat.tags.iter().filter_map(|tag| tag.strip_prefix("reputation:"));
        tagged.chain(rest.split(", ")).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }

    fn sentence(&self) -> String {
        let rules = self.block.as_ref().or(self.would_block.as_ref()).or(self.matches.first());
        let own = self.message.as_deref().filter(|text| !text.is_empty());
        let text = own.or(rules.map(|rule| rule.msg.as_str()));
        cut(text.filter(|text| !text.is_empty()).unwrap_or("rules have matched"))
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let rules: Vec<String> = self.rule_ids.iter().take(MAX_LISTED).map(u64::to_string).collect();
        let tags: Vec<String> = self.threat.tags.iter().take(MAX_LISTED).map(|tag| cut(tag)).collect();
        let text = |field: &Option<String>| field.as_deref().map(cut).unwrap_or_default();
        let all = [
            ("source_ip", text(&self.source.ip)),
            ("http_verb", text(&self.http.method)),
            ("target_fqdn", text(&self.http.host)),
            ("http_path", text(&self.http.path)),
            ("http_status", self.http.status.map(|status| status.to_string()).unwrap_or_default()),
            ("category", text(&self.event.category)),
            ("action", text(&self.event.action)),
            ("module", text(&self.event.module)),
            ("score", if self.threat.score.is_number() { self.threat.score.to_string() } else { String::new() }),
            ("tags", cut(&tags.join(","))),
            ("rules", rules.join(",")),
            ("route", text(&self.route.name)),
            ("node", text(&self.route.node)),
            ("message", self.sentence()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// A text of bounded length, on one line.
fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

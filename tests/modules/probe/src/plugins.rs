//! The plugins of the filter, which tests link in as well. A configuration is JSON; see [`Config`].

use exchange::bans::{self, BanScope, NewBan};
use exchange::{
    Action, Body, BodyNeed, Build, Category, Decision, Exchange, Host, Outcome, Plugin, PluginDefinition, Refusal,
    ReplyBody, Role, SecurityEvent, Signal, Skip, SkipRight, Skipped, Slot, Verdict,
};
use serde::Deserialize;

#[path = "ask.rs"]
pub(crate) mod ask;
#[path = "change.rs"]
mod change;
#[path = "count.rs"]
mod count;
#[path = "report.rs"]
mod report;
#[path = "table.rs"]
mod table;

/// All plugins. Those of different roles do the same.
pub(crate) const PLUGINS: &[PluginDefinition] = &[
    PluginDefinition::new("probe-refuse", |config, build| make("probe-refuse", config, build)),
    PluginDefinition::new("probe-detect", |config, build| make("probe-detect", config, build)).role(Role::Detector),
    PluginDefinition::new("probe-enforce", |config, build| make("probe-enforce", config, build))
        .role(Role::Enforcement),
    PluginDefinition::new("probe-skip", |config, build| make("probe-skip", config, build)).may_skip(SkipRight::All),
    PluginDefinition::new("probe-skip-access", |config, build| make("probe-skip-access", config, build))
        .may_skip(SkipRight::Access),
    PluginDefinition::new("probe-observe", |config, build| make("probe-observe", config, build)),
    PluginDefinition::new("probe-ban", |config, build| make("probe-ban", config, build)),
    count::PLUGIN,
    change::PLUGIN,
    report::PLUGIN,
    table::PLUGIN,
    PluginDefinition::new("probe-ask", ask::make).may_skip(SkipRight::All),
    threat_gate::PLUGIN,
    threat_response::PLUGIN,
];

/// How much of a body is asked for, in bytes.
pub(crate) const LIMIT: usize = 1 << 16;

/// What a step does, and where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    at: Phase,
    /// The weight of a signal that is left first; 0 for none.
    #[serde(default)]
    weight: f64,
    refuse: Option<Refuse>,
    skip: Option<SkipConfig>,
    /// Bans the caller's address for so many milliseconds.
    ban: Option<u64>,
    /// The category of an event that is emitted first, with the outcome `observed`.
    observe: Option<String>,
    /// With a body, nothing of this is done if the body is this.
    unless_body: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    Access,
    Request,
    RequestBody,
    RequestPieces,
    Response,
    ResponseBody,
    Finish,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refuse {
    status: u16,
    #[serde(default)]
    category: String,
    #[serde(default)]
    scored: bool,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    /// Fills a body of bytes up to this length.
    #[serde(default)]
    length: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkipConfig {
    steps: String,
    #[serde(default)]
    plugins: Vec<String>,
    reason: String,
}

struct Probe {
    name: &'static str,
    config: Config,
}

fn make(name: &'static str, config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let config = serde_json::from_slice(config).map_err(|error| error.to_string())?;
    Ok(Box::new(Probe { name, config }))
}

impl Probe {
    fn verdict(&self, phase: Phase, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let config = &self.config;
        if config.at != phase {
            return Verdict::Pass;
        }
        if config.weight > 0.0 {
            exchange.score.add(Signal {
                source: "probe".into(),
                kind: "probe".into(),
                weight: config.weight,
                confidence: 1.0,
                tag: "probe:signal".into(),
                detail: String::new(),
                at: host.now(),
            });
        }
        if let Some(millis) = config.ban {
            let reason = "banned by a probe";
            bans::ban(exchange, &NewBan { scope: BanScope::Ip, millis, reason, score: 10.0 }, host);
        }
        if let Some(word) = &config.observe {
            emit_observed(self.name, category(word), "observed by a probe", exchange, host);
        }
        match (&config.refuse, &config.skip) {
            (Some(refuse), _) => Verdict::Refuse(refuse.refusal()),
            (None, Some(skip)) => Verdict::Skip(skip.skip()),
            (None, None) => Verdict::Pass,
        }
    }
}

impl Probe {
    fn with_body(&self, phase: Phase, body: Body<'_>, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        match &self.config.unless_body {
            Some(expected) if body.complete && body.bytes == expected.as_bytes() => Verdict::Pass,
            _ => self.verdict(phase, exchange, host),
        }
    }
}

impl Refuse {
    pub(crate) fn refusal(&self) -> Refusal {
        let refusal = Refusal::new(self.status, category(&self.category), "refused by a probe");
        let refusal = if self.scored { refusal.scored() } else { refusal };
        let refusal = self.headers.iter().fold(refusal, |refusal, (name, value)| refusal.header(name, value.as_str()));
        refusal.body(match self.body.as_str() {
            "json" => ReplyBody::Json(vec![("error", "refused".to_owned())]),
            "html" => ReplyBody::Html(b"<p>refused</p>".to_vec()),
            "bytes" => {
                let bytes = if self.length > 0 { vec![b'x'; self.length] } else { vec![b'a', 0x1, b'z'] };
                ReplyBody::Bytes { content_type: "application/octet-stream", bytes }
            }
            _ => ReplyBody::Text,
        })
    }
}

impl SkipConfig {
    pub(crate) fn skip(&self) -> Skip {
        Skip { steps: self.skipped(), reason: self.reason.clone() }
    }

    fn skipped(&self) -> Skipped {
        match self.steps.as_str() {
            "all" => Skipped::All,
            "access" => Skipped::Access,
            "plugins" => Skipped::Plugins(self.plugins.iter().map(|name| name.clone().into()).collect()),
            _ => Skipped::Detectors,
        }
    }
}

pub(crate) fn emit_observed(module: &str, category: Category, message: &str, exchange: &mut Exchange, host: &dyn Host) {
    let decision = Decision::new(Action::Log, exchange.score.total(), message);
    let outcome = Outcome::Observed;
    exchange.emit(&SecurityEvent { category, outcome, module, message, decision: &decision }, host);
}

pub(crate) fn category(word: &str) -> Category {
    let all = [
        Category::Honeypot,
        Category::Fail2ban,
        Category::Traffic,
        Category::Api,
        Category::Upload,
        Category::Login,
        Category::Objects,
        Category::Leakage,
        Category::SensitiveData,
    ];
    all.into_iter().find(|category| category.word() == word).unwrap_or(Category::Threat)
}

impl Plugin for Probe {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.verdict(Phase::Access, exchange, host)
    }

    fn request(&self, exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.config.at {
            Phase::RequestBody if has_body => Verdict::NeedBody(BodyNeed { limit: LIMIT }),
            _ => self.verdict(Phase::Request, exchange, host),
        }
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.with_body(Phase::RequestBody, body, exchange, host)
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.config.at {
            Phase::ResponseBody if has_body => Verdict::NeedBody(BodyNeed { limit: LIMIT }),
            _ => self.verdict(Phase::Response, exchange, host),
        }
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.with_body(Phase::ResponseBody, body, exchange, host)
    }

    fn finish(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) {
        self.verdict(Phase::Finish, exchange, host);
    }
}

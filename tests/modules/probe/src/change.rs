//! A plugin that changes messages, and shows what it sees of them.

use exchange::{Body, BodyNeed, Build, Exchange, HeaderChange, Headers, Host, Plugin, PluginDefinition, Slot, Verdict};
use serde::Deserialize;

use super::{LIMIT, Phase, Refuse, category, emit_observed};

pub(crate) const PLUGIN: PluginDefinition = PluginDefinition::new("probe-change", build);

/// What it does in one phase, in this order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    at: Phase,
    /// Headers of the request, and of the response, whose values an event shows.
    #[serde(default)]
    show: Vec<String>,
    #[serde(default)]
    show_response: Vec<String>,
    #[serde(default)]
    request: Vec<Change>,
    #[serde(default)]
    response: Vec<Change>,
    status: Option<u16>,
    /// The body in place of the one in hand.
    replace: Option<String>,
    refuse: Option<Refuse>,
    /// Shows this header of the response's trailers.
    #[serde(default)]
    trailer: String,
}

/// A word (`set`, `add`, `remove`, or `many` for as many additions as the value says), a name and a value.
#[derive(Deserialize)]
struct Change(String, String, #[serde(default)] String);

struct Changes(Config);

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    Ok(Box::new(Changes(serde_json::from_slice(config).map_err(|error| error.to_string())?)))
}

impl Change {
    fn changes(&self) -> Vec<HeaderChange> {
        let Self(word, name, value) = self;
        match word.as_str() {
            "set" => vec![HeaderChange::set(name, value.as_str())],
            "add" => vec![HeaderChange::add(name, value.as_str())],
            "many" => vec![HeaderChange::add(name, "x"); value.parse().unwrap_or(0)],
            _ => vec![HeaderChange::remove(name)],
        }
    }
}

/// `name: value` of each; several values of a name are joined by commas.
fn shown(names: &[String], headers: &Headers) -> String {
    let one = |name: &String| {
        let values: Vec<_> = headers.all(name).map(String::from_utf8_lossy).collect();
        format!("{name}: {}", values.join(", "))
    };
    names.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Changes {
    fn at(&self, phase: Phase, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let config = &self.0;
        if config.at != phase {
            return Verdict::Pass;
        }
        let empty = Headers::default();
        if !config.show.is_empty() {
            let message = shown(&config.show, &exchange.request.headers);
            emit_observed("probe-change", category("api"), &message, exchange, host);
        }
        if !config.show_response.is_empty() {
            let headers = exchange.response.as_ref().map_or(&empty, |response| &response.headers);
            let message = shown(&config.show_response, headers);
            emit_observed("probe-change", category("api"), &message, exchange, host);
        }
        for change in config.request.iter().flat_map(Change::changes) {
            exchange.change_request(change, host);
        }
        for change in config.response.iter().flat_map(Change::changes) {
            exchange.change_response(change, host);
        }
        if let Some(status) = config.status {
            exchange.set_response_status(status, host);
        }
        match (&config.refuse, &config.replace) {
            (Some(refuse), _) => Verdict::Refuse(refuse.refusal()),
            (None, Some(body)) => Verdict::ReplaceBody(body.clone().into_bytes()),
            (None, None) => Verdict::Pass,
        }
    }
}

impl Plugin for Changes {
    fn access(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.at(Phase::Access, exchange, host)
    }

    fn request(&self, exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::RequestBody if has_body => Verdict::NeedBody(BodyNeed { limit: LIMIT }),
            Phase::RequestPieces if has_body => Verdict::ReadBody(BodyNeed { limit: LIMIT }),
            _ => self.at(Phase::Request, exchange, host),
        }
    }

    fn request_body(&self, exchange: &mut Exchange, _: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::RequestPieces => self.at(Phase::RequestPieces, exchange, host),
            _ => self.at(Phase::RequestBody, exchange, host),
        }
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        match self.0.at {
            Phase::ResponseBody if has_body => Verdict::NeedBody(BodyNeed { limit: LIMIT }),
            _ => self.at(Phase::Response, exchange, host),
        }
    }

    fn response_body(&self, exchange: &mut Exchange, _: Body<'_>, _slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.at(Phase::ResponseBody, exchange, host)
    }

    fn inspects_response_trailers(&self) -> bool {
        !self.0.trailer.is_empty()
    }

    fn response_trailers(&self, exchange: &mut Exchange, trailers: &Headers, _slot: &mut Slot, host: &dyn Host) {
        let message = shown(std::slice::from_ref(&self.0.trailer), trailers);
        emit_observed("probe-change", category("api"), &message, exchange, host);
    }

    fn finish(&self, exchange: &mut Exchange, _slot: &mut Slot, host: &dyn Host) {
        self.at(Phase::Finish, exchange, host);
    }
}

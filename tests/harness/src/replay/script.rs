//! What clusters answer, as a file says.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use proxy_host::traffic::Headers;
use proxy_host::{Answer, Delivery, Outgoing, reset, timed_out, unreachable};

/// Rules for calls, a list in YAML or JSON; the first that matches answers. A call that none matches finds a cluster that
/// cannot be reached.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Script {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(rename = "match", default)]
    matches: Match,
    answer: Scripted,
}

/// Everything that is given has to fit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    kind: Option<Kind>,
    cluster: Option<String>,
    /// With its query; of gRPC `/SERVICE/METHOD`. A `*` at the end fits whatever follows.
    path: Option<String>,
    method: Option<String>,
}

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Http,
    Grpc,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scripted {
    /// An HTTP status, 200 without; a gRPC status, 0 without.
    status: Option<u32>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body or the gRPC message; the message of a gRPC status that is not 0.
    #[serde(default)]
    body: String,
    /// The same, for bytes that are no text.
    body_base64: Option<String>,
    #[serde(default)]
    after_millis: u64,
    fail: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Failure {
    /// As a cluster without a healthy host.
    Unreachable,
    /// The answer does not come in the filter's time.
    Timeout,
    /// The connection ends before the answer.
    Reset,
}

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is no script; with the file, the place, and what is wrong.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let script: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        for (at, rule) in script.rules.iter().enumerate() {
            rule.answer.check(rule.matches.kind).map_err(|why| format!("rule {}: {why}", at + 1))?;
        }
        Ok(script)
    }

    /// What comes back from a call.
    pub(super) fn call(&self, worker: u32, token: u32, kind: Kind, call: &Outgoing) -> Answer {
        let grpc = kind == Kind::Grpc;
        let (after_millis, delivery) = match self.find(kind, call) {
            Some(answer) => answer.deliver(grpc, u64::from(call.timeout_millis)),
            None => (0, unreachable(grpc)),
        };
        Answer { worker, token, after_millis, delivery }
    }

    /// What comes on a stream that was opened; `None` where no rule matches. The headers and a message, or the stream's end;
    /// one that gets a message stays open.
    pub(super) fn stream(&self, worker: u32, token: u32, call: &Outgoing) -> Option<Vec<Answer>> {
        let scripted = self.find(Kind::Grpc, call)?;
        let (after_millis, delivery) = scripted.deliver(true, 0);
        let begins = matches!(delivery, Delivery::Message(_)).then(|| Delivery::Metadata(scripted.headers()));
        let answer = |delivery| Answer { worker, token, after_millis, delivery };
        Some(begins.into_iter().chain([delivery]).map(answer).collect())
    }

    fn find(&self, kind: Kind, call: &Outgoing) -> Option<&Scripted> {
        self.rules.iter().find(|rule| rule.matches.fits(kind, call)).map(|rule| &rule.answer)
    }
}

impl Match {
    fn fits(&self, kind: Kind, call: &Outgoing) -> bool {
        let path = |path: &String| match path.strip_suffix('*') {
            Some(beginning) => call.path.starts_with(beginning),
            None => *path == call.path,
        };
        self.kind.is_none_or(|known| known == kind)
            && self.cluster.as_ref().is_none_or(|cluster| *cluster == call.cluster)
            && self.path.as_ref().is_none_or(path)
            && self.method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(&call.method))
    }
}

impl Scripted {
    fn check(&self, kind: Option<Kind>) -> Result<(), String> {
        if self.fail.is_some() && (self.status.is_some() || !self.body.is_empty() || !self.headers.is_empty()) {
            return Err("`fail` is the whole answer: leave out status, headers and body".to_owned());
        }
        if self.body_base64.is_some() && !self.body.is_empty() {
            return Err("give `body` or `body_base64`, not both".to_owned());
        }
        let is_http = |status: &u32| (100..=599).contains(status);
        if kind == Some(Kind::Http) && self.status.is_some_and(|status| !is_http(&status)) {
            return Err("an HTTP status is from 100 to 599".to_owned());
        }
        self.bytes().map(|_| ())
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        use base64::Engine as _;
        match &self.body_base64 {
            Some(text) => base64::engine::general_purpose::STANDARD
                .decode(text.trim())
                .map_err(|error| format!("`body_base64`: {error}")),
            None => Ok(self.body.clone().into_bytes()),
        }
    }

    fn headers(&self) -> Headers {
        let pair = |(name, value): (&String, &String)| (name.to_ascii_lowercase().into(), value.clone().into());
        self.headers.iter().map(pair).collect()
    }

    /// What comes, and when. A timeout of 0 is none.
    fn deliver(&self, grpc: bool, timeout: u64) -> (u64, Delivery) {
        let late = timeout > 0 && self.after_millis > timeout;
        match self.fail {
            Some(Failure::Timeout) => return (timeout.max(self.after_millis), timed_out(grpc)),
            _ if late => return (timeout, timed_out(grpc)),
            Some(Failure::Unreachable) => return (self.after_millis, unreachable(grpc)),
            Some(Failure::Reset) if grpc => return (self.after_millis, unreachable(true)),
            Some(Failure::Reset) => return (self.after_millis, reset()),
            None => {}
        }
        let body = self.bytes().unwrap_or_default();
        let delivery = match (grpc, self.status) {
            (true, None | Some(0)) => Delivery::Message(body),
            (true, Some(status)) => Delivery::Close(status, String::from_utf8_lossy(&body).into_owned()),
            (false, status) => {
                let status = status.unwrap_or(200).to_string().into_bytes();
                let mut headers: Headers = vec![(b":status".to_vec(), status)];
                headers.extend(self.headers());
                Delivery::Response { headers, body, trailers: Headers::new() }
            }
        };
        (self.after_millis, delivery)
    }
}

//! Known attacks: what a rule set catches, and must still catch with an exclusion.
//!
//! `attacks.json` is a list of objects:
//!
//! | field | meaning |
//! |---|---|
//! | `name` | unique; what it is |
//! | `category` | the kind of attack, or of what a response leaks |
//! | `family` | the number of the core rule set's file that catches it |
//! | `paranoia` | the lowest paranoia level at which that file's rules block it; default 1 |
//! | `payload` | text for any input |
//! | `writes` | names of files that servers run, for requests whose method is the input: the last segment of a path, or `Destination` |
//! | `request` | the request, as `utils/_test` takes it; default: a browser's GET with the payload in the query |
//! | `response` | the backend's response; its rules are those of the phases 3 and 4 |

mod inject;
mod variants;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::control::operations::trial::{TrialRequest, TrialResponse};

pub(crate) use super::target::Target;
pub(crate) use inject::{Spot, inject, inject_at, spots};
pub(crate) use variants::variants;

const TEXT: &str = include_str!("attacks.json");

/// The host that requests with a payload name.
const HOST: &str = "shop.example";
/// A browser that scores nothing at any paranoia level.
pub(crate) const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";

static ATTACKS: LazyLock<Vec<Attack>> = LazyLock::new(|| {
    // It is part of this build, whose tests read it.
    serde_json::from_str(TEXT).unwrap_or_default()
});

/// A known attack.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    /// Unique.
    pub(crate) name: String,
    /// `sqli`, `xss`, `data-leak`.
    pub(crate) category: String,
    /// The number of the core rule set's file: 942.
    pub(crate) family: u32,
    /// The lowest paranoia level at which the file's rules block it.
    #[serde(default = "lowest_level")]
    pub(crate) paranoia: u32,
    /// What can be put in any input.
    #[serde(default)]
    pub(crate) payload: Option<String>,
    /// What requests write that are refused for their method: files that servers run.
    #[serde(default)]
    pub(crate) writes: Vec<String>,
    #[serde(default)]
    request: Option<TrialRequest>,
    #[serde(default)]
    response: Option<TrialResponse>,
}

/// All of them, in a fixed order.
pub(crate) fn attacks() -> &'static [Attack] {
    &ATTACKS
}

fn lowest_level() -> u32 {
    1
}

// === impl Attack ===

impl Attack {
    /// The request as the attacker sends it.
    pub(crate) fn request(&self) -> TrialRequest {
        self.request.clone().unwrap_or_else(|| request_with(self.payload.as_deref()))
    }

    /// The response that leaks; `None` if the request is the attack.
    pub(crate) fn response(&self) -> Option<TrialResponse> {
        self.response.clone()
    }
}

/// A browser's request with the payload in its query.
pub(crate) fn request_with(payload: Option<&str>) -> TrialRequest {
    let fields = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<Map<String, Value>>()
    };
    TrialRequest {
        uri: "/search".to_owned(),
        query: payload.map(|payload| Value::Object(fields(&[("q", payload)]))),
        headers: Some(fields(&[("host", HOST), ("user-agent", USER_AGENT), ("accept", "*/*")])),
        ..TrialRequest::default()
    }
}

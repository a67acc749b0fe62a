//! Settings of breached passwords.

use kit::checks::{text, url, within};
use kit::{FieldProblem, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Breached passwords, for the login guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoginSettings {
    /// The file of breached passwords on the control plane: lines of the SHA-1 in hex, a colon and a count, sorted, as Have I Been Pwned
    /// publishes them; an absolute path of at most 1024 bytes. It is used in place of `breached_url`. Default: none.
    pub breached_file: String,
    /// The address that is asked for breached passwords, with the first five hex digits of the SHA-1 appended, such as
    /// `https://api.pwnedpasswords.com/range/`. Default: none.
    pub breached_url: String,
    /// `breached_url` may lead to a private address. Default false.
    pub allow_private: bool,
    /// How long a login waits for what is known of its password, in milliseconds, 1 to 2000. Default 200.
    #[schemars(range(min = 1, max = 2_000))]
    pub wait_millis: u32,
    /// The timeout of a call of `breached_url` in milliseconds, 100 to 30000. Default 5000.
    #[schemars(range(min = 100, max = 30_000))]
    pub timeout_millis: u32,
}

impl LoginSettings {
    /// Breached passwords can be looked up.
    #[must_use]
    pub fn has_source(&self) -> bool {
        !self.breached_file.is_empty() || !self.breached_url.is_empty()
    }
}

impl Default for LoginSettings {
    fn default() -> LoginSettings {
        LoginSettings {
            breached_file: String::new(),
            breached_url: String::new(),
            allow_private: false,
            wait_millis: 200,
            timeout_millis: 5_000,
        }
    }
}

impl Settings for LoginSettings {
    const FIELD: &'static str = "login";

    fn check(&self) -> Vec<FieldProblem> {
        let relative = !self.breached_file.is_empty() && !self.breached_file.starts_with('/');
        let relative = relative.then(|| {
            let message = format!("`{}` is not an absolute path", self.breached_file.escape_debug());
            FieldProblem::new("/breached_file", message).expected("such as `/var/lib/palisade/breached.txt`")
        });
        let found = [
            relative,
            text("/breached_file", &self.breached_file, 1024),
            if self.breached_url.is_empty() { None } else { url("/breached_url", &self.breached_url) },
            within("/wait_millis", self.wait_millis, 1..=2_000),
            within("/timeout_millis", self.timeout_millis, 100..=30_000),
        ];
        found.into_iter().flatten().collect()
    }
}

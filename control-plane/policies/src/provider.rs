//! `challenge-providers`: what a caller is asked to prove, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{required, text, url, within, word};
use kit::{Entity, FieldProblem, Head, References, Secret};

/// A challenge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChallengeProvider {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// The kind of challenge. Default pow.
    pub kind: ChallengeKind,
    /// The bits of work at score 0, 1 to 32. Default 18.
    pub difficulty_floor: u32,
    /// The bits of work at score 100, `difficulty_floor` to 32. Default 24.
    pub difficulty_ceiling: u32,
    /// The time to solve a challenge in seconds, 1 to 86400. Default 300.
    pub challenge_ttl_seconds: u64,
    /// The lifetime of a clearance in seconds, 1 to 2592000. Default 1800.
    pub clearance_ttl_seconds: u64,
    /// The cookie of the clearance. Default `svc-clearance`.
    pub cookie_name: String,
    /// The key that signs clearances, a secret; if empty, the control plane makes one.
    pub secret: Secret,
    /// The secret before that one, still accepted for clearances that it signed. Empty for none.
    pub previous_secret: Secret,
    /// The generation of the key that the control plane makes, 0 to 1000000; the one before it is still accepted. Default 0.
    pub secret_generation: u32,
    /// Whether a clearance is valid for one network only: the /24 of IPv4, the /64 of IPv6. Default true.
    pub bind_ip: bool,
    /// Whether a clearance is valid for one user agent only. Default true.
    pub bind_ua: bool,
    /// `pow`: whether a browser without JavaScript can wait instead. Default true.
    pub without_javascript: bool,
    /// The wait at score 0 in seconds, 2 to 600. Default 5.
    pub wait_floor_seconds: u32,
    /// The wait at score 100 in seconds, `wait_floor_seconds` to 600; a network gets at most one clearance by waiting in that
    /// time. Default 30.
    pub wait_ceiling_seconds: u32,
    /// The preset that it was created from; null for none. It determines what the page may load and how tokens are verified.
    pub preset_ref: Option<String>,
    /// `vendor`: the script of the widget.
    pub widget_script_url: String,
    /// `vendor`: the widget's HTML in the page, at most 65536 bytes. `{site_key}`, `{lang}` and `{nonce}` are replaced.
    pub widget_html: String,
    /// `vendor`: the form field that carries the widget's token.
    pub response_field: String,
    /// `vendor`: the address that verifies tokens.
    pub verify_url: String,
    /// `vendor`: the public key; without it no challenge is presented.
    pub site_key: String,
    /// `vendor`: the key of the verification, a secret.
    pub secret_key: Secret,
    /// The title of the page, at most 1024 bytes; empty for the built-in one.
    pub title: String,
    /// The text of the page, at most 65536 bytes; empty for the built-in text.
    pub message: String,
}

/// A kind of challenge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChallengeKind {
    /// The embedded proof of work.
    #[default]
    Pow,
    /// A widget of a vendor.
    Vendor,
}

/// The ids of the presets for widgets.
pub const CHALLENGE_PRESETS: [&str; 4] = ["friendly-captcha", "captcha-eu", "turnstile", "hcaptcha"];

// === impl ChallengeProvider ===

impl Default for ChallengeProvider {
    fn default() -> ChallengeProvider {
        ChallengeProvider {
            enabled: true,
            kind: ChallengeKind::default(),
            difficulty_floor: 18,
            difficulty_ceiling: 24,
            challenge_ttl_seconds: 300,
            clearance_ttl_seconds: 1800,
            cookie_name: "svc-clearance".to_owned(),
            secret: Secret::default(),
            previous_secret: Secret::default(),
            secret_generation: 0,
            bind_ip: true,
            bind_ua: true,
            without_javascript: true,
            wait_floor_seconds: 5,
            wait_ceiling_seconds: 30,
            preset_ref: None,
            widget_script_url: String::new(),
            widget_html: String::new(),
            response_field: String::new(),
            verify_url: String::new(),
            site_key: String::new(),
            secret_key: Secret::default(),
            title: String::new(),
            message: String::new(),
        }
    }
}

impl Entity for ChallengeProvider {
    const COLLECTION: &'static str = "challenge-providers";
    const KIND: &'static str = "challenge-provider";
    const OWN_KINDS: &'static [&'static str] = &["pow", "vendor"];

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(within("/difficulty_floor", self.difficulty_floor, 1..=32));
        problems.extend(within("/difficulty_ceiling", self.difficulty_ceiling, 1..=32));
        if self.difficulty_ceiling < self.difficulty_floor {
            let message = format!("{} is less than the floor of {}", self.difficulty_ceiling, self.difficulty_floor);
            problems.push(FieldProblem::new("/difficulty_ceiling", message).expected("at least `difficulty_floor`"));
        }
        problems.extend(within("/wait_floor_seconds", self.wait_floor_seconds, 2..=600));
        problems.extend(within("/wait_ceiling_seconds", self.wait_ceiling_seconds, 2..=600));
        if self.wait_ceiling_seconds < self.wait_floor_seconds {
            let (ceiling, floor) = (self.wait_ceiling_seconds, self.wait_floor_seconds);
            let message = format!("{ceiling} is less than the floor of {floor}");
            problems
                .push(FieldProblem::new("/wait_ceiling_seconds", message).expected("at least `wait_floor_seconds`"));
        }
        problems.extend(within("/challenge_ttl_seconds", self.challenge_ttl_seconds, 1..=86_400));
        problems.extend(within("/clearance_ttl_seconds", self.clearance_ttl_seconds, 1..=2_592_000));
        problems.extend(within("/secret_generation", self.secret_generation, 0..=1_000_000));
        if !is_token(&self.cookie_name, 128) {
            let message = format!("`{}` cannot be the name of a cookie", self.cookie_name.escape_debug());
            problems.push(FieldProblem::new("/cookie_name", message).expected("such as `svc-clearance`"));
        }
        if let Some(preset) = &self.preset_ref {
            problems.extend(word("/preset_ref", preset, &CHALLENGE_PRESETS));
        }
        for (pointer, address) in [("/widget_script_url", &self.widget_script_url), ("/verify_url", &self.verify_url)] {
            if !address.is_empty() {
                problems.extend(url(pointer, address));
            }
        }
        if self.enabled && self.kind == ChallengeKind::Vendor {
            let why = "a widget cannot be verified without it";
            problems.extend(required("/verify_url", !self.verify_url.is_empty(), why));
            problems.extend(required("/response_field", !self.response_field.is_empty(), why));
            problems.extend(required("/secret_key", self.secret_key.is_set(), why));
        }
        if !self.response_field.is_empty() && !is_token(&self.response_field, 128) {
            let message = format!("`{}` cannot be the name of a form field", self.response_field.escape_debug());
            problems.push(FieldProblem::new("/response_field", message).expected("such as `h-captcha-response`"));
        }
        problems.extend(text("/site_key", &self.site_key, 1024));
        problems.extend(text("/widget_html", &self.widget_html, 65_536));
        problems.extend(text("/title", &self.title, 1024));
        problems.extend(text("/message", &self.message, 65_536));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

/// Whether a text is a token of HTTP (RFC 9110, 5.6.2), as names of cookies are.
fn is_token(text: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

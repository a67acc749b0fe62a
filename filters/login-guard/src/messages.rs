//! What a snapshot says of the plugin, and the question about a password.

use prost::{Enumeration, Message};
use snapshot::Topic;

/// The configuration of a `login-guard` step.
#[derive(Clone, PartialEq, Message)]
pub struct LoginGuardStep {
    /// Where credentials are sent to.
    #[prost(message, repeated, tag = "1")]
    pub endpoints: Vec<Endpoint>,
    /// Methods of such requests, in upper case.
    #[prost(string, repeated, tag = "2")]
    pub methods: Vec<String>,
    /// Names of fields with the user.
    #[prost(string, repeated, tag = "3")]
    pub username_fields: Vec<String>,
    /// Names of fields with the password.
    #[prost(string, repeated, tag = "4")]
    pub password_fields: Vec<String>,
    /// Statuses of failures.
    #[prost(uint32, repeated, tag = "5")]
    pub failure_statuses: Vec<u32>,
    /// A text in the body of a response, or in the address of a redirect, that says that a login has failed; empty for none.
    #[prost(string, tag = "6")]
    pub failure_marker: String,
    /// The accounts that are counted together; empty for those of all routes without a realm.
    #[prost(string, tag = "7")]
    pub realm: String,
    /// The window in milliseconds.
    #[prost(uint64, tag = "8")]
    pub window_millis: u64,
    /// The thresholds and weights.
    #[prost(message, optional, tag = "9")]
    pub limits: Option<LoginLimits>,
    /// The most bytes of a body that are read.
    #[prost(uint64, tag = "10")]
    pub body_limit: u64,
    /// How long a request waits for what is known of its password, in milliseconds; 0 to not ask.
    #[prost(uint32, tag = "11")]
    pub breached_wait_millis: u32,
    /// What user names and passwords are hashed with; empty where the control plane keeps no secrets.
    #[prost(bytes = "vec", tag = "12")]
    pub secret: Vec<u8>,
}

/// Where credentials are sent to.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Endpoint {
    /// A regular expression on the path.
    #[prost(string, tag = "1")]
    pub pattern: String,
    /// What is done there.
    #[prost(enumeration = "EndpointKind", tag = "2")]
    pub kind: i32,
    /// The path in plain text, without a `*` at its end.
    #[prost(string, tag = "3")]
    pub path: String,
}

/// What is done at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum EndpointKind {
    /// A user logs in.
    Login = 0,
    /// An account is made.
    Registration = 1,
    /// A new password is asked for.
    Reset = 2,
}

/// Thresholds and weights.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct LoginLimits {
    /// Different failed logins of a source.
    #[prost(uint32, tag = "1")]
    pub source_failures: u32,
    /// Different accounts of the failed logins of a source, or of a password.
    #[prost(uint32, tag = "2")]
    pub source_accounts: u32,
    /// Different failed logins to an account.
    #[prost(uint32, tag = "3")]
    pub account_failures: u32,
    /// Different sources of the failed logins to an account.
    #[prost(uint32, tag = "4")]
    pub account_sources: u32,
    /// Accounts that a source with failures has logged in to.
    #[prost(uint32, tag = "5")]
    pub takeover_accounts: u32,
    /// The weight of credential stuffing.
    #[prost(double, tag = "6")]
    pub stuffing_weight: f64,
    /// The weight of password spraying.
    #[prost(double, tag = "7")]
    pub spraying_weight: f64,
    /// The weight of an account under attack.
    #[prost(double, tag = "8")]
    pub account_attack_weight: f64,
    /// The weight of a takeover.
    #[prost(double, tag = "9")]
    pub takeover_weight: f64,
    /// The weight of a breached password.
    #[prost(double, tag = "10")]
    pub breached_weight: f64,
}

/// The first 20 bits of the SHA-1 of a password: which breached passwords begin with them?
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct BreachedRange {
    /// The bits, below 2^20.
    #[prost(uint32, tag = "1")]
    pub prefix: u32,
}

/// The answer to [`BreachedRange`].
#[derive(Clone, PartialEq, Eq, Message)]
pub struct BreachedPasswords {
    /// Of the SHA-1 of each breached password the bytes 3 to 10 (the first four bits of the third are the last of the prefix), sorted,
    /// one after another.
    #[prost(bytes = "vec", tag = "1")]
    pub suffixes: Vec<u8>,
}

impl Topic for BreachedRange {
    const TOPIC: &'static str = "login.breached-range";
    type Answer = BreachedPasswords;
}

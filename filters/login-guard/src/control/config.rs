//! The plugin's configuration.

use exchange::Scope;
use kit::{FieldProblem, checks, typed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Endpoint, EndpointKind, LoginGuardStep, LoginLimits};

/// The most entries of `login_paths`.
const MAX_PATHS: usize = 64;
/// The most methods.
const MAX_METHODS: usize = 16;
/// The most names of fields.
const MAX_FIELDS: usize = 64;
/// The most failure statuses.
const MAX_STATUSES: usize = 64;
/// The largest `body_limit`, in bytes: 1 MiB.
const MAX_BODY_LIMIT: u64 = 1 << 20;
/// The highest threshold that is counted by a set of 256, and by one of 64; past twice a threshold the weight grows.
const MAX_WIDE: u32 = 128;
const MAX_NARROW: u32 = 32;

/// The configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginGuardConfig {
    /// Paths, or objects `{path, kind}`.
    pub login_paths: Vec<Value>,
    /// The methods of logins.
    pub methods: Vec<String>,
    /// Names of fields with the user.
    pub username_fields: Vec<String>,
    /// Names of fields with the password.
    pub password_fields: Vec<String>,
    /// Statuses of failed logins.
    pub failure_statuses: Vec<u16>,
    /// A text of failed logins in the body of a response, or in the address of a redirect.
    pub failure_marker: Option<String>,
    /// The accounts that are counted together.
    pub realm: Option<String>,
    /// The window: 60 to 86,400 seconds.
    pub window_seconds: u64,
    /// Different failed logins of a source.
    pub source_failures: u32,
    /// Different accounts of the failed logins of a source.
    pub source_accounts: u32,
    /// Different failed logins to an account.
    pub account_failures: u32,
    /// Different sources of them.
    pub account_sources: u32,
    /// The weight of credential stuffing.
    pub stuffing_weight: f64,
    /// The weight of password spraying.
    pub spraying_weight: f64,
    /// The weight of an account under attack.
    pub account_attack_weight: f64,
    /// Accounts that a suspicious source gets into.
    pub takeover_accounts: u32,
    /// The weight of a takeover.
    pub takeover_weight: f64,
    /// Passwords are looked up among breached ones.
    pub breached_passwords: bool,
    /// The weight of a breached password.
    pub breached_weight: f64,
    /// The most bytes of a body that are read.
    pub body_limit: u64,
}

/// An entry of `login_paths` that says more than a path.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathConfig {
    path: String,
    #[serde(default)]
    kind: PathKind,
}

/// What is done at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PathKind {
    /// A user logs in.
    #[default]
    Login,
    /// An account is made.
    Registration,
    /// A new password is asked for.
    Reset,
}

impl Default for LoginGuardConfig {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            login_paths: Vec::new(),
            methods: words(&["POST"]),
            username_fields: words(&[
                "username",
                "user",
                "login",
                "email",
                "user_name",
                "userName",
                "identifier",
                "account",
            ]),
            password_fields: words(&["password", "pass", "passwd", "pwd"]),
            failure_statuses: vec![401, 403],
            failure_marker: None,
            realm: None,
            window_seconds: 900,
            source_failures: 20,
            source_accounts: 10,
            account_failures: 10,
            account_sources: 5,
            stuffing_weight: 50.0,
            spraying_weight: 70.0,
            account_attack_weight: 40.0,
            takeover_accounts: 3,
            takeover_weight: 80.0,
            breached_passwords: false,
            breached_weight: 20.0,
            body_limit: 65_536,
        }
    }
}

impl LoginGuardConfig {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn read(config: &Map<String, Value>) -> Result<Self, Vec<FieldProblem>> {
        let config: Self = typed(Value::Object(config.clone())).map_err(|problem| vec![problem])?;
        let problems = config.problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn problems(&self) -> Vec<FieldProblem> {
        let mut problems = endpoints("/login_paths", &self.login_paths).err().unwrap_or_default();
        problems.extend(names("/methods", &self.methods, MAX_METHODS));
        problems.extend(names("/username_fields", &self.username_fields, MAX_FIELDS));
        problems.extend(names("/password_fields", &self.password_fields, MAX_FIELDS));
        problems.extend(checks::count("/failure_statuses", self.failure_statuses.len(), MAX_STATUSES));
        for (index, status) in self.failure_statuses.iter().enumerate() {
            problems.extend(checks::status(&format!("/failure_statuses/{index}"), *status));
        }
        for (pointer, text) in [("/failure_marker", &self.failure_marker), ("/realm", &self.realm)] {
            let text = text.as_deref().unwrap_or_default();
            problems.extend(checks::text(pointer, text, 256));
        }
        let more = [
            checks::within("/window_seconds", self.window_seconds, 60..=86_400),
            checks::within("/source_failures", self.source_failures, 1..=MAX_WIDE),
            checks::within("/source_accounts", self.source_accounts, 1..=MAX_WIDE),
            checks::within("/account_failures", self.account_failures, 1..=MAX_NARROW),
            checks::within("/account_sources", self.account_sources, 1..=MAX_NARROW),
            checks::weight("/stuffing_weight", self.stuffing_weight),
            checks::weight("/spraying_weight", self.spraying_weight),
            checks::weight("/account_attack_weight", self.account_attack_weight),
            checks::within("/takeover_accounts", self.takeover_accounts, 1..=MAX_WIDE),
            checks::weight("/takeover_weight", self.takeover_weight),
            checks::weight("/breached_weight", self.breached_weight),
            checks::within("/body_limit", self.body_limit, 1024..=MAX_BODY_LIMIT),
        ];
        problems.extend(more.into_iter().flatten());
        problems
    }

    /// The step, without what comes from settings and the store.
    ///
    /// # Errors
    /// A path is wrong.
    pub fn step(&self) -> Result<LoginGuardStep, Vec<FieldProblem>> {
        Ok(LoginGuardStep {
            endpoints: endpoints("/login_paths", &self.login_paths)?,
            methods: self.methods.iter().map(|method| method.to_ascii_uppercase()).collect(),
            username_fields: self.username_fields.clone(),
            password_fields: self.password_fields.clone(),
            failure_statuses: self.failure_statuses.iter().map(|status| (*status).into()).collect(),
            failure_marker: self.failure_marker.clone().unwrap_or_default(),
            realm: self.realm.clone().unwrap_or_default(),
            window_millis: self.window_seconds.saturating_mul(1000),
            limits: Some(LoginLimits {
                source_failures: self.source_failures,
                source_accounts: self.source_accounts,
                account_failures: self.account_failures,
                account_sources: self.account_sources,
                takeover_accounts: self.takeover_accounts,
                stuffing_weight: self.stuffing_weight,
                spraying_weight: self.spraying_weight,
                account_attack_weight: self.account_attack_weight,
                takeover_weight: self.takeover_weight,
                breached_weight: self.breached_weight,
            }),
            body_limit: self.body_limit,
            breached_wait_millis: 0,
            secret: Vec::new(),
        })
    }
}

/// The first of several problems.
pub(super) fn first(problems: Vec<FieldProblem>) -> FieldProblem {
    problems.into_iter().next().unwrap_or_else(|| FieldProblem::new("", "it cannot be read"))
}

/// The endpoints of `login_paths`, which lie at a pointer.
pub(super) fn endpoints(pointer: &str, paths: &[Value]) -> Result<Vec<Endpoint>, Vec<FieldProblem>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    problems.extend(checks::count(pointer, paths.len(), MAX_PATHS));
    for (index, entry) in paths.iter().enumerate() {
        match endpoint(entry) {
            Ok(endpoint) => found.push(endpoint),
            Err(problem) => problems.push(problem.under(&format!("{pointer}/{index}"))),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

fn endpoint(entry: &Value) -> Result<Endpoint, FieldProblem> {
    let (PathConfig { path, kind }, place) = match entry {
        Value::String(path) => (PathConfig { path: path.clone(), kind: PathKind::Login }, ""),
        Value::Object(_) => (typed(entry.clone())?, "/path"),
        _ => {
            let problem = FieldProblem::new("", "this is neither a path nor an object");
            return Err(problem.expected("`\"/login\"`, or `{\"path\": \"/signup\", \"kind\": \"registration\"}`"));
        }
    };
    let exact = path.strip_suffix('*');
    let name = exact.unwrap_or(&path);
    let sane = |byte: u8| byte.is_ascii_graphic() && !b"?#*".contains(&byte);
    if !name.starts_with('/') || name.len() > 1024 || !name.bytes().all(sane) {
        let problem = FieldProblem::new(place, format!("`{}` is not a path", path.escape_debug()));
        return Err(problem.expected("a path that begins with /, without query; a `*` at its end alone"));
    }
    let escaped: String = name.chars().flat_map(escaped).collect();
    // Frameworks answer `/login.json` as `/login`, and scripts what is behind their name.
    let end = match (exact, name.rsplit('/').next().unwrap_or_default()) {
        (Some(_), _) => "",
        (None, "") => "$",
        (None, last) if last.contains('.') => "(?:/.*)?$",
        (None, _) => r"(?:\.[A-Za-z0-9]{1,8})?/?$",
    };
    let pattern = format!("^{escaped}{end}");
    if let Err(error) = Scope::new(std::slice::from_ref(&pattern), &[]) {
        return Err(FieldProblem::new(place, error));
    }
    let kind = match kind {
        PathKind::Login => EndpointKind::Login,
        PathKind::Registration => EndpointKind::Registration,
        PathKind::Reset => EndpointKind::Reset,
    };
    Ok(Endpoint { pattern, kind: kind.into(), path: name.to_owned() })
}

/// A character of a path in a regular expression.
fn escaped(character: char) -> impl Iterator<Item = char> {
    let special = !character.is_ascii_alphanumeric() && !"/_-%".contains(character);
    special.then_some('\\').into_iter().chain([character])
}

/// What is wrong with a list of words.
fn names(pointer: &str, names: &[String], most: usize) -> Vec<FieldProblem> {
    let mut problems: Vec<FieldProblem> = checks::count(pointer, names.len(), most).into_iter().collect();
    if names.is_empty() {
        problems.push(FieldProblem::new(pointer, "the list is empty").expected("at least one entry"));
    }
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > 128 {
            let problem = FieldProblem::new(format!("{pointer}/{index}"), format!("a name of {} bytes", name.len()));
            problems.push(problem.expected("1 to 128 bytes"));
        }
    }
    problems
}

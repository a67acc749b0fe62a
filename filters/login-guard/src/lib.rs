//! The login guard: credential stuffing, password spraying, attacks on accounts and takeovers.
//!
//! It reads user names and passwords of requests to the login paths of its configuration, sees by the responses which logins failed, and
//! counts over all workers and nodes. User names and passwords stand nowhere but in the request itself: what is counted and what
//! events show are keyed hashes of them. The guard refuses nothing; its patterns are signals, on which a threat response acts.

mod attempt;
mod breached;
#[cfg(feature = "control")]
pub mod control;
mod counts;
mod credentials;
mod messages;
mod outcome;
mod patterns;
mod pseudonym;
mod report;

use std::cell::Cell;

use exchange::{
    Answer, Body, BodyNeed, Build, Exchange, HeaderChange, Host, LaxPath, PathReadings, Plugin, PluginDefinition,
    Reach, Request, Role, Scope, Slot, Verdict, codings, spelling,
};
use prost::Message as _;

use attempt::Attempt;
use breached::{Breached, Digest, Looked};
use counts::Counts;
use credentials::{Credentials, Fields, content_type, has_foreign_charset};
pub use messages::{BreachedPasswords, BreachedRange, Endpoint, EndpointKind, LoginGuardStep, LoginLimits};
use outcome::Outcomes;
use patterns::{Finding, Pattern, Subject, is_charged};
use pseudonym::Pseudonyms;

/// The plugin.
pub const PLUGIN: PluginDefinition = PluginDefinition::new("login-guard", build).role(Role::Detector);

struct LoginGuard {
    endpoints: Vec<Place>,
    methods: Vec<String>,
    fields: Fields,
    outcomes: Outcomes,
    limits: LoginLimits,
    window_millis: u64,
    body_limit: usize,
    pseudonyms: Pseudonyms,
    counts: Counts,
    breached: Option<Breached>,
    /// This worker has introduced what it counts.
    introduced: Cell<bool>,
    /// The successes with a password that this worker has seen, at most [`WITH_PASSWORD`].
    with_password: Cell<u32>,
}

/// Where an endpoint is.
struct Place {
    kind: EndpointKind,
    scope: Scope,
    /// Its path in plain text; empty if it is not known.
    path: String,
}

/// A request to an endpoint, and its credentials in front of the body, which is still to come.
struct Expected(Watched, Credentials);

/// An endpoint that a request is for.
#[derive(Debug, Clone, Copy)]
struct Watched {
    kind: EndpointKind,
    /// The path names the endpoint, whatever backend reads it. An answer to another one is no success of a login.
    surely: bool,
    /// Some backend takes the path for that of the endpoint. Others may name anything, an endpoint among it: they count where they have a
    /// user.
    reached: bool,
}

/// How many successes with a password there have to be before one without is none: an answer to a form without its password says
/// nothing of the user. Where the password has another name than the configuration's, none of them has one.
const WITH_PASSWORD: u32 = 20;

fn build(config: &[u8], _build: &mut Build<'_>) -> Result<Box<dyn Plugin>, String> {
    let step = LoginGuardStep::decode(config).map_err(|error| error.to_string())?;
    let endpoint = |endpoint: &Endpoint| {
        let scope = Scope::new(std::slice::from_ref(&endpoint.pattern), &[])?;
        Ok::<_, String>(Place { kind: endpoint.kind(), scope, path: endpoint.path.clone() })
    };
    Ok(Box::new(LoginGuard {
        endpoints: step.endpoints.iter().map(endpoint).collect::<Result<_, _>>()?,
        methods: step.methods,
        fields: Fields::new(step.username_fields, step.password_fields),
        outcomes: Outcomes::new(&step.failure_statuses, &step.failure_marker),
        limits: step.limits.ok_or("the login guard has no limits")?,
        window_millis: step.window_millis,
        body_limit: usize::try_from(step.body_limit).unwrap_or(usize::MAX),
        pseudonyms: Pseudonyms::new(step.secret),
        counts: Counts::new(step.window_millis, &step.realm)?,
        breached: (step.breached_wait_millis > 0).then(|| Breached::new(step.breached_wait_millis)),
        introduced: Cell::new(false),
        with_password: Cell::new(0),
    }))
}

impl Plugin for LoginGuard {
    fn request(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        if !self.introduced.replace(true) {
            self.counts.introduce(host);
        }
        let Some(watched) = self.endpoint(&exchange.request) else { return Verdict::Pass };
        if self.outcomes.reads_bodies() {
            codings::limit(exchange);
            // In a part of a body there may be no marker.
            for name in ["range", "if-range"] {
                if exchange.request.headers.get(name).is_some() {
                    exchange.change_request(HeaderChange::remove(name), host);
                }
            }
        }
        let mut head = self.fields.of_head(&exchange.request);
        if head == Credentials::default() && !has_body {
            return Verdict::Pass;
        }
        head.sent_to(&exchange.request);
        if has_body && !exchange.request.streaming {
            slot.put(Expected(watched, head));
            return Verdict::NeedBody(BodyNeed { limit: self.body_limit });
        }
        // The body of a stream is not held, and may be any login.
        let unread = if has_body { host.random().to_le_bytes().to_vec() } else { Vec::new() };
        let hides = head.hides || (has_body && watched.reached);
        let mut found = head;
        (found.odd, found.hides) = (found.odd || has_body, hides);
        self.arrived(watched, (&found, &unread), exchange, slot, host)
    }

    fn request_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(Expected(watched, mut found)) = slot.take::<Expected>() else { return Verdict::Pass };
        let coded = is_coded(&exchange.request);
        let content_type = content_type(&exchange.request.headers);
        self.fields.read_body(&content_type, coded, body.bytes, &mut found);
        found.hides |= watched.reached && (coded || !body.complete);
        if body.complete {
            return self.arrived(watched, (&found, body.bytes), exchange, slot, host);
        }
        // What is behind the limit may be the user; requests that begin alike are not taken for the same.
        found.odd = true;
        self.arrived(watched, (&found, &host.random().to_le_bytes()), exchange, slot, host)
    }

    /// Credentials in the head are sent all the same, and an error is the answer to those that are wrong.
    fn without_body(&self, exchange: &mut Exchange, _status: u16, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let Some(Expected(watched, found)) = slot.take::<Expected>() else { return Verdict::Pass };
        let mut without = Credentials::default();
        without.sent_to(&exchange.request);
        if found == without {
            return Verdict::Pass;
        }
        self.arrived(watched, (&found, b""), exchange, slot, host)
    }

    fn answered(&self, exchange: &mut Exchange, answer: Answer, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(breached), Some(attempt)) = (&self.breached, slot.get::<Attempt>()) else { return Verdict::Pass };
        if attempt.digest.is_some_and(|digest| breached.answered(&answer, digest, host)) {
            self.breached_password(attempt, exchange, host);
            return Verdict::Pass;
        }
        self.look_up(attempt, exchange, host)
    }

    fn response(&self, exchange: &mut Exchange, has_body: bool, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(attempt), Some(response)) = (slot.get::<Attempt>(), &exchange.response) else {
            return Verdict::Pass;
        };
        if attempt.kind == EndpointKind::Login && has_body && self.outcomes.needs_body(response) {
            return Verdict::NeedBody(BodyNeed { limit: self.body_limit });
        }
        // Without a body nothing is left to read.
        let body = (!has_body).then_some(Body { bytes: &[], complete: true });
        self.settle(exchange, body, slot, host)
    }

    fn response_body(&self, exchange: &mut Exchange, body: Body<'_>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        self.settle(exchange, Some(body), slot, host)
    }
}

impl LoginGuard {
    fn endpoint(&self, request: &Request) -> Option<Watched> {
        if !self.methods.iter().any(|method| method.as_bytes().eq_ignore_ascii_case(&request.method)) {
            return None;
        }
        let path = PathReadings::of(request.path_only());
        let covering = self.endpoints.iter().find(|place| place.scope.covers(&path))?;
        if !path.is_ambiguous() {
            return Some(Watched { kind: covering.kind, surely: true, reached: true });
        }
        // It is covered by each of them.
        let reached = self.reached(request.path_only());
        Some(Watched { kind: reached.unwrap_or(covering).kind, surely: false, reached: reached.is_some() })
    }

    /// The endpoint that some backend may take an ambiguous path for.
    fn reached(&self, path: &[u8]) -> Option<&Place> {
        let lax = LaxPath::of(path);
        let spellings = std::iter::once(path.to_vec()).chain(spelling::decoded(path));
        let spellings: Vec<Vec<u8>> = spellings.map(|path| spelling::canonical(&path)).collect();
        self.endpoints.iter().find(|place| {
            let is_near = || lax.reach(place.path.as_bytes()) != Reach::Elsewhere;
            let is_spelling = |path: &Vec<u8>| match PathReadings::of(path) {
                PathReadings::Ambiguous => false,
                readings => place.scope.covers(&readings),
            };
            spellings.iter().any(is_spelling) || (!place.path.is_empty() && is_near())
        })
    }

    /// The credentials of a request are there: what is known of them counts before the backend sees it.
    fn arrived(
        &self,
        watched: Watched,
        (found, body): (&Credentials, &[u8]),
        exchange: &mut Exchange,
        slot: &mut Slot,
        host: &dyn Host,
    ) -> Verdict {
        if !watched.reached && found.users.is_empty() && !found.hides {
            return Verdict::Pass;
        }
        let mut attempt = Attempt::new(watched, (found, body), exchange, (&self.pseudonyms, host.now()));
        self.counts.tell_apart(&mut attempt, host);
        let seen = self.counts.look(&attempt, &self.limits, host);
        attempt.seen = seen;
        for finding in patterns::found(&seen, &self.limits).iter().filter(|finding| is_charged(finding, &seen)) {
            self.signal(finding, &mut attempt, exchange, host);
        }
        attempt.digests = found.passwords.iter().rev().map(|password| Digest::of(password)).collect();
        let verdict = self.look_up(&mut attempt, exchange, host);
        slot.put(attempt);
        verdict
    }

    /// Looks the passwords up among breached ones, until one is, or one has to be asked for.
    fn look_up(&self, attempt: &mut Attempt, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let Some(breached) = &self.breached else { return Verdict::Pass };
        while let Some(digest) = attempt.digests.pop() {
            match breached.look(digest, host) {
                Looked::Breached => {
                    self.breached_password(attempt, exchange, host);
                    break;
                }
                Looked::NotBreached => {}
                Looked::Unknown(ask) => {
                    attempt.digest = Some(digest);
                    return Verdict::Ask(ask);
                }
            }
        }
        Verdict::Pass
    }

    fn breached_password(&self, attempt: &mut Attempt, exchange: &mut Exchange, host: &dyn Host) {
        attempt.breached = true;
        let detail = "the password is one of those that were breached".to_owned();
        let finding = Finding { pattern: Pattern::BreachedPassword, subject: Subject::Account, times: 1.0, detail };
        self.signal(&finding, attempt, exchange, host);
    }

    /// The response is there: the login is counted.
    fn settle(&self, exchange: &mut Exchange, body: Option<Body<'_>>, slot: &mut Slot, host: &dyn Host) -> Verdict {
        let (Some(mut attempt), Some(response)) = (slot.take::<Attempt>(), &exchange.response) else {
            return Verdict::Pass;
        };
        match self.outcomes.of(attempt.kind, response, body) {
            Some(true) => {
                if attempt.surely && is_coded(&exchange.request) {
                    self.counts.accepted(&attempt, host);
                }
                let before = self.with_password.get();
                if attempt.surely && (attempt.password.is_some() || before < WITH_PASSWORD) {
                    self.with_password.set((before + u32::from(attempt.password.is_some())).min(WITH_PASSWORD));
                    self.succeeded(&mut attempt, exchange, host);
                }
            }
            Some(false) => self.failed(&mut attempt, exchange, host),
            None => {}
        }
        Verdict::Pass
    }

    fn failed(&self, attempt: &mut Attempt, exchange: &mut Exchange, host: &dyn Host) {
        let alarm = patterns::realm_times(&attempt.seen, &self.limits) >= 1.0;
        self.counts.failed(attempt, (attempt.seen.known, alarm), host);
        let seen = self.counts.look(attempt, &self.limits, host);
        attempt.seen = seen;
        for finding in patterns::found(&seen, &self.limits) {
            if is_charged(&finding, &seen) {
                self.signal(&finding, attempt, exchange, host);
            }
            self.report(&finding, attempt, exchange, host);
        }
    }

    fn succeeded(&self, attempt: &mut Attempt, exchange: &mut Exchange, host: &dyn Host) {
        let seen = attempt.seen;
        let alarm = patterns::realm_times(&seen, &self.limits) >= 1.0;
        let findings = if seen.known { Vec::new() } else { patterns::found(&seen, &self.limits) };
        self.counts.succeeded(attempt, (seen.known, alarm), host);
        if attempt.breached {
            let detail = "a login with a breached password succeeded".to_owned();
            let finding = Finding { pattern: Pattern::BreachedPassword, subject: Subject::Account, times: 1.0, detail };
            self.report(&finding, attempt, exchange, host);
        }
        if let Some(takeover) = self.takeover(&findings, &seen, attempt, host) {
            self.signal(&takeover, attempt, exchange, host);
            self.report(&takeover, attempt, exchange, host);
        }
    }

    /// A login that succeeds for the first time from where it comes, in the middle of an attack.
    fn takeover(
        &self,
        findings: &[Finding],
        seen: &counts::Seen,
        attempt: &Attempt,
        host: &dyn Host,
    ) -> Option<Finding> {
        let takeover = |subject, times, detail| Finding { pattern: Pattern::Takeover, subject, times, detail };
        if let Some(attacked) = findings.iter().find(|finding| finding.pattern == Pattern::AccountAttack) {
            let detail = format!("a login to an account succeeded from a new place after {}", attacked.detail);
            return Some(takeover(Subject::Account, attacked.times, detail));
        }
        // A user who has mistyped the own account, and nothing else, is none of the attackers.
        let suspicious = |finding: &&Finding| finding.subject == Subject::Password || seen.others() > 0;
        let cause = findings.iter().find(suspicious)?;
        let (of_source, of_all) = self.counts.taken(attempt, host);
        let threshold = self.limits.takeover_accounts.max(1);
        let (subject, count) =
            if of_source >= threshold { (Subject::Source, of_source) } else { (Subject::All, of_all) };
        let detail =
            format!("logins to {count} accounts succeeded for the first time during an attack ({})", cause.detail);
        (count >= threshold).then(|| takeover(subject, f64::from(count) / f64::from(threshold), detail))
    }
}

/// Whether the backend reads another text in the body of a request than the guard: it has a content coding, or a charset in which bytes of
/// ASCII stand for other characters.
fn is_coded(request: &Request) -> bool {
    !codings::is_identity(&codings::list(&request.headers)) || has_foreign_charset(&content_type(&request.headers))
}

#[cfg(test)]
mod tests;

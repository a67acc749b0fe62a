//! Puzzles, and what comes back for them.

use std::fmt;

use exchange::{Exchange, Host};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::binding::Binding;
use crate::keys::{self, Purpose};
use crate::work::{difficulty, solves};
use crate::{Challenges, HEADER, spent, token};

/// The longest header of a submission that is looked at, in bytes.
const MAX_SUBMISSION: usize = 2048;
/// The longest nonce, in bytes.
const MAX_NONCE: usize = 128;

/// A puzzle as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Puzzle {
    /// Unique among all puzzles.
    pub(crate) id: String,
    /// When it expires, in milliseconds since the Unix epoch.
    pub(crate) exp: u64,
    /// The zero bits of a solution.
    pub(crate) bits: u32,
    /// The score that it was given at, rounded down.
    pub(crate) score: u32,
    pub(crate) ip: String,
    pub(crate) ua: String,
    /// The provider's id.
    pub(crate) by: String,
    /// The incarnation of the node that gave it while offline: no other takes it. Empty where the control plane is asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) node: String,
}

/// What a clearance is made of: whom it is for, and the score that it was earned at.
pub(crate) struct ClearanceClaim {
    pub(crate) score: u32,
    pub(crate) ip: String,
    pub(crate) ua: String,
}

/// Why a submission earns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Malformed,
    /// It says that it is for another provider.
    OfAnother,
    Forged,
    Foreign,
    Expired,
    Unsolved,
    Spent,
    /// The vendor of a widget rejects the token.
    Unvouched,
    /// The vendor cannot be reached.
    Unverified,
    /// It was given by a node that was offline: another node, or another incarnation of this one.
    Elsewhere,
    /// The control plane did not confirm that it is unspent.
    Unconfirmed,
    /// It was not asked, because of what callers send.
    Overrun,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is neither a puzzle with a nonce nor a token",
            Self::OfAnother => "it is for a challenge of another provider",
            Self::Forged => "no key of the provider has signed the puzzle",
            Self::Foreign => "the puzzle was given to another network or user agent",
            Self::Expired => "the puzzle has expired",
            Self::Unsolved => "the nonce does not solve the puzzle",
            Self::Spent => "the puzzle was spent already",
            Self::Unvouched => "the vendor does not vouch for the token, or it was used already",
            Self::Unverified => "the token could not be verified",
            Self::Elsewhere => "a node without its control plane gave the puzzle, and it alone takes it",
            Self::Unconfirmed => {
                "the control plane did not say whether the puzzle was spent elsewhere; the next puzzle does not need the control plane"
            }
            Self::Overrun => {
                "the control plane was not waited for, because more of a body came than may wait, or too many submissions wait"
            }
        })
    }
}

impl Challenges {
    /// A new puzzle for a caller with this score, and its signed form.
    pub(crate) fn mint(&self, exchange: &Exchange, score: f64, host: &dyn Host) -> (Puzzle, String) {
        let binding = Binding::of(&self.settings, exchange);
        let puzzle = Puzzle {
            id: format!("{:016x}{:016x}", host.random(), host.random()),
            exp: host.now().saturating_add(self.settings.challenge_ttl_seconds.saturating_mul(1000)),
            bits: difficulty(&self.settings, score),
            score: whole(score),
            ip: binding.ip,
            ua: binding.ua,
            by: self.settings.provider.clone(),
            node: spent::own_incarnation(host),
        };
        let signed = self.keys.sign(Purpose::Puzzle, &puzzle);
        (puzzle, signed)
    }

    /// The puzzle that a request submits a solution of; `None` where it is no submission.
    pub(crate) fn submitted(&self, exchange: &Exchange, now: u64) -> Option<Result<Puzzle, Failure>> {
        if exchange.request.method != b"POST" {
            return None;
        }
        let header = exchange.request.headers.get(HEADER)?;
        Some(self.check(header, exchange, now))
    }

    fn is_own(&self, puzzle: &Puzzle) -> bool {
        puzzle.by == self.settings.provider
    }

    fn check(&self, header: &[u8], exchange: &Exchange, now: u64) -> Result<Puzzle, Failure> {
        let Some((challenge, nonce)) = read(header) else {
            // The widget of another provider has given it.
            return Err(if token::read(header).is_some() { Failure::OfAnother } else { Failure::Malformed });
        };
        let puzzle: Puzzle = match self.keys.open(Purpose::Puzzle, challenge.as_bytes()) {
            Some(puzzle) => puzzle,
            None if keys::claim::<Puzzle>(challenge.as_bytes()).is_some_and(|claimed| !self.is_own(&claimed)) => {
                return Err(Failure::OfAnother);
            }
            None => return Err(Failure::Forged),
        };
        if !self.is_own(&puzzle) {
            return Err(Failure::OfAnother);
        }
        if puzzle.exp <= now {
            return Err(Failure::Expired);
        }
        if !Binding::of(&self.settings, exchange).admits(&puzzle.ip, &puzzle.ua) {
            return Err(Failure::Foreign);
        }
        if !solves(challenge.as_bytes(), nonce.as_bytes(), puzzle.bits) {
            return Err(Failure::Unsolved);
        }
        Ok(puzzle)
    }
}

/// Challenge and nonce of a submission; the nonce as text or as a whole number.
pub(crate) fn read(header: &[u8]) -> Option<(String, String)> {
    if header.len() > MAX_SUBMISSION {
        return None;
    }
    let Value::Object(mut fields) = serde_json::from_slice(header).ok()? else { return None };
    let Some(Value::String(challenge)) = fields.remove("challenge") else { return None };
    let nonce = match fields.remove("nonce")? {
        Value::String(nonce) => nonce,
        Value::Number(nonce) if nonce.is_u64() => nonce.to_string(),
        _ => return None,
    };
    (nonce.len() <= MAX_NONCE).then_some((challenge, nonce))
}

/// A score without its fraction.
pub(crate) fn whole(score: f64) -> u32 {
    // A saturating conversion; what is no number is 0.
    score.clamp(0.0, exchange::MAX_SCORE) as u32
}

//! Signed requests (Web Bot Auth): HTTP message signatures (RFC 9421) with the tag `web-bot-auth`, by keys of the directories that the
//! policy's bots name.
//!
//! Nothing is fetched for a request: the control plane keeps a table of keys. All that is cheap is checked before a signature is
//! verified, results are cached, and verifications are bounded (module `budget`).

mod agent;
mod base;
mod budget;
mod capped;
mod claim;
mod fields;
mod keys;
mod nonces;
mod why;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use ed25519_dalek::{Signature, VerifyingKey};
use exchange::{Host, KeysTable, Metric, Request};
use snapshot::content_hash;

pub use agent::{DirectoryKind, identifier};
use budget::{Budget, Payer};
use capped::Capped;
pub(crate) use claim::Demands;
use claim::{Claim, SignatureFields, Terms};
pub use keys::{DIRECTORY_BYTES, KEYS, SignerKey, directory_label, key_row};
use nonces::Nonce;
pub(crate) use why::Why;

use crate::messages::KnownBot;

/// Results that are remembered, of right and of wrong signatures each: twice as many at most.
const MOST_RESULTS: usize = 512;

/// What is known of the signature of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Signed {
    /// There is none, or none of a directory that a bot of the policy names.
    #[default]
    No,
    /// It is one of this directory.
    By(usize),
    /// A key of this directory was named, and the signature is not one of that key.
    Bad(usize),
    /// It could not be verified.
    Unverified(usize, Why),
}

/// The directories of a policy, and what was verified on this worker.
#[derive(Default)]
pub(crate) struct Signing {
    directories: Vec<Directory>,
    /// Places of directories by their identifiers.
    places: HashMap<Vec<u8>, usize>,
    budget: Budget,
    /// Results by hashes of signature, base and key, until their ends in milliseconds since the Unix epoch. Wrong ones are apart: a flood of
    /// them displaces no right one.
    right: Capped<[u8; 32], u64, MOST_RESULTS>,
    wrong: Capped<[u8; 32], u64, MOST_RESULTS>,
}

struct Directory {
    /// Its identifier, see [`identifier`].
    name: String,
    label: [u8; DIRECTORY_BYTES],
    /// The first bot that names it.
    bot: usize,
}

/// A signature, and the directory that its key should be in.
struct Attempt<'a> {
    fields: &'a SignatureFields,
    claim: &'a Claim<'a>,
    directory: &'a Directory,
}

/// Who is calling.
#[derive(Clone, Copy)]
pub(crate) struct Signer<'a> {
    pub(crate) request: &'a Request,
    pub(crate) address: Option<IpAddr>,
    /// The bot that the user agent names.
    pub(crate) bot: Option<&'a KnownBot>,
}

// === impl Signing ===

impl Signing {
    /// The directories of these bots.
    pub(crate) fn new(bots: &[KnownBot]) -> Self {
        let mut signing = Self::default();
        for (bot, known) in bots.iter().enumerate().filter(|(_, bot)| !bot.directory.is_empty()) {
            let name = known.directory.clone();
            if !signing.places.contains_key(name.as_bytes()) {
                let label = directory_label(name.as_bytes());
                signing.places.insert(name.clone().into_bytes(), signing.directories.len());
                signing.directories.push(Directory { name, label, bot });
            }
        }
        signing
    }

    pub(crate) fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// The place of a bot's directory.
    pub(crate) fn of_bot(&self, bot: &KnownBot) -> Option<usize> {
        self.places.get(bot.directory.as_bytes()).copied()
    }

    /// The first bot of a directory, as a place in the policy.
    pub(crate) fn bot_of(&self, directory: usize) -> Option<usize> {
        self.directories.get(directory).map(|directory| directory.bot)
    }

    /// The identifier of a directory.
    pub(crate) fn name_of(&self, directory: usize) -> &str {
        self.directories.get(directory).map_or("", |directory| &directory.name)
    }

    /// The place of the directory with an identifier.
    pub(crate) fn place_of(&self, name: &[u8]) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// What the signature of a request says.
    pub(crate) fn check(&self, signer: Signer<'_>, demands: Demands<'_>, table: &KeysTable, host: &dyn Host) -> Signed {
        let Some(fields) = SignatureFields::of(signer.request) else { return Signed::No };
        let Some(inputs) = fields.inputs() else { return Signed::No };
        let claims = fields.claims(&inputs);
        let own = signer.bot.and_then(|bot| self.of_bot(bot));
        // A request without `Signature-Agent` is signed by the bot that its user agent names, or by none.
        let known = claims.iter().filter_map(|claim| {
            let place = match &claim.directory {
                Some(name) => self.places.get(name).copied(),
                None => own,
            };
            Some((claim, place?))
        });
        // Of several signatures (one by an agent, one by a service in front of it) that of the bot counts.
        let chosen = known.clone().find(|(_, place)| Some(*place) == own).or_else(|| known.clone().next());
        let Some((claim, place)) = chosen else { return Signed::No };
        let Some(directory) = self.directories.get(place) else { return Signed::No };
        match self.verify(Attempt { fields: &fields, claim, directory }, signer, demands, table, host) {
            Ok(true) => Signed::By(place),
            Ok(false) => Signed::Bad(place),
            Err(why) => Signed::Unverified(place, why),
        }
    }

    /// What a policy says of a signature that a step before has verified as one of this directory. It is not verified again, and its nonce is
    /// spent: neither changes from policy to policy. Its terms do.
    pub(crate) fn recheck(&self, place: usize, request: &Request, demands: Demands<'_>, now: u64) -> Signed {
        let Some(fields) = SignatureFields::of(request) else { return Signed::No };
        let Some(inputs) = fields.inputs() else { return Signed::No };
        let claims = fields.claims(&inputs);
        // The one that was verified: of the signatures of a directory the first is, whatever the policy (see `check`).
        let is_of = |claim: &&Claim<'_>| match &claim.directory {
            Some(name) => name == self.name_of(place).as_bytes(),
            None => true,
        };
        let Some(claim) = claims.iter().find(is_of) else { return Signed::No };
        if !demands.accept_host(&request.authority) {
            return Signed::Unverified(place, Why::Host);
        }
        match claim.terms(demands, now) {
            Ok(_) => Signed::By(place),
            Err(why) => Signed::Unverified(place, why),
        }
    }

    /// Whether a signature is one of the key that it names. What is cheap comes first.
    fn verify(
        &self,
        Attempt { fields, claim, directory }: Attempt<'_>,
        signer: Signer<'_>,
        demands: Demands<'_>,
        table: &KeysTable,
        host: &dyn Host,
    ) -> Result<bool, Why> {
        if !demands.accept_host(&signer.request.authority) {
            return Err(Why::Host);
        }
        let now = host.now();
        let Terms { thumbprint, nonce, until } = claim.terms(demands, now)?;
        let signature = fields.signature(claim)?;
        let key = find_key(table, directory, &thumbprint)?;
        if !key.counts_at(now) {
            return Err(Why::KeyTime);
        }
        let nonce = nonce.map(|nonce| Nonce::new(&key.public, nonce));
        if nonce.as_ref().is_some_and(|nonce| nonce.is_used(host)) {
            return Err(Why::Replayed);
        }
        let base = base::signature_base(signer.request, claim.input)?;
        let id = content_hash(&[key.public.as_slice(), &signature, &base].concat());
        let remembered =
            |results: &Capped<[u8; 32], u64, MOST_RESULTS>| results.get(&id).is_some_and(|until| until > now);
        if remembered(&self.wrong) {
            return Ok(false);
        }
        if !remembered(&self.right) {
            // Callers without an address are one.
            let payer = Payer::of(signer.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
            self.budget
                .take(payer, demands.per_second, now)
                .inspect_err(|_| host.count(Metric::SignaturesOverBudget))?;
            host.count(Metric::SignaturesVerified);
            let right = is_signature(&key.public, &base, &signature);
            self.budget.ended(payer, right, now);
            let results = if right { &self.right } else { &self.wrong };
            results.put(id, until);
            if !right {
                return Ok(false);
            }
        }
        // Another worker may have met it in the meantime.
        if nonce.is_some_and(|nonce| !nonce.spend(until, host)) {
            return Err(Why::Replayed);
        }
        Ok(true)
    }
}

/// The key of a directory.
fn find_key(table: &KeysTable, directory: &Directory, thumbprint: &[u8; 32]) -> Result<SignerKey, Why> {
    let found = table.read(|keys| match keys.find(&key_row(&directory.label, thumbprint)) {
        Some(row) => SignerKey::read(row).ok_or(Why::Directory),
        None if keys.find(&directory.label).is_some() => Err(Why::UnknownKey),
        None => Err(Why::Directory),
    });
    found.unwrap_or(Err(Why::Directory))
}

/// Whether a signature over these bytes is one of this key (Ed25519, RFC 8032). What the RFC leaves open is refused: keys of small order, and
/// second spellings of a signature.
#[must_use]
pub fn is_signature(public: &[u8; 32], base: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| key.verify_strict(base, &Signature::from_bytes(signature)).is_ok())
}

#[cfg(test)]
mod tests;

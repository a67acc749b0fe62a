//! Whether the vendor of a widget vouches for a token. A node asks, because the key for it stays here.

mod health;
mod slots;
mod vendor;

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use snapshot::{AnswerWord, VerifyToken};
use tokio::time::Instant;

use entities::{EntityService, Item};
use events::EventHub;
use health::Health;
use outbound::{Answer, Outbound, OutboundError, OutboundFault};
use policies::{ChallengeKind, ChallengeProvider};
use slots::{Busy, Limits, Slots};
use store::Store;
use vendor::Said;

/// How long a verification may take, the wait for its turn and a second try included: a second less than a node waits for us.
const PATIENCE: Duration = Duration::from_secs(4);
/// The most verifications at once, of all providers together, and those that wait for their turn. Everybody can send tokens
/// that are none; what is more is not looked at.
const LIMITS: Limits = Limits {
    running: 64,
    running_of_one: 8,
    waiting: 128,
    waiting_of_one: 16,
    running_of_block: 16,
    waiting_of_block: 32,
    // What is left is for the vendor.
    patience: Duration::from_secs(2),
};
/// The longest token, in bytes.
const MAX_TOKEN: usize = 4096;
/// How long a token that was used is kept, in milliseconds: no vendor takes one for longer.
const KEPT: u64 = 2 * 86_400_000;

/// Verifies tokens with the providers as they are at that moment.
pub struct Verifier {
    store: Arc<dyn Store>,
    entities: EntityService,
    outbound: Outbound,
    health: Health,
    slots: Slots,
    clock: fn() -> u64,
}

/// What came of a token.
enum Outcome {
    /// The vendor vouches for it, and it was never used before.
    Passed,
    /// The vendor does not vouch for it.
    Refused,
    /// The vendor does, for another host.
    Elsewhere,
    /// It was used before.
    Used,
    /// Nobody can say.
    Failed,
    /// Too many are being verified.
    Busy,
}

impl Verifier {
    /// A verifier that spends tokens in `store`, and tells `events` of vendors that fail. `clock`: the time in milliseconds
    /// since the Unix epoch.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        entities: EntityService,
        outbound: Outbound,
        events: EventHub,
        clock: fn() -> u64,
    ) -> Verifier {
        Verifier { store, entities, outbound, health: Health::new(events), slots: Slots::new(LIMITS), clock }
    }

    /// Whether the vendor vouches for a token that is used for the first time. It is used durably before that is said.
    pub async fn verify(&self, asked: &VerifyToken) -> AnswerWord {
        let entities = self.entities.current();
        let provider = entities.get::<ChallengeProvider>(&asked.provider);
        let usable = provider.filter(|provider| provider.enabled && provider.kind == ChallengeKind::Vendor);
        let Some(provider) = usable else {
            // A node may still run what was compiled before.
            tracing::warn!(provider = asked.provider, "a token is for a widget that is missing or disabled");
            return AnswerWord::Unknown;
        };
        let outcome = self.outcome(provider, asked).await;
        let (word, answer) = match outcome {
            Outcome::Passed => ("passed", AnswerWord::Yes),
            Outcome::Refused => ("refused", AnswerWord::No),
            Outcome::Elsewhere => ("elsewhere", AnswerWord::No),
            Outcome::Used => ("used", AnswerWord::No),
            Outcome::Failed => ("failed", AnswerWord::Unknown),
            Outcome::Busy => ("busy", AnswerWord::Unknown),
        };
        let id = provider.head.id.clone();
        metrics::counter!("palisade_challenge_tokens_total", "outcome" => word, "provider" => id).increment(1);
        answer
    }

    async fn outcome(&self, provider: &Item<ChallengeProvider>, asked: &VerifyToken) -> Outcome {
        if !(1..=MAX_TOKEN).contains(&asked.token.len()) {
            return Outcome::Refused;
        }
        let deadline = Instant::now() + PATIENCE;
        let _slot = match self.slots.take(&asked.ip).await {
            Ok(slot) => slot,
            Err(Busy) => return Outcome::Busy,
        };
        let id = &provider.head.id;
        let start = Instant::now();
        let said = match self.call(provider, asked, deadline).await {
            Ok(answer) => vendor::read(answer.status, &answer.body),
            Err(error) => Said::Nothing(error.to_string()),
        };
        let seconds = start.elapsed().as_secs_f64();
        metrics::histogram!("palisade_challenge_verification_seconds", "provider" => id.clone()).record(seconds);
        match said {
            Said::Nothing(why) => {
                self.health.failed(id, &why, (self.clock)());
                Outcome::Failed
            }
            Said::No => {
                self.health.worked(id, (self.clock)());
                Outcome::Refused
            }
            Said::Yes { host } => {
                self.health.worked(id, (self.clock)());
                match host.filter(|host| !vendor::admits(host, &asked.host)) {
                    Some(solved_on) => {
                        tracing::debug!(provider = id, solved_on, asked = asked.host, "a token is for another host");
                        Outcome::Elsewhere
                    }
                    None => self.spend(id, &asked.token).await,
                }
            }
        }
    }

    /// Calls the vendor, and once more where the connection broke and there is time.
    async fn call(
        &self,
        provider: &ChallengeProvider,
        asked: &VerifyToken,
        deadline: Instant,
    ) -> Result<Answer, OutboundError> {
        let whole = deadline.saturating_duration_since(Instant::now());
        let first = self.outbound.call(vendor::call(provider, asked, whole)).await;
        let left = deadline.saturating_duration_since(Instant::now());
        match first {
            Err(error) if error.fault() == OutboundFault::Connection && !left.is_zero() => {
                self.outbound.call(vendor::call(provider, asked, left)).await
            }
            outcome => outcome,
        }
    }

    /// Uses a token up, on whichever node it was sent to.
    async fn spend(&self, provider: &str, token: &str) -> Outcome {
        let digest = Sha256::new().chain_update(provider).chain_update([0]).chain_update(token).finalize();
        match self.store.puzzle_spend(&snapshot::hex(&digest), (self.clock)().saturating_add(KEPT)).await {
            Ok(true) => Outcome::Passed,
            Ok(false) => Outcome::Used,
            Err(error) => {
                tracing::error!(%error, "spending a token failed");
                Outcome::Failed
            }
        }
    }
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

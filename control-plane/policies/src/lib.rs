//! Threat policies and challenge providers: what is done at which score, what a caller is asked to prove, and what filters get of
//! both. More than one plugin acts by them.

mod challenge;
mod guard;
mod lower;
mod provider;
mod threat;
mod widget;

pub use guard::PolicyGuard;
pub use lower::{block_weight, has_maze, lower, of_config, policy};
pub use provider::{CHALLENGE_PRESETS, ChallengeKind, ChallengeProvider};
pub use threat::{BanIdentity, MAX_SCORE, ThreatPolicy, Tier, TierAction, WrittenAction};

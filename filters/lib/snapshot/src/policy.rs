//! Threat policies as filters run them.

use prost::{Enumeration, Message};

/// A threat policy.
#[derive(Clone, PartialEq, Message)]
pub struct Policy {
    /// Its id.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Its name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Decisions are recorded, requests pass.
    #[prost(bool, tag = "3")]
    pub dry_run: bool,
    /// Its tiers by falling score; each keeps the place it has in the entity.
    #[prost(message, repeated, tag = "4")]
    pub tiers: Vec<Tier>,
    /// Addresses and CIDRs that skip the fabric, as text that was checked.
    #[prost(string, repeated, tag = "5")]
    pub exemptions: Vec<String>,
    /// Bans the address even where a more specific identity is known.
    #[prost(bool, tag = "6")]
    pub ban_address: bool,
    /// Bans the api key, or nothing where there is none.
    #[prost(bool, tag = "7")]
    pub ban_api_key_only: bool,
    /// What the tiers that challenge present; absent where none does, or no provider answers.
    #[prost(message, optional, tag = "8")]
    pub challenge: Option<Challenge>,
}

/// What a challenge provider asks for: the embedded proof of work, or the token of a vendor's widget. It holds keys: it is
/// only in steps that need it.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Challenge {
    /// The provider's id.
    #[prost(string, tag = "1")]
    pub provider: String,
    /// Leading zero bits that are asked for at score 0, 1 to 32.
    #[prost(uint32, tag = "2")]
    pub difficulty_floor: u32,
    /// The same at score 100.
    #[prost(uint32, tag = "3")]
    pub difficulty_ceiling: u32,
    /// How long a puzzle can be solved, in seconds.
    #[prost(uint64, tag = "4")]
    pub challenge_ttl_seconds: u64,
    /// How long a clearance holds, in seconds.
    #[prost(uint64, tag = "5")]
    pub clearance_ttl_seconds: u64,
    /// The cookie that carries the clearance.
    #[prost(string, tag = "6")]
    pub cookie_name: String,
    /// The keys of signatures: the first signs, all of them are good for checking.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub keys: Vec<Vec<u8>>,
    /// Puzzle and clearance hold for one network: /24 of IPv4, /64 of IPv6.
    #[prost(bool, tag = "8")]
    pub bind_ip: bool,
    /// Puzzle and clearance hold for one user agent.
    #[prost(bool, tag = "9")]
    pub bind_ua: bool,
    /// The title of the page; empty for the built-in one in the caller's language.
    #[prost(string, tag = "10")]
    pub title: String,
    /// What the page says; empty for the built-in text in the caller's language.
    #[prost(string, tag = "11")]
    pub message: String,
    /// Where there is no JavaScript, waiting takes the place of the work.
    #[prost(bool, tag = "20")]
    pub without_javascript: bool,
    /// How long that wait is at score 0, in seconds.
    #[prost(uint32, tag = "21")]
    pub wait_floor_seconds: u32,
    /// The same at score 100; one network earns at most one clearance in that time by waiting.
    #[prost(uint32, tag = "22")]
    pub wait_ceiling_seconds: u32,
    /// The widget in the place of the proof of work; absent where there is work to do.
    #[prost(message, optional, tag = "23")]
    pub widget: Option<Widget>,
    /// A cookie that carries the clearance as well: callers have it from when other providers were enabled. Empty for none.
    #[prost(string, tag = "24")]
    pub other_cookie_name: String,
}

/// A vendor's widget, as far as a caller sees it: the key of the verification stays with the control plane.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Widget {
    /// The public key.
    #[prost(string, tag = "1")]
    pub site_key: String,
    /// The vendor's script: an http or https URL.
    #[prost(string, tag = "2")]
    pub script_url: String,
    /// The widget's place in the page: the operator's own HTML. `{site_key}`, `{nonce}` and `{lang}` in it stand for the
    /// public key, the nonce of the page's policy, and the language of the page.
    #[prost(string, tag = "3")]
    pub html: String,
    /// The form field that the widget writes its token to.
    #[prost(string, tag = "4")]
    pub response_field: String,
    /// Where the page may load scripts from, as sources of a content security policy.
    #[prost(string, repeated, tag = "5")]
    pub script_sources: Vec<String>,
    /// The same for styles.
    #[prost(string, repeated, tag = "6")]
    pub style_sources: Vec<String>,
    /// The same for frames.
    #[prost(string, repeated, tag = "7")]
    pub frame_sources: Vec<String>,
    /// The same for requests of scripts.
    #[prost(string, repeated, tag = "8")]
    pub connect_sources: Vec<String>,
    /// The widget computes: in workers that it makes itself, and in WebAssembly.
    #[prost(bool, tag = "9")]
    pub computes: bool,
}

impl Policy {
    /// The collection of its entity.
    pub const COLLECTION: &str = "threat-policies";

    /// The highest tier that a score reaches, wherever it stands among the others; of several with the same score the
    /// first. What runs on a gateway and what a console simulates both choose with this.
    #[must_use]
    pub fn tier_at(&self, score: f64) -> Option<&Tier> {
        let reached = self.tiers.iter().filter(|tier| score >= tier.min_score);
        reached.reduce(|highest, tier| if tier.min_score > highest.min_score { tier } else { highest })
    }
}

/// One tier of a policy.
#[derive(Clone, PartialEq, Message)]
pub struct Tier {
    /// Its place in the entity, from 0.
    #[prost(uint32, tag = "1")]
    pub index: u32,
    /// The score from which it applies, 0 to 100.
    #[prost(double, tag = "2")]
    pub min_score: f64,
    /// What it does.
    #[prost(enumeration = "TierAction", tag = "3")]
    pub action: i32,
    /// HTTP status of a refusal.
    #[prost(uint32, tag = "4")]
    pub status: u32,
    /// How long `tarpit` holds a request, in milliseconds.
    #[prost(uint32, tag = "5")]
    pub tarpit_millis: u32,
    /// How long `ban` bans, in seconds.
    #[prost(uint64, tag = "6")]
    pub ban_for_seconds: u64,
    /// How many requests `throttle` lets pass in a window.
    #[prost(uint32, tag = "7")]
    pub throttle_quota: u32,
    /// The length of that window in seconds.
    #[prost(uint32, tag = "8")]
    pub throttle_window_seconds: u32,
}

/// What a tier does. They are ordered from the mildest to the strictest, which is not the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Enumeration)]
#[repr(i32)]
pub enum TierAction {
    /// Record it.
    Log = 0,
    /// Ask for a proof of work or a widget's answer.
    Challenge = 1,
    /// Let pass at a quota.
    Throttle = 2,
    /// Hold the request a while.
    Tarpit = 3,
    /// Refuse it.
    Deny = 4,
    /// Refuse it and ban the caller.
    Ban = 5,
    /// Refuse it by a generated page that leads to more of them.
    Maze = 6,
}

impl TierAction {
    /// Whether it refuses the request that it is taken on, whatever came before.
    #[must_use]
    pub fn denies(self) -> bool {
        matches!(self, Self::Deny | Self::Maze | Self::Ban)
    }

    /// The action's word in configuration and events.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Challenge => "challenge",
            Self::Throttle => "throttle",
            Self::Tarpit => "tarpit",
            Self::Deny => "deny",
            Self::Maze => "maze",
            Self::Ban => "ban",
        }
    }

    fn strictness(self) -> u8 {
        match self {
            Self::Log => 0,
            Self::Challenge => 1,
            Self::Throttle => 2,
            Self::Tarpit => 3,
            Self::Deny => 4,
            Self::Maze => 5,
            Self::Ban => 6,
        }
    }
}

impl PartialOrd for TierAction {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TierAction {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.strictness().cmp(&other.strictness())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_tier_that_is_reached_wins_in_any_order() {
        let tier = |index, min_score| Tier { index, min_score, ..Tier::default() };
        let policy =
            Policy { tiers: vec![tier(0, 40.0), tier(1, 90.0), tier(2, 70.0), tier(3, 90.0)], ..Policy::default() };
        let at = |score| policy.tier_at(score).map(|tier| tier.index);
        assert_eq!([at(39.9), at(40.0), at(89.9), at(100.0), at(f64::NAN)], [None, Some(0), Some(2), Some(1), None]);
    }
}

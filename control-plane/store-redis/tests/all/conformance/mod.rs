//! What every store owes. Each function takes an empty store and says by its name what holds; a store
//! passes when none panics. `reopened` closes the store and opens it again, as a new process would.

mod access;
mod bans;
mod bounds;
mod counts;
mod entities;
mod feeds;
mod history;
mod inventory;
mod ledger;
mod login;
mod records;
mod replays;
mod rollups;
mod two;

use store::Store;
use store::fabric::{Allowance, Ban, Charge, Issued, LedgerRules, Step};

pub(crate) use access::*;
pub(crate) use bans::*;
pub(crate) use bounds::*;
pub(crate) use counts::*;
pub(crate) use entities::*;
pub(crate) use feeds::*;
pub(crate) use history::*;
pub(crate) use inventory::*;
pub(crate) use ledger::*;
pub(crate) use login::*;
pub(crate) use records::*;
pub(crate) use replays::*;
pub(crate) use rollups::*;
pub(crate) use two::*;

/// A moment; nothing reads a clock.
pub(crate) const NOW: u64 = 1_800_000_000_000;
const RULES: LedgerRules = LedgerRules { window_millis: 3_600_000, threshold: 100.0, ban_millis: 3_600_000 };

pub(crate) fn ban(key: &str, issued_at: u64, until: u64, by_hand: bool) -> Ban {
    let step = Step { at: issued_at, action: "ban".into(), by: "n1".into(), detail: String::new() };
    Ban {
        key: key.into(),
        reason: format!("until {until}"),
        tags: vec!["waf:match".into()],
        score: 95.0,
        issued_at,
        until,
        issued_by: if by_hand { "alice" } else { "n1" }.into(),
        by_hand,
        signals: vec![serde_json::json!({ "tag": "waf:match", "weight": 95 })],
        timeline: vec![step],
        ..Ban::default()
    }
}

/// One that a node has asked for.
fn by(node: &str, ban: Ban) -> Ban {
    Ban { node: node.into(), ..ban }
}

/// One that was not made by hand and came from an address.
fn from(address: &str, key: &str, until: u64) -> Ban {
    Ban { address: address.into(), ..ban(key, NOW, until, false) }
}

fn live(issued: Issued) -> Ban {
    match issued {
        Issued::Live(ban) => ban,
        other => panic!("not live: {other:?}"),
    }
}

fn entry(key: &str, until: Option<u64>) -> Allowance {
    Allowance { key: key.into(), reason: "office".into(), added_by: "alice".into(), added_at: NOW, until }
}

fn charge(key: &str, points: f64, at: u64) -> Vec<Charge> {
    vec![Charge { key: key.into(), points, at, ..Charge::default() }]
}

async fn keys(store: &dyn Store, now: u64) -> Vec<String> {
    store.bans(now).await.unwrap().into_iter().map(|ban| ban.key).collect()
}

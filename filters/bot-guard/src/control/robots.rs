//! The robots.txt that says what a policy enforces.

use std::fmt::Write as _;

use super::compile::bots;
use super::{BotPolicy, BotSignature};
use crate::BotReaction;

/// The weight from which a bot is asked to stay away.
const UNWELCOME: f64 = 50.0;

/// The robots.txt of a policy: bots that it denies or keeps in the maze, or gives a weight of 50 and more, are disallowed; all others are not. In front are the
/// lines of its licences (RSL 1.0, section 4.4), behind the operator's own lines, which go on with the group of all bots.
pub(super) fn robots_txt(policy: &BotPolicy) -> String {
    let mut text = String::from("# Generated from the bot policy of this site.\n");
    for license in &policy.robots_licenses {
        let _ = writeln!(text, "License: {license}");
    }
    let rules = bots(policy);
    for (signature, bot) in policy.signatures.iter().zip(&rules) {
        let unwelcome = bot.reaction() == BotReaction::Monitor && bot.weight >= UNWELCOME;
        if !matches!(bot.reaction(), BotReaction::Deny | BotReaction::Maze) && !unwelcome {
            continue;
        }
        let mut named = false;
        for token in names(signature) {
            let _ = writeln!(text, "{}User-agent: {token}", if named { "" } else { "\n" });
            named = true;
        }
        if named {
            text.push_str("Disallow: /\n");
        }
    }
    text.push_str("\nUser-agent: *\nDisallow:\n");
    let extra = policy.robots_extra.trim_end();
    if !extra.is_empty() {
        let _ = write!(text, "\n{extra}\n");
    }
    text
}

/// What a bot looks for in a robots.txt: the parts of its user agent that can be written there.
fn names(signature: &BotSignature) -> impl Iterator<Item = &str> {
    let sane = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic() && !b"#:*".contains(&byte));
    signature.ua_contains.iter().map(|token| token.trim()).filter(sane)
}

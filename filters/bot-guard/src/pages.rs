//! The maze for bots that take what robots.txt forbids, and who is spared.

use exchange::{Exchange, Host, Verdict};
use maze::SPARED;

use crate::identity::Identity;
use crate::matcher::Found;
use crate::messages::BotReaction;
use crate::{BY_ROBOTS, BotGuard, KnownBot, add};

impl BotGuard {
    /// What becomes of a bot of the maze that asks for what robots.txt forbids; `None` for others, and for what it allows.
    pub(crate) fn led_astray(
        &self,
        found: Found<'_>,
        identity: Identity,
        exchange: &Exchange,
        host: &dyn Host,
    ) -> Option<Verdict> {
        let bot = found.bot;
        if bot.reaction() != BotReaction::Maze || !self.bots.robots_forbid(Some(found), &exchange.request.path) {
            return None;
        }
        let reason = format!("`{}` takes what robots.txt forbids", bot.name);
        let maze = self.maze.as_ref().filter(|_| !self.may_be_verified(bot, identity));
        Some(match maze.and_then(|maze| maze.page(exchange, host)) {
            Some(page) => Verdict::Refuse(page.refusal(self.of_policy(&reason)).scored()),
            None => self.refuse(&reason),
        })
    }

    /// Marks a caller that a threat response with a maze must not lead into it: one that may be a verified bot, or `obeys` robots.txt.
    /// Bots that are verified have a signal of their own.
    pub(crate) fn spare(
        &self,
        class: &str,
        known: Option<(Found<'_>, Identity)>,
        obeys: bool,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) {
        if !self.step.marks_spared {
            return;
        }
        let unsure = known.is_some_and(|(found, identity)| self.may_be_verified(found.bot, identity));
        let why = match (unsure, obeys) {
            (true, _) => "may be verified",
            (false, true) => "has read robots.txt and obeys it",
            (false, false) => return,
        };
        add(exchange, BY_ROBOTS, format!("{SPARED}{class}").into(), 0.0, format!("`{class}` {why}"), host);
    }

    /// Whether a bot is verified, or could still turn out to be: it has a method, and none has said that it is another.
    fn may_be_verified(&self, bot: &KnownBot, identity: Identity) -> bool {
        let has_method = !bot.method.is_empty() || !bot.ranges.is_empty() || !bot.directory.is_empty();
        identity.is_verified() || self.step.verify && has_method && !identity.is_false()
    }
}

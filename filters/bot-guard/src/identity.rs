//! What is known of a crawler's identity: by the signature of its request, by the addresses that its owner publishes, and by reverse DNS.

use std::net::IpAddr;

use exchange::Host;

use crate::signing::Signed;
use crate::verdict::LISTS;
use crate::{BotGuard, CrawlerVerdict, Finding, KnownBot, key};

/// What is known of a crawler's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// It is the bot that it says it is; how that is known, for people.
    Verified(&'static str),
    Impersonator,
    /// Its request has a signature that is not one of the key that it names, and no other method knows it.
    BadSignature,
    /// Its owner publishes no method, it is not to be verified, or it could not be found out.
    Unverifiable,
    /// It is being found out.
    Pending,
}

impl Identity {
    pub(crate) fn is_verified(self) -> bool {
        matches!(self, Identity::Verified(_))
    }

    /// Whether it was found out not to be the bot.
    pub(crate) fn is_false(self) -> bool {
        matches!(self, Identity::Impersonator | Identity::BadSignature)
    }
}

impl BotGuard {
    /// What is known of a caller that says it is this bot. One of the methods is enough to be the bot, and only one that none of them knows
    /// is an impersonator. A signature counts if its directory is the bot's: that of another one says nothing.
    pub(crate) fn identity(&self, bot: &KnownBot, signed: Signed, address: &str, host: &dyn Host) -> Identity {
        let own = self.bots.signing.of_bot(bot);
        if matches!(signed, Signed::By(directory) if Some(directory) == own) {
            return Identity::Verified("by its signature");
        }
        let identity = self.by_address(bot, address, host);
        match (signed, identity) {
            (Signed::Bad(directory), Identity::Unverifiable) if Some(directory) == own => Identity::BadSignature,
            // The gateway could not look at the signature: it may be the bot's.
            (Signed::Unverified(directory, why), Identity::Impersonator)
                if Some(directory) == own && why.is_of_gateway() =>
            {
                Identity::Pending
            }
            _ => identity,
        }
    }

    /// What the address says. Asks the control plane for what is not known.
    fn by_address(&self, bot: &KnownBot, address: &str, host: &dyn Host) -> Identity {
        let Ok(address) = address.parse::<IpAddr>() else { return Identity::Unverifiable };
        let address = address.to_canonical();
        let listed = self.is_listed(bot, address);
        if listed == Some(true) {
            return Identity::Verified("by its published addresses");
        }
        match (self.by_dns(bot, address, host), listed) {
            (None, Some(false)) => Identity::Impersonator,
            (None, _) => Identity::Unverifiable,
            // The lists are not there: the address may be on one.
            (Some(Identity::Impersonator), None) if !bot.ranges.is_empty() => Identity::Unverifiable,
            (Some(identity), _) => identity,
        }
    }

    /// Whether an address is on one of the bot's lists; `None` where it has none, or not all of them are in force.
    fn is_listed(&self, bot: &KnownBot, address: IpAddr) -> Option<bool> {
        let table = self.ranges.as_ref().filter(|_| !bot.ranges.is_empty())?;
        // The row of this address says which lists there are. A caller that has it by a mistake is on none.
        if address.is_unspecified() {
            return None;
        }
        table.read(|ranges| {
            let labels = |address| ranges.find(address).and_then(|label| ranges.name(label)).unwrap_or_default();
            let has =
                |labels: &[u8], own: &String| labels.split(|byte| *byte == b',').any(|label| label == own.as_bytes());
            let (of_address, all) = (labels(address), labels(LISTS));
            if bot.ranges.iter().any(|own| has(of_address, own)) {
                return Some(true);
            }
            bot.ranges.iter().all(|own| has(all, own)).then_some(false)
        })?
    }

    /// What reverse DNS says; `None` for a bot that is not verified by it.
    fn by_dns(&self, bot: &KnownBot, address: IpAddr, host: &dyn Host) -> Option<Identity> {
        let table = self.table.as_ref().filter(|_| !bot.method.is_empty())?;
        let key = key(&bot.method, address);
        let verdict = table.read(|keys| keys.find(&key).and_then(CrawlerVerdict::read)).flatten();
        let verdict = verdict.filter(|verdict| verdict.until > host.now());
        if verdict.is_none_or(|verdict| verdict.renew <= host.now()) {
            self.bots.asking.ask(key, address, host);
        }
        Some(match verdict.map(|verdict| verdict.finding) {
            Some(Finding::Verified) => Identity::Verified("by reverse DNS"),
            Some(Finding::Impersonator) => Identity::Impersonator,
            Some(Finding::Unverifiable) => Identity::Unverifiable,
            None => Identity::Pending,
        })
    }
}

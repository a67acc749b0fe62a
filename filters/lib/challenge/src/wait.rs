//! The way without JavaScript: waiting in the place of work.
//!
//! The page comes with a ticket, a signed cookie that says when the wait is over, and a browser without scripts loads its
//! URL again by then. Of all tickets of one network that end in the same slot of time one alone earns a clearance: what
//! is spent for it is the slot. So a host that keeps many tickets gets no more clearances than one that keeps a single one.

use exchange::{Ask, Exchange, Host, Reply, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use snapshot::{SpendPuzzle, hex};

use crate::binding::{Binding, network};
use crate::clearance::{cookies, is_https};
use crate::flow::Confirmation;
use crate::keys::Purpose;
use crate::puzzle::{ClearanceClaim, whole};
use crate::{Challenges, flow, location, present, spent};

/// What the name of the ticket's cookie ends with; it begins with that of the clearance.
const SUFFIX: &str = "-wait";
/// The shortest wait that is told of, in seconds: the words for it are in the plural.
const LEAST_SECONDS: u64 = 2;
/// The bytes of a slot's hash that are its id.
const ID_BYTES: usize = 16;
/// What a caller is sent on with.
const ON: u16 = 303;

/// A ticket as it is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ticket {
    /// The slot that the wait ends in, of this network and provider.
    slot: String,
    /// When the wait is over, in milliseconds since the Unix epoch.
    due: u64,
    /// When nobody takes it any more; the same for all tickets of a slot.
    exp: u64,
    /// The score that it was given at, rounded down.
    score: u32,
    /// Somebody else of the network was let in for the wait before this one.
    crowded: bool,
    ip: String,
    ua: String,
    /// The provider's id.
    by: String,
}

/// What the page tells somebody who waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// How long, in seconds; at least two.
    pub(crate) seconds: u64,
    /// It takes longer because of somebody else.
    pub(crate) crowded: bool,
    /// The `set-cookie` header of a new ticket; `None` where the caller has one that counts.
    pub(crate) cookie: Option<Vec<u8>>,
}

impl Challenges {
    /// The verdict on a request that may come after a wait.
    pub(crate) fn waited(&self, exchange: &Exchange, host: &dyn Host) -> Verdict {
        let Some(ticket) = self.due(exchange, host.now()) else { return Verdict::Pass };
        // A clearance that was earned meanwhile is worth as much.
        if self.cleared(exchange, f64::from(ticket.score), host.now())
            || !spent::spend_slot(&ticket.slot, ticket.exp, host)
        {
            return Verdict::Pass;
        }
        Verdict::Ask(Ask::new(&SpendPuzzle { id: ticket.slot, until_millis: ticket.exp }, flow::ASK_MILLIS))
    }

    /// The verdict once the control plane has said whether the slot was spent for the first time.
    pub(crate) fn waited_and_answered(
        &self,
        module: &str,
        answer: Confirmation,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let Some(ticket) = self.due(exchange, host.now()) else { return Verdict::Pass };
        let Some(location) = location::of_same_url(&exchange.request.path) else { return Verdict::Pass };
        match answer {
            Confirmation::No => {
                // Its tier asks again, if it is still one that asks.
                let detail = "its wait is over, but somebody else of its network was let in for it".to_owned();
                flow::note(exchange, "challenge:failed", detail, host);
                return Verdict::Pass;
            }
            Confirmation::Overrun => {
                let detail =
                    "its wait is over, but the request brought more than may wait for its confirmation".to_owned();
                flow::note(exchange, "challenge:failed", detail, host);
                return Verdict::Pass;
            }
            Confirmation::Unavailable => flow::unanswered("wait", module, exchange, host),
            Confirmation::Yes | Confirmation::NoControlPlane => {}
        }
        let earned = ClearanceClaim { score: ticket.score, ip: ticket.ip, ua: ticket.ua };
        let mut headers = vec![
            ("location".to_owned(), location),
            ("set-cookie".to_owned(), self.cookie(earned, exchange, host.now())),
            ("cache-control".to_owned(), b"no-store".to_vec()),
        ];
        headers.extend(self.delete_ticket_cookie(exchange));
        let reason = "a wait is over; the caller has clearance".to_owned();
        let decision = flow::passed("a wait".to_owned(), reason, module, exchange, host);
        Verdict::Enforce { decision, hold_millis: 0, reply: Some(Reply { status: ON, headers, body: Vec::new() }) }
    }

    /// How long a caller waits that gets the page now; `None` where waiting is of no use.
    pub(crate) fn wait(&self, exchange: &Exchange, score: f64, host: &dyn Host) -> Option<Wait> {
        if !self.settings.without_javascript || location::of_same_url(&exchange.request.path).is_none() {
            return None;
        }
        let now = host.now();
        let mut lost = false;
        if let Some(ticket) = self.ticket(exchange, now) {
            lost = ticket.due <= now && spent::is_slot_spent(&ticket.slot, host);
            // One that was given at a much lower score would not be worth enough.
            if !lost && self.is_worth(ticket.score, score) {
                return Some(Wait { seconds: seconds(ticket.due, now), crowded: ticket.crowded, cookie: None });
            }
        }
        let ticket = self.new_ticket(exchange, score, lost, host);
        let cookie = self.ticket_cookie(&ticket, exchange, now);
        Some(Wait { seconds: seconds(ticket.due, now), crowded: ticket.crowded, cookie: Some(cookie) })
    }

    /// The header that takes a caller's ticket away, where it has one.
    pub(crate) fn delete_ticket_cookie(&self, exchange: &Exchange) -> Option<(String, Vec<u8>)> {
        let name = self.ticket_name();
        cookies(exchange, &name).next()?;
        Some(("set-cookie".to_owned(), set_cookie(&name, "", 0, exchange)))
    }

    /// The ticket of a request that may be sent on: one that a browser shows, and can make again by itself.
    fn due(&self, exchange: &Exchange, now: u64) -> Option<Ticket> {
        if !self.settings.without_javascript || present::navigation(exchange) != Some(true) {
            return None;
        }
        location::of_same_url(&exchange.request.path)?;
        self.ticket(exchange, now).filter(|ticket| ticket.due <= now)
    }

    /// The caller's ticket, due or not; the latest of several.
    fn ticket(&self, exchange: &Exchange, now: u64) -> Option<Ticket> {
        let caller = Binding::of(&self.settings, exchange);
        let values = self.cookies(exchange, SUFFIX).into_iter();
        let signed = values.filter_map(|value| self.keys.open::<Ticket>(Purpose::Wait, value));
        let own = signed.filter(|ticket| {
            ticket.by == self.settings.provider && ticket.exp > now && caller.admits(&ticket.ip, &ticket.ua)
        });
        own.max_by_key(|ticket| ticket.due)
    }

    fn new_ticket(&self, exchange: &Exchange, score: f64, lost: bool, host: &dyn Host) -> Ticket {
        let (now, period) = (host.now(), self.period());
        let start_after = |time: u64| (time / period).saturating_add(1).saturating_mul(period);
        let mut due = now.saturating_add(self.wait_millis(score));
        if lost {
            // At the start of a slot: before those who come to the network later, whose waits end anywhere in it.
            due = due.min(start_after(now));
        }
        let network = network(&exchange.caller.ip);
        let mut slot = self.slot(&network, due / period);
        let taken = spent::is_slot_spent(&slot, host);
        if taken {
            due = start_after(due);
            slot = self.slot(&network, due / period);
        }
        let ttl = self.settings.challenge_ttl_seconds.saturating_mul(1000);
        let Binding { ip, ua } = Binding::of(&self.settings, exchange);
        Ticket {
            slot,
            due,
            exp: start_after(due).saturating_add(ttl),
            score: whole(score),
            crowded: lost || taken,
            ip,
            ua,
            by: self.settings.provider.clone(),
        }
    }

    /// The id of a slot. The user agent is no part of it: a host has as many of them as it likes.
    fn slot(&self, network: &str, number: u64) -> String {
        let hash = Sha256::new()
            .chain_update(self.settings.provider.as_bytes())
            .chain_update(b"\0")
            .chain_update(network.as_bytes())
            .chain_update(b"\0")
            .chain_update(number.to_be_bytes())
            .finalize();
        format!("wait-{}", hex(hash.get(..ID_BYTES).unwrap_or(&hash)))
    }

    /// How long a slot lasts, in milliseconds: as long as the longest wait, so that a network earns no more by waits of
    /// several lengths.
    fn period(&self) -> u64 {
        u64::from(self.settings.wait_ceiling_seconds.max(1)).saturating_mul(1000)
    }

    /// How long somebody with this score waits, in milliseconds: from the floor at 0 to the ceiling at 100.
    fn wait_millis(&self, score: f64) -> u64 {
        let (floor, ceiling) = (self.settings.wait_floor_seconds, self.settings.wait_ceiling_seconds);
        let share = if score.is_finite() { score.clamp(0.0, exchange::MAX_SCORE) } else { exchange::MAX_SCORE };
        // A saturating conversion of a number between 0 and the span.
        let more = (f64::from(ceiling.saturating_sub(floor)) * 1000.0 * share / exchange::MAX_SCORE) as u64;
        u64::from(floor).saturating_mul(1000).saturating_add(more)
    }

    fn ticket_name(&self) -> String {
        format!("{}{SUFFIX}", self.settings.cookie_name)
    }

    fn ticket_cookie(&self, ticket: &Ticket, exchange: &Exchange, now: u64) -> Vec<u8> {
        let value = self.keys.sign(Purpose::Wait, ticket);
        set_cookie(&self.ticket_name(), &value, ticket.exp.saturating_sub(now).div_ceil(1000), exchange)
    }
}

fn set_cookie(name: &str, value: &str, seconds: u64, exchange: &Exchange) -> Vec<u8> {
    let secure = if is_https(exchange) { "; Secure" } else { "" };
    format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}").into_bytes()
}

fn seconds(due: u64, now: u64) -> u64 {
    due.saturating_sub(now).div_ceil(1000).max(LEAST_SECONDS)
}

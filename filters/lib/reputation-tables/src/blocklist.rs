//! Verdicts of DNS blocklists on callers.
//!
//! The control plane resolves and keeps a table of verdicts. A step looks a caller up in it, and asks for one who has no verdict: with
//! a question that the request waits for, or with a report that nothing waits for.

use std::cell::Cell;
use std::net::IpAddr;

use exchange::{Answer, Ask, Host, KeysTable, SharedData, Table, Update, canonical};
use prost::Message;
use snapshot::Topic;

/// The table of verdicts, by [`verdict_key`].
pub const VERDICTS: &str = "ip-reputation.blocklists";
/// What verdicts have in front of the key of a zone that has not answered: whether it lists the address is not known.
pub const UNKNOWN: u8 = b'?';
/// The kind of the reports by which gateways ask for verdicts that no request waits for.
pub const REPORTS: &str = "ip-reputation.addresses";

/// What this node has asked, by key, with the answers of the last seconds; and how much it has asked about a network.
const ASKED: Table = Table { name: "svc.blocklists", shards: 1024, entries_per_shard: 48 };
/// How long the table is waited for before the question is repeated, in milliseconds.
const REPEAT_AFTER: u64 = 10_000;
/// How long the questions about a network are counted, in milliseconds, and how many there are in that time at most: addresses of one
/// network are cheap to get, and must not crowd out others.
const NETWORK_WINDOW: u64 = 10_000;
const NETWORK_QUESTIONS: u8 = 32;
/// The most questions of a worker in a second: what a flood from everywhere costs.
const QUESTIONS_A_SECOND: u32 = 100;

/// An address that gateways want to know the verdict on.
#[derive(Clone, PartialEq, Message)]
pub struct AddressQuestion {
    /// Its 4 or 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// How long the request waits, in milliseconds. The answer comes by then or not at all.
    #[prost(uint32, tag = "2")]
    pub millis: u32,
}

/// The answer to it.
#[derive(Clone, PartialEq, Message)]
pub struct AddressAnswer {
    /// The keys of the zones that list the address, as a verdict has them.
    #[prost(bytes = "vec", tag = "1")]
    pub keys: Vec<u8>,
}

impl Topic for AddressQuestion {
    const TOPIC: &'static str = "ip-reputation.address";
    type Answer = AddressAnswer;
}

/// A verdict as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressVerdict {
    /// Until when it holds, in milliseconds since 1970.
    pub until: u64,
    /// From when on it should be renewed if the caller is met, in milliseconds since 1970.
    pub renew: u64,
    /// The keys of zones, see [`BlocklistVerdict::keys`].
    pub keys: Vec<u8>,
}

impl AddressVerdict {
    /// The value in the table.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.until.to_be_bytes()[..], &self.renew.to_be_bytes(), &self.keys].concat()
    }

    /// Reads a value of the table.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<AddressVerdict> {
        let (until, rest) = bytes.split_first_chunk()?;
        let (renew, keys) = rest.split_first_chunk()?;
        let (until, renew) = (u64::from_be_bytes(*until), u64::from_be_bytes(*renew));
        Some(AddressVerdict { until, renew, keys: keys.to_vec() })
    }
}

/// The key of an address in the table: its 4 bytes, or the 8 of its network /64, which has one subscriber.
#[must_use]
pub fn verdict_key(address: IpAddr) -> Vec<u8> {
    match canonical(address) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().into_iter().take(8).collect(),
    }
}

/// The bytes of an address, as questions have them.
#[must_use]
pub fn address_bytes(address: IpAddr) -> Vec<u8> {
    match canonical(address) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address of a question, if lists may be asked about it.
#[must_use]
pub fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    (address == canonical(address) && is_listable(address)).then_some(address)
}

/// The network of an address, the first three bytes of IPv4 and six of IPv6: shorter than every key of a verdict of its family.
#[must_use]
pub fn network(address: IpAddr) -> Vec<u8> {
    match canonical(address) {
        IpAddr::V4(address) => address.octets().into_iter().take(3).collect(),
        IpAddr::V6(address) => address.octets().into_iter().take(6).collect(),
    }
}

/// Whether an address can be on a list: one that means the same everywhere. Addresses of networks of one's own are not told to lists.
#[must_use]
pub fn is_listable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let shared = address.octets().first_chunk().is_some_and(|[one, two]| *one == 100 && two & 0xc0 == 64);
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || address.octets().starts_with(&[0])
                || shared)
        }
        // Global unicast.
        IpAddr::V6(address) => address.octets().first().is_some_and(|byte| byte & 0xe0 == 0x20),
    }
}

/// What is known of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlocklistVerdict {
    /// The keys of the zones that list it, and with [`UNKNOWN`] in front those of zones that have not answered; with commas between them.
    pub keys: Vec<u8>,
    /// It should be renewed, as the caller is met: see [`Blocklists::ask`].
    pub is_due: bool,
}

impl BlocklistVerdict {
    /// Whether the zone with this key lists the address; `None` where that could not be found out.
    #[must_use]
    pub fn lists(&self, zone: &str) -> Option<bool> {
        for key in self.keys.split(|byte| *byte == b',') {
            match key.strip_prefix(&[UNKNOWN]) {
                Some(unknown) if unknown == zone.as_bytes() => return None,
                None if key == zone.as_bytes() => return Some(true),
                _ => {}
            }
        }
        Some(false)
    }
}

/// The lists of a step on one worker.
pub struct Blocklists {
    table: KeysTable,
    /// How long a request waits for a verdict, in milliseconds; 0: none waits.
    wait: u32,
    /// The second that is counted, and the questions in it.
    second: Cell<(u64, u32)>,
}

impl Blocklists {
    /// The lists in a table of verdicts ([`VERDICTS`]). A request waits `wait` milliseconds for a verdict; 0: none waits.
    #[must_use]
    pub fn new(table: KeysTable, wait: u32) -> Blocklists {
        Blocklists { table, wait, second: Cell::default() }
    }

    /// The keys of the zones that list an address, with commas between them; `None` if that is not known. Asks for a verdict that is due.
    #[must_use]
    pub fn known(&self, address: IpAddr, host: &dyn Host) -> Option<Vec<u8>> {
        let BlocklistVerdict { keys, is_due } = self.look_up(address, host.shared(), host.now())?;
        if is_due && self.may_ask(&verdict_key(address), address, host) {
            report(address, host);
        }
        Some(keys)
    }

    /// The verdict on an address; `None` if there is none. Nothing is asked.
    #[must_use]
    pub fn look_up(&self, address: IpAddr, shared: &dyn SharedData, now: u64) -> Option<BlocklistVerdict> {
        if !is_listable(address) {
            return Some(BlocklistVerdict { keys: Vec::new(), is_due: false });
        }
        let key = verdict_key(address);
        let verdict = self.table.read(|keys| keys.find(&key).and_then(AddressVerdict::read)).flatten();
        if let Some(verdict) = verdict.filter(|verdict| verdict.until > now) {
            return Some(BlocklistVerdict { is_due: verdict.renew <= now, keys: verdict.keys });
        }
        // An answer is there before the table.
        let asked = ASKED.get(shared, &key, now)?;
        asked.value.split_first().map(|(_, keys)| BlocklistVerdict { keys: keys.to_vec(), is_due: false })
    }

    /// Asks for the verdict on an address that is not known or due; `None` where nothing is to be waited for.
    #[must_use]
    pub fn ask(&self, address: IpAddr, host: &dyn Host) -> Option<Ask> {
        if !is_listable(address) || !self.may_ask(&verdict_key(address), address, host) {
            return None;
        }
        if self.wait == 0 {
            report(address, host);
            return None;
        }
        let question = AddressQuestion { address: address_bytes(address), millis: self.wait };
        Some(Ask::new(&question, self.wait))
    }

    /// The keys that an answer has. All workers of the node know them from then on.
    #[must_use]
    pub fn answered(address: IpAddr, answer: &Answer, host: &dyn Host) -> Vec<u8> {
        let Some(AddressAnswer { keys }) = answer.read::<AddressQuestion>() else { return Vec::new() };
        let (now, value) = (host.now(), [&[1], &keys[..]].concat());
        let key = verdict_key(address);
        // Without room for it, the table comes soon.
        let _ =
            ASKED.update(host.shared(), &key, now, |_| Update::Put(value.clone(), now.saturating_add(REPEAT_AFTER)));
        keys
    }

    /// Whether a question may be asked now. It is noted as asked.
    fn may_ask(&self, key: &[u8], address: IpAddr, host: &dyn Host) -> bool {
        let (now, shared) = (host.now(), host.shared());
        let second = now / 1000;
        let count = Some(self.second.get()).filter(|(counted, _)| *counted == second).map_or(0, |(_, count)| count);
        if count >= QUESTIONS_A_SECOND || ASKED.get(shared, key, now).is_some() {
            return false;
        }
        if !has_room(&network(address), now, host) {
            return false;
        }
        self.second.set((second, count.saturating_add(1)));
        // Two workers may have come here at once: one of them asks.
        let mut first = false;
        let noted = ASKED.update(shared, key, now, |known| {
            first = known.is_none();
            match known {
                Some(_) => Update::Keep,
                None => Update::Put(Vec::new(), now.saturating_add(REPEAT_AFTER)),
            }
        });
        first && noted.is_ok()
    }
}

fn report(address: IpAddr, host: &dyn Host) {
    let question = AddressQuestion { address: address_bytes(address), millis: 0 };
    host.send_report(REPORTS, question.encode_to_vec());
}

/// Counts a question about a network; false where there were enough.
fn has_room(network: &[u8], now: u64, host: &dyn Host) -> bool {
    let mut room = false;
    let counted = ASKED.update(host.shared(), network, now, |known| {
        let count = known.and_then(|entry| entry.value.first().copied()).unwrap_or(0);
        let end = known.map_or(now.saturating_add(NETWORK_WINDOW), |entry| entry.expires_at);
        room = count < NETWORK_QUESTIONS;
        if room { Update::Put(vec![count.saturating_add(1)], end) } else { Update::Keep }
    });
    room && counted.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_that_has_not_answered_is_not_known() {
        let lists = |keys: &str, zone: &str| BlocklistVerdict { keys: keys.into(), is_due: false }.lists(zone);
        assert_eq!((lists("aa,cc", "aa"), lists("aa,cc", "bb")), (Some(true), Some(false)));
        assert_eq!(
            (lists("aa,?bb", "aa"), lists("aa,?bb", "bb"), lists("aa,?bb", "cc")),
            (Some(true), None, Some(false))
        );
        assert_eq!((lists("", "aa"), lists("?aa", "aa")), (Some(false), None));
        assert_eq!((lists("aaa", "aa"), lists("?aaa", "aa")), (Some(false), Some(false)), "keys are compared whole");
    }
}

//! A zone: how it is asked about an address, and what its answers mean.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use dns::{DnsName, Resolver};

use super::settings::{DnsblZone, code};

/// The answers of Spamhaus' ZEN that are listings: not those on dial-up lines (10, 11), from which callers come.
const ZEN: [u8; 7] = [2, 3, 4, 5, 6, 7, 9];
/// What every zone lists, and what none does.
const LISTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const UNLISTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

/// A zone that is asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zone {
    /// What verdicts call it by. It is another one where other answers are listings.
    pub(super) key: String,
    pub(super) name: Arc<str>,
    /// The answers that are listings; empty means all.
    codes: Vec<Ipv4Addr>,
}

// === impl Zone ===

impl Zone {
    pub(super) fn of(settings: &DnsblZone) -> Zone {
        let name = settings.name();
        let mut codes: Vec<Ipv4Addr> = settings.codes.iter().filter_map(|text| code(text)).collect();
        if codes.is_empty() && (name == "zen.spamhaus.org" || name.ends_with(".zen.dq.spamhaus.net")) {
            codes = ZEN.map(|last| Ipv4Addr::new(127, 0, 0, last)).to_vec();
        }
        codes.sort_unstable();
        codes.dedup();
        Zone { key: zone_key(settings), name: name.into(), codes }
    }

    /// The answers that list an address; none where it is not listed.
    ///
    /// # Errors
    /// The zone could not be asked, or answers with something that says nothing about the address; for people.
    pub(super) async fn look_up(&self, address: IpAddr, resolver: &Resolver) -> Result<Vec<Ipv4Addr>, String> {
        let mut codes = self.answers(address, resolver).await?;
        codes.retain(|code| self.codes.is_empty() || self.codes.contains(code));
        Ok(codes)
    }

    /// Whether it works, by what RFC 5782 has every zone say.
    ///
    /// # Errors
    /// Why it is not to be believed, for people.
    pub(super) async fn check(&self, resolver: &Resolver) -> Result<(), String> {
        if self.answers(LISTED.into(), resolver).await?.is_empty() {
            return Err(format!(
                "it does not list {LISTED}, as every list does: there is no such list, or it is empty"
            ));
        }
        if !self.answers(UNLISTED.into(), resolver).await?.is_empty() {
            return Err(format!("it lists {UNLISTED}, as no list does: it lists everything"));
        }
        Ok(())
    }

    /// All answers in the range of listings.
    async fn answers(&self, address: IpAddr, resolver: &Resolver) -> Result<Vec<Ipv4Addr>, String> {
        let name =
            DnsName::vec_from_str(&question(address, &self.name)).map_err(|_| "its name is too long".to_owned())?;
        let like = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let answers = resolver.addresses(name, like).await.map_err(|dns::NoAnswer(why)| why)?;
        let mut codes = Vec::new();
        for answer in answers {
            let IpAddr::V4(answer) = answer else { continue };
            if !is_listing(answer) {
                return Err(meaning(answer));
            }
            codes.push(answer);
        }
        codes.sort_unstable();
        codes.dedup();
        Ok(codes)
    }
}

/// What verdicts call a zone by. It is another one where other answers are listings.
pub(in super::super) fn zone_key(settings: &DnsblZone) -> String {
    reputation_tables::zone_key(&settings.zone, &settings.codes)
}

/// The name that is asked for.
fn question(address: IpAddr, zone: &str) -> String {
    let mut name = String::new();
    match address {
        IpAddr::V4(address) => {
            for byte in address.octets().iter().rev() {
                let _ = write!(name, "{byte}.");
            }
        }
        IpAddr::V6(address) => {
            for byte in address.octets().iter().rev() {
                let _ = write!(name, "{:x}.{:x}.", byte & 15, byte >> 4);
            }
        }
    }
    name + zone
}

/// Whether an answer is a listing: an address of 127.0.0.0/8 that is neither an error nor one that lists do not use.
pub(super) fn is_listing(answer: Ipv4Addr) -> bool {
    let [first, second, third, last] = answer.octets();
    let is_error = (second, third) == (255, 255);
    // 127.0.0.0 and 127.0.0.1 are what filtering resolvers answer with.
    first == 127 && !is_error && !((second, third) == (0, 0) && last < 2)
}

/// What an answer that is no listing means.
fn meaning(answer: Ipv4Addr) -> String {
    let why = match answer.octets() {
        [127, 255, 255, 252] => "the name of the zone is misspelt",
        [127, 255, 255, 254] => "it refuses questions of public resolvers: name resolvers of your own",
        [127, 255, 255, 255] => "it is asked too much",
        [127, 255, 255, _] => "an error of the list",
        _ => "no list answers that: the resolver or the owner of the name answers for it",
    };
    format!("the answer is {answer}: {why}")
}

//! Questions as messages, and what is read of the answers.

use std::net::IpAddr;

use domain::base::iana::{Class, Rcode};
use domain::base::name::ToName as _;
use domain::base::{Message, MessageBuilder, ParsedName, Rtype};
use domain::rdata::{A, Aaaa, Cname, Ptr};

use super::DnsName;

/// The records of an answer that are read at most; one with more is not used.
const MAX_RECORDS: u16 = 64;
/// The aliases between a name and its records that are followed at most.
const MAX_ALIASES: usize = 8;

/// A question, with its id.
#[derive(Debug, Clone)]
pub(super) struct Question {
    id: u16,
    name: DnsName,
    rtype: Rtype,
}

/// The records that a name has of the type that was asked for; none where the name does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) names: Vec<DnsName>,
    pub(super) addresses: Vec<IpAddr>,
}

/// What was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// No answer to this question.
    Stray,
    /// An answer whose records did not fit.
    Truncated,
    /// The answer.
    Records(Records),
}

impl Question {
    /// A question with an id that cannot be guessed.
    pub(super) fn new(name: DnsName, rtype: Rtype) -> Self {
        let mut id = [0; 2];
        // Without random numbers the port alone protects.
        let _ = getrandom::fill(&mut id);
        Self { id: u16::from_be_bytes(id), name, rtype }
    }

    /// The message.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(self.id);
        builder.header_mut().set_rd(true);
        let mut builder = builder.question();
        builder.push((&self.name, self.rtype)).map_err(|_| "a question that is too long".to_owned())?;
        Ok(builder.finish())
    }

    /// Reads what was received.
    ///
    /// # Errors
    ///
    /// It is an answer that says nothing: the resolver has failed or refuses, or it cannot be read.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<Parsed, String> {
        let Ok(message) = Message::from_octets(bytes) else { return Ok(Parsed::Stray) };
        let header = message.header();
        let is_same = message.sole_question().is_ok_and(|asked| {
            asked.qname().name_eq(&self.name) && asked.qtype() == self.rtype && asked.qclass() == Class::IN
        });
        if !header.qr() || header.id() != self.id || !is_same {
            return Ok(Parsed::Stray);
        }
        if header.tc() {
            return Ok(Parsed::Truncated);
        }
        match header.rcode() {
            Rcode::NOERROR => {}
            Rcode::NXDOMAIN => return Ok(Parsed::Records(Records::default())),
            other => return Err(format!("the resolver answers {other}")),
        }
        let count = message.header_counts().ancount();
        if count > MAX_RECORDS {
            return Err(format!("an answer of {count} records"));
        }
        self.records(&message).map(Parsed::Records)
    }

    fn records(&self, message: &Message<&[u8]>) -> Result<Records, String> {
        let unreadable = |_| "an answer that cannot be read".to_owned();
        let (mut aliases, mut names, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
        for record in message.answer().map_err(unreadable)? {
            let record = record.map_err(unreadable)?;
            if record.class() != Class::IN {
                continue;
            }
            let owner = record.owner();
            match record.rtype() {
                Rtype::CNAME => {
                    let alias = record.to_record::<Cname<ParsedName<_>>>().map_err(unreadable)?;
                    aliases.extend(alias.map(|alias| (owner, alias.data().cname().to_vec())));
                }
                Rtype::PTR if self.rtype == Rtype::PTR => {
                    let name = record.to_record::<Ptr<ParsedName<_>>>().map_err(unreadable)?;
                    names.extend(name.map(|name| (owner, name.data().ptrdname().to_vec())));
                }
                Rtype::A if self.rtype == Rtype::A => {
                    let address = record.to_record::<A>().map_err(unreadable)?;
                    addresses.extend(address.map(|address| (owner, IpAddr::V4(address.data().addr()))));
                }
                Rtype::AAAA if self.rtype == Rtype::AAAA => {
                    let address = record.to_record::<Aaaa>().map_err(unreadable)?;
                    addresses.extend(address.map(|address| (owner, IpAddr::V6(address.data().addr()))));
                }
                _ => {}
            }
        }
        // Records of other names are none of the question's.
        let mut name = self.name.clone();
        for _ in 0..=MAX_ALIASES {
            let own_names = names.iter().filter(|(owner, _)| owner.name_eq(&name)).map(|(_, name)| name.clone());
            let own_addresses = addresses.iter().filter(|(owner, _)| owner.name_eq(&name)).map(|(_, address)| *address);
            let records = Records { names: own_names.collect(), addresses: own_addresses.collect() };
            match aliases.iter().find(|(owner, _)| owner.name_eq(&name)) {
                _ if records != Records::default() => return Ok(records),
                Some((_, target)) => name.clone_from(target),
                // Resolvers follow aliases to their end, so the end is either there or was not found out.
                None if !aliases.is_empty() => return Err("an alias that leads nowhere".to_owned()),
                None => return Ok(records),
            }
        }
        Err("a chain of aliases that is too long".to_owned())
    }
}

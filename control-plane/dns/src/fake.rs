//! A DNS server for tests, over UDP and TCP on one port of the loopback. It lies as it is told to.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "tests"
)]

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use domain::base::iana::{Class, Rcode};
use domain::base::{Message, MessageBuilder, Name, Rtype};
use domain::rdata::{A, Aaaa, Cname, Ptr};

/// What is answered to a question.
#[derive(Clone, Debug)]
pub enum Says {
    /// These host names.
    Names(Vec<String>),
    /// These addresses.
    Addresses(Vec<IpAddr>),
    /// An alias, and what the server has of it.
    Alias(String),
    /// An alias, and nothing else.
    DeadAlias(String),
    /// Nothing, with this code.
    Code(Rcode),
    /// No answer at all.
    Silence,
    /// A truncated answer; over TCP this one.
    Truncated(Box<Says>),
    /// An answer with another id, then one to another question, then this one.
    AfterStrays(Box<Says>),
    /// Bytes behind a right header and a right question that are no records.
    Garbage,
    /// An answer over TCP that is announced and does not come whole.
    Half,
    /// The records of another name.
    OfAnother(String, Box<Says>),
}

/// The server. It stops with the process.
#[derive(Clone)]
pub struct DnsServer {
    /// Where it listens.
    pub address: SocketAddr,
    says: Arc<Mutex<HashMap<(String, Rtype), Says>>>,
    asked: Arc<Mutex<Vec<(String, Rtype)>>>,
}

impl DnsServer {
    /// A server that knows no names.
    pub fn start() -> DnsServer {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().unwrap();
        let server = DnsServer { address, says: Arc::default(), asked: Arc::default() };
        let (over_udp, over_tcp) = (server.clone(), server.clone());
        std::thread::spawn(move || over_udp.udp(&udp));
        std::thread::spawn(move || over_tcp.tcp(&tcp));
        server.says(".", Rtype::NS, Says::Code(Rcode::NOERROR));
        server
    }

    /// Tells it what to say.
    pub fn says(&self, name: &str, rtype: Rtype, says: Says) {
        self.says.lock().unwrap().insert((name.to_owned(), rtype), says);
    }

    /// Tells it what to say of the host names of an address.
    pub fn reverse(&self, address: &str, says: Says) {
        self.says(&reverse_name(address), Rtype::PTR, says);
    }

    /// An address whose host name has it again.
    pub fn crawler(&self, address: &str, name: &str) {
        self.reverse(address, Says::Names(vec![name.to_owned()]));
        let address: IpAddr = address.parse().unwrap();
        let rtype = if address.is_ipv4() { Rtype::A } else { Rtype::AAAA };
        self.says(name, rtype, Says::Addresses(vec![address]));
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<(String, Rtype)> {
        self.asked.lock().unwrap().clone()
    }

    /// How often the host names of an address were asked for.
    pub fn asked_of(&self, address: &str) -> usize {
        let name = reverse_name(address);
        self.asked().iter().filter(|(asked, _)| *asked == name).count()
    }

    fn udp(&self, socket: &UdpSocket) {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            for answer in self.answers(&buffer[..length], false) {
                let _ = socket.send_to(&answer, from);
            }
        }
    }

    fn tcp(&self, listener: &TcpListener) {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut length = [0; 2];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            if stream.read_exact(&mut question).is_err() {
                continue;
            }
            for answer in self.answers(&question, true) {
                let length = u16::try_from(answer.len()).unwrap();
                let _ = stream.write_all(&[&length.to_be_bytes()[..], &answer].concat());
            }
        }
    }

    fn answers(&self, question: &[u8], tcp: bool) -> Vec<Vec<u8>> {
        let question = Message::from_octets(question.to_vec()).unwrap();
        let asked = question.sole_question().unwrap();
        let (name, rtype) = (asked.qname().to_string().to_ascii_lowercase(), asked.qtype());
        let name = if name.is_empty() { ".".to_owned() } else { name };
        self.asked.lock().unwrap().push((name.clone(), rtype));
        let says = self.says.lock().unwrap().get(&(name.clone(), rtype)).cloned();
        self.say(&question, &name, says.unwrap_or(Says::Code(Rcode::NXDOMAIN)), tcp)
    }

    fn say(&self, question: &Message<Vec<u8>>, owner: &str, says: Says, tcp: bool) -> Vec<Vec<u8>> {
        let rtype = question.sole_question().unwrap().qtype();
        match says {
            Says::Silence => Vec::new(),
            Says::Truncated(says) if tcp => self.say(question, owner, *says, tcp),
            Says::Truncated(_) => {
                let mut builder = MessageBuilder::new_vec().start_answer(question, Rcode::NOERROR).unwrap();
                builder.header_mut().set_tc(true);
                vec![builder.finish()]
            }
            Says::Half => {
                // The stream ends behind the first message, so a length without its bytes is all of it.
                vec![message(question, Rcode::NOERROR, &[])[..7].to_vec()]
            }
            Says::AfterStrays(says) => {
                let mut other_id = message(question, Rcode::NOERROR, &[]);
                other_id[0] ^= 0xff;
                let mut other_question = message(question, Rcode::NOERROR, &[]);
                let last = other_question.len() - 3;
                other_question[last] ^= 1;
                let mut all = vec![other_id, other_question, vec![1, 2, 3]];
                all.extend(self.say(question, owner, *says, tcp));
                all
            }
            Says::Garbage => {
                let mut garbage = message(question, Rcode::NOERROR, &[]);
                garbage[7] = 5;
                garbage.extend_from_slice(&[0xc0, 0xff, 0, 12, 0, 1, 9, 9]);
                vec![garbage]
            }
            Says::Code(code) => vec![message(question, code, &[])],
            Says::OfAnother(name, says) => self.say(question, &name, *says, tcp),
            Says::DeadAlias(target) => {
                vec![message(question, Rcode::NOERROR, &[(owner.to_owned(), Data::Alias(target))])]
            }
            Says::Alias(_) => vec![message(question, Rcode::NOERROR, &self.chain(owner, rtype))],
            records => vec![message(question, Rcode::NOERROR, &data(owner, &records))],
        }
    }

    /// The records of a name at the end of its aliases, and the aliases; 20 of them at most.
    fn chain(&self, owner: &str, rtype: Rtype) -> Vec<(String, Data)> {
        let (mut records, mut owner) = (Vec::new(), owner.to_owned());
        let says = self.says.lock().unwrap();
        for _ in 0..20 {
            match says.get(&(owner.clone(), rtype)) {
                Some(Says::Alias(target)) => {
                    records.push((owner, Data::Alias(target.clone())));
                    owner = target.clone();
                }
                Some(other) => {
                    records.extend(data(&owner, other));
                    break;
                }
                None => break,
            }
        }
        records
    }
}

#[derive(Clone)]
enum Data {
    Alias(String),
    Name(String),
    Address(IpAddr),
}

fn data(owner: &str, says: &Says) -> Vec<(String, Data)> {
    match says {
        Says::Names(names) => names.iter().map(|name| (owner.to_owned(), Data::Name(name.clone()))).collect(),
        Says::Addresses(all) => all.iter().map(|address| (owner.to_owned(), Data::Address(*address))).collect(),
        _ => Vec::new(),
    }
}

fn message(question: &Message<Vec<u8>>, code: Rcode, records: &[(String, Data)]) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec().start_answer(question, code).unwrap();
    builder.header_mut().set_ra(true);
    let name = |text: &str| Name::vec_from_str(text).unwrap();
    for (owner, data) in records {
        let owner = (name(owner), Class::IN, 60);
        match data {
            Data::Alias(target) => builder.push((owner.0, owner.1, owner.2, Cname::new(name(target)))).unwrap(),
            Data::Name(target) => builder.push((owner.0, owner.1, owner.2, Ptr::new(name(target)))).unwrap(),
            Data::Address(IpAddr::V4(address)) => {
                builder.push((owner.0, owner.1, owner.2, A::new(*address))).unwrap();
            }
            Data::Address(IpAddr::V6(address)) => {
                builder.push((owner.0, owner.1, owner.2, Aaaa::new(*address))).unwrap();
            }
        }
    }
    builder.finish()
}

/// The name that has the host names of an address, in lower case.
pub fn reverse_name(address: &str) -> String {
    Name::<Vec<u8>>::reverse_from_addr(address.parse().unwrap()).unwrap().to_string().to_ascii_lowercase()
}

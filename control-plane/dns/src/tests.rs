//! The resolver against a server that lies.

use std::net::SocketAddr;
use std::time::Duration;

use domain::base::Rtype;
use domain::base::iana::Rcode;

use super::fake::{DnsServer, Says, reverse_name};
use super::*;

const ADDRESS: &str = "192.0.2.7";

fn resolver(servers: &[SocketAddr]) -> Resolver {
    Resolver { servers: servers.to_vec(), timeout: Duration::from_millis(300) }
}

/// The host names of the address, as the server says them.
async fn names(server: &DnsServer) -> Result<Vec<String>, String> {
    let names = resolver(&[server.address]).names(ADDRESS.parse().unwrap()).await;
    names.map(|names| names.iter().map(ToString::to_string).collect()).map_err(|NoAnswer(why)| why)
}

fn some() -> Says {
    Says::Names(vec!["a.example".to_owned(), "B.example".to_owned()])
}

#[tokio::test]
async fn names_and_addresses_of_both_families_are_read() {
    let server = DnsServer::start();
    assert_eq!(names(&server).await, Ok(Vec::new()), "a name that does not exist has none");
    server.reverse(ADDRESS, some());
    assert_eq!(names(&server).await.unwrap(), ["a.example", "B.example"]);
    assert_eq!(server.asked().last().unwrap().0, "7.2.0.192.in-addr.arpa");
    for (address, rtype) in [("192.0.2.9", Rtype::A), ("2001:db8::9", Rtype::AAAA)] {
        let address: IpAddr = address.parse().unwrap();
        server.says("a.example", rtype, Says::Addresses(vec![address]));
        let name = DnsName::vec_from_str("A.example").unwrap();
        assert_eq!(resolver(&[server.address]).addresses(name, address).await, Ok(vec![address]));
    }
    let v6 = resolver(&[server.address]).names("2001:db8::1".parse().unwrap()).await;
    assert_eq!(v6, Ok(Vec::new()));
    assert!(
        server.asked().last().unwrap().0.starts_with("1.0.0.0.0.0.0.0") && reverse_name("::1").ends_with("ip6.arpa")
    );
}

#[tokio::test]
async fn truncated_answers_come_over_tcp_and_strays_are_passed_over() {
    let server = DnsServer::start();
    server.reverse(ADDRESS, Says::Truncated(Box::new(some())));
    assert_eq!(names(&server).await.unwrap().len(), 2);
    server.reverse(ADDRESS, Says::AfterStrays(Box::new(some())));
    assert_eq!(names(&server).await.unwrap().len(), 2);
    let many = Says::Names((0..40).map(|number| format!("host-{number}.of.a.long.name.example")).collect());
    server.reverse(ADDRESS, Says::Truncated(Box::new(many)));
    assert_eq!(names(&server).await.unwrap().len(), 40);
}

#[tokio::test]
async fn aliases_are_followed_and_records_of_others_are_not_used() {
    let server = DnsServer::start();
    server.reverse(ADDRESS, Says::Alias("7.sub.example".to_owned()));
    server.says("7.sub.example", Rtype::PTR, some());
    assert_eq!(names(&server).await.unwrap().len(), 2, "a delegation of less than a byte of addresses");
    server.reverse(ADDRESS, Says::OfAnother("8.2.0.192.in-addr.arpa".to_owned(), Box::new(some())));
    assert_eq!(names(&server).await, Ok(Vec::new()));
    for (length, fine) in [(8, true), (9, false)] {
        (1..length).for_each(|link| {
            server.says(&format!("l{link}.example"), Rtype::PTR, Says::Alias(format!("l{}.example", link + 1)));
        });
        server.reverse(ADDRESS, Says::Alias("l1.example".to_owned()));
        server.says(&format!("l{length}.example"), Rtype::PTR, some());
        assert_eq!(names(&server).await.is_ok(), fine, "{length} aliases");
    }
}

#[tokio::test]
async fn what_says_nothing_is_no_answer() {
    let server = DnsServer::start();
    let looped = |server: &DnsServer| server.says("loop.example", Rtype::PTR, Says::Alias("loop.example".to_owned()));
    looped(&server);
    let too_many = Says::Names((0..65).map(|number| format!("h{number}.x")).collect());
    for (says, why) in [
        (Says::Code(Rcode::SERVFAIL), "the resolver answers SERVFAIL"),
        (Says::Code(Rcode::REFUSED), "the resolver answers REFUSED"),
        (Says::Silence, "no answer within 300 ms"),
        (Says::Truncated(Box::new(Says::Truncated(Box::new(some())))), ""),
        (Says::Truncated(Box::new(Says::Silence)), ""),
        (Says::Truncated(Box::new(Says::Half)), "an answer to another question"),
        (Says::Truncated(Box::new(too_many)), "an answer of 65 records"),
        (Says::Alias("loop.example".to_owned()), "a chain of aliases that is too long"),
        (Says::DeadAlias("nowhere.example".to_owned()), "an alias that leads nowhere"),
        (Says::Garbage, "an answer that cannot be read"),
    ] {
        server.reverse(ADDRESS, says.clone());
        let answer = names(&server).await;
        if matches!(&says, Says::Truncated(inner) if matches!(**inner, Says::Truncated(_))) {
            // The test's server says over TCP what is within.
            assert_eq!(answer.unwrap().len(), 2);
            continue;
        }
        let error = answer.unwrap_err();
        assert!(error.contains(why) && error.starts_with("127.0.0.1:"), "{says:?}: {error}");
    }
}

#[tokio::test]
async fn another_resolver_is_asked_where_one_does_not_answer() {
    let (down, works) = (DnsServer::start(), DnsServer::start());
    works.reverse(ADDRESS, some());
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for says in [Says::Silence, Says::Code(Rcode::SERVFAIL)] {
        down.reverse(ADDRESS, says);
        for first in [down.address, unused] {
            let found = resolver(&[first, works.address]).names(ADDRESS.parse().unwrap()).await;
            assert_eq!(found.unwrap().len(), 2);
        }
    }
    let before = down.asked().len();
    down.reverse(ADDRESS, Says::Code(Rcode::SERVFAIL));
    assert!(resolver(&[down.address]).names(ADDRESS.parse().unwrap()).await.is_err());
    assert_eq!(down.asked().len() - before, 2, "a lone resolver is asked twice");
    assert!(resolver(&[]).names(ADDRESS.parse().unwrap()).await.is_err());
}

#[tokio::test]
async fn a_probe_is_answered_by_whatever_works() {
    let server = DnsServer::start();
    for (says, works) in [
        (Says::Code(Rcode::NOERROR), true),
        (Says::Code(Rcode::NXDOMAIN), true),
        (Says::Code(Rcode::SERVFAIL), false),
        (Says::Silence, false),
    ] {
        server.says(".", Rtype::NS, says.clone());
        assert_eq!(resolver(&[server.address]).probe().await.is_ok(), works, "{says:?}");
    }
}

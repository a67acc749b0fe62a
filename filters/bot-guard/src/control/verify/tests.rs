//! The verification, piece by piece and as a whole.

mod bounds;
mod gathering;

use std::net::IpAddr;
use std::time::Duration;

use dns::fake::{DnsServer, Says};
use dns::{DnsName, NoAnswer, Resolver};
use domain::base::Rtype;
use domain::base::iana::Rcode;

use super::confirm::confirm;
use crate::Finding;

const ADDRESS: &str = "192.0.2.7";
const V6: &str = "2001:db8::7";

async fn found(server: &DnsServer, address: &str) -> Result<Finding, String> {
    let domains: Vec<DnsName> =
        ["googlebot.com", "google.com"].into_iter().map(|domain| DnsName::vec_from_str(domain).unwrap()).collect();
    let resolver = Resolver { servers: vec![server.address], timeout: Duration::from_millis(200) };
    confirm(address.parse().unwrap(), &domains, &resolver).await.map_err(|NoAnswer(why)| why)
}

fn named(names: &[&str]) -> Says {
    Says::Names(names.iter().map(|name| (*name).to_owned()).collect())
}

fn at(addresses: &[&str]) -> Says {
    Says::Addresses(addresses.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect())
}

#[tokio::test]
async fn a_crawler_is_verified_by_the_name_that_has_its_address() {
    let server = DnsServer::start();
    for (address, name) in [(ADDRESS, "crawl-1.googlebot.com"), (V6, "rate-limited.GOOGLE.com")] {
        server.crawler(address, &name.to_ascii_lowercase());
        server.reverse(address, named(&["other.example", name]));
        assert_eq!(found(&server, address).await, Ok(Finding::Verified), "{name}");
    }
    assert!(!server.asked().iter().any(|(name, _)| name == "other.example"), "names of others are not looked up");
}

#[tokio::test]
async fn names_that_only_look_like_the_bots_are_not_its() {
    let server = DnsServer::start();
    for name in [
        "evilgooglebot.com",
        "googlebot.com.evil.net",
        "googlebot.com",
        "google.com",
        "x.googlebot.com.",
        "crawl.googlebot.co",
        "crawl.google.com.br",
        "a.evil-googlebot.com",
        // A dot within a label separates nothing: this is `x.googlebot` below `com`.
        "crawl.x\\.googlebot.com",
        "crawl\\.googlebot.com",
    ] {
        // The owner of the address has made that name lead to it.
        server.reverse(ADDRESS, named(&[name]));
        server.says(name.trim_end_matches('.'), Rtype::A, at(&[ADDRESS]));
        let expected = if name == "x.googlebot.com." { Finding::Verified } else { Finding::Impersonator };
        assert_eq!(found(&server, ADDRESS).await, Ok(expected), "{name}");
    }
}

#[tokio::test]
async fn the_same_name_must_be_confirmed() {
    let server = DnsServer::start();
    // Another name of the address has it, but is not the bot's; the bot's name has another address.
    server.reverse(ADDRESS, named(&["mine.evil.example", "crawl-1.googlebot.com"]));
    server.says("mine.evil.example", Rtype::A, at(&[ADDRESS]));
    server.says("crawl-1.googlebot.com", Rtype::A, at(&["66.249.66.1"]));
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Impersonator));
    // Of two names of the bot one has it.
    server.reverse(ADDRESS, named(&["crawl-1.googlebot.com", "crawl-2.googlebot.com"]));
    server.says("crawl-2.googlebot.com", Rtype::A, at(&["66.249.66.2", ADDRESS]));
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Verified));
    // An address of the other family proves nothing.
    server.reverse(V6, named(&["crawl-6.googlebot.com"]));
    server.says("crawl-6.googlebot.com", Rtype::A, at(&[ADDRESS]));
    assert_eq!(found(&server, V6).await, Ok(Finding::Impersonator));
}

#[tokio::test]
async fn an_address_without_a_name_of_the_bot_is_an_impersonators() {
    let server = DnsServer::start();
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Impersonator), "no name at all");
    server.reverse(ADDRESS, Says::Code(Rcode::NOERROR));
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Impersonator));
    server.reverse(ADDRESS, named(&["crawl-9.googlebot.com"]));
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Impersonator), "a name that does not exist");
}

#[tokio::test]
async fn a_failure_is_never_an_impersonator() {
    let server = DnsServer::start();
    let failures = || {
        vec![
            Says::Silence,
            Says::Code(Rcode::SERVFAIL),
            Says::Code(Rcode::REFUSED),
            Says::Code(Rcode::NOTIMP),
            Says::Garbage,
            Says::DeadAlias("x.example".to_owned()),
            Says::Truncated(Box::new(Says::Silence)),
        ]
    };
    for failure in failures() {
        server.reverse(ADDRESS, failure.clone());
        assert!(found(&server, ADDRESS).await.is_err(), "{failure:?}");
    }
    server.reverse(ADDRESS, named(&["crawl-1.googlebot.com", "crawl-2.googlebot.com"]));
    server.says("crawl-2.googlebot.com", Rtype::A, at(&["192.0.2.99"]));
    for failure in failures() {
        server.says("crawl-1.googlebot.com", Rtype::A, failure.clone());
        assert!(found(&server, ADDRESS).await.is_err(), "{failure:?}");
    }
    server.says("crawl-2.googlebot.com", Rtype::A, at(&[ADDRESS]));
    assert_eq!(found(&server, ADDRESS).await, Ok(Finding::Verified), "one of the names is enough");
}

#[tokio::test]
async fn an_address_with_many_names_is_not_judged_and_costs_little() {
    let server = DnsServer::start();
    let many = |count: usize, domain: &str| (0..count).map(|number| format!("h{number}.{domain}")).collect::<Vec<_>>();
    for (names, judged) in [
        (many(17, "example"), false),
        (many(16, "example"), true),
        (many(5, "googlebot.com"), false),
        (many(4, "googlebot.com"), true),
    ] {
        server.reverse(ADDRESS, Says::Truncated(Box::new(Says::Names(names.clone()))));
        let before = server.asked().len();
        assert_eq!(found(&server, ADDRESS).await.is_ok(), judged, "{} {}", names.len(), names[0]);
        let questions = server.asked().len() - before;
        assert!(questions <= 2 + 4, "{questions}");
    }
}

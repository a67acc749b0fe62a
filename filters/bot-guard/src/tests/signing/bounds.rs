//! What signatures cost, in verifications.

use exchange::Metric;

use super::*;

fn bad(address: &str, number: usize) -> Signed {
    Signed { base: Some(format!("forged {number}")), address: address.to_owned(), ..Signed::new() }
}

const CALLER: &str = "the caller has sent too many wrong ones";
const WORKER: &str = "there are too many to verify in this second";

#[test]
fn a_flood_of_bad_signatures_of_a_caller_costs_four_verifications_and_others_nothing() {
    let worker = Worker::new();
    let found: Vec<String> = (0..1000).map(|number| worker.finds(&bad("192.0.2.66", number))).collect();
    assert_eq!(found.iter().filter(|found| *found == "bad").count(), 4);
    assert!(found[4..].iter().all(|found| found == CALLER), "{:?}", found.last());
    let counted = |metric| worker.host.counts.borrow().get(&metric).copied();
    assert_eq!((counted(Metric::SignaturesVerified), counted(Metric::SignaturesOverBudget)), (Some(4), Some(996)));
    // A right one of the same address is not verified meanwhile, and is no impersonator.
    let mut own = Signed { address: "192.0.2.66".to_owned(), ..Signed::new() };
    assert_eq!(worker.finds(&own), CALLER);
    assert!(matches!(worker.meets(&mut own.exchange()).0, Verdict::Pass));
    for address in ["192.0.2.67", "198.51.100.1", "2001:db8::1"] {
        own.address = address.to_owned();
        let other = own.clone().with(&format!("nonce=\"{address}\""));
        assert_eq!(worker.finds(&other), "v signerbot", "{address}");
    }
    worker.host.advance(60_000);
    own.address = "192.0.2.66".to_owned();
    assert_eq!(worker.finds(&own.with("nonce=\"later\"")), "v signerbot");
}

#[test]
fn a_flood_from_everywhere_leaves_half_to_callers_that_have_signed_rightly() {
    let worker = Worker::with(BotGuardStep { signatures_per_second: 20, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    let right = |number: usize| {
        Signed { address: "203.0.113.5".to_owned(), ..Signed::new() }.with(&format!("nonce=\"{number}\""))
    };
    assert_eq!(worker.finds(&right(0)), "v signerbot");
    worker.host.advance(1000);
    let flood: Vec<String> = (0..200).map(|number| worker.finds(&bad(&format!("10.{number}.0.1"), number))).collect();
    assert_eq!(flood.iter().filter(|found| *found == "bad").count(), 10);
    assert!(flood[10..].iter().all(|found| found == WORKER));
    let found: Vec<String> = (1..=11).map(|number| worker.finds(&right(number))).collect();
    assert!(found[..10].iter().all(|found| found == "v signerbot") && found[10] == WORKER, "{found:?}");
    worker.host.advance(1000);
    assert_eq!(worker.finds(&right(11)), "v signerbot", "it was not spent");
}

#[test]
fn what_is_remembered_costs_nothing() {
    let worker = Worker::with(BotGuardStep { signatures_per_second: 2, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    for address in ["192.0.2.1", "192.0.2.2", "203.0.113.9"] {
        for _ in 0..100 {
            assert_eq!(
                worker.finds(&Signed { address: address.to_owned(), ..Signed::new() }),
                "v signerbot",
                "{address}"
            );
        }
    }
    assert_eq!(worker.host.counts.borrow().get(&Metric::SignaturesVerified), Some(&1));
    worker.host.advance(1000);
    for number in 0..100 {
        assert_eq!(worker.finds(&bad(&format!("10.0.{number}.1"), 7)), "bad", "the same forgery again");
    }
    assert_eq!(worker.finds(&bad("10.1.0.1", 8)), WORKER, "a second one of callers that are not proven");
}

#[test]
fn a_flood_of_forgeries_displaces_no_right_result_and_takes_a_bounded_memory() {
    let worker = Worker::with(BotGuardStep { signatures_per_second: 2000, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    assert_eq!(worker.finds(&Signed::new()), "v signerbot");
    let verified = (0..1500)
        .filter(|number| worker.finds(&bad(&format!("10.{}.{}.1", number / 250, number % 250), *number)) == "bad");
    assert_eq!(verified.count(), 999, "half of the budget, of which the right one took one");
    let full = Worker { plugin: worker.plugin, tables: worker.tables, host: worker.host };
    // The right one is known without a verification: the caller could not pay for one.
    for number in 0..4 {
        assert_eq!(full.finds(&bad("192.0.2.7", 5000 + number)), "bad", "{number}");
    }
    assert_eq!(full.finds(&bad("192.0.2.7", 6000)), CALLER);
    assert_eq!(full.finds(&Signed::new()), "v signerbot");
}

#[test]
fn over_its_budget_a_worker_makes_no_impersonators() {
    // The signer has reverse DNS as well, which does not know the address.
    let mut with_dns = bots();
    with_dns[4].method = METHOD.to_vec();
    let impersonator = |worker: &Worker, address: &str, signed: &Signed| {
        let mut builder = KeysBuilder::default();
        let verdict = CrawlerVerdict { finding: Finding::Impersonator, until: NOW + 10_000, renew: NOW + 10_000 };
        builder.put(&key(&METHOD, address.parse().unwrap()), &verdict.to_bytes()).unwrap();
        worker.take(TABLE, builder.build().unwrap());
        let (verdict, signals) = worker.meets(&mut Signed { address: address.to_owned(), ..signed.clone() }.exchange());
        assert_eq!(
            matches!(verdict, Verdict::Refuse(_)),
            signals.iter().any(|tag| tag == "bot:impersonator:signerbot")
        );
        matches!(verdict, Verdict::Refuse(_))
    };
    let worker = Worker::with(BotGuardStep { signatures_per_second: 1, ..step() }, with_dns.clone());
    assert!(!impersonator(&worker, "192.0.2.9", &Signed::new()), "the keys are not there");
    worker.publish(&[(AGENT, &[key_of(1)])]);
    assert_eq!(worker.finds(&bad("198.51.100.1", 0)), "bad");
    assert!(!impersonator(&worker, "192.0.2.9", &Signed::new()), "too many in this second");
    worker.host.advance(1000);
    // What the caller itself is to blame for helps it nothing.
    let worker = Worker::with(step(), with_dns);
    worker.publish(&[(AGENT, &[key_of(1)])]);
    assert!(impersonator(&worker, "192.0.2.9", &Signed::new().times(-300, -100)), "expired");
    assert!(impersonator(
        &worker,
        "192.0.2.9",
        &Signed { components: r#""@authority" "x-none" "signature-agent";key="sig""#.to_owned(), ..Signed::new() }
    ));
    (0..10).for_each(|number| assert!(impersonator(&worker, "192.0.2.9", &bad("x", number)), "{number}"));
}

use std::cell::RefCell;
use std::sync::Arc;

use super::*;
use crate::engine::{BudgetLimits, TransactionStart};
use crate::operator::DataFiles;
use crate::source::Source;

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// A node with tables: `192.0.2.0/24` and `2001:db8::/32` are in Brazil, `198.51.100.0/24` is in no country of ISO 3166, everything else
/// nowhere; `bl.example` lists addresses that end in 66 and does not know those that end in 99.
#[derive(Default)]
struct Node {
    no_places: bool,
    asked: RefCell<Vec<String>>,
}

impl Lookups for Node {
    fn place_of(&self, address: IpAddr) -> Lookup<Place> {
        let text = address.to_string();
        self.asked.borrow_mut().push(text.clone());
        match () {
            () if self.no_places => Lookup::Unknown,
            () if text.starts_with("192.0.2.") || text.starts_with("2001:db8:") => {
                Lookup::Found(Place { country: *b"BR" })
            }
            () if text.starts_with("198.51.100.") => Lookup::Found(Place { country: *b"EU" }),
            () => Lookup::Absent,
        }
    }

    fn is_listed(&self, zone: &[u8], address: IpAddr, now_millis: u64) -> Lookup<()> {
        let text = address.to_string();
        self.asked.borrow_mut().push(format!("{text} {} {now_millis}", String::from_utf8_lossy(zone)));
        match () {
            () if zone != b"bl.example" || text.ends_with("99") => Lookup::Unknown,
            () if text.ends_with("66") => Lookup::Found(()),
            () => Lookup::Absent,
        }
    }
}

fn engine(rules: &str) -> Arc<Engine> {
    let rules = format!("SecRuleEngine On\n{rules}");
    let program =
        crate::compile(&[Source::new("rules", rules)], &NoFiles).unwrap_or_else(|errors| panic!("{}", errors[0]));
    Arc::new(Engine::new(crate::Program::decode(&program.encode()).unwrap()).unwrap())
}

/// Phase 1 of a request from an address, with the header `X-Peer`.
fn run_on(engine: &Arc<Engine>, node: Option<Node>, from: &str, peer: &str) -> Transaction {
    let start = TransactionStart { now_millis: 7, client_addr: from.into(), ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    if let Some(node) = node {
        transaction.set_lookups(Rc::new(node));
    }
    transaction.request_line(b"GET", b"/", b"HTTP/1.1");
    transaction.request_header(b"X-Peer", peer.as_bytes());
    transaction.request_headers();
    transaction
}

fn ids(rules: &str, from: &str, peer: &str) -> Vec<u64> {
    run_on(&engine(rules), Some(Node::default()), from, peer).matched_ids().collect()
}

fn text(transaction: &Transaction, collection: &str, name: &str) -> Option<String> {
    let value = transaction.variable(collection.as_bytes(), name.as_bytes())?;
    Some(String::from_utf8(value).unwrap())
}

const BOTH: &str = "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,pass\"\nSecRule REMOTE_ADDR \"!@geoLookup\" \"id:2,phase:1,pass\"\n\
                    SecRule REMOTE_ADDR \"@rbl BL.example.\" \"id:3,phase:1,pass\"\nSecRule REMOTE_ADDR \"!@rbl bl.example\" \"id:4,phase:1,pass\"";

#[test]
fn lookups_match_by_the_tables_of_the_node() {
    assert_eq!(ids(BOTH, "192.0.2.66", ""), [1, 3]);
    assert_eq!(ids(BOTH, "203.0.113.1", ""), [2, 4]);
    assert_eq!(ids(BOTH, "2001:db8::1", ""), [1, 4]);
    assert_eq!(ids(BOTH, "::ffff:192.0.2.7", ""), [1, 4], "mapped IPv4 is IPv4");
    assert_eq!(ids(BOTH, "unix", ""), [2, 4], "what is no address is in no table");
}

#[test]
fn what_is_not_known_matches_neither_way() {
    assert_eq!(ids(BOTH, "192.0.2.99", ""), [1]);
    let engine = engine(BOTH);
    let matched = |node: Option<Node>| run_on(&engine, node, "192.0.2.1", "").matched_ids().collect::<Vec<_>>();
    assert_eq!(matched(Some(Node { no_places: true, ..Node::default() })), [4]);
    assert_eq!(matched(None), [0; 0], "without tables");
    assert_eq!(matched(Some(Node::default())), [1, 4], "nothing is kept from one transaction to the next");
    let other = "SecRule REMOTE_ADDR \"@rbl other.example\" \"id:1,phase:1\"\nSecRule REMOTE_ADDR \"!@rbl other.example\" \"id:2,phase:1\"";
    assert_eq!(ids(other, "192.0.2.66", ""), [0; 0], "a zone that is not asked");
}

#[test]
fn any_variable_may_have_the_address_after_transformations() {
    let rules = "SecRule REQUEST_HEADERS:X-Peer \"@geoLookup\" \"id:1,phase:1,pass,t:none,t:base64Decode\"\n\
                 SecRule REQUEST_HEADERS:X-Peer \"@geoLookup\" \"id:2,phase:1,pass,t:none\"\n\
                 SecRule REQUEST_HEADERS:X-Peer \"@geoLookup\" \"id:3,phase:1,pass,multiMatch,t:base64Decode\"";
    assert_eq!(ids(rules, "203.0.113.1", "MTkyLjAuMi43"), [1, 3]);
    // What is no base64 stays as it is.
    assert_eq!(ids(rules, "203.0.113.1", " 192.0.2.7 "), [1, 2, 3]);
    assert_eq!(ids(rules, "203.0.113.1", "203.0.113.7"), [0; 0]);
}

#[test]
fn geo_is_where_the_last_address_is() {
    let rules = "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,pass,setvar:'tx.at=%{GEO.COUNTRY_CODE}',chain\"\n\
                 SecRule GEO:COUNTRY_NAME \"@streq Brazil\" \"t:none\"\n\
                 SecRule GEO:country_code3 \"@streq BRA\" \"id:2,phase:1,pass\"\n\
                 SecRule GEO:COUNTRY_CONTINENT \"@within SA OC\" \"id:3,phase:1,pass\"\n\
                 SecRule &GEO \"@eq 4\" \"id:4,phase:1,pass\"\n\
                 SecRule GEO:CITY \"@rx .*\" \"id:5,phase:1,pass\"\n\
                 SecRule REQUEST_HEADERS:X-Peer \"!@geoLookup\" \"id:6,phase:1,pass\"\n\
                 SecRule GEO:/^country_/ \"@streq EU\" \"id:7,phase:1,pass\"\n\
                 SecRule &GEO \"@eq 1\" \"id:8,phase:1,pass\"";
    let engine = engine(rules);
    let found = run_on(&engine, Some(Node::default()), "192.0.2.7", "203.0.113.1");
    assert_eq!(found.matched_ids().collect::<Vec<_>>(), [1, 2, 3, 4, 6]);
    assert_eq!(text(&found, "TX", "at").as_deref(), Some("BR"));
    assert_eq!(text(&found, "GEO", "COUNTRY_NAME").as_deref(), Some("Brazil"));
    // A negated operator that finds the place does not match, and GEO is that of the place.
    let other = run_on(&engine, Some(Node::default()), "192.0.2.7", "198.51.100.9");
    assert_eq!(other.matched_ids().collect::<Vec<_>>(), [1, 2, 3, 4, 7, 8]);
    assert_eq!(
        (text(&other, "GEO", "COUNTRY_CODE").as_deref(), text(&other, "GEO", "COUNTRY_NAME")),
        (Some("EU"), None)
    );
    let nowhere = run_on(&engine, Some(Node::default()), "203.0.113.1", "203.0.113.1");
    assert_eq!(nowhere.matched_ids().collect::<Vec<_>>(), [6]);
}

#[test]
fn a_listed_address_is_captured() {
    let rules =
        |actions: &str| format!("SecRule REQUEST_HEADERS:X-Peer \"@rbl bl.example\" \"id:1,phase:1,pass,{actions}\"");
    let run = |actions: &str| run_on(&engine(&rules(actions)), Some(Node::default()), "203.0.113.1", "192.0.2.66");
    assert_eq!(text(&run("capture,setvar:'tx.listed=%{TX.0}'"), "TX", "listed").as_deref(), Some("192.0.2.66"));
    assert_eq!(text(&run("nolog"), "TX", "0"), None);
}

#[test]
fn lookups_are_asked_with_the_time_of_the_transaction_and_are_charged() {
    let node = Rc::new(Node::default());
    let engine = engine("SecRule REMOTE_ADDR \"@rbl bl.example\" \"id:1,phase:1,pass\"");
    assert!(engine.uses_lookups());
    let start = TransactionStart { now_millis: 7, client_addr: b"192.0.2.66".to_vec(), ..TransactionStart::default() };
    let mut transaction = Transaction::new(Arc::clone(&engine), start);
    transaction.set_lookups(Rc::clone(&node) as Rc<dyn Lookups>);
    transaction.set_now(9);
    transaction.request_line(b"GET", b"/", b"HTTP/1.1");
    transaction.request_headers();
    assert_eq!(*node.asked.borrow(), ["192.0.2.66 bl.example 9"]);
    assert!(transaction.work().spent.work >= LISTING);
    // A thousand addresses in a request end at the budget.
    let engine = self::engine("SecRule ARGS \"@rbl bl.example\" \"id:1,phase:1,pass\"");
    let node = Rc::new(Node::default());
    let mut transaction = Transaction::new(Arc::clone(&engine), TransactionStart::default());
    transaction.set_budget(BudgetLimits { work: 100 * LISTING, work_per_byte: 0, memory: 1 << 24, memory_per_byte: 0 });
    transaction.set_lookups(Rc::clone(&node) as Rc<dyn Lookups>);
    let query: Vec<String> = (0..1000).map(|number| format!("a=10.0.{}.{}", number / 250, number % 250)).collect();
    transaction.request_line(b"GET", format!("/?{}", query.join("&")).as_bytes(), b"HTTP/1.1");
    transaction.request_headers();
    let asked = node.asked.borrow().len();
    assert!((10..100).contains(&asked), "{asked}");
    assert!(!engine_without().uses_lookups());
}

fn engine_without() -> Arc<Engine> {
    engine("SecRule REMOTE_ADDR \"@ipMatch 192.0.2.0/24\" \"id:1,phase:1,pass\"")
}

#[test]
fn a_program_names_what_it_looks_up() {
    let rules = "SecRule REMOTE_ADDR \"@rbl b.example\" \"id:1\"\nSecRule ARGS \"!@rbl A.example\" \"id:2,chain\"\n\
                 SecRule ARGS \"@geoLookup\" \"t:none\"\nSecRule GEO \"x\" \"id:3\"\nSecRule ARGS \"@rbl gone.example\" \"id:4\"\n\
                 SecRule ARGS \"@rbl b.example\" \"id:5\"\nSecRuleRemoveById 4";
    let lookups = |text: &str| crate::compile(&[Source::new("rules", text)], &NoFiles).unwrap().lookups();
    let found = lookups(rules);
    assert_eq!(
        (found.places, found.reads_geo, found.zones),
        (true, true, vec!["a.example".to_owned(), "b.example".to_owned()])
    );
    assert_eq!(lookups("SecRule ARGS \"a\" \"id:1\""), crate::RuleLookups::default());
}

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::engine::{Engine, TransactionStart};
use crate::operator::DataFiles;
use crate::source::Source;

type Key = (CollectionKind, Vec<u8>, Vec<u8>);

/// What two workers share. Writes can be made to fail.
#[derive(Clone, Default)]
struct Shared {
    records: Rc<RefCell<HashMap<Key, StoredRecord>>>,
    /// How many times another worker writes first.
    races: Rc<Cell<u32>>,
    broken: Rc<Cell<bool>>,
    calls: Rc<Cell<u32>>,
}

impl Collections for Shared {
    fn load(&self, name: &RecordName<'_>, now: u64) -> Option<Vec<u8>> {
        self.calls.set(self.calls.get() + 1);
        let records = self.records.borrow();
        let found = records.get(&(name.kind, name.application.to_vec(), name.key.to_vec()))?;
        (found.expires_at > now).then(|| found.bytes.clone())
    }

    fn update(
        &self,
        name: &RecordName<'_>,
        now: u64,
        change: &mut dyn FnMut(Option<&[u8]>) -> Option<StoredRecord>,
    ) -> Result<(), UpdateLost> {
        if self.broken.get() {
            return Err(UpdateLost);
        }
        let before = self.load(name, now);
        for _ in 0..self.races.take() {
            change(before.as_deref());
        }
        if let Some(stored) = change(before.as_deref()) {
            assert!(stored.bytes.len() <= crate::engine::limits::RECORD_LENGTH);
            self.records.borrow_mut().insert((name.kind, name.application.to_vec(), name.key.to_vec()), stored);
        }
        Ok(())
    }
}

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

fn engine(rules: &str) -> Arc<Engine> {
    let program = crate::compile(&[Source::new("base", "SecRuleEngine On\n"), Source::new("rules", rules)], &NoFiles)
        .unwrap_or_else(|errors| panic!("{}", errors[0]));
    Arc::new(Engine::new(program).unwrap())
}

/// One request, at a time in seconds; phases 1 and 2.
fn request(engine: &Arc<Engine>, shared: Option<&Shared>, seconds: u64, target: &str) -> Transaction {
    let start = TransactionStart {
        now_millis: seconds * 1000,
        client_addr: b"192.0.2.7".to_vec(),
        ..TransactionStart::default()
    };
    let mut transaction = Transaction::new(Arc::clone(engine), start);
    if let Some(shared) = shared {
        transaction.set_collections(Box::new(shared.clone()));
    }
    transaction.request_line(b"GET", target.as_bytes(), b"HTTP/1.1");
    transaction.request_headers();
    transaction.request_body(b"", true);
    transaction
}

fn tx(transaction: &Transaction, name: &str) -> Option<String> {
    transaction.variable(b"TX", name.as_bytes()).map(|value| String::from_utf8(value).unwrap())
}

const LOGINS: &str = "SecAction \"id:1,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR}\"\n\
    SecRule REQUEST_FILENAME \"@streq /login\" \"id:2,phase:1,pass,nolog,setvar:ip.logins=+1,expirevar:ip.logins=60\"\n\
    SecRule IP:LOGINS \"@gt 5\" \"id:3,phase:1,deny,status:429\"\n";

fn refused(engine: &Arc<Engine>, shared: &Shared, seconds: u64, target: &str) -> bool {
    request(engine, Some(shared), seconds, target).would_block().is_some()
}

#[test]
fn two_workers_count_together_until_the_time_is_over() {
    let (shared, workers) = (Shared::default(), [engine(LOGINS), engine(LOGINS)]);
    for at in 0..5 {
        assert!(!refused(&workers[at % 2], &shared, 100, "/login"), "{at}");
    }
    assert!(refused(&workers[1], &shared, 101, "/login"));
    assert!(refused(&workers[0], &shared, 102, "/other"), "the counter holds everywhere");
    assert!(!refused(&workers[0], &shared, 161, "/other"), "it ended 60 seconds after the last login");
    assert!(workers[0].uses_collections() && !engine("SecAction \"id:1\"").uses_collections());
}

#[test]
fn an_update_that_others_disturb_counts_once() {
    let (shared, engine) = (Shared::default(), engine(LOGINS));
    shared.races.set(3);
    refused(&engine, &shared, 100, "/login");
    for _ in 0..4 {
        assert!(!refused(&engine, &shared, 100, "/login"));
    }
    assert!(refused(&engine, &shared, 100, "/login"));
}

#[test]
fn what_cannot_be_written_is_counted_and_still_judged() {
    let (shared, engine) = (Shared::default(), engine(LOGINS));
    for _ in 0..5 {
        refused(&engine, &shared, 100, "/login");
    }
    shared.broken.set(true);
    let transaction = request(&engine, Some(&shared), 101, "/login");
    assert!(transaction.would_block().is_some(), "the sixth login is refused all the same");
    assert_eq!(transaction.lost_writes(), 2);
    assert_eq!(request(&engine, Some(&shared), 101, "/other").lost_writes(), 0);
}

#[test]
fn reads_see_writes_of_the_same_rule_and_of_a_chain() {
    let rules = "SecAction \"id:1,phase:1,pass,initcol:global=all,setvar:global.n=+2,setvar:tx.seen=%{global.n}\"\n\
        SecRule REQUEST_METHOD \"@streq GET\" \"id:2,phase:2,pass,chain,setvar:global.n=+1\"\n\
        SecRule GLOBAL:n \"@eq 6\" \"setvar:tx.chain=%{GLOBAL.n}\"";
    let (shared, engine) = (Shared::default(), engine(rules));
    let first = request(&engine, Some(&shared), 100, "/");
    assert_eq!((tx(&first, "seen").as_deref(), tx(&first, "chain")), (Some("2"), None));
    let second = request(&engine, Some(&shared), 100, "/");
    assert_eq!((tx(&second, "seen").as_deref(), tx(&second, "chain").as_deref()), (Some("5"), Some("6")));
}

#[test]
fn every_record_has_the_built_in_variables() {
    let rules = "SecCollectionTimeout 600\nSecAction \"id:1,phase:1,pass,initcol:ip=%{REMOTE_ADDR},\
        setvar:'tx.built=%{ip.IS_NEW} %{ip.KEY} %{ip.CREATE_TIME} %{ip.LAST_UPDATE_TIME} %{ip.TIMEOUT} \
        %{ip.UPDATE_COUNTER} %{ip.UPDATE_RATE}',setvar:ip.a=1\"\n\
        SecAction \"id:2,phase:1,pass,setvar:ip.b=1\"";
    let (shared, engine) = (Shared::default(), engine(rules));
    let built = |seconds| tx(&request(&engine, Some(&shared), seconds, "/"), "built").unwrap();
    assert_eq!(built(1000), "1 192.0.2.7 1000 1000 600 0 0");
    assert_eq!(built(1030), "0 192.0.2.7 1000 1000 600 1 2");
    assert_eq!(built(1060), "0 192.0.2.7 1000 1030 600 2 2");
    assert_eq!(built(1660), "1 192.0.2.7 1660 1660 600 0 0", "600 seconds after the last write the record is gone");
}

#[test]
fn sessions_users_and_resources_have_records_of_their_own() {
    let rules = "SecAction \"id:1,phase:1,pass,setsid:%{ARGS.s},setuid:%{ARGS.u},setrsc:%{REQUEST_FILENAME},\
        setvar:session.n=+1,setvar:user.n=+1,setvar:resource.n=+1\"\n\
        SecAction \"id:2,phase:2,pass,setvar:'tx.n=%{SESSION.n} %{USER.n} %{RESOURCE.n} %{SESSIONID} %{USERID}'\"";
    let (shared, engine) = (Shared::default(), engine(rules));
    let seen = |target: &str| tx(&request(&engine, Some(&shared), 1, target), "n").unwrap();
    assert_eq!(seen("/a?s=1&u=ada"), "1 1 1 1 ada");
    assert_eq!(seen("/a?s=2&u=ada"), "1 2 2 2 ada");
    assert_eq!(seen("/b?s=1&u=bob"), "2 1 1 1 bob");
    // Who has no session shares none: it lasts for the transaction.
    assert_eq!(seen("/c"), "1 1 1  ");
    assert_eq!(seen("/c"), "1 1 2  ");
}

#[test]
fn applications_keep_apart() {
    let rule = "SecAction \"id:1,phase:1,pass,initcol:global=all,setvar:global.n=+1,setvar:tx.n=%{global.n}\"";
    let shared = Shared::default();
    let count = |rules: &str| tx(&request(&engine(rules), Some(&shared), 1, "/"), "n").unwrap();
    let shop = format!("SecWebAppId shop\n{rule}");
    assert_eq!([count(rule), count(&shop), count(rule), count(&shop)], ["1", "1", "2", "2"]);
}

#[test]
fn without_a_store_collections_last_for_the_transaction() {
    let rules = "SecAction \"id:1,phase:1,pass,initcol:ip=x,setvar:ip.n=+1\"\n\
        SecAction \"id:2,phase:2,pass,setvar:ip.n=+1,setvar:tx.n=%{ip.n}\"";
    let engine = engine(rules);
    for _ in 0..2 {
        let transaction = request(&engine, None, 1, "/");
        assert_eq!((tx(&transaction, "n").as_deref(), transaction.lost_writes()), (Some("2"), 0));
    }
}

#[test]
fn what_is_not_looked_at_is_not_loaded_and_what_is_repeated_is_written_once() {
    let (shared, idle) = (Shared::default(), engine("SecAction \"id:1,phase:1,pass,initcol:ip=x,initcol:global=y\""));
    request(&idle, Some(&shared), 1, "/");
    assert_eq!(shared.calls.get(), 0);
    let rules = "SecAction \"id:1,phase:1,pass,initcol:ip=x\"\n\
        SecRule ARGS \"@unconditionalMatch\" \"id:2,phase:2,pass,setvar:ip.n=+1,expirevar:ip.n=60\"\n\
        SecAction \"id:3,phase:2,pass,setvar:tx.n=%{ip.n}\"";
    let query: Vec<String> = (0..200).map(|at| format!("a{at}=1")).collect();
    let transaction = request(&engine(rules), Some(&shared), 1, &format!("/?{}", query.join("&")));
    assert_eq!((tx(&transaction, "n").as_deref(), shared.calls.get()), (Some("200"), 1));
}

#[test]
fn a_record_that_is_full_says_so() {
    let long = "x".repeat(2000);
    let rules = format!(
        "SecAction \"id:1,phase:1,pass,initcol:ip=x,setvar:ip.short=1,setvar:ip.long={long},setvar:tx.n=%{{ip.short}}\""
    );
    let transaction = request(&engine(&rules), Some(&Shared::default()), 1, "/");
    assert_eq!((tx(&transaction, "n").as_deref(), transaction.lost_writes()), (Some("1"), 1));
}

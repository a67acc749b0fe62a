//! Persistent collections of rules: counters that hold over the workers of a gateway.

use std::net::Ipv4Addr;

use palisade_tests::backend::Backend;
use palisade_tests::bootstrap::Static;
use palisade_tests::envoy::Envoy;
use palisade_tests::http::Request;
use palisade_tests::parts;
use prost::Message;
use seclang::{DataFiles, Source};
use snapshot::{Part, Snapshot, Step, content_hash, seal};
use waf::WafStep;

const RULES: &str = r#"SecRuleEngine On
SecAction "id:1,phase:1,pass,nolog,initcol:ip=%{REMOTE_ADDR}"
SecRule REQUEST_FILENAME "@streq /login" "id:2,phase:1,pass,nolog,setvar:ip.logins=+1,expirevar:ip.logins=600"
SecRule IP:LOGINS "@gt 5" "id:3,phase:1,deny,status:403,log,msg:'too many logins'"
"#;

struct NoFiles;

impl DataFiles for NoFiles {
    fn read(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// The preset with nothing but these rules.
fn configuration() -> Vec<u8> {
    let program = seclang::compile(&[Source::new("rules", RULES)], &NoFiles);
    let data = program.unwrap_or_else(|errors| panic!("{}", errors[0])).encode();
    let hash = content_hash(&data).to_vec();
    let waf = WafStep { id: "logins".into(), block: true, program: hash.clone(), ..WafStep::default() };
    let step = Step { plugin: "waf".into(), config: waf.encode_to_vec(), ..Step::default() };
    let parts = vec![Part { hash, data }];
    seal(&Snapshot { filter: "preset".into(), global: vec![step], parts, ..Snapshot::default() }).encode_to_vec()
}

#[test]
fn a_counter_of_logins_holds_on_every_worker() {
    let backend = Backend::start();
    let bootstrap = Static::to(backend.address()).wasm("preset", &parts::filter("preset"), &configuration());
    let mut envoy = Envoy::start(&bootstrap.render());
    let to = envoy.listener(Static::LISTENER);
    let ask = |source: Ipv4Addr, path: &str| {
        let request = Request::get(path);
        envoy.every_worker(|| request.send_from(source, to).map(|answer| answer.status)).unwrap()
    };
    let (caller, other) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    // Every worker takes at least two of them: apart, none would have counted to five with the fifth request.
    let statuses = ask(caller, "/login");
    let (passed, refused) = statuses.split_at(5);
    assert!(passed.iter().all(|status| *status == 200), "{statuses:?}");
    assert!(!refused.is_empty() && refused.iter().all(|status| *status == 403), "{statuses:?}");
    let elsewhere = ask(caller, "/other");
    assert!(elsewhere.iter().all(|status| *status == 403), "the record holds on every worker: {elsewhere:?}");
    let others = ask(other, "/other");
    assert!(others.iter().all(|status| *status == 200), "another caller has a record of its own: {others:?}");
    let lost = envoy.stats("collection_writes_lost");
    assert!(!lost.is_empty() && lost.values().all(|count| *count == 0), "{lost:?}");
    let failures = envoy.vm_failures();
    assert!(failures.is_empty(), "a filter's VM failed: {failures:?}");
    assert!(envoy.lives());
}

//! What a signature must have and what it covers, nonces, and keys.

use super::*;

#[test]
fn every_component_that_is_supported_is_what_it_says() {
    let worker = Worker::new();
    let agent = r#""signature-agent";key="sig""#;
    for components in [
        "\"@authority\" \"@method\" \"@path\" \"@query\" \"@scheme\" \"@target-uri\" \"@request-target\"",
        "\"@target-uri\"",
        "\"@authority\" \"x-one\" \"x-two\"",
        "\"user-agent\" \"@authority\"",
    ] {
        let mut signed = Signed { components: format!("{components} {agent}"), ..Signed::new() };
        signed.headers.push(("x-one".to_owned(), b"  a  b ".to_vec()));
        signed.headers.push(("x-two".to_owned(), b"1".to_vec()));
        signed.headers.push(("x-two".to_owned(), b"2".to_vec()));
        if components.contains("user-agent") {
            signed.base = Some(signed.base().replace("\"user-agent\": ", &format!("\"user-agent\": {SIGNER}")));
        }
        assert_eq!(worker.finds(&signed), "v signerbot", "{components}");
    }
    // Parameters of headers: raw values, and members of dictionaries.
    let mut signed =
        Signed { components: format!(r#""@authority" "x-raw";bs "x-map";key="b" {agent}"#), ..Signed::new() };
    signed.headers.extend(
        [("x-raw", "a, b"), ("x-raw", "c"), ("x-map", "a=1, b= 2"), ("x-map", "b=(x  y);q=1.0")]
            .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())),
    );
    signed.headers[3].1 = b"a=1".to_vec();
    let base = signed
        .base()
        .replace("\"x-raw\";bs: \n", "\"x-raw\";bs: :YSwgYg==:, :Yw==:\n")
        .replace("\"x-map\";key=\"b\": \n", "\"x-map\";key=\"b\": (x y);q=1.0\n");
    signed.base = Some(base);
    assert_eq!(worker.finds(&signed), "v signerbot");
    // One changed byte of each, and it is another request.
    for change in [
        |exchange: &mut Exchange| exchange.request.method = b"POST".to_vec(),
        |exchange: &mut Exchange| exchange.request.path = b"/a/b?x=1&z".to_vec(),
        |exchange: &mut Exchange| exchange.request.authority = b"evil.example".to_vec(),
    ] {
        let components = format!("\"@method\" \"@target-uri\" {agent}");
        let mut exchange = Signed { components, address: "198.51.100.9".to_owned(), ..Signed::new() }.exchange();
        change(&mut exchange);
        assert_eq!(worker.finds_in(&mut exchange), "bad");
    }
}

#[test]
fn what_is_cheap_to_see_is_no_verification() {
    let worker = Worker::new();
    let new = Signed::new;
    let replaced = |from: &str, to: &str| Signed { parameters: new().parameters.replace(from, to), ..new() };
    let covering =
        |components: &str| Signed { components: format!(r#"{components} "signature-agent";key="sig""#), ..new() };
    let id = keyid(&key_of(1));
    let cases = [
        (replaced("ed25519", "hmac-sha256"), "it is not one of Ed25519"),
        (replaced("\"ed25519\"", "ed25519"), "it is not one of Ed25519"),
        (covering("\"@method\""), "it covers neither `@authority` nor `@target-uri`"),
        (covering("\"@authority\";req"), "it covers neither `@authority` nor `@target-uri`"),
        (replaced(&id, "key-1"), "the directory has no such key"),
        (replaced(&id, &keyid(&key_of(9))), "the directory has no such key"),
        (replaced(&id, &keyid(&key_of(2))), "the directory has no such key"),
        (replaced("created=", "x="), "it lacks `created` or `expires`, or they make no sense"),
        (replaced("expires=", "x="), "it lacks `created` or `expires`, or they make no sense"),
        (replaced("created=", "created=@"), "it lacks `created` or `expires`, or they make no sense"),
        (new().times(0, 0), "it lacks `created` or `expires`, or they make no sense"),
        (new().times(10, -10), "it lacks `created` or `expires`, or they make no sense"),
        (new().times(0, 86_401), "it lives for longer than the policy accepts"),
        (new().times(31, 60), "it was created in the future"),
        (new().times(-300, -30), "it has expired"),
        (new().with("nonce=1"), "it has no nonce, or one of no use"),
        (new().with("nonce=\"\""), "it has no nonce, or one of no use"),
        (new().with(&format!("nonce=\"{}\"", "n".repeat(257))), "it has no nonce, or one of no use"),
        (covering("\"@authority\" \"@authority\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"x-missing\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"@status\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"@query-param\";name=\"x\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"user-agent\";sf"), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"user-agent\";tr"), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"user-agent\";bs;key=\"a\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"User-Agent\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" \":path\""), "it covers what is not there or not supported"),
        (covering("\"@authority\" user-agent"), "it covers what is not there or not supported"),
        (covering("\"@authority\" \"user-agent\";key=\"a\""), "it covers what is not there or not supported"),
    ];
    for (signed, why) in cases {
        assert_eq!(worker.finds(&signed), why, "{} {}", signed.components, signed.parameters);
    }
    for signed in [new().times(30, 60), new().times(-300, -29), new().times(0, 86_400), new().times(-86_000, 400)] {
        assert_eq!(worker.finds(&signed), "v signerbot", "{}", signed.parameters);
    }
    let strict = Worker::with(BotGuardStep { signature_nonce: true, ..step() }, bots());
    strict.publish(&[(AGENT, &[key_of(1)])]);
    assert_eq!(strict.finds(&new()), "it has no nonce, or one of no use");
    assert_eq!(strict.finds(&new().with("nonce=\"a\"")), "v signerbot");
    // The header with the signature.
    for (field, why) in [
        ("", "the header `Signature` has none under its label"),
        ("other=:AA==:", "the header `Signature` has none under its label"),
        ("sig=\"text\"", "the header `Signature` has none under its label"),
        ("sig=:AA==:", "it is not one of Ed25519"),
        ("sig=(:AA==:)", "the header `Signature` has none under its label"),
    ] {
        let mut exchange = new().exchange();
        let headers: Vec<(Vec<u8>, Vec<u8>)> = exchange
            .request
            .headers
            .regular()
            .filter(|(name, _)| *name != b"signature")
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .chain([(b":scheme".to_vec(), b"https".to_vec()), (b"signature".to_vec(), field.into())])
            .collect();
        exchange.request.headers = Headers::new(&headers);
        assert_eq!(worker.finds_in(&mut exchange), why, "{field}");
    }
}

#[test]
fn a_nonce_is_accepted_once_by_all_workers_of_a_node() {
    let (worker, second) = (Worker::new(), Worker::new());
    let second =
        Worker { host: FakeHost { shared_data: Rc::clone(&worker.host.shared_data), ..FakeHost::at(NOW) }, ..second };
    let signed = Signed::new().with("nonce=\"one\"");
    assert_eq!(worker.finds(&signed), "v signerbot");
    for again in [&worker, &second] {
        assert_eq!(again.finds(&signed), "its nonce was used before");
        let later = signed.clone().times(-10, 200);
        assert_eq!(again.finds(&later.with("nonce=\"one\"")), "its nonce was used before", "in another signature");
    }
    assert_eq!(second.finds(&Signed::new().with("nonce=\"two\"")), "v signerbot");
    assert_eq!(
        second.finds(&Signed { user_agent: "OtherBot", ..Signed::of_other() }.with("nonce=\"one\"")),
        "v otherbot",
        "of another key"
    );
    // Without a nonce a signature is good until its end, and then it is not.
    for _ in 0..3 {
        assert_eq!(worker.finds(&Signed::new()), "v signerbot");
    }
    worker.host.advance(330_000);
    assert_eq!(worker.finds(&Signed::new()), "it has expired");
    assert_eq!(worker.finds(&signed), "it has expired", "and its nonce need not be known any more");
    // A wrong signature spends no nonce.
    let wrong = Signed { base: Some("x".to_owned()), ..Signed::new().with("nonce=\"three\"") };
    assert_eq!(second.finds(&wrong), "bad");
    assert_eq!(second.finds(&Signed::new().with("nonce=\"three\"")), "v signerbot");
}

#[test]
fn two_steps_of_one_request_spend_one_nonce() {
    let (worker, route) = (Worker::new(), Worker::new());
    let mut exchange = Signed::new().with("nonce=\"one\"").exchange();
    assert_eq!(worker.finds_in(&mut exchange), "v signerbot");
    let before = exchange.score.signals().len();
    let route = Worker { host: worker.host, ..route };
    assert!(matches!(route.meets(&mut exchange).0, Verdict::Skip(_)), "it has the signal of the step before");
    assert_eq!(exchange.score.signals().len(), before, "and nothing has a second one");
    // A signal of another source is not one: a rule of the WAF may set tags.
    let mut exchange = Signed { base: Some("x".to_owned()), ..Signed::new() }.exchange();
    add(&mut exchange, BY_POLICY, SIGNED.into(), 0.0, id(AGENT), &route.host);
    assert_eq!(route.finds_in(&mut exchange), "bad");
}

#[test]
fn a_step_behind_one_that_has_verified_a_signature_checks_its_own_terms() {
    let lax = Worker::new();
    // Of a policy on a route: what it accepts, after a global step with the lax one.
    let second = |step: BotGuardStep, signed: &Signed| {
        let mut exchange = signed.exchange();
        assert_eq!(lax.finds_in(&mut exchange), "v signerbot");
        let route = Worker::with(step, bots());
        route.publish(&[(AGENT, &[key_of(1)])]);
        let route =
            Worker { host: FakeHost { shared_data: Rc::clone(&lax.host.shared_data), ..FakeHost::at(NOW) }, ..route };
        let before = exchange.score.signals().len();
        let (verdict, signals) = route.meets(&mut exchange);
        let why = signals.into_iter().skip(before).find_map(|signal| {
            signal
                .strip_prefix("bot:unverified-signature: ")
                .and_then(|why| why.split_once(": "))
                .map(|(_, why)| why.to_owned())
        });
        (matches!(verdict, Verdict::Skip(_)), why.unwrap_or_default())
    };
    let accepted = (true, String::new());
    let refused = |why: &str| (false, why.to_owned());
    let hosts = |host: &str| BotGuardStep { signature_hosts: vec![host.to_owned()], ..step() };
    assert_eq!(
        second(hosts("other.example"), &Signed::new()),
        refused("it is for a host that the policy does not name")
    );
    assert_eq!(second(hosts("site.example"), &Signed::new()), accepted);
    let with_nonce = BotGuardStep { signature_nonce: true, ..step() };
    assert_eq!(second(with_nonce.clone(), &Signed::new()), refused("it has no nonce, or one of no use"));
    assert_eq!(second(with_nonce.clone(), &Signed::new().with("nonce=\"two steps\"")), accepted, "it is spent once");
    let short = |signature_max_age| BotGuardStep { signature_max_age, ..step() };
    assert_eq!(second(short(299), &Signed::new()), refused("it lives for longer than the policy accepts"));
    assert_eq!(second(short(300), &Signed::new()), accepted);
    // Without `Signature-Agent` it is the user agent that names the bot.
    let mut without = Signed { components: "\"@authority\"".to_owned(), ..Signed::new() };
    without.headers.clear();
    assert_eq!(second(hosts("site.example"), &without), accepted);
    assert_eq!(second(with_nonce.clone(), &without), refused("it has no nonce, or one of no use"));
    // A second signature, which nothing has verified, does not stand in for the first.
    let mut exchange = Signed::new().exchange();
    let input = exchange.request.headers.get("signature-input").unwrap().to_vec();
    let decoy = [&input[..], b", x", &input[..], b";nonce=\"a\""].concat();
    let headers: Vec<(Vec<u8>, Vec<u8>)> = (exchange.request.headers.regular())
        .map(|(name, value)| (name.to_vec(), if name == b"signature-input" { decoy.clone() } else { value.to_vec() }))
        .chain([(b":scheme".to_vec(), b"https".to_vec())])
        .collect();
    exchange.request.headers = Headers::new(&headers);
    assert_eq!(lax.finds_in(&mut exchange), "v signerbot");
    let strict = Worker::with(with_nonce, bots());
    strict.publish(&[(AGENT, &[key_of(1)])]);
    assert!(!matches!(strict.meets(&mut exchange).0, Verdict::Skip(_)));
}

#[test]
fn a_signature_is_for_a_host_that_the_policy_names() {
    // What a bot has signed for another site, whose owner sends it on to a gateway that answers for any host.
    for (hosts, found) in [
        (&[][..], true),
        (&["other.example", "site.example"], true),
        (&["*.example"], true),
        (&["other.example"], false),
        (&["*.site.example"], false),
        (&["te.example"], false),
        (&["*.te.example"], false),
    ] {
        let signature_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let worker = Worker::with(BotGuardStep { signature_hosts, ..step() }, bots());
        worker.publish(&[(AGENT, &[key_of(1)])]);
        let expected = if found { "v signerbot" } else { "it is for a host that the policy does not name" };
        assert_eq!(worker.finds(&Signed::new()), expected, "{hosts:?}");
    }
}

#[test]
fn keys_rotate_and_have_their_times() {
    let worker = Worker::with(step(), bots());
    let with = |number| {
        let parameters = Signed::new().parameters.replace(&keyid(&key_of(1)), &keyid(&key_of(number)));
        Signed { key: key_of(number), parameters, address: format!("192.0.2.{number}"), ..Signed::new() }
    };
    let found = |worker: &Worker| [1, 3].map(|number| worker.finds(&with(number)));
    assert_eq!(found(&worker), ["the keys of the directory are not there"; 2], "no table");
    worker.publish(&[(OTHER, &[key_of(1)])]);
    assert_eq!(found(&worker), ["the keys of the directory are not there"; 2], "a key of another directory");
    worker.publish(&[(AGENT, &[key_of(1)])]);
    assert_eq!(found(&worker), ["v signerbot", "the directory has no such key"]);
    worker.publish(&[(AGENT, &[key_of(1), key_of(3)])]);
    assert_eq!(found(&worker), ["v signerbot"; 2]);
    worker.publish(&[(AGENT, &[key_of(3)])]);
    assert_eq!(
        found(&worker),
        ["the directory has no such key", "v signerbot"],
        "a result that is remembered makes no key"
    );
    worker.publish(&[(AGENT, &[])]);
    assert_eq!(found(&worker), ["the directory has no such key"; 2]);
    let public = key_of(1).verifying_key().to_bytes();
    for (from, until, expected) in [
        (NOW, NOW + 1, "v signerbot"),
        (NOW + 1, u64::MAX, "its key does not count now"),
        (0, NOW, "its key does not count now"),
    ] {
        worker.publish_rows(&[AGENT], &[(AGENT, public, from, until)]);
        assert_eq!(worker.finds(&with(1)), expected, "{from} {until}");
    }
}

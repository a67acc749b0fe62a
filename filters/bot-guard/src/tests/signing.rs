//! Signed requests: the published vectors, each check, replays, floods, and who is who.

mod bounds;
mod hostile;
mod vectors;

use ed25519_dalek::{Signer as _, SigningKey};

use super::*;

const NOW: u64 = 1_800_000_000_000;
const SECONDS: u64 = NOW / 1000;
const AGENT: &str = "https://agent.example";
const OTHER: &str = "https://other.example";
const SIGNER: &str = "Mozilla/5.0 (compatible; SignerBot/1.0)";
const BROWSER: &str = "Mozilla/5.0 Firefox/140.0";

fn id(url: &str) -> String {
    String::from_utf8(identifier(DirectoryKind::Directory, url.as_bytes()).unwrap()).unwrap()
}

fn key_of(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

/// The thumbprint (RFC 7638), computed here a second time.
fn thumbprint(public: &[u8; 32]) -> [u8; 32] {
    let x = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, public);
    snapshot::content_hash(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes())
}

fn keyid(key: &SigningKey) -> String {
    let thumbprint = thumbprint(&key.verifying_key().to_bytes());
    base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, thumbprint)
}

/// The signer, the other signer, and the bots of the other tests.
fn bots() -> Vec<KnownBot> {
    let signer =
        |name: &str, url| KnownBot { directory: id(url), ..bot(name, "ai", &[name], BotReaction::Monitor, 15.0) };
    let mut bots = some_bots();
    bots.push(signer("signerbot", AGENT));
    bots.push(signer("otherbot", OTHER));
    bots
}

/// A worker with these bots and these directories, each with its keys.
struct Worker {
    plugin: Box<dyn Plugin>,
    tables: Rc<Tables>,
    host: FakeHost,
}

impl Worker {
    fn with(step: BotGuardStep, bots: Vec<KnownBot>) -> Worker {
        let part = BotList { bots, ..BotList::default() }.encode_to_vec();
        let hash = snapshot::content_hash(&part).to_vec();
        let step = BotGuardStep { bots: hash.clone(), ..step };
        let tables = Rc::new(Tables::default());
        let mut parts = Build::new(std::iter::once((hash.as_slice(), part.as_slice()))).with_tables(Rc::clone(&tables));
        let plugin = build(&step.encode_to_vec(), &mut parts).unwrap();
        Worker { plugin, tables, host: FakeHost::at(NOW) }
    }

    /// One with the key 1 of the signer, and the key 2 of the other.
    fn new() -> Worker {
        let worker = Worker::with(step(), bots());
        worker.publish(&[(AGENT, &[key_of(1)]), (OTHER, &[key_of(2)])]);
        worker
    }

    fn publish(&self, directories: &[(&str, &[SigningKey])]) {
        let all: Vec<_> = directories
            .iter()
            .flat_map(|(url, keys)| keys.iter().map(move |key| (*url, key.verifying_key().to_bytes(), 0, u64::MAX)))
            .collect();
        let urls: Vec<&str> = directories.iter().map(|(url, _)| *url).collect();
        self.publish_rows(&urls, &all);
    }

    fn publish_rows(&self, urls: &[&str], keys: &[(&str, [u8; 32], u64, u64)]) {
        let mut builder = KeysBuilder::default();
        for url in urls {
            builder.put(&directory_label(id(url).as_bytes()), &[]).unwrap();
        }
        for (url, public, from, until) in keys {
            let row = key_row(&directory_label(id(url).as_bytes()), &thumbprint(public));
            builder.put(&row, &SignerKey { public: *public, from: *from, until: *until }.to_bytes()).unwrap();
        }
        self.take(KEYS, builder.build().unwrap());
    }

    fn take(&self, name: &str, data: Vec<u8>) {
        let (state, size) = (State::of_base(&data).0.to_vec(), u32::try_from(data.len()).unwrap());
        let change = snapshot::TableChange { name: name.into(), state, data, size, ..Default::default() };
        assert_eq!(self.tables.take(&change), Taken::Applied);
    }

    /// The verdict on a request, and its signals as `tag` or `tag: detail` of what the signature says.
    fn meets(&self, exchange: &mut Exchange) -> (Verdict, Vec<String>) {
        let verdict = self.plugin.access(exchange, &mut Slot::default(), &self.host);
        let signals = exchange.score.signals().iter().map(|signal| match signal.source.as_ref() {
            BY_SIGNATURE => format!("{}: {}", signal.tag, signal.detail),
            _ => signal.tag.to_string(),
        });
        (verdict, signals.collect())
    }

    /// `v` and the name of the bot for a verified one, else the reason for which its signature was not verified, `bad`, or `-`.
    fn finds(&self, signed: &Signed) -> String {
        self.finds_in(&mut signed.exchange())
    }

    fn finds_in(&self, exchange: &mut Exchange) -> String {
        let (_, signals) = self.meets(exchange);
        let part = |start: &str| signals.iter().find_map(|signal| signal.strip_prefix(start).map(str::to_owned));
        match (part("bot:verified:"), part("bot:bad-signature:"), part("bot:unverified-signature: ")) {
            (Some(name), _, _) => format!("v {name}"),
            (_, Some(_), _) => "bad".to_owned(),
            (_, _, Some(why)) => why.split_once(": ").map(|(_, why)| why.to_owned()).unwrap(),
            _ => "-".to_owned(),
        }
    }
}

/// A request that is signed.
#[derive(Clone)]
struct Signed {
    key: SigningKey,
    components: String,
    parameters: String,
    method: &'static str,
    path: &'static str,
    authority: &'static str,
    headers: Vec<(String, Vec<u8>)>,
    address: String,
    user_agent: &'static str,
    /// What is signed in place of the base, if anything is.
    base: Option<String>,
}

impl Signed {
    fn new() -> Signed {
        Signed {
            key: key_of(1),
            components: r#""@authority" "signature-agent";key="sig""#.to_owned(),
            parameters: format!(
                r#"created={SECONDS};expires={};keyid="{}";alg="ed25519";tag="web-bot-auth""#,
                SECONDS + 300,
                keyid(&key_of(1))
            ),
            method: "GET",
            path: "/a/b?x=1&y",
            authority: "Site.example:443",
            headers: vec![("signature-agent".to_owned(), format!("sig=\"{AGENT}\"").into_bytes())],
            address: "192.0.2.7".to_owned(),
            user_agent: SIGNER,
            base: None,
        }
    }

    /// The same of the other signer.
    fn of_other() -> Signed {
        let parameters = Signed::new().parameters.replace(&keyid(&key_of(1)), &keyid(&key_of(2)));
        Signed { key: key_of(2), parameters, ..Signed::new() }.agent(&format!("sig=\"{OTHER}\""))
    }

    fn agent(mut self, field: &str) -> Signed {
        self.headers[0].1 = field.as_bytes().to_vec();
        self
    }

    fn with(mut self, parameters: &str) -> Signed {
        self.parameters = format!("{};{parameters}", self.parameters);
        self
    }

    fn times(self, created: i64, expires: i64) -> Signed {
        let at = |offset: i64| i64::try_from(SECONDS).unwrap() + offset;
        let rest = self.parameters.split_once(";keyid").unwrap().1.to_owned();
        Signed { parameters: format!("created={};expires={};keyid{rest}", at(created), at(expires)), ..self }
    }

    /// The base, written here a second time for what the tests cover.
    fn base(&self) -> String {
        let header = |name: &str| {
            let values = self.headers.iter().filter(|(known, _)| known == name);
            let values = values.map(|(_, value)| String::from_utf8_lossy(value.trim_ascii()).into_owned());
            values.collect::<Vec<_>>().join(", ")
        };
        let mut base = String::new();
        for component in self.components.split_whitespace() {
            let value = match component {
                "\"@authority\"" => "site.example".to_owned(),
                "\"@method\"" => self.method.to_owned(),
                "\"@path\"" => "/a/b".to_owned(),
                "\"@query\"" => "?x=1&y".to_owned(),
                "\"@scheme\"" => "https".to_owned(),
                "\"@target-uri\"" => "https://site.example/a/b?x=1&y".to_owned(),
                "\"@request-target\"" => "/a/b?x=1&y".to_owned(),
                "\"signature-agent\";key=\"sig\"" => header("signature-agent").strip_prefix("sig=").unwrap().to_owned(),
                name => header(name.trim_matches('"')),
            };
            base.push_str(&format!("{component}: {value}\n"));
        }
        base + &format!("\"@signature-params\": ({});{}", self.components, self.parameters)
    }

    fn exchange(&self) -> Exchange {
        let signature = self.key.sign(self.base.clone().unwrap_or_else(|| self.base()).as_bytes());
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, signature.to_bytes());
        let mut headers: Vec<(&str, Vec<u8>)> = vec![
            (":scheme", b"https".to_vec()),
            ("user-agent", self.user_agent.as_bytes().to_vec()),
            ("signature-input", format!("sig=({});{}", self.components, self.parameters).into_bytes()),
            ("signature", format!("sig=:{encoded}:").into_bytes()),
        ];
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let mut exchange = Exchange::default();
        exchange.request.headers = Headers::new(&headers);
        exchange.request.method = self.method.into();
        exchange.request.path = self.path.into();
        exchange.request.authority = self.authority.into();
        exchange.caller.ip = self.address.as_str().into();
        exchange
    }
}

#[test]
fn a_signed_request_is_verified_and_skips_what_a_verified_one_does() {
    let worker = Worker::new();
    let (verdict, signals) = worker.meets(&mut Signed::new().exchange());
    let Verdict::Skip(Skip { steps, reason }) = verdict else { panic!("{verdict:?}") };
    assert_eq!((steps, reason.as_str()), (Skipped::Access, "`signerbot`, verified by its signature"));
    let signed = "bot:signed: directory https://agent.example";
    assert_eq!(signals, [signed, "bot:verified:signerbot", "bot:ai:signerbot", "bot:ai"]);
    let mut unsigned = Signed::new().exchange();
    unsigned.request.headers = Headers::from([("user-agent", SIGNER)]);
    assert_eq!(worker.meets(&mut unsigned), (Verdict::Pass, vec!["bot:ai:signerbot".to_owned(), "bot:ai".to_owned()]));
}

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
    assert_eq!(exchange.score.signals().len(), before + 3, "and no second one of the signature");
    // A signal of another source is not one: a rule of the WAF may set tags.
    let mut exchange = Signed { base: Some("x".to_owned()), ..Signed::new() }.exchange();
    add(&mut exchange, BY_POLICY, SIGNED.into(), 0.0, id(AGENT), &route.host);
    assert_eq!(route.finds_in(&mut exchange), "bad");
}

#[test]
fn a_bot_is_the_one_whose_directory_has_the_key() {
    let worker = Worker::new();
    let (own, other) = (Signed::new(), Signed::of_other());
    assert_eq!(worker.finds(&other), "-", "another one's signature says nothing of the bot that the user agent names");
    assert_eq!(worker.finds(&Signed { user_agent: "x OtherBot/2", ..other.clone() }), "v otherbot");
    assert_eq!(
        worker.finds(&Signed { user_agent: BROWSER, ..own.clone() }),
        "v signerbot",
        "the directory names the bot"
    );
    assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..other }), "v otherbot");
    let stolen = own.clone().agent(&format!("sig=\"{OTHER}\""));
    assert_eq!(worker.finds(&Signed { user_agent: "OtherBot", ..stolen }), "the directory has no such key");
    // Directories that no bot of the policy names, and fields that name none.
    for field in [
        "sig=\"https://unknown.example\"",
        "sig=\"https://agent.example/path\"",
        "sig=\"http://agent.example\"",
        "sig=\"https://agent.example\";type=jwks_uri",
        "sig=\"https://agent.example\";type=new",
        "sig=\"https://agent.example\";type=\"directory\"",
        "sig=https",
        "sig=(\"https://agent.example\")",
        "sig",
        "other=\"https://agent.example\"",
        "\"https://agent.example\"",
        "\"https://agent.example",
    ] {
        assert_eq!(worker.finds(&Signed { base: Some("x".to_owned()), ..own.clone().agent(field) }), "-", "{field}");
    }
    for field in ["sig=\"https://Agent.example/\"", "sig=\"https://agent.example:443\";type=directory"] {
        assert_eq!(worker.finds(&own.clone().agent(field)), "v signerbot", "{field}");
    }
    // A field that is not covered could be anyone's.
    let uncovered = Signed { components: "\"@authority\"".to_owned(), ..own.clone() };
    assert_eq!(worker.finds(&uncovered), "-");
    // Without the field the user agent names the bot.
    let mut without = uncovered;
    without.headers.clear();
    assert_eq!(worker.finds(&without), "v signerbot");
    assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..without.clone() }), "-");
    assert_eq!(worker.finds(&Signed { user_agent: "OtherBot", ..without }), "the directory has no such key");
}

#[test]
fn of_several_signatures_that_of_the_bot_counts() {
    let worker = Worker::new();
    let parameters = Signed::of_other().parameters;
    let outer = format!(r#"outer=("@authority" "signature-agent";key="outer");{parameters}"#);
    let mut exchange = Signed::new().exchange();
    let base = |label: &str, url: &str, parameters: &str| {
        format!(
            "\"@authority\": site.example\n\"signature-agent\";key=\"{label}\": \"{url}\"\n\"@signature-params\": (\"@authority\" \"signature-agent\";key=\"{label}\");{parameters}"
        )
    };
    let sign = |key: SigningKey, base: String| {
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key.sign(base.as_bytes()).to_bytes())
    };
    let own = sign(key_of(1), base("sig", AGENT, &Signed::new().parameters));
    let others = sign(key_of(2), base("outer", OTHER, &parameters));
    let inner = format!(r#"sig=("@authority" "signature-agent";key="sig");{}"#, Signed::new().parameters);
    for (user_agent, found) in [(SIGNER, "v signerbot"), ("OtherBot", "v otherbot"), (BROWSER, "v otherbot")] {
        exchange.request.headers = Headers::new(&[
            (":scheme", "https".to_owned()),
            ("user-agent", user_agent.to_owned()),
            ("signature-agent", format!("outer=\"{OTHER}\", sig=\"{AGENT}\"")),
            ("signature-input", "first=(\"@authority\");created=1;tag=\"other\"".to_owned()),
            ("signature-input", format!("{outer}, {inner}")),
            ("signature", format!("outer=:{others}:")),
            ("signature", format!("sig=:{own}:")),
        ]);
        exchange.score = exchange::Score::default();
        assert_eq!(worker.finds_in(&mut exchange), found, "{user_agent}");
    }
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

#[test]
fn a_policy_without_the_switch_looks_at_no_signature() {
    for step in [BotGuardStep { signatures: false, ..step() }, BotGuardStep { verify: false, ..step() }] {
        let worker = Worker::with(step, bots());
        assert!(!worker.tables.names().contains(&KEYS.to_owned()), "no table is asked for that nobody needs");
        assert_eq!(worker.finds(&Signed::new()), "-");
        assert_eq!(worker.finds(&Signed { user_agent: BROWSER, ..Signed::new() }), "-");
    }
    let no_directory = Worker::with(step(), some_bots());
    assert!(!no_directory.tables.names().contains(&KEYS.to_owned()));
}

#[test]
fn a_denied_bot_is_denied_with_a_signature_and_one_without_bypass_skips_nothing() {
    let mut denied = bots();
    denied[4].reaction = BotReaction::Deny.into();
    let worker = Worker::with(step(), denied);
    worker.publish(&[(AGENT, &[key_of(1)])]);
    for user_agent in [SIGNER, BROWSER] {
        let (verdict, signals) = worker.meets(&mut Signed { user_agent, ..Signed::new() }.exchange());
        assert!(matches!(verdict, Verdict::Refuse(Refusal { status: 451, .. })), "{verdict:?}");
        assert!(signals.contains(&"bot:verified:signerbot".to_owned()), "{signals:?}");
    }
    let worker = Worker::with(BotGuardStep { bypass: false, ..step() }, bots());
    worker.publish(&[(AGENT, &[key_of(1)])]);
    let mut exchange = Signed::new().exchange();
    assert_eq!((worker.meets(&mut exchange).0, exchange.score.total()), (Verdict::Pass, 15.0));
}

#[test]
fn a_bad_signature_is_the_impersonators_unless_another_method_knows_better() {
    // The signer with reverse DNS.
    let mut with_dns = bots();
    with_dns[4].method = METHOD.to_vec();
    let bad = Signed { base: Some("x".to_owned()), ..Signed::new() };
    let expired = Signed::new().times(-300, -100);
    let outcome = |finding: Option<Finding>, bots: &[KnownBot], signed: &Signed| {
        let worker = Worker::with(step(), bots.to_vec());
        worker.publish(&[(AGENT, &[key_of(1)])]);
        if let Some(finding) = finding {
            let mut builder = KeysBuilder::default();
            let verdict = CrawlerVerdict { finding, until: NOW + 1000, renew: NOW + 1000 };
            builder.put(&key(&METHOD, "192.0.2.7".parse().unwrap()), &verdict.to_bytes()).unwrap();
            worker.take(TABLE, builder.build().unwrap());
        }
        let mut exchange = signed.exchange();
        let (verdict, signals) = worker.meets(&mut exchange);
        let tag = signals.into_iter().find(|tag| {
            ["bot:verified:", "bot:impersonator:", "bot:bad-signature:"].iter().any(|start| tag.starts_with(start))
                && !tag.contains(' ')
        });
        let word = match verdict {
            Verdict::Skip(_) => "skip",
            Verdict::Refuse(_) => "refuse",
            Verdict::Pass => "pass",
            other => panic!("{other:?}"),
        };
        (word, exchange.score.total(), tag.unwrap_or_default())
    };
    let table = [
        (None, ("refuse", 60.0, "bot:bad-signature:signerbot"), ("pass", 15.0, "")),
        (Some(Finding::Verified), ("skip", 0.0, "bot:verified:signerbot"), ("skip", 0.0, "bot:verified:signerbot")),
        (Some(Finding::Unverifiable), ("refuse", 60.0, "bot:bad-signature:signerbot"), ("pass", 15.0, "")),
        (
            Some(Finding::Impersonator),
            ("refuse", 60.0, "bot:impersonator:signerbot"),
            ("refuse", 60.0, "bot:impersonator:signerbot"),
        ),
    ];
    for (finding, of_bad, of_expired) in table {
        let bots = if finding.is_some() { &with_dns } else { &bots() };
        let owned = |(word, score, tag): (&'static str, f64, &str)| (word, score, tag.to_owned());
        assert_eq!(outcome(finding, bots, &bad), owned(of_bad), "{finding:?}");
        assert_eq!(outcome(finding, bots, &expired), owned(of_expired), "{finding:?}");
        assert_eq!(outcome(finding, bots, &Signed::new()).0, "skip", "{finding:?}: a right one");
    }
    // No verdict yet: reverse DNS may still verify it.
    assert_eq!(outcome(None, &with_dns, &bad), ("pass", 15.0, String::new()));
    // What the policy says of impersonators holds.
    for (action, weight) in [(BotReaction::Monitor, 60.0), (BotReaction::Allow, 0.0)] {
        let worker = Worker::with(BotGuardStep { impersonator: action.into(), ..step() }, bots());
        worker.publish(&[(AGENT, &[key_of(1)])]);
        let mut exchange = bad.exchange();
        assert_eq!((worker.meets(&mut exchange).0, exchange.score.total()), (Verdict::Pass, weight), "{action:?}");
    }
    // A browser with a bad signature says that it is nobody.
    let (verdict, signals) = Worker::new().meets(&mut Signed { user_agent: BROWSER, ..bad }.exchange());
    assert_eq!(
        (verdict, signals),
        (Verdict::Pass, vec!["bot:bad-signature: not signed by `directory https://agent.example`".to_owned()])
    );
}

//! Signed requests: what the tests of them share.

mod bounds;
mod checks;
mod hostile;
mod identities;
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

//! A double of an OpenID Connect provider on loopback: it checks what a provider checks, and signs with real keys.

mod signer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use accounts::Role;
use api::console::LoginRules;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use oidc::{LogoutAt, Provider, SecondFactorAt, Settings};
use ring::digest;
use serde_json::{Value, json};

pub(crate) use signer::Signer;

use crate::console_support::{BEGINNING, ConsoleApi};
use crate::entities_support::Answer;

/// Where the console is.
pub(crate) const CONSOLE: &str = "https://palisade.example";
const CLIENT: &str = "palisade";
const SECRET: &str = "s3cret/+ of the client";

/// A provider, and what it does with the next logins.
#[derive(Clone)]
pub(crate) struct Double {
    pub(crate) url: String,
    pub(crate) clock: Arc<AtomicU64>,
    secret: Arc<tempfile::TempPath>,
    behaviour: Arc<Mutex<Behaviour>>,
}

pub(crate) struct Behaviour {
    /// Signs ID tokens.
    pub(crate) signer: Signer,
    /// The key set; by default the key of the signer.
    pub(crate) keys: Option<Value>,
    /// Who logs in: claims of the ID token, over its own ones. Null removes one.
    pub(crate) claims: Value,
    /// The header of the ID token, over its own.
    pub(crate) header: Value,
    pub(crate) userinfo: Value,
    /// The metadata, over its own.
    pub(crate) metadata: Value,
    /// Answers in the place of the path's own.
    pub(crate) instead: HashMap<&'static str, Instead>,
    /// How often each path was asked for.
    pub(crate) asked: HashMap<String, usize>,
    codes: HashMap<String, Asked>,
}

#[derive(Clone)]
pub(crate) enum Instead {
    Status(u16),
    Bytes(usize),
    Never,
}

/// What a code was made for.
struct Asked {
    challenge: String,
    nonce: String,
    redirect_uri: String,
}

/// A browser that has begun a login.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    pub(crate) cookie: String,
    pub(crate) url: String,
    pub(crate) state: String,
}

impl Double {
    pub(crate) async fn start() -> Double {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Behaviour {
            signer: Signer::rsa("one"),
            keys: None,
            claims: json!({}),
            header: json!({}),
            userinfo: json!({}),
            metadata: json!({}),
            instead: HashMap::new(),
            asked: HashMap::new(),
            codes: HashMap::new(),
        };
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), format!("{SECRET}\n")).unwrap();
        let double = Double {
            url,
            clock: Arc::new(AtomicU64::new(BEGINNING)),
            secret: Arc::new(secret.into_temp_path()),
            behaviour: Arc::new(Mutex::new(behaviour)),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/jwks", get(keys))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .layer(axum::middleware::from_fn_with_state(double.clone(), instead))
            .with_state(double.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        double
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Behaviour) -> T) -> T {
        change(&mut self.behaviour.lock().unwrap())
    }

    /// The person who logs in from now on.
    pub(crate) fn person(&self, subject: &str, name: &str, groups: &[&str]) {
        let email = format!("{name}@example.com");
        let claims = json!({ "sub": subject, "preferred_username": name, "email": email, "groups": groups });
        self.change(|behaviour| behaviour.claims = claims);
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            issuer: self.url.clone(),
            client_id: CLIENT.to_owned(),
            client_secret_file: Some(self.secret.to_path_buf()),
            ca_file: None,
            display_name: "Example".to_owned(),
            redirect_uri: format!("{CONSOLE}/console/login"),
            post_logout_redirect_uri: format!("{CONSOLE}/console/login"),
            logout: LogoutAt::Provider,
            scopes: ["openid", "email"].map(str::to_owned).to_vec(),
            name_claims: vec!["preferred_username".to_owned()],
            role_claim: Some("groups".to_owned()),
            roles: vec![("soc".to_owned(), Role::Analyst), ("root".to_owned(), Role::Admin)],
            default_role: None,
            creates: true,
            links_by_email: false,
            second_factor: SecondFactorAt::ControlPlane,
            timeout: Duration::from_secs(20),
        }
    }

    pub(crate) fn provider(&self, change: impl FnOnce(&mut Settings)) -> Provider {
        let mut settings = self.settings();
        change(&mut settings);
        let clock = Arc::clone(&self.clock);
        Provider::new(settings, Arc::new(move || clock.load(Ordering::Relaxed))).unwrap()
    }

    /// A console that has this provider.
    pub(crate) async fn console(&self, change: impl FnOnce(&mut Settings)) -> ConsoleApi {
        let rules = LoginRules { provider: Some(self.provider(change)), ..LoginRules::default() };
        ConsoleApi::with_rules(rules, Arc::clone(&self.clock)).await
    }

    /// What the provider does once the person has logged in there: the code.
    pub(crate) fn authorize(&self, browser: &Browser) -> String {
        let uri: Uri = browser.url.parse().unwrap();
        let query = parameters(uri.query().unwrap());
        assert_eq!(uri.path(), "/authorize");
        assert_eq!((query["response_type"].as_str(), query["client_id"].as_str()), ("code", CLIENT));
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"), "{query:?}");
        assert_eq!(query["redirect_uri"], format!("{CONSOLE}/console/login"));
        let asked = Asked {
            challenge: query["code_challenge"].clone(),
            nonce: query["nonce"].clone(),
            redirect_uri: query["redirect_uri"].clone(),
        };
        let code = uuid::Uuid::new_v4().to_string();
        self.change(|behaviour| behaviour.codes.insert(code.clone(), asked));
        code
    }

    fn id_token(&self, nonce: &str) -> String {
        let now = self.clock.load(Ordering::Relaxed) / 1000;
        self.change(|behaviour| {
            let mut claims = json!({
                "iss": self.url, "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": nonce, "sub": "1",
            });
            overlay(&mut claims, &behaviour.claims);
            let mut header = json!({ "alg": behaviour.signer.algorithm(), "kid": behaviour.signer.id(), "typ": "JWT" });
            overlay(&mut header, &behaviour.header);
            behaviour.signer.sign(&header, &claims)
        })
    }
}

/// Begins a login from `192.0.2.<host>`.
pub(crate) async fn begin(console: &ConsoleApi, host: u8) -> Browser {
    let begun = console.send_from(host, "POST", "/session/_oidc_begin", &[], Some(&json!({}))).await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let cookie = begun.header("set-cookie");
    for part in ["palisade_oidc=", "; Path=/extensions/svc/extensions/waf/session;", "; HttpOnly; SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let url = begun.body["url"].as_str().unwrap().to_owned();
    let state = parameters(url.split_once('?').unwrap().1)["state"].clone();
    Browser { cookie: cookie.split(';').next().unwrap().to_owned(), url, state }
}

/// Ends a login by what the provider has sent.
pub(crate) async fn finish(console: &ConsoleApi, browser: &Browser, code: &str) -> Answer {
    finish_with(console, browser, &json!({ "state": browser.state, "code": code })).await
}

pub(crate) async fn finish_with(console: &ConsoleApi, browser: &Browser, body: &Value) -> Answer {
    console.send("POST", "/session/_oidc_finish", &[("cookie", &browser.cookie)], Some(body)).await
}

/// A whole login.
pub(crate) async fn enter(double: &Double, console: &ConsoleApi) -> Answer {
    let browser = begin(console, 1).await;
    finish(console, &browser, &double.authorize(&browser)).await
}

pub(crate) fn parameters(query: &str) -> HashMap<String, String> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

fn overlay(of: &mut Value, with: &Value) {
    for (name, value) in with.as_object().unwrap() {
        match value {
            Value::Null => drop(of.as_object_mut().unwrap().remove(name)),
            value => of[name] = value.clone(),
        }
    }
}

async fn instead(
    State(double): State<Double>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let found = double.change(|behaviour| {
        *behaviour.asked.entry(path.clone()).or_default() += 1;
        behaviour.instead.get(path.as_str()).cloned()
    });
    match found {
        None => next.run(request).await,
        Some(Instead::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Instead::Bytes(bytes)) => " ".repeat(bytes).into_response(),
        Some(Instead::Never) => std::future::pending().await,
    }
}

async fn metadata(State(double): State<Double>) -> Json<Value> {
    let url = &double.url;
    let mut document = json!({
        "issuer": url, "authorization_endpoint": format!("{url}/authorize"), "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/jwks"), "userinfo_endpoint": format!("{url}/userinfo"),
    });
    double.change(|behaviour| overlay(&mut document, &behaviour.metadata));
    Json(document)
}

async fn keys(State(double): State<Double>) -> Json<Value> {
    Json(
        double
            .change(|behaviour| behaviour.keys.clone().unwrap_or_else(|| json!({ "keys": [behaviour.signer.jwk()] }))),
    )
}

async fn userinfo(State(double): State<Double>, headers: HeaderMap) -> Json<Value> {
    assert_eq!(headers["authorization"], "Bearer the-access-token");
    Json(double.change(|behaviour| behaviour.userinfo.clone()))
}

async fn token(State(double): State<Double>, headers: HeaderMap, body: String) -> Response {
    let part = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{CLIENT}:{}", part(SECRET)));
    if headers.get("authorization").is_none_or(|value| value.as_bytes() != format!("Basic {basic}").as_bytes()) {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" }))).into_response();
    }
    let form = parameters(&body);
    let invalid = || (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    // A code is used once.
    let Some(asked) = double.change(|behaviour| behaviour.codes.remove(&form["code"])) else { return invalid() };
    let shown = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
    if URL_SAFE_NO_PAD.encode(shown) != asked.challenge || form["redirect_uri"] != asked.redirect_uri {
        return invalid();
    }
    assert_eq!(form["grant_type"], "authorization_code");
    let id_token = double.id_token(&asked.nonce);
    Json(json!({ "id_token": id_token, "access_token": "the-access-token", "token_type": "Bearer" })).into_response()
}

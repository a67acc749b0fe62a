//! A decision service that takes alerts, or does as a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How calls are answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Says {
    /// As a service does.
    #[default]
    Works,
    /// With this status.
    Status(u16),
    Silence,
    Endless,
    /// It takes the alerts and breaks the connection off.
    TakesAndBreaks,
    /// With an error of its own where an alert is on this address.
    FailsAt(&'static str),
}

#[derive(Default)]
struct Script {
    login: Says,
    alerts: Says,
    /// Of the answer to a login.
    expire: String,
    logins: Vec<Value>,
    /// Every call but those for decisions: path and authorization.
    calls: Vec<(String, String)>,
    /// Batches that were taken.
    taken: Vec<Vec<Value>>,
    /// The alerts of each batch that was sent.
    sent: Vec<usize>,
    /// Tokens of before are of no use any more.
    forgets: bool,
}

/// The service.
#[derive(Clone)]
pub(super) struct Lapi {
    pub(super) address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Lapi {
    pub(super) async fn start() -> Lapi {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let lapi = Lapi { address, script: Arc::default() };
        let serving = lapi.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = serving.clone();
                tokio::spawn(async move { serving.answer(stream).await });
            }
        });
        lapi
    }

    pub(super) fn login(&self, says: Says) {
        self.script.lock().unwrap().login = says;
    }

    pub(super) fn alerts(&self, says: Says) {
        self.script.lock().unwrap().alerts = says;
    }

    /// When tokens end, as the answer to a login says.
    pub(super) fn expire(&self, text: &str) {
        text.clone_into(&mut self.script.lock().unwrap().expire);
    }

    /// Tokens that were given out are of no use any more.
    pub(super) fn forgets(&self) {
        self.script.lock().unwrap().forgets = true;
    }

    pub(super) fn logins(&self) -> Vec<Value> {
        self.script.lock().unwrap().logins.clone()
    }

    pub(super) fn calls(&self) -> Vec<(String, String)> {
        self.script.lock().unwrap().calls.clone()
    }

    /// The batches that were taken.
    pub(super) fn taken(&self) -> Vec<Vec<Value>> {
        self.script.lock().unwrap().taken.clone()
    }

    /// How many alerts were in each batch that was sent, taken or not.
    pub(super) fn sent(&self) -> Vec<usize> {
        self.script.lock().unwrap().sent.clone()
    }

    async fn answer(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        let head = String::from_utf8(head).unwrap();
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
            Some(line.split_once(": ")?.1.to_owned())
        };
        let length = field("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        if path.starts_with("/v1/decisions") {
            return write(&mut stream, 200, r#"{"new":null,"deleted":null}"#).await;
        }
        let (says, answer) = self.script.lock().unwrap().take(&path, field("authorization"), &body);
        match says {
            Says::Works => {
                let (status, body) = answer;
                write(&mut stream, status, &body).await;
            }
            Says::Status(status) => write(&mut stream, status, r#"{"message":"secret"}"#).await,
            Says::Silence => while stream.read_u8().await.is_ok() {},
            Says::TakesAndBreaks | Says::FailsAt(_) => {}
            Says::Endless => {
                let _ = stream.write_all(b"HTTP/1.1 201 Created\r\nconnection: close\r\n\r\n[").await;
                while stream.write_all(&[b'1'; 4096]).await.is_ok() {}
            }
        }
    }
}

impl Script {
    fn take(&mut self, path: &str, authorization: Option<String>, body: &[u8]) -> (Says, (u16, String)) {
        let authorization = authorization.unwrap_or_default();
        self.calls.push((path.to_owned(), authorization.clone()));
        if path == "/v1/watchers/login" {
            self.forgets = false;
            self.logins.push(serde_json::from_slice(body).unwrap());
            let number = self.logins.len();
            let answer = format!(r#"{{"code":200,"expire":"{}","token":"token-{number}"}}"#, self.expire);
            return (self.login.clone(), (200, answer));
        }
        if self.forgets || authorization != format!("Bearer token-{}", self.logins.len()) {
            return (Says::Works, (401, r#"{"code":401,"message":"cookie token is empty"}"#.to_owned()));
        }
        if path != "/v1/alerts" {
            return (Says::Works, (200, "{}".to_owned()));
        }
        let alerts: Vec<Value> = serde_json::from_slice(body).unwrap();
        self.sent.push(alerts.len());
        let says = match self.alerts.clone() {
            Says::FailsAt(address) if alerts.iter().any(|alert| alert["source"]["value"] == address) => {
                Says::Status(500)
            }
            Says::FailsAt(_) => Says::Works,
            says => says,
        };
        if matches!(says, Says::Works | Says::TakesAndBreaks) {
            self.taken.push(alerts);
        }
        (says, (201, r#"["1"]"#.to_owned()))
    }
}

async fn write(stream: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

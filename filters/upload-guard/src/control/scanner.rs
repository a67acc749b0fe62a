//! `malware-scanners`: who looks into uploaded files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use kit::checks::{host, within};
use kit::{Entity, FieldProblem, Head, References};

/// A connection to a scanner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Document")]
pub struct MalwareScanner {
    /// False: it is not used. Default true.
    pub enabled: bool,
    /// Its protocol. Default clamd.
    pub kind: ScannerKind,
    /// Its address: a host name or an IP address; of clamd on this machine also the path of its socket. Default `127.0.0.1`.
    pub host: String,
    /// The TCP port. Default 3310 for clamd, 1344 for icap.
    pub port: u16,
    /// `icap`: the name of the service. Default `avscan`.
    pub service: String,
    /// `icap`: the method that sends a file. Default respmod.
    pub icap_mode: IcapMode,
    /// The timeout of a scan in milliseconds, 1 to 600000. Default 30000.
    pub timeout_millis: u64,
    /// The maximum size of a file in bytes, 1 to 1073741824. Default 26214400.
    pub max_file_size: u64,
}

/// The protocol of a scanner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScannerKind {
    /// ClamAV's own, over TCP.
    #[default]
    Clamd,
    /// ICAP (RFC 3507).
    Icap,
}

/// The method of ICAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IcapMode {
    /// The file as a response.
    #[default]
    Respmod,
    /// The file as a request.
    Reqmod,
}

/// The scanner in a document: the default of the port depends on the protocol.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Document {
    /// False: it is not used.
    enabled: bool,
    /// Its protocol.
    kind: ScannerKind,
    /// Its address: a host name or an IP address; of clamd on this machine also the path of its socket.
    host: String,
    /// The TCP port; 3310 for clamd, 1344 for icap if it is left out.
    port: Option<u16>,
    /// `icap`: the name of the service.
    service: String,
    /// `icap`: the method that sends a file.
    icap_mode: IcapMode,
    /// The timeout of a scan in milliseconds, 1 to 600000.
    timeout_millis: u64,
    /// The maximum size of a file in bytes, 1 to 1073741824.
    max_file_size: u64,
}

// === impl MalwareScanner ===

impl Default for MalwareScanner {
    fn default() -> MalwareScanner {
        Document::default().into()
    }
}

impl Entity for MalwareScanner {
    const COLLECTION: &'static str = "malware-scanners";
    const KIND: &'static str = "malware-scanner";
    const OWN_KINDS: &'static [&'static str] = &["clamd", "icap"];

    fn check(&self, _head: &Head, _refs: &dyn References) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        problems.extend(match self.host.starts_with('/') {
            true => self.socket_problem(),
            false => host("/host", &self.host),
        });
        if self.port == 0 {
            problems.push(FieldProblem::new("/port", "nothing listens on port 0").expected("1 to 65535"));
        }
        let sane = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        if !(1..=128).contains(&self.service.len()) || !self.service.bytes().all(sane) {
            let message = format!("`{}` is not a service", self.service.escape_debug());
            problems.push(FieldProblem::new("/service", message).expected("the name of a service, such as `avscan`"));
        }
        problems.extend(within("/timeout_millis", self.timeout_millis, 1..=600_000));
        problems.extend(within("/max_file_size", self.max_file_size, 1..=1_073_741_824));
        problems
    }

    fn is_enabled(&self) -> bool {
        self.enabled
    }
}

impl MalwareScanner {
    /// The problem of a socket of this machine. Only those in the folders for sockets of services can be named.
    fn socket_problem(&self) -> Option<FieldProblem> {
        let sane = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        let within = ["/run/", "/var/run/"].iter().any(|folder| self.host.starts_with(folder));
        let path =
            self.host.bytes().all(sane) && self.host.len() <= 100 && !self.host.split('/').any(|part| part == "..");
        let expected = "a path such as `/run/clamav/clamd.ctl`, with the kind `clamd`";
        (self.kind != ScannerKind::Clamd || !within || !path)
            .then(|| FieldProblem::new("/host", "this is no socket that can be used").expected(expected))
    }
}

impl From<Document> for MalwareScanner {
    fn from(document: Document) -> MalwareScanner {
        let usual = match document.kind {
            ScannerKind::Clamd => 3310,
            ScannerKind::Icap => 1344,
        };
        MalwareScanner {
            enabled: document.enabled,
            kind: document.kind,
            host: document.host,
            port: document.port.unwrap_or(usual),
            service: document.service,
            icap_mode: document.icap_mode,
            timeout_millis: document.timeout_millis,
            max_file_size: document.max_file_size,
        }
    }
}

impl Default for Document {
    fn default() -> Document {
        Document {
            enabled: true,
            kind: ScannerKind::default(),
            host: "127.0.0.1".to_owned(),
            port: None,
            service: "avscan".to_owned(),
            icap_mode: IcapMode::default(),
            timeout_millis: 30_000,
            max_file_size: 26_214_400,
        }
    }
}

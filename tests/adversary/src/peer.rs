//! The same requests through libmodsecurity, with the rules and the level of the demo policy.

use std::path::{Path, PathBuf};

use differential::case::Case as Exchange;
use differential::peer::Peer;
use differential::rules::Rules;

use crate::case::Case;

/// It blocks, at paranoia level 1, as the demo policy does.
const SETUP: &str = "SecRuleEngine On\n\
    SecAction \"id:999998,phase:1,nolog,pass,setvar:tx.blocking_paranoia_level=1,setvar:tx.detection_paranoia_level=1\"\n";

/// It takes a second for each megabyte and more: longer bodies are left out.
const MAX_BODY: usize = 300_000;

/// Where its parts are.
#[derive(Debug, Clone)]
pub struct Parts {
    /// A Python interpreter with the package `libmodsecurity`.
    pub python: PathBuf,
    /// The program that drives it.
    pub program: PathBuf,
    /// The Core Rule Set.
    pub crs: PathBuf,
    /// A folder for its configuration.
    pub folder: PathBuf,
}

/// libmodsecurity, running.
#[derive(Debug)]
pub struct Judge {
    peer: Peer,
    /// What it calls itself, and the rules' release.
    pub name: String,
}

impl Judge {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// What is missing, or what it says of its configuration.
    pub fn start(parts: &Parts) -> Result<Self, String> {
        let rules = Rules::find(&parts.crs)?.with_setup(SETUP);
        let configuration = rules.write(&parts.folder)?;
        let peer = Peer::start(&parts.python, &parts.program, &configuration)?;
        let name = format!("{} with the Core Rule Set {}", peer.engine, rules.release);
        Ok(Self { peer, name })
    }

    /// Whether it refuses a case; none for what is no request of HTTP before a gateway has made it one.
    ///
    /// # Errors
    ///
    /// What is wrong with the case, or the end of the peer.
    pub fn refuses(&mut self, case: &Case, host: &str) -> Result<Option<bool>, String> {
        let Some(request) = case.request(host)? else {
            return Ok(None);
        };
        // What a gateway would have refused before any rule, or undone before it, is no matter of the rules.
        let odd = |bytes: &[u8]| bytes.iter().any(|byte| matches!(byte, 0 | b'\n' | b'\r'));
        let encoded = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"content-encoding"));
        let unfit = request.headers.iter().any(|(name, value)| odd(name) || odd(value));
        if encoded || unfit || request.target.iter().any(|byte| *byte <= b' ') {
            return Ok(None);
        }
        if request.body.as_ref().is_some_and(|body| body.len() > MAX_BODY) {
            return Ok(None);
        }
        let mut headers = request.headers;
        let body = request.body.unwrap_or_default();
        if !body.is_empty() {
            headers.push((b"content-length".to_vec(), body.len().to_string().into_bytes()));
        }
        let exchange = Exchange {
            name: case.id.clone(),
            method: request.method,
            uri: request.target,
            headers,
            body,
            ..Exchange::default()
        };
        self.peer.refuses(&exchange).map(Some)
    }
}

/// Where a checkout has the parts, from its root.
#[must_use]
pub fn parts(root: &Path, crs: &Path) -> Parts {
    Parts {
        python: root.join(".cache/libmodsecurity/bin/python"),
        program: root.join("tests/differential/peer.py"),
        crs: crs.to_path_buf(),
        folder: root.join("target/adversary"),
    }
}

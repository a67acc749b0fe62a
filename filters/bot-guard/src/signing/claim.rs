//! The signatures that a request carries: `Signature-Input`, `Signature` and `Signature-Agent`, as far as they are for this.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use exchange::Request;

use super::agent::{DirectoryKind, identifier};
use super::fields::{Bare, Dictionary, InnerList, Item, Member};
use super::why::Why;

/// The bytes of each of the three fields that are read, at most; a longer one is not read at all.
const MAX_FIELD: usize = 8192;
/// The tag of signatures of bots.
const TAG: &[u8] = b"web-bot-auth";
/// How far the clocks of a signer and of a gateway may differ, in seconds.
const SKEW: i64 = 30;
/// The bytes of a nonce, at most.
const MAX_NONCE: usize = 256;

/// The three fields, each as one.
pub(super) struct SignatureFields {
    input: Vec<u8>,
    signature: Vec<u8>,
    agent: Vec<u8>,
}

/// A signature with the tag, and where it says that its key is.
pub(super) struct Claim<'a> {
    label: &'a [u8],
    pub(super) input: &'a InnerList<'a>,
    /// The identifier of its directory, if the signature covers it; `None` for a request without `Signature-Agent`.
    pub(super) directory: Option<Vec<u8>>,
}

/// What a signature says of itself, checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Terms<'a> {
    pub(super) thumbprint: [u8; 32],
    pub(super) nonce: Option<&'a [u8]>,
    /// Until when it is accepted, in milliseconds since the Unix epoch.
    pub(super) until: u64,
}

/// What a policy asks of signatures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demands<'a> {
    /// The hosts that they must be for, in lower case and without a port, `*.` for all below; none for any.
    pub(crate) hosts: &'a [String],
    /// The longest life of a signature, in seconds.
    pub(crate) max_age: u32,
    /// It must have a nonce.
    pub(crate) nonce: bool,
    /// The verifications that a worker makes in a second, at most.
    pub(crate) per_second: u32,
}

/// The field `Signature-Agent`, read.
enum Agents<'a> {
    /// The request has none.
    None,
    /// One string, as in earlier drafts.
    One(Item<'a>),
    Map(Dictionary<'a>),
}

// === impl Demands ===

impl Demands<'_> {
    /// Whether signatures for this host count. Where a gateway answers for any host, a signature that a bot has made for another site, whose
    /// owner can send it on with the host as it was, is one for the gateway too.
    pub(super) fn accept_host(&self, authority: &[u8]) -> bool {
        let authority = authority.to_ascii_lowercase();
        let port = authority.iter().rposition(|byte| *byte == b':');
        let port = port
            .filter(|at| authority.get(at.saturating_add(1)..).is_some_and(|port| port.iter().all(u8::is_ascii_digit)));
        let host = port.and_then(|at| authority.get(..at)).unwrap_or(&authority);
        let is_for = |known: &String| match known.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end.as_bytes()),
            None => host == known.as_bytes(),
        };
        self.hosts.is_empty() || self.hosts.iter().any(is_for)
    }
}

// === impl SignatureFields ===

impl SignatureFields {
    /// Those of a request; `None` for one that is not signed, or whose fields are too long.
    pub(super) fn of(request: &Request) -> Option<Self> {
        // Nearly all requests end here.
        request.headers.get("signature-input")?;
        let [input, signature, agent] =
            ["signature-input", "signature", "signature-agent"].map(|name| joined(request, name, MAX_FIELD));
        Some(Self { input: input?, signature: signature?, agent: agent? })
    }

    /// The signatures' inputs; `None` if they cannot be read.
    pub(super) fn inputs(&self) -> Option<Dictionary<'_>> {
        Dictionary::read(&self.input)
    }

    /// The signatures of these inputs that have the tag and say where their keys are.
    pub(super) fn claims<'a>(&self, inputs: &'a Dictionary<'a>) -> Vec<Claim<'a>> {
        let Some(agents) = self.agents() else { return Vec::new() };
        let lists = inputs.iter().filter_map(|(label, member)| match member {
            Member::List(list) if list.parameters.text(b"tag") == Some(TAG) => Some((label, list)),
            _ => None,
        });
        let claim = |(label, input)| {
            let directory = agents.directory(label, input)?;
            Some(Claim { label, input, directory })
        };
        lists.filter_map(claim).collect()
    }

    /// `Signature-Agent`; `None` if it cannot be read.
    fn agents(&self) -> Option<Agents<'_>> {
        match self.agent.first() {
            None => Some(Agents::None),
            // No key of a dictionary begins with a quote.
            Some(b'"') => Item::read(&self.agent).map(Agents::One),
            Some(_) => Dictionary::read(&self.agent).map(Agents::Map),
        }
    }

    /// The signature of a claim.
    ///
    /// # Errors
    /// There is none, or none of Ed25519.
    pub(super) fn signature(&self, claim: &Claim<'_>) -> Result<[u8; 64], Why> {
        let signatures = Dictionary::read(&self.signature).ok_or(Why::NoSignature)?;
        match signatures.get(claim.label) {
            Some(Member::Item(Item { value: Bare::Bytes(bytes), .. })) => {
                bytes.as_slice().try_into().map_err(|_| Why::Algorithm)
            }
            _ => Err(Why::NoSignature),
        }
    }
}

// === impl Agents ===

impl Agents<'_> {
    /// The identifier of the directory that a signature covers; `Some(None)` without the header. `None` where the header is there and
    /// the signature does not cover it, or it names no directory: the sender could have exchanged it.
    fn directory(&self, label: &[u8], input: &InnerList<'_>) -> Option<Option<Vec<u8>>> {
        let covered = || input.items.iter().find(|item| item.value == Bare::Text(b"signature-agent".as_slice().into()));
        match self {
            Agents::None => Some(None),
            Agents::One(item) => match covered()?.parameters.text(b"key") {
                None => Some(Some(named(item)?)),
                Some(_) => None,
            },
            Agents::Map(map) => match map.get(covered()?.parameters.text(b"key").unwrap_or(label))? {
                Member::Item(item) => Some(Some(named(item)?)),
                Member::List(_) => None,
            },
        }
    }
}

/// The identifier of a directory that a member of `Signature-Agent` names.
fn named(item: &Item<'_>) -> Option<Vec<u8>> {
    let Bare::Text(url) = &item.value else { return None };
    let kind = match item.parameters.get(b"type") {
        None => DirectoryKind::Directory,
        Some(Bare::Token(word)) => DirectoryKind::of(word)?,
        Some(_) => return None,
    };
    identifier(kind, url)
}

// === impl Claim ===

impl<'a> Claim<'a> {
    /// Checks what needs no key.
    ///
    /// # Errors
    /// Why the signature does not count.
    pub(super) fn terms(&self, demands: Demands<'_>, now: u64) -> Result<Terms<'a>, Why> {
        let parameters = &self.input.parameters;
        if parameters.get(b"alg").is_some_and(|_| parameters.text(b"alg") != Some(b"ed25519")) {
            return Err(Why::Algorithm);
        }
        let covers = |name: &[u8]| {
            let plain = |item: &Item<'_>| item.parameters.iter().next().is_none();
            self.input
                .items
                .iter()
                .any(|item| plain(item) && matches!(&item.value, Bare::Text(text) if **text == *name))
        };
        if !covers(b"@authority") && !covers(b"@target-uri") {
            return Err(Why::NotBound);
        }
        let thumbprint = parameters.text(b"keyid").and_then(thumbprint).ok_or(Why::UnknownKey)?;
        let until = self.until(demands.max_age, now)?;
        let nonce = match parameters.get(b"nonce") {
            None if demands.nonce => return Err(Why::NoNonce),
            None => None,
            Some(_) => {
                let nonce = self.input.parameters.text(b"nonce").ok_or(Why::NoNonce)?;
                Some(nonce).filter(|nonce| (1..=MAX_NONCE).contains(&nonce.len())).ok_or(Why::NoNonce).map(Some)?
            }
        };
        Ok(Terms { thumbprint, nonce, until })
    }

    /// Until when it is accepted, in milliseconds since the Unix epoch.
    fn until(&self, max_age: u32, now: u64) -> Result<u64, Why> {
        let time = |key: &[u8]| match self.input.parameters.get(key) {
            Some(Bare::Integer(seconds)) => Some(*seconds),
            _ => None,
        };
        let (Some(created), Some(expires)) = (time(b"created"), time(b"expires")) else { return Err(Why::NoTimes) };
        let now = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        let life = expires.saturating_sub(created);
        if life <= 0 {
            return Err(Why::NoTimes);
        }
        if life > i64::from(max_age) {
            return Err(Why::LivesTooLong);
        }
        if created.saturating_sub(SKEW) > now {
            return Err(Why::FromTheFuture);
        }
        let end = expires.saturating_add(SKEW);
        if end <= now {
            return Err(Why::Expired);
        }
        u64::try_from(end).ok().and_then(|end| end.checked_mul(1000)).ok_or(Why::NoTimes)
    }
}

/// A thumbprint (RFC 7638) as `keyid` has it.
fn thumbprint(keyid: &[u8]) -> Option<[u8; 32]> {
    if keyid.len() != 43 {
        return None;
    }
    URL_SAFE_NO_PAD.decode(keyid).ok()?.try_into().ok()
}

/// The values of a header as one (RFC 9421, section 2.1), empty without any; `None` beyond `most` bytes.
pub(super) fn joined(request: &Request, name: &str, most: usize) -> Option<Vec<u8>> {
    let mut field = Vec::new();
    for (place, value) in request.headers.all(name).enumerate() {
        if place > 0 {
            field.extend_from_slice(b", ");
        }
        if field.len().saturating_add(value.len()) > most {
            return None;
        }
        field.extend_from_slice(value.trim_ascii());
    }
    Some(field)
}

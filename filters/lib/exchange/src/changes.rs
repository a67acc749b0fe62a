//! Changes of messages: headers and statuses that plugins set, and headers that a replaced body makes false.

use crate::reply;
use crate::run::Half;
use crate::{Exchange, Headers, Host, Level};

/// The most changes that plugins make to the head of one message; further ones are ignored and logged.
pub const MAX_CHANGES: usize = 64;
/// The most bytes that the names and values of these changes have together.
pub const MAX_CHANGE_BYTES: usize = 16 << 10;

/// Headers that a plugin changes in no message: they say how the body is coded, or which part of a representation it is.
/// [`Verdict::ReplaceBody`](crate::Verdict::ReplaceBody) deals with them.
const OF_THE_BODY: [&str; 2] = ["content-encoding", "content-range"];
/// Headers of requests that a plugin does not change: what the route was chosen by, the id of the request in all logs, what the
/// gateway answers itself, and codings of responses, which only steps that inspect responses limit
/// ([`Exchange::accept_encoding`]).
const OF_THE_REQUEST: [&str; 4] = ["accept-encoding", "expect", "host", "x-request-id"];
/// Headers of requests that control the gateway's router begin with this.
const OF_THE_ROUTER: &str = "x-envoy-";

/// Headers of a message that are false once its body is another: codings, digests (RFC 9530 and before).
const FALSE_BY_BODY: [&str; 5] = ["content-encoding", "content-digest", "repr-digest", "digest", "content-md5"];
/// Headers of a response that are as well: validators of the backend's representation, and its offer of parts of it.
const FALSE_BY_RESPONSE_BODY: [&str; 3] = ["etag", "last-modified", "accept-ranges"];

/// A change of one header of a message. Names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderChange {
    /// One header with this value takes the place of all that have the name.
    Set {
        /// The name.
        name: String,
        /// The value.
        value: Vec<u8>,
    },
    /// One more header.
    Add {
        /// The name.
        name: String,
        /// The value.
        value: Vec<u8>,
    },
    /// All headers of the name are removed.
    Remove {
        /// The name.
        name: String,
    },
}

/// The changes of one exchange that the gateway has not carried out yet.
#[derive(Debug, Default)]
pub struct Changes {
    request: Pending,
    response: Pending,
    /// A plugin has changed a header of the request, in this filter or in one before it.
    pub(crate) of_request: bool,
}

#[derive(Debug, Default)]
struct Pending {
    list: Vec<HeaderChange>,
    /// By plugins, carried out or not.
    count: usize,
    bytes: usize,
    /// The headers have gone on, or the gateway has answered.
    gone: bool,
}

impl HeaderChange {
    /// One header with this value in place of all that have the name.
    #[must_use]
    pub fn set(name: &str, value: impl Into<Vec<u8>>) -> Self {
        Self::Set { name: name.to_ascii_lowercase(), value: value.into() }
    }

    /// One more header.
    #[must_use]
    pub fn add(name: &str, value: impl Into<Vec<u8>>) -> Self {
        Self::Add { name: name.to_ascii_lowercase(), value: value.into() }
    }

    /// No header of the name.
    #[must_use]
    pub fn remove(name: &str) -> Self {
        Self::Remove { name: name.to_ascii_lowercase() }
    }

    /// The name of the header.
    #[must_use]
    pub fn name(&self) -> &str {
        let (Self::Set { name, .. } | Self::Add { name, .. } | Self::Remove { name }) = self;
        name
    }

    fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Set { value, .. } | Self::Add { value, .. } => Some(value),
            Self::Remove { .. } => None,
        }
    }

    /// Makes the value safe to send; `false` where it cannot be.
    fn make_safe(&mut self) -> bool {
        match self {
            Self::Set { name, value } | Self::Add { name, value } => reply::make_header_safe(name, value),
            Self::Remove { name } => reply::make_header_safe(name, &mut Vec::new()),
        }
    }
}

impl Exchange {
    /// Changes a header of the request, as the backend gets it and as later steps see it. Possible until the request goes to the
    /// backend; if it is refused, the backend sees nothing of it.
    ///
    /// Returns `false`, with an error in the gateway's log, for a change that is not made: the headers have gone; it is the
    /// [`MAX_CHANGES`]th but one, or beyond [`MAX_CHANGE_BYTES`]; the name or the value is not valid (RFC 9110, section 5); or the
    /// header is not a plugin's to change. Those are pseudo headers and `host`, framing and hop-by-hop headers, `content-encoding`,
    /// `content-range`, `accept-encoding`, `expect`, `x-request-id`, `x-envoy-*`, and a `content-type` that would make a stream of
    /// a message that is none, or the reverse.
    ///
    /// The caller's identity and [`Request`](crate::Request)'s other fields stay what the caller's own headers say, and the steps those
    /// of the route. A gateway whose routes match headers chooses the backend's by the changed ones.
    pub fn change_request(&mut self, change: HeaderChange, host: &dyn Host) -> bool {
        self.change(Half::Request, change, host)
    }

    /// Changes a header of the response, as the client gets it and as later steps see it. Possible while the headers of the
    /// response are held; an answer of the gateway's own has none of it. Limits are those of [`Exchange::change_request`]; the
    /// last five names are a plugin's to change here.
    pub fn change_response(&mut self, change: HeaderChange, host: &dyn Host) -> bool {
        self.change(Half::Response, change, host)
    }

    /// Changes the status of the response while its headers are held: 200 to 599. `false`, with an error in the gateway's log,
    /// where it cannot be: a status that allows no body or names a part of one (1xx, 204, 205, 206, 304) is neither replaced nor
    /// set, because the headers beside it would be false; nor is that of a tunnel.
    pub fn set_response_status(&mut self, status: u16, host: &dyn Host) -> bool {
        let changeable = |status: u16| (200..=599).contains(&status) && !matches!(status, 204 | 205 | 206 | 304);
        let tunnel = self.request.method == b"CONNECT";
        let value = status.to_string().into_bytes();
        let outcome = match &mut self.response {
            None => Err("there is no response yet"),
            Some(_) if self.changes.response.gone => Err("the headers have gone"),
            Some(response) if tunnel || !changeable(status) || !changeable(response.status) => {
                Err("one of the two statuses is of another kind")
            }
            Some(response) => {
                response.status = status;
                let change = HeaderChange::Set { name: ":status".to_owned(), value };
                response.headers.change(&change);
                // One entry: a status that is set again takes its place.
                let list = &mut self.changes.response.list;
                list.retain(|known| known.name() != ":status");
                list.push(change);
                Ok(())
            }
        };
        if let Err(why) = outcome {
            host.log(Level::Error, &format!("palisade: the status {status} was not set: {why}"));
        }
        outcome.is_ok()
    }

    fn change(&mut self, half: Half, mut change: HeaderChange, host: &dyn Host) -> bool {
        let outcome = self.check(half, &mut change);
        match outcome {
            Ok(()) => {
                self.changes.of_request |= half == Half::Request;
                self.carry_out(half, change);
            }
            Err(why) => {
                let name = change.name().get(..64).unwrap_or(change.name()).escape_default().to_string();
                let what = if half == Half::Request { "request" } else { "response" };
                host.log(Level::Error, &format!("palisade: the header {name} of a {what} was not changed: {why}"));
            }
        }
        outcome.is_ok()
    }

    /// Whether a plugin may make a change now, and counts it if so.
    fn check(&mut self, half: Half, change: &mut HeaderChange) -> Result<(), &'static str> {
        let headers = match (half, &self.response) {
            (Half::Request, _) => &self.request.headers,
            (Half::Response, Some(response)) => &response.headers,
            (Half::Response, None) => return Err("there is no response yet"),
        };
        let pending = self.changes.of(half);
        if pending.gone {
            return Err("the headers have gone");
        }
        let name = change.name();
        let own = half == Half::Request && (OF_THE_REQUEST.contains(&name) || name.starts_with(OF_THE_ROUTER));
        if name.starts_with(':') || name == "host" || own || OF_THE_BODY.contains(&name) {
            return Err("it is the gateway's own");
        }
        if !change.make_safe() {
            return Err("it is not valid, or the gateway's own");
        }
        if change.name() == "content-type" {
            let streams = |kind: Option<&[u8]>| crate::read::is_stream(kind.unwrap_or_default());
            if streams(headers.get("content-type")) != streams(change.value()) {
                return Err("a stream would not be seen as one, or the reverse");
            }
        }
        let bytes = change.name().len().saturating_add(change.value().map_or(0, <[u8]>::len));
        if pending.count >= MAX_CHANGES || pending.bytes.saturating_add(bytes) > MAX_CHANGE_BYTES {
            return Err("there are too many changes");
        }
        pending.count = pending.count.saturating_add(1);
        pending.bytes = pending.bytes.saturating_add(bytes);
        Ok(())
    }

    /// Notes a change for the gateway, and shows it to later steps.
    fn carry_out(&mut self, half: Half, change: HeaderChange) {
        let headers = match (half, &mut self.response) {
            (Half::Request, _) => &mut self.request.headers,
            (Half::Response, Some(response)) => &mut response.headers,
            (Half::Response, None) => return,
        };
        headers.change(&change);
        self.changes.of(half).list.push(change);
    }

    /// Changes the headers that are false once the body is another one, which is not coded: its length (RFC 9112, section 6),
    /// coding, digests, and in a response validators and ranges. Without this, a recipient would take the rest of a longer body
    /// for the next message, or serve the new body in place of the old one, and the reverse.
    ///
    /// # Errors
    ///
    /// Why the body cannot be replaced.
    pub(crate) fn replaces_body(&mut self, half: Half, from: usize, to: usize) -> Result<(), &'static str> {
        let (headers, part) = match (half, &self.response) {
            (Half::Request, _) => (&self.request.headers, self.request.headers.get("content-range").is_some()),
            (Half::Response, Some(response)) => (&response.headers, response.is_part()),
            (Half::Response, None) => return Err("there is no response"),
        };
        if self.changes.of(half).gone {
            return Err("a body cannot be replaced where headers are not held");
        }
        let has = |name: &str| headers.get(name).is_some();
        // The other parts are not at hand, and their places follow from this one's length.
        if part && (from != to || has("content-encoding")) {
            return Err("a part of a representation cannot be replaced by one of another length");
        }
        let of_response = FALSE_BY_RESPONSE_BODY.iter().filter(|_| half == Half::Response);
        let mut changes: Vec<HeaderChange> = FALSE_BY_BODY
            .iter()
            .chain(of_response)
            .filter(|name| has(name))
            .map(|name| HeaderChange::remove(name))
            .collect();
        if has("content-length") {
            changes.push(HeaderChange::set("content-length", to.to_string()));
        }
        changes.into_iter().for_each(|change| self.carry_out(half, change));
        Ok(())
    }
}

impl Changes {
    fn of(&mut self, half: Half) -> &mut Pending {
        match half {
            Half::Request => &mut self.request,
            Half::Response => &mut self.response,
        }
    }

    /// The changes of a message whose headers go on now; there are no more of it then.
    pub(crate) fn take(&mut self, half: Half) -> Vec<HeaderChange> {
        let pending = self.of(half);
        pending.gone = true;
        std::mem::take(&mut pending.list)
    }

    /// The gateway answers: neither the request nor the response goes on.
    pub(crate) fn discard(&mut self) {
        for half in [Half::Request, Half::Response] {
            self.take(half);
        }
    }
}

impl Headers {
    /// Carries a change out.
    pub(crate) fn change(&mut self, change: &HeaderChange) {
        let name = change.name().as_bytes();
        let mut place = change.value();
        let adds = matches!(change, HeaderChange::Add { .. });
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
        for (known, value) in self.pairs() {
            match known == name && !adds {
                false => pairs.push((known, value)),
                // The first one's place is taken, the others go.
                true => pairs.extend(place.take().map(|value| (name, value))),
            }
        }
        pairs.extend(place.map(|value| (name, value)));
        let changed = Self::new(&pairs);
        *self = changed;
    }
}

#[cfg(test)]
mod tests;

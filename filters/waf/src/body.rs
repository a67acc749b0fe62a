//! Bodies: how they came, and what is in them.

use std::borrow::Cow;

use exchange::{Body, BodyNeed, Exchange, Headers, Host, Request, Verdict};
use seclang::body::decode::{DecodeError, MAX_MEMBERS, decode};
use seclang::body::decode_prefix;

use crate::refusal::{BAD_REQUEST, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE};
use crate::{Half, State, Waf};

/// How much of a decoded body is taken at once, in bytes.
const PIECE: usize = 64 * 1024;

impl Waf {
    /// How much of the request's body is to be held, and whether it is read as it comes.
    pub(crate) fn need_body(&self, state: &mut State, exchange: &mut Exchange, host: &dyn Host) -> Verdict {
        let limits = state.transaction.request_body_limits();
        let multipart = state.transaction.request_body_is_multipart();
        let most = if multipart { limits.total } else { limits.without_files };
        let length = exchange.request.headers.get("content-length").and_then(|length| std::str::from_utf8(length).ok());
        let length = length.and_then(|length| length.trim().parse::<u64>().ok());
        if limits.reject && length.is_some_and(|length| length > most) && self.denies(state) {
            let reason = format!("the request body is over {most} bytes");
            state.transaction.request_body_too_long();
            return self.unreadable(PAYLOAD_TOO_LARGE, reason, &[], state, exchange, host);
        }
        let encoded = has_encoding(&encoding_of(&exchange.request.headers));
        // Nothing of an encoded body can be looked at before all of it is there.
        if !encoded && (multipart || !limits.reject) {
            return Verdict::ReadBody(BodyNeed { limit: bytes(limits.total) });
        }
        let limit = if limits.reject { most } else { limits.total };
        Verdict::NeedBody(BodyNeed { limit: bytes(limit) })
    }

    /// Takes a piece of the body. Of what is over the limits, the rules see at once what is suspicious.
    pub(crate) fn take_piece(
        &self,
        bytes: &[u8],
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        state.phase = 2;
        let intervention = state.transaction.request_body_piece(bytes);
        if let Some(refusal) = self.refusal(intervention, state, exchange, Half::Request, host) {
            return Verdict::Refuse(refusal);
        }
        let windows = state.transaction.take_suspicious();
        self.judge_rest(&windows, state, exchange, host)
    }

    /// Phase 2 with the body, its encoding undone.
    pub(crate) fn inspect_request_body(
        &self,
        body: Body<'_>,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let encoding = encoding_of(&exchange.request.headers);
        let limits = state.transaction.request_body_limits();
        let multipart = state.transaction.request_body_is_multipart();
        // More than is inspected need not be unpacked, but for one byte that shows that there is more. All of it is inspected
        // at once, so that no more of it is than of a body that is not compressed is held.
        let most = match (limits.reject, multipart) {
            (false, _) => limits.total,
            (true, true) => limits.total.saturating_add(1),
            (true, false) => limits.without_files.saturating_add(1),
        };
        match self.decoded(&encoding, body, most) {
            Ok(None) => self.phase_2(body.bytes, body.complete, state, exchange, host),
            Ok(Some(decoded)) => self.inspect_decoded(body, &decoded, state, exchange, host),
            Err(DecodeError::TooLarge) if !limits.reject && self.step.inspect_undecodable => {
                self.inspect_decoded_prefix(&encoding, body, most, state, exchange, host)
            }
            Err(_) if self.step.inspect_undecodable => self.phase_2(body.bytes, body.complete, state, exchange, host),
            Err(error) => {
                let status = match error {
                    DecodeError::TooLarge | DecodeError::Ratio | DecodeError::Members => PAYLOAD_TOO_LARGE,
                    _ if !body.complete => PAYLOAD_TOO_LARGE,
                    DecodeError::Unknown => UNSUPPORTED_MEDIA_TYPE,
                    DecodeError::Truncated | DecodeError::Corrupt | DecodeError::Ambiguous => BAD_REQUEST,
                };
                let reason = format!("the request body cannot be inspected: {error}");
                let (limit, bound) = match error {
                    DecodeError::TooLarge => {
                        let limit = if multipart { limits.total } else { limits.without_files };
                        let inspected = if limits.reject { limit } else { most };
                        ("bytes of the decoded body", self.step.decompressed_input_body_limit.min(inspected))
                    }
                    DecodeError::Ratio => ("compression ratio", u64::from(self.step.max_input_compression_ratio)),
                    DecodeError::Members => ("gzip members", u64::try_from(MAX_MEMBERS).unwrap_or(u64::MAX)),
                    _ => ("bytes that can be decoded", 0),
                };
                state.transaction.request_body_left_out(limit, bound);
                if error == DecodeError::TooLarge && !limits.reject && !self.denies(state) {
                    self.pass_unreadable(status, &reason, state, exchange, host);
                    return self.inspect_decoded_prefix(&encoding, body, most, state, exchange, host);
                }
                self.unreadable(status, reason, body.bytes, state, exchange, host)
            }
        }
    }

    /// The decoded body in front of the rules, with what there is to read in the bytes that it came in.
    fn inspect_decoded(
        &self,
        body: Body<'_>,
        decoded: &[u8],
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        state.transaction.request_body_as_sent(body.bytes, decoded);
        state.transaction.rest_of_body().compressed = true;
        for piece in decoded.chunks(PIECE) {
            if let refused @ Verdict::Refuse(_) = self.take_piece(piece, state, exchange, host) {
                return refused;
            }
            // What follows is not judged any more, which is told.
            if state.transaction.rest_of_body().over {
                break;
            }
        }
        self.phase_2(&[], body.complete, state, exchange, host)
    }

    /// The same with as much of the body as is decoded, where what is beyond that refuses nothing.
    fn inspect_decoded_prefix(
        &self,
        encoding: &[u8],
        body: Body<'_>,
        most: u64,
        state: &mut State,
        exchange: &mut Exchange,
        host: &dyn Host,
    ) -> Verdict {
        let most = bytes(self.step.decompressed_input_body_limit.min(most));
        let prefix = decode_prefix(encoding, body.bytes, most).unwrap_or_default();
        self.inspect_decoded(Body { complete: false, ..body }, &prefix, state, exchange, host)
    }

    /// The body of a response with its content encoding undone as far as it can be, and whether that is all of it. A backend's
    /// odd encoding is no reason to withhold its answer: what cannot be decoded is inspected as it is.
    pub(crate) fn decoded_response<'b>(
        &self,
        body: Body<'b>,
        state: &mut State,
        exchange: &Exchange,
    ) -> (Cow<'b, [u8]>, bool) {
        let encoding = exchange.response.as_ref().map(|response| encoding_of(&response.headers)).unwrap_or_default();
        match self.decoded(&encoding, body, u64::MAX) {
            Ok(None) => (Cow::Borrowed(body.bytes), body.complete),
            Ok(Some(decoded)) => (Cow::Owned(decoded), body.complete),
            Err(error) => {
                let cut = matches!(error, DecodeError::TooLarge | DecodeError::Ratio | DecodeError::Truncated);
                let most = bytes(self.step.decompressed_input_body_limit);
                let prefix = decode_prefix(&encoding, body.bytes, most).filter(|prefix| !prefix.is_empty());
                if prefix.is_none() {
                    state.transaction.response_body_undecoded();
                }
                (prefix.map_or(Cow::Borrowed(body.bytes), Cow::Owned), body.complete && !cut)
            }
        }
    }

    /// A body with its content encoding undone, at most `most` bytes of it; `None` where it has none.
    pub(crate) fn decoded(&self, encoding: &[u8], body: Body<'_>, most: u64) -> Result<Option<Vec<u8>>, DecodeError> {
        if !has_encoding(encoding) || body.bytes.is_empty() {
            return Ok(None);
        }
        let limit = bytes(self.step.decompressed_input_body_limit.min(most));
        decode(encoding, body.bytes, limit, self.step.max_input_compression_ratio).map(Some)
    }
}

/// The content encodings of a message. Several headers are one list (RFC 9110, section 5.3).
fn encoding_of(headers: &Headers) -> Vec<u8> {
    headers.all("content-encoding").collect::<Vec<_>>().join(b",".as_slice())
}

/// Whether there is any encoding that changes a body.
fn has_encoding(list: &[u8]) -> bool {
    let mut names = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    names.any(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity"))
}

/// Headers that the caller has not sent: what the gateway writes itself. Callers may send them where it does not replace
/// them, with any other value.
pub(crate) fn added_by_gateway(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"x-envoy-expected-rq-timeout-ms" => value.iter().all(u8::is_ascii_digit),
        b"x-envoy-internal" => value == b"true",
        b"x-envoy-external-address" => {
            std::str::from_utf8(value).is_ok_and(|address| address.parse::<std::net::IpAddr>().is_ok())
        }
        _ => false,
    }
}

/// The gateway undoes the chunks and takes their header away. A body without a length was sent that way: HTTP/1.1 has no
/// other (RFC 9112, section 6.3), and rules ask which of the two it was.
pub(crate) fn was_chunked(request: &Request, protocol: &[u8]) -> bool {
    let framed = ["content-length", "transfer-encoding"].iter().any(|name| request.headers.get(name).is_some());
    protocol == b"HTTP/1.1" && !request.streaming && !framed
}

pub(crate) fn bytes(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

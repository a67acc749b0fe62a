//! The response: line, headers, body.

use super::hot_cache::HeaderKind;
use super::limits::HEADERS;
use super::report::Intervention;
use super::transaction::Transaction;
use super::uninspected::Uninspected;
use crate::program::LimitAction;
use crate::vocabulary::Variable;

impl Transaction {
    /// Sets the status and the protocol (`HTTP/1.1`).
    pub fn response_line(&mut self, status: u16, protocol: &[u8]) {
        self.begin_response();
        self.set_scalar_bytes(Variable::ResponseStatus, status.to_string().into_bytes());
        self.set_scalar_bytes(Variable::ResponseProtocol, protocol);
        let line = [protocol, b" ", status.to_string().as_bytes()].concat();
        self.set_scalar_bytes(Variable::StatusLine, line);
    }

    /// Gives the response a budget of its own.
    pub(super) fn begin_response(&mut self) {
        if !std::mem::replace(&mut self.responding, true) {
            self.arena.budget.renew();
        }
    }

    /// Adds a header, in the order in which it came.
    pub fn response_header(&mut self, name: &[u8], value: &[u8]) {
        if self.response_headers.entries.len() >= HEADERS {
            self.left_out("RESPONSE_HEADERS", "headers", HEADERS);
            return;
        }
        self.borrow_hot_cache();
        let (name_value, kind) = self.arena.push_header_name(name);
        let header = match kind.is_cacheable() {
            true => self.arena.push_cacheable(value),
            false => self.arena.push(value),
        };
        self.response_headers.push_header(name, name_value, header);
        self.arena.budget.bring(name.len() + value.len());
        if kind == HeaderKind::ContentType {
            let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
            let media_type = value.get(..end).unwrap_or_default().trim_ascii();
            self.set_scalar_bytes(Variable::ResponseContentType, media_type);
        }
    }

    /// All headers are there: runs phase 3.
    pub fn response_headers(&mut self) -> Option<Intervention> {
        self.run_phase(3)
    }

    /// Whether bodies of responses are inspected at all. Known after phase 1.
    pub fn inspects_responses(&self) -> bool {
        self.response_body_access && self.runs()
    }

    /// Whether [`Transaction::response_body`] looks at the body: access and media type. Known after phase 3.
    pub fn wants_response_body(&self) -> bool {
        let media_type = self.scalars.get(usize::from(Variable::ResponseContentType.code()));
        let media_type = media_type.map(|value| self.arena.get(*value)).unwrap_or_default();
        self.response_body_access
            && self.intervention.is_none()
            && self.runs()
            && self.engine.settings.inspects_media_type(media_type)
    }

    /// Takes the body and runs phase 4. Called once, with an empty body if there is none or if it is not inspected: the
    /// rules that decide about the score of a response run in this phase too.
    pub fn response_body(&mut self, body: &[u8], complete: bool) -> Option<Intervention> {
        if !self.runs() {
            return None;
        }
        if self.wants_response_body() {
            let limit = usize::try_from(self.response_body_limit).unwrap_or(usize::MAX);
            let inspected = body.get(..limit).unwrap_or(body);
            if !complete || inspected.len() < body.len() {
                self.set_scalar_bytes(Variable::OutboundDataError, *b"1");
                let rejects = self.engine.settings.response_body_limit_action == LimitAction::Reject;
                self.response_left_out("bytes", inspected.len(), !rejects);
                if rejects {
                    let refused = self.refuse_oversize(502, b"The response body is larger than SecResponseBodyLimit");
                    if refused.is_some() {
                        return refused;
                    }
                }
            }
            self.begin_response();
            self.arena.budget.bring(inspected.len());
            self.set_scalar_bytes(Variable::ResponseBody, inspected);
            self.set_scalar_bytes(Variable::ResponseContentLength, inspected.len().to_string().into_bytes());
        }
        self.run_phase(4)
    }

    /// The body of [`Transaction::response_body`] is still encoded and cannot be decoded.
    pub fn response_body_undecoded(&mut self) {
        if self.wants_response_body() {
            self.response_left_out("bytes that can be decoded", 0, true);
        }
    }

    fn response_left_out(&mut self, limit: &'static str, most: usize, tolerated: bool) {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        self.uninspected.push(Uninspected { collection: "RESPONSE_BODY", limit, most, tolerated });
    }
}

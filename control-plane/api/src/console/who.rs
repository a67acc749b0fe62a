//! Who makes a call of the console, and the events of what they do.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::guard::Current;
use crate::error::ApiError;
use accounts::Operator;
use events::{Audit, AuditAction};

/// The operator of a request that has passed [`protect`](super::protect), with the session and the address that it came from.
pub(super) struct Who {
    pub(super) operator: Operator,
    pub(super) current: Current,
    /// Unknown where the API is not served over a network.
    pub(super) source: Option<IpAddr>,
}

impl Who {
    /// The event of something that they do.
    pub(super) fn audit(&self, action: AuditAction) -> Audit {
        Audit::new(action).operator(&self.operator.name, &self.operator.email).from(self.source)
    }

    /// The same for an operator, as the outbox of the store keeps it.
    pub(super) fn note(&self, action: AuditAction, name: &str, detail: &str, now_millis: u64) -> String {
        let audit = self.audit(action).of(format!("operators/{name}"));
        if detail.is_empty() { audit.note(now_millis) } else { audit.detail(detail).note(now_millis) }
    }
}

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Who, ApiError> {
        let source = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        let found = parts.extensions.get::<Operator>().cloned().zip(parts.extensions.get::<Current>().cloned());
        let (operator, current) = found.ok_or_else(|| {
            ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "this endpoint wants a console session")
        })?;
        Ok(Who { operator, current, source })
    }
}

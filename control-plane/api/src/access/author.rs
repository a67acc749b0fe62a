//! Who makes a change of an entity: the owner of an admin key, or an operator.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::Caller;
use crate::console::roles;
use crate::error::ApiError;
use accounts::{Operator, Role};
use events::{Audit, AuditAction};

/// Who makes a change, as its audit event names them. Handlers take it from a request that has passed
/// [`guard`](super::guard()) or [`protect`](crate::console::protect); of any other it is 401.
#[derive(Clone, Debug)]
pub(crate) enum Author {
    /// The owner of an admin key.
    Key(Caller),
    /// An operator with a session, and where the request came from; unknown where the API is not served over a network.
    Operator(Operator, Option<IpAddr>),
}

impl Author {
    /// The event of something that they do, in the request that the task works for.
    pub(crate) fn audit(&self, action: AuditAction) -> Audit {
        let audit = Audit::new(action);
        match self {
            Author::Key(caller) => audit.admin_key(&caller.key_id, &caller.key_name).from(caller.source),
            Author::Operator(operator, source) => audit.operator(&operator.name, &operator.email).from(*source),
        }
    }

    /// An error if this is an operator without the role. What a key may do was decided by its scopes.
    pub(crate) fn demand(&self, role: Role) -> Result<(), ApiError> {
        match self {
            Author::Key(_) => Ok(()),
            Author::Operator(operator, _) => roles::demand(operator, role),
        }
    }

    /// As the history of entities names them.
    pub(crate) fn history_author(&self) -> store::Author {
        match self {
            Author::Key(caller) => store::Author::api_key(&caller.key_id, &caller.key_name),
            Author::Operator(operator, _) => store::Author::operator(&operator.name),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Author {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Author, ApiError> {
        if let Some(caller) = parts.extensions.get::<Caller>() {
            return Ok(Author::Key(caller.clone()));
        }
        let operator = parts.extensions.get::<Operator>().ok_or_else(|| {
            ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "neither an admin key nor a session came with this")
        })?;
        let source = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        Ok(Author::Operator(operator.clone(), source))
    }
}

//! Names of the admin API that its description, its guards and its handlers share.

use axum::http::HeaderName;

/// The prefix of every endpoint of the console.
pub const NAMESPACE: &str = "/extensions/svc/extensions/waf";
/// The name of the session cookie.
pub const COOKIE: &str = "palisade_session";
/// The name of the cookie that binds a login at the provider to the browser that has begun it.
pub const OIDC_COOKIE: &str = "palisade_oidc";
/// The name of the cookie with the ID token of a login at the provider, for the logout there.
pub const ID_TOKEN_COOKIE: &str = "palisade_id_token";
/// The header that a mutating request carries the token against forged requests in.
pub const CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

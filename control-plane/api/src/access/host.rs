//! The names that the admin API answers to.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// What machines ask by address, whatever it is called.
const ANY_HOST: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Answers requests for another host than these with 421 `wrong_host`, but for those of health, readiness and metrics.
/// Lets everything through where there are none.
///
/// 421 and not 404: it says that the request has come to the wrong server, and no cache or client takes it for an answer
/// about the resource. A page whose name was made to lead here (DNS rebinding) gets nothing but that.
pub fn only_hosts(router: Router, hosts: &[String]) -> Router {
    if hosts.is_empty() {
        return router;
    }
    let hosts: Arc<[String]> = hosts.iter().map(|host| host_name(host)).collect();
    router.layer(middleware::from_fn(move |request: Request, next: Next| {
        let hosts = Arc::clone(&hosts);
        async move { if is_for(&hosts, &request) { next.run(request).await } else { wrong_host() } }
    }))
}

/// Whether every host that a request names, in its target and its headers, is one of these.
fn is_for(hosts: &[String], request: &Request) -> bool {
    if ANY_HOST.contains(&request.uri().path()) {
        return true;
    }
    let target = request.uri().authority().map(|authority| authority.as_str());
    let headers = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut named = target.into_iter().chain(headers).peekable();
    named.peek().is_some() && named.all(|host| hosts.contains(&host_name(host)))
}

fn wrong_host() -> Response {
    let message = "the control plane does not answer to this host; `--admin-host` lists those that it does";
    ApiError::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", message).into_response()
}

/// A host without its port and final dot, in lower case; an IPv6 address without brackets.
fn host_name(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        // More than one colon is an IPv6 address that lacks its brackets.
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    async fn status(hosts: &[&str], uri: &str, headers: &[&str]) -> u16 {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let routes = Router::new().route("/a", get(|| async {})).route("/healthz", get(|| async {}));
        let mut request = Request::builder().uri(uri);
        for host in headers {
            request = request.header("host", *host);
        }
        let router = only_hosts(routes, &hosts);
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn only_the_named_hosts_are_answered() {
        let own = ["Admin.Example", "::1"];
        for host in ["admin.example", "ADMIN.example:8900", "admin.example.", "[::1]:8900", "[::1]"] {
            assert_eq!(status(&own, "/a", &[host]).await, 200, "{host}");
        }
        for host in ["", "evil.example", "admin.example.evil", "127.0.0.1:8900", "xadmin.example", "admin.example@evil"]
        {
            assert_eq!(status(&own, "/a", &[host]).await, 421, "{host}");
            assert_eq!(status(&own, "/healthz", &[host]).await, 200, "{host}");
            assert_eq!(status(&[], "/a", &[host]).await, 200, "{host}");
        }
        assert_eq!(status(&own, "/a", &[]).await, 421);
        assert_eq!(status(&own, "/a", &["admin.example", "evil.example"]).await, 421);
        assert_eq!(status(&own, "http://admin.example/a", &[]).await, 200, "as HTTP/2 has it");
        assert_eq!(status(&own, "http://evil.example/a", &["admin.example"]).await, 421);
    }
}

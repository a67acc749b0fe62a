//! A gateway to attack: the policy of `make run`, and a second host on which the WAF leaves out some paths.

use palisade_tests::gateway::{Gateway, preset, route, threat_policy, waf_config};
use serde_json::json;

/// The host whose WAF leaves out what begins with `/public/`.
pub const SCOPED_HOST: &str = "scoped.adversary.test";

/// The host whose policy allows a Content-Encoding of requests, which the Core Rule Set refuses.
pub const COMPRESSED_HOST: &str = "compressed.adversary.test";
/// The rule set's own list of refused headers, without `content-encoding`.
const ALLOW_ENCODINGS: &str = "SecAction \"id:10001,phase:1,nolog,pass,\
    setvar:'tx.restricted_headers_basic=/proxy/ /lock-token/ /content-range/ /if/ /x-http-method-override/ /x-http-method/ \
    /x-method-override/ /x-middleware-subrequest/'\"";

/// The host where 64 KiB of a body are parsed, 128 KiB are held, and the rest is scanned.
pub const PREFIX_HOST: &str = "prefix.adversary.test";

/// The host whose policy allows types of bodies that no parser reads.
pub const UNTYPED_HOST: &str = "untyped.adversary.test";
const ALLOW_TYPES: &str = "SecAction \"id:10002,phase:1,nolog,pass,\
    setvar:'tx.allowed_request_content_type=|application/x-www-form-urlencoded| |multipart/form-data| |text/xml| \
    |application/xml| |application/json| |text/plain| |application/octet-stream| |multipart/related|'\"";

/// Starts backend, control plane and an Envoy with two workers: the Core Rule Set at paranoia level 1, deny at 40.
///
/// # Panics
///
/// When a part does not come up; with its log.
#[must_use]
pub fn start() -> Gateway {
    start_workers(2)
}

/// [`start`] with another number of workers.
///
/// # Panics
///
/// When a part does not come up; with its log.
#[must_use]
pub fn start_workers(workers: usize) -> Gateway {
    let mut gateway = Gateway::start_workers(workers, &[], |control, backend| {
        control.create("waf-configs", &waf_config("demo", json!({})));
        control.create("threat-policies", &threat_policy("demo", json!({})));
        let mut scoped = route("scoped", backend, preset("demo", "demo"));
        scoped["hosts"] = json!([SCOPED_HOST]);
        scoped["plugins"][0]["config"]["exclude"] = json!(["^/public/"]);
        control.create("routes", &scoped);
        control.create(
            "waf-configs",
            &waf_config("compressed", json!({"rules": [ALLOW_ENCODINGS, "@import_preset crs"]})),
        );
        let mut compressed = route("compressed", backend, preset("demo", "compressed"));
        compressed["hosts"] = json!([COMPRESSED_HOST]);
        control.create("routes", &compressed);
        let limits = json!({
            "oversize_body_action": "inspect_prefix", "input_body_limit": 64 << 10, "input_files_limit": 128 << 10
        });
        control.create("waf-configs", &waf_config("prefix", limits));
        let mut prefix = route("prefix", backend, preset("demo", "prefix"));
        prefix["hosts"] = json!([PREFIX_HOST]);
        control.create("routes", &prefix);
        control.create("waf-configs", &waf_config("untyped", json!({"rules": [ALLOW_TYPES, "@import_preset crs"]})));
        let mut untyped = route("untyped", backend, preset("demo", "untyped"));
        untyped["hosts"] = json!([UNTYPED_HOST]);
        control.create("routes", &untyped);
        control.create("routes", &route("demo", backend, preset("demo", "demo")));
    });
    gateway.until(&palisade_tests::http::Request::get("/"), 200, std::time::Duration::from_secs(30));
    gateway
}

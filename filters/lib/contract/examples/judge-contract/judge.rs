//! The judgement of one request, as the plugin makes it. The test of recorded requests uses it too.

use std::borrow::Cow;

use contract::{BodyCheck, BodyResult, Contract, Forms, Found, Head, Violation, missing_body};
use serde_json::Value;

/// As the plugin does it.
pub(crate) fn judge(contract: &Contract, line: &Value) -> Vec<Violation> {
    let (method, target) = (line["method"].as_str().unwrap(), line["target"].as_str().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let hex = line["body"].as_str().unwrap();
    let body: Vec<u8> =
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
    let headers = &line["headers"];
    let matched = match contract.find(method.as_bytes(), path.as_bytes(), false) {
        Found::Operation(matched) => matched,
        other => {
            let kind = if other == Found::UnknownPath {
                contract::Mismatch::UnknownPath
            } else {
                contract::Mismatch::MethodNotAllowed
            };
            return vec![Violation::new(kind, "path", "")];
        }
    };
    let header = |name: &str| headers[name].as_str().map(|value| Cow::Owned(value.as_bytes().to_vec()));
    let head = Head { query: query.as_bytes(), header: &header, reject_unknown: true };
    let mut found = contract.check_parameters(&matched, &head);
    let kind = headers["content-type"].as_str().map(str::as_bytes);
    let in_head = contract.named_in_head(&matched, method.as_bytes(), path.as_bytes(), &head);
    let forms = if method == "POST" { Forms::of(kind.unwrap_or_default()) } else { Forms::default() };
    let in_body = contract.named_in_body(matched.operation, path.as_bytes(), forms, &body);
    if in_head.allow.or(in_body.allow).is_some() {
        found.push(Violation::new(contract::Mismatch::MethodNotAllowed, "method", ""));
    }
    match contract.request_body(matched.operation, kind, !body.is_empty()) {
        BodyCheck::Wrong(violation) => found.push(violation),
        BodyCheck::Required(None) if body.is_empty() => found.push(missing_body()),
        BodyCheck::Json(schema) | BodyCheck::Required(Some(schema)) => {
            if let BodyResult::Invalid(all) = contract.check_body(schema, &body, false) {
                found.extend(all);
            }
        }
        BodyCheck::Required(None) | BodyCheck::None => {}
    }
    found
}

//! Which role each endpoint of the console needs: one table, which the guard enforces and the API's description shows.

use axum::http::{Method, StatusCode};

use crate::error::ApiError;
use crate::names::NAMESPACE;
use crate::openapi::Operation;
use accounts::{Operator, Role};

/// What one endpoint, or all below one path, need.
struct Row {
    method: &'static str,
    /// The path below [`NAMESPACE`]; all below it if it ends with a slash.
    path: &'static str,
    role: Role,
    /// What of it needs the role admin (or analyst) although the rest does not, for the description. The handler demands it, see [`demand`].
    more: &'static str,
}

const WITHOUT_DRY_RUN: &str = "Without `dry_run` it needs the role `admin`.";

/// The first row that fits holds. What has no row needs the role admin.
static ROWS: &[Row] = &[
    viewer("GET", "/entities/"),
    part("POST", "/entities/_bulk", Role::Analyst, WITHOUT_DRY_RUN),
    part("POST", "/entities/{collection}/_bulk", Role::Analyst, WITHOUT_DRY_RUN),
    part("PUT", "/entities/{collection}/_bulk", Role::Analyst, WITHOUT_DRY_RUN),
    part("PATCH", "/entities/{collection}/_bulk", Role::Analyst, WITHOUT_DRY_RUN),
    part("DELETE", "/entities/{collection}/_bulk", Role::Analyst, WITHOUT_DRY_RUN),
    part("POST", "/entities/{collection}/_import", Role::Analyst, WITHOUT_DRY_RUN),
    // The own account.
    viewer("GET", "/session/_me"),
    viewer("POST", "/session/_logout"),
    viewer("GET", "/session/_sessions"),
    viewer("POST", "/session/_revoke"),
    viewer("POST", "/session/_revoke_others"),
    viewer("POST", "/session/_password"),
    viewer("GET", "/session/_second_factor"),
    viewer("POST", "/session/_second_factor_enrol"),
    viewer("POST", "/session/_second_factor_confirm"),
    viewer("POST", "/session/_second_factor_remove"),
    viewer("GET", "/session/_passkeys"),
    viewer("POST", "/session/_passkey_begin"),
    viewer("POST", "/session/_passkey_add"),
    viewer("POST", "/session/_passkey_confirm_begin"),
    viewer("POST", "/session/_passkey_remove"),
    // What is read.
    viewer("GET", "/events/"),
    viewer("GET", "/security/_status"),
    viewer("GET", "/security/_bans"),
    viewer("GET", "/security/_allowlist"),
    viewer("GET", "/security/_incidents"),
    part("POST", "/security/_ledger", Role::Viewer, "With `forget` it needs the role `analyst`."),
    viewer("GET", "/security/_challenge_presets"),
    viewer("GET", "/security/_bot_catalog"),
    viewer("GET", "/security/_bot_status"),
    viewer("POST", "/security/_robots_txt"),
    viewer("POST", "/security/_fingerprints"),
    viewer("GET", "/security/_api_report"),
    viewer("POST", "/query-guard/_operations"),
    viewer("GET", "/reputation/_catalog"),
    viewer("GET", "/reputation/_status"),
    viewer("POST", "/reputation/_lookup"),
    viewer("POST", "/reputation/_geo"),
    viewer("GET", "/tuning/_matches"),
    viewer("POST", "/learning/_report"),
    viewer("GET", "/replay/_recordings"),
    viewer("GET", "/replay/_jobs"),
    viewer("GET", "/replay/_job"),
    // Decisions on callers and incidents.
    analyst("POST", "/security/_ban"),
    analyst("POST", "/security/_extend"),
    analyst("POST", "/security/_unban"),
    analyst("POST", "/security/_allow"),
    analyst("POST", "/security/_disallow"),
    analyst("POST", "/security/_incident_state"),
    // What changes nothing that gateways enforce.
    analyst("POST", "/security/_simulate"),
    analyst("POST", "/security/_challenge_from_preset"),
    analyst("POST", "/security/_contract_check"),
    analyst("POST", "/reputation/_template"),
    analyst("POST", "/utils/_compile"),
    analyst("POST", "/utils/_test"),
    analyst("POST", "/tuning/_propose"),
    analyst("POST", "/tuning/_preview"),
    analyst("POST", "/learning/_start"),
    analyst("POST", "/learning/_stop"),
    analyst("POST", "/learning/_discard"),
    analyst("POST", "/replay/_upload"),
    analyst("POST", "/replay/_record_events"),
    part("POST", "/replay/_delete", Role::Analyst, "What other operators have added needs the role `admin`."),
    analyst("POST", "/replay/_start"),
    part("POST", "/replay/_cancel", Role::Analyst, "What other operators have started needs the role `admin`."),
];

const fn viewer(method: &'static str, path: &'static str) -> Row {
    Row { method, path, role: Role::Viewer, more: "" }
}

const fn analyst(method: &'static str, path: &'static str) -> Row {
    Row { method, path, role: Role::Analyst, more: "" }
}

const fn part(method: &'static str, path: &'static str, role: Role, more: &'static str) -> Row {
    Row { method, path, role, more }
}

/// The role that a request needs. `path` is the pattern that the router has matched, not what the client wrote: other ways to write a path
/// lead to the same pattern or to none.
pub(super) fn needed(method: &Method, path: &str) -> Role {
    row(method, path).map_or(Role::Admin, |row| row.role)
}

/// Whether a pattern belongs to the operator's own account.
pub(super) fn is_own_account(path: &str) -> bool {
    path.strip_prefix(NAMESPACE).is_some_and(|below| below.starts_with("/session/"))
}

/// Adds the role to the description of an operation.
pub(super) fn describe(operation: Operation) -> Operation {
    // As the pattern has it: the description names each collection.
    let path = match operation.path().strip_prefix(NAMESPACE).and_then(|below| below.strip_prefix("/entities/")) {
        Some(below) => {
            let rest = below.split_once('/').map(|(_, rest)| format!("{{collection}}/{rest}"));
            format!("{NAMESPACE}/entities/{}", rest.unwrap_or_else(|| below.to_owned()))
        }
        None => operation.path().to_owned(),
    };
    let row = row(operation.method(), &path);
    let (role, more) = row.map_or((Role::Admin, ""), |row| (row.role, row.more));
    let operation = operation.for_role(role, more);
    if role == Role::Viewer && more.is_empty() {
        return operation;
    }
    operation.fails(StatusCode::FORBIDDEN, "role", "the operator's role does not include this.")
}

/// An error if a role is not enough.
///
/// # Errors
/// 403 `role`.
pub(crate) fn demand(operator: &Operator, needed: Role) -> Result<(), ApiError> {
    if operator.role >= needed {
        return Ok(());
    }
    metrics::counter!("palisade_console_refusals_total", "reason" => "role").increment(1);
    let message = format!("this needs the role `{needed}`; yours is `{}`", operator.role);
    Err(ApiError::new(StatusCode::FORBIDDEN, "role", message))
}

fn row(method: &Method, path: &str) -> Option<&'static Row> {
    let below = path.strip_prefix(NAMESPACE)?;
    let method = if method == Method::HEAD { &Method::GET } else { method };
    ROWS.iter().find(|row| {
        let fits = if row.path.ends_with('/') { below.starts_with(row.path) } else { below == row.path };
        fits && method == row.method
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_does_not_name_needs_an_admin() {
        let needs = |method: Method, below: &str| needed(&method, &format!("{NAMESPACE}{below}"));
        assert_eq!(needs(Method::GET, "/session/_me"), Role::Viewer);
        assert_eq!(needs(Method::HEAD, "/session/_me"), Role::Viewer);
        assert_eq!(needs(Method::POST, "/security/_ban"), Role::Analyst);
        for (method, below) in [
            (Method::POST, "/session/_me"),
            (Method::GET, "/security/_ban"),
            (Method::POST, "/security/_ban/"),
            (Method::POST, "/security/_banx"),
            (Method::POST, "/security"),
            (Method::GET, "/entities"),
            (Method::OPTIONS, "/entities/{collection}"),
            (Method::GET, "/new/_endpoint"),
        ] {
            assert_eq!(needs(method.clone(), below), Role::Admin, "{method} {below}");
        }
        assert_eq!(needed(&Method::GET, "/apis/entities/x"), Role::Admin);
        assert_eq!(needed(&Method::GET, ""), Role::Admin);
    }

    #[test]
    fn no_row_is_hidden_by_another() {
        for (index, row) in ROWS.iter().enumerate() {
            let path = format!("{NAMESPACE}{}", row.path);
            let method: Method = row.method.parse().unwrap();
            let found = super::row(&method, &path).unwrap();
            assert!(std::ptr::eq(found, &ROWS[index]), "{} {}", row.method, row.path);
        }
    }
}

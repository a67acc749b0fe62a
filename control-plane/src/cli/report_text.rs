//! The API report as text, for people.

use std::fmt::Write as _;

use serde_json::Value;

const DAY: u64 = 86_400_000;

/// The report as text, at a time in milliseconds since 1970.
pub(super) fn text(report: &Value, now: u64) -> String {
    let mut all = String::new();
    for route in list(report, "routes") {
        self::route(&mut all, route, now);
    }
    let summary = |name: &str| report.pointer(&format!("/summary/{name}")).and_then(Value::as_u64).unwrap_or(0);
    let _ = writeln!(
        all,
        "{} routes, {} with a contract; {} operations: {} zombies, {} unused",
        summary("routes"),
        summary("with_contract"),
        summary("operations"),
        summary("zombies"),
        summary("unused")
    );
    let _ = writeln!(
        all,
        "{} shadow paths, {} of them confirmed; {} other paths; {} differences of payloads, {} of them sensitive; \
         {} requests would be refused",
        summary("shadows"),
        summary("confirmed_shadows"),
        summary("probes"),
        summary("drift"),
        summary("sensitive_drift"),
        summary("would_refuse")
    );
    let _ = writeln!(
        all,
        "credentials: {} high, {} medium, {} low, {} info",
        summary("auth/high"),
        summary("auth/medium"),
        summary("auth/low"),
        summary("auth/info")
    );
    all
}

fn route(all: &mut String, route: &Value, now: u64) {
    let contract = match route.pointer("/contract/id").and_then(Value::as_str) {
        Some(id) if route.get("compiles") == Some(&Value::Bool(false)) => {
            format!("contract {}, which does not compile", plain(id))
        }
        Some(id) => format!("contract {}", plain(id)),
        None => "no contract".to_owned(),
    };
    let observed = match route.get("observed_since").and_then(Value::as_u64) {
        Some(since) => format!("observed for {}", span(now.saturating_sub(since))),
        None => "not observed yet".to_owned(),
    };
    let _ = writeln!(all, "{} ({}): {contract}, {observed}", field(route, "route_id"), field(route, "route_name"));
    let calls = |title: &str, name: &str| {
        let rows = list(route, name).map(|one| row(one, now)).collect();
        (title.to_owned(), rows)
    };
    let tables: [(String, Vec<Vec<String>>); 3] = [
        calls("operations", "operations"),
        calls("outside of the contract", "shadows"),
        calls("other paths", "probes"),
    ];
    for (title, rows) in tables {
        let heads =
            ["state", "method", "path", "calls", "refused", "2xx", "3xx", "4xx", "5xx", "last seen", "would refuse"];
        table(all, &title, &heads, rows);
    }
    let refusals = list(route, "operations").flat_map(|one| {
        let of = format!("{} {}", field(one, "method"), field(one, "path"));
        one.pointer("/would_refuse/samples").map(|samples| (of, samples))
    });
    let outside = route.pointer("/outside_would_refuse/samples").map(|samples| ("(outside)".to_owned(), samples));
    let samples = refusals.chain(outside).flat_map(|(of, samples)| {
        let samples = samples.as_array().into_iter().flatten();
        samples.map(move |sample| {
            vec![
                of.clone(),
                field(sample, "kind"),
                number(sample, "requests"),
                field(sample, "where"),
                field(sample, "detail"),
            ]
        })
    });
    table(
        all,
        "enforcing would refuse",
        &["operation", "mismatch", "requests", "where", "expected"],
        samples.collect(),
    );
    let drift = list(route, "drift").map(|one| {
        let sensitive = if one.get("sensitive") == Some(&Value::Bool(true)) { "sensitive" } else { "" };
        vec![
            field(one, "operation"),
            field(one, "kind"),
            field(one, "where"),
            field(one, "observed"),
            number(one, "count"),
            sensitive.to_owned(),
        ]
    });
    table(all, "payloads that differ", &["operation", "kind", "where", "observed", "seen", ""], drift.collect());
    let findings = route
        .pointer("/auth/findings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|one| ["severity", "kind", "method", "path", "detail"].map(|name| field(one, name)).to_vec());
    table(all, "credentials", &["severity", "finding", "method", "path", "detail"], findings.collect());
    all.push('\n');
}

fn row(one: &Value, now: u64) -> Vec<String> {
    let status =
        |name: &str| one.pointer(&format!("/statuses/{name}")).and_then(Value::as_u64).unwrap_or(0).to_string();
    let state = match one.get("confirmed") {
        Some(Value::Bool(false)) => format!("{}?", field(one, "state")),
        _ => field(one, "state"),
    };
    let seen = one.get("last_seen").and_then(Value::as_u64);
    let would = one.pointer("/would_refuse/requests").and_then(Value::as_u64).map_or(String::new(), |requests| {
        let callers = one.pointer("/would_refuse/callers").and_then(Value::as_u64).unwrap_or(0);
        format!("{requests} of {callers} callers")
    });
    vec![
        state,
        field(one, "method"),
        field(one, "path"),
        number(one, "hits"),
        status("refused"),
        status("2xx"),
        status("3xx"),
        status("4xx"),
        status("5xx"),
        seen.map_or("never".to_owned(), |seen| format!("{} ago", span(now.saturating_sub(seen)))),
        would,
    ]
}

/// Rows in columns, with a title; nothing without rows. Columns that are empty throughout are left out.
fn table(all: &mut String, title: &str, heads: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(all, "  {title}:");
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        if widest == 0 { 0 } else { widest.max(heads.get(column).map_or(0, String::len)) }
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    for row in std::iter::once(&heads).chain(&rows) {
        let cells = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
        let line: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(all, "    {}", line.join("  ").trim_end());
    }
}

fn list<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn field(value: &Value, name: &str) -> String {
    plain(value.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn number(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_u64).map_or(String::new(), |number| number.to_string())
}

/// Text without characters that a terminal acts on.
fn plain(text: &str) -> String {
    text.chars().map(|shown| if shown.is_control() { '\u{fffd}' } else { shown }).collect()
}

fn span(millis: u64) -> String {
    match millis {
        0..60_000 => format!("{} s", millis / 1000),
        60_000..3_600_000 => format!("{} min", millis / 60_000),
        3_600_000..DAY => format!("{} h", millis / 3_600_000),
        _ => format!("{} d", millis / DAY),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_report_is_a_page_of_text() {
        let statuses = json!({ "refused": 1, "1xx": 0, "2xx": 5, "3xx": 0, "4xx": 2, "5xx": 0 });
        let samples = json!([{ "kind": "invalid_parameter", "requests": 3, "where": "query:limit", "detail": "expected the type integer", "last_seen": 1 }]);
        let report = json!({
            "zombie_after_days": 90,
            "routes": [{
                "route_id": "app", "route_name": "App\u{1b}[2J", "contract": { "id": "shop", "name": "Shop" }, "compiles": true,
                "observed_since": 86_400_000,
                "operations": [
                    { "method": "GET", "path": "/items", "state": "used", "hits": 8, "last_seen": 172_770_000, "statuses": statuses,
                      "would_refuse": { "requests": 3, "callers": 2, "samples": samples } },
                    { "method": "DELETE", "path": "/items", "state": "unused", "hits": 0, "last_seen": null, "statuses": {}, "would_refuse": null },
                ],
                "shadows": [{ "method": "GET", "path": "/old/{id}", "state": "shadow", "hits": 1, "last_seen": 1, "statuses": statuses, "confirmed": false }],
                "probes": [], "outside_would_refuse": null,
                "drift": [{ "operation": "GET /items", "kind": "undeclared_field", "where": "200 $.ssn", "observed": "string", "sensitive": true, "count": 4, "last_seen": 1 }],
                "auth": { "checks": [], "findings": [{ "severity": "high", "kind": "unauthenticated", "method": "GET", "path": "/items", "detail": "nothing checks" }] },
            }],
            "summary": { "routes": 1, "with_contract": 1, "operations": 2, "auth": { "high": 1 } },
        });
        let text = text(&report, 172_800_000);
        for line in [
            "app (App\u{fffd}[2J): contract shop, observed for 1 d",
            "    used    GET     /items  8      1        5    0    2    0    30 s ago   3 of 2 callers",
            "    unused  DELETE  /items  0      0        0    0    0    0    never",
            "    shadow?  GET     /old/{id}  1      1        5    0    2    0    1 d ago",
            "    GET /items  invalid_parameter  3         query:limit  expected the type integer",
            "    GET /items  undeclared_field  200 $.ssn  string    4     sensitive",
            "    high      unauthenticated  GET     /items  nothing checks",
            "credentials: 1 high, 0 medium, 0 low, 0 info",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n---\n{text}");
        }
        assert!(!text.contains("other paths:"));
    }
}

//! Every metric of the control plane: its name, kind, unit and meaning. `docs/metrics.md` lists the same.

use metrics::Unit;

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// `palisade_<part>_<what>_<unit>`; counters end with `_total`.
    pub name: &'static str,
    /// What it is to Prometheus.
    pub kind: MetricKind,
    /// Its labels, in alphabetical order.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows while the process lives.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Observations in buckets.
    Histogram,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Described {
    Described { name, kind: MetricKind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Described {
    Described { name, kind: MetricKind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Described {
    Described { name, kind: MetricKind::Histogram, labels, help }
}

/// All of them, by name.
pub const CATALOGUE: &[Described] = &[
    counter(
        "palisade_access_refusals_total",
        &["reason"],
        "Requests without a suitable admin key: none, wrong, throttled, scope",
    ),
    counter(
        "palisade_alerts_dropped_total",
        &["reason"],
        "Alerts that were not sent: full (too many wait), gone (the rule was deleted or disabled), old (a day old at a start)",
    ),
    counter("palisade_alerts_messages_total", &["channel", "outcome"], "Alerts: delivered, failed (given up)"),
    counter(
        "palisade_alerts_missed_events_total",
        &[],
        "Events and bans that no alert rule has looked at, because too many came at once",
    ),
    counter(
        "palisade_alerts_retries_total",
        &["channel"],
        "Attempts to deliver an alert that failed and were made again",
    ),
    gauge("palisade_alerts_waiting_messages", &[], "Alerts that are not delivered yet"),
    gauge("palisade_build_info", &["version"], "1, with the release as a label"),
    counter(
        "palisade_challenge_tokens_total",
        &["outcome", "provider"],
        "Tokens of widgets that nodes asked about: passed, refused, elsewhere (another host), used (before), failed (to be verified), busy (too many at once)",
    ),
    gauge("palisade_challenge_verification_failing", &["provider"], "1 while tokens of the widget cannot be verified"),
    histogram(
        "palisade_challenge_verification_seconds",
        &["provider"],
        "Calls of a widget's vendor, a second try included",
    ),
    gauge(
        "palisade_compile_problems",
        &[],
        "Faults in the entities as they are now; 0 where they are published to every group",
    ),
    histogram("palisade_compile_seconds", &["purpose"], "Compilations of all entities: check (of a write), publish"),
    gauge("palisade_compile_snapshot_bytes", &["filter", "group"], "The size of the snapshot that was published last"),
    counter("palisade_console_logins_total", &["outcome"], "Logins of operators: taken, refused, throttled"),
    counter(
        "palisade_console_refusals_total",
        &["reason"],
        "Requests that the console refused: csrf, no_session, throttled",
    ),
    counter(
        "palisade_events_dropped_total",
        &["exporter", "reason"],
        "Events that an exporter lost: full (its queue), refused (by its server)",
    ),
    counter(
        "palisade_events_total",
        &["outcome"],
        "Events: audited (made here), taken (from nodes), refused (no events)",
    ),
    gauge("palisade_exporter_failing", &["exporter"], "1 while the last attempt has failed"),
    counter("palisade_exporter_retries_total", &["exporter"], "Attempts that failed and were or will be made again"),
    gauge("palisade_exporter_waiting_events", &["exporter"], "Events that are not written yet"),
    histogram("palisade_exporter_write_seconds", &["exporter"], "Attempts to write a batch"),
    counter("palisade_exporter_written_events_total", &["exporter"], "Events that were written"),
    gauge(
        "palisade_health_troubles",
        &["part"],
        "What does not work as it should now: entities (as read from the store), nodes (gateways that refuse what they are served), publication (groups), store",
    ),
    gauge("palisade_http_connections", &[], "Open connections to the admin API"),
    counter("palisade_http_connections_full_total", &[], "Connections to the admin API that had to wait for room"),
    histogram(
        "palisade_http_request_seconds",
        &["method", "route", "status"],
        "Requests of the admin API and the console",
    ),
    counter(
        "palisade_http_requests_total",
        &["method", "route", "status"],
        "Requests of the admin API and the console, by the pattern of their path",
    ),
    counter(
        "palisade_ledger_lost_total",
        &[],
        "Denials that the ledger missed, because too many came at once or the store failed",
    ),
    counter(
        "palisade_ledger_refused_total",
        &[],
        "Denials that the ledger does not charge, because no gateway may have their identity banned (a range, for example)",
    ),
    counter("palisade_link_bans_total", &["outcome"], "Bans that were asked for: live, refused, rejected, unrecorded"),
    counter("palisade_link_dropped_total", &[], "Events that gateways lost because their link was down or too slow"),
    counter(
        "palisade_link_puzzles_total",
        &["outcome"],
        "Solved puzzles, and waits that are over, that nodes asked about: first, spent, failed",
    ),
    counter("palisade_link_snapshots_total", &["outcome"], "Snapshots that filters report on: taken, refused"),
    gauge("palisade_link_streams", &[], "Workers of gateways that are linked"),
    counter("palisade_login_failures_total", &[], "Wrong admin keys and wrong logins of operators together"),
    counter(
        "palisade_node_auth_failures_total",
        &["reason"],
        "Streams of gateways without a right token: missing, wrong; as another node: node",
    ),
    counter("palisade_node_auth_throttled_total", &[], "Streams of gateways that were told to wait after wrong tokens"),
    gauge("palisade_process_max_fds", &[], "File descriptors that the process may have open"),
    gauge("palisade_process_open_fds", &[], "File descriptors that are open"),
    gauge("palisade_process_resident_memory_bytes", &[], "Memory that is in use"),
    gauge("palisade_process_start_time_seconds", &[], "When the process began, since 1970"),
    gauge("palisade_process_threads", &[], "Threads"),
    counter(
        "palisade_publish_attempts_total",
        &["outcome"],
        "Publications: published (to every group), partial (some groups could not be), refused (none could)",
    ),
    gauge(
        "palisade_publish_failing",
        &["group"],
        "1 while the entities as they are now cannot be published to the group, which keeps what it had",
    ),
    gauge("palisade_publish_last_success_timestamp_seconds", &[], "When every group was last published, since 1970"),
    gauge("palisade_publish_revision", &[], "The revision of the entities that were last published to every group"),
    gauge(
        "palisade_reload_failing",
        &["what"],
        "1 while changed files cannot be used: admin TLS, xDS TLS, node tokens",
    ),
    counter("palisade_reloads_total", &["outcome", "what"], "Changed files: taken over (done) or not (failed)"),
    gauge(
        "palisade_snapshot_compiles",
        &[],
        "1 where the entities as they are now are published to every group, 0 where to some they cannot be",
    ),
    histogram("palisade_store_commit_seconds", &[], "Commits, each of one or several writes"),
    counter("palisade_store_failures_total", &[], "Commits that failed"),
    gauge("palisade_store_queued_writes", &[], "Writes that wait for their commit"),
    gauge("palisade_store_size_bytes", &[], "The size of the store's main file"),
    counter("palisade_store_writes_total", &[], "Writes that were committed"),
    gauge(
        "palisade_tls_certificate_expires_in_seconds",
        &["port"],
        "Until the certificate in use ends, negative afterwards: admin, xds",
    ),
    counter(
        "palisade_tls_handshake_failures_total",
        &["port", "reason"],
        "TLS handshakes that failed or took too long",
    ),
    histogram(
        "palisade_xds_acknowledge_seconds",
        &["type"],
        "From the change that a gateway was sent to its acknowledgement, compilation included",
    ),
    counter("palisade_xds_answers_total", &["outcome", "type"], "Answers of gateways: taken, refused"),
    gauge("palisade_xds_nodes", &[], "Gateways that are connected"),
    gauge("palisade_xds_nodes_refusing", &[], "Connected gateways that refuse a type of what they are served"),
    counter("palisade_xds_responses_total", &["type"], "Responses to gateways"),
    gauge("palisade_xds_streams", &[], "Streams of gateways"),
];

/// Tells the recorder what each metric is, and shows those without labels from the beginning.
pub(super) fn describe() {
    for Described { name, kind, labels, help } in CATALOGUE.iter().copied() {
        let unit = unit(name);
        match kind {
            MetricKind::Counter => metrics::describe_counter!(name, unit, help),
            MetricKind::Gauge => metrics::describe_gauge!(name, unit, help),
            MetricKind::Histogram => metrics::describe_histogram!(name, unit, help),
        }
        match kind {
            MetricKind::Counter if labels.is_empty() => metrics::counter!(name).increment(0),
            MetricKind::Gauge if labels.is_empty() => metrics::gauge!(name).increment(0.0),
            _ => {}
        }
    }
}

fn unit(name: &str) -> Unit {
    match name.trim_end_matches("_total") {
        name if name.ends_with("_bytes") => Unit::Bytes,
        name if name.ends_with("_seconds") => Unit::Seconds,
        _ => Unit::Count,
    }
}

/// The table of `docs/metrics.md`.
#[must_use]
pub fn markdown() -> String {
    let mut text = "| metric | kind | labels | what it says |\n|---|---|---|---|\n".to_owned();
    for Described { name, kind, labels, help } in CATALOGUE {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("| `{name}` | {kind} | {labels} | {help} |\n"));
    }
    text
}

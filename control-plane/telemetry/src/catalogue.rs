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
    /// Its meaning, for people.
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
        "Requests refused for their admin key, by reason: none, wrong, throttled, scope",
    ),
    counter(
        "palisade_alerts_dropped_total",
        &["reason"],
        "Alerts that were not sent, by reason: full (the queue), gone (the rule was deleted or disabled), old (queued for over a day when the process started)",
    ),
    counter(
        "palisade_alerts_messages_total",
        &["channel", "outcome"],
        "Alerts, by outcome: delivered, failed (after all attempts)",
    ),
    counter(
        "palisade_alerts_missed_events_total",
        &[],
        "Events and bans that were not evaluated by alert rules, because too many came at once",
    ),
    counter("palisade_alerts_retries_total", &["channel"], "Failed attempts to deliver an alert that were repeated"),
    gauge("palisade_alerts_waiting_messages", &[], "Alerts that wait for delivery"),
    counter(
        "palisade_bots_dropped_total",
        &[],
        "Addresses of crawlers that were not taken in for verification, because too many waited",
    ),
    gauge(
        "palisade_bots_fingerprints",
        &["state"],
        "Learned pairs of TLS fingerprint and software, by state: candidate, accepted, rejected",
    ),
    counter(
        "palisade_bots_fingerprints_dropped_total",
        &[],
        "Reports of TLS fingerprints that could not be used, and pairs that gave way to others",
    ),
    gauge(
        "palisade_bots_key_directories",
        &["state"],
        "Key directories of bots, by state: in_force (gateways verify by it), failing (its last fetch failed)",
    ),
    counter("palisade_bots_key_directory_failures_total", &[], "Fetches of key directories of bots that failed"),
    counter("palisade_bots_range_failures_total", &[], "Fetches of published addresses of bots that failed"),
    gauge(
        "palisade_bots_range_lists",
        &["state"],
        "Lists of published addresses of bots, by state: in_force (gateways verify by it), failing (its last fetch failed)",
    ),
    gauge(
        "palisade_bots_verdicts",
        &["finding"],
        "Verdicts by reverse DNS in force, by finding: verified, impersonator, unverifiable",
    ),
    counter(
        "palisade_bots_verifications_total",
        &["outcome"],
        "Verifications by reverse DNS, by outcome: verified, impersonator, failed",
    ),
    gauge("palisade_bots_waiting", &[], "Addresses of crawlers that wait for their verification"),
    counter(
        "palisade_bouncers_alerts_total",
        &["bouncer", "outcome"],
        "Alerts to the decision service of a bouncer, by outcome: sent (taken by it), dropped (too many waited, or it does not take them)",
    ),
    gauge(
        "palisade_bouncers_alerts_waiting",
        &["bouncer"],
        "Alerts that wait to be sent to the decision service of a bouncer",
    ),
    counter(
        "palisade_bouncers_bans_skipped_total",
        &["bouncer"],
        "Alerts that asked for no ban, although the bouncer has `push_with_decision`: the caller is private or on the allowlist",
    ),
    gauge(
        "palisade_bouncers_decisions",
        &["bouncer", "kind"],
        "Decisions of a bouncer that are in force, by kind: exact (on addresses), ranges, named (on countries and networks). Of the first 256 bouncers of a process",
    ),
    gauge("palisade_bouncers_failing", &["bouncer"], "1 while a bouncer has an error, as `_status` shows it"),
    counter("palisade_bouncers_syncs_total", &["bouncer", "outcome"], "Calls for decisions, by outcome: done, failed"),
    gauge("palisade_build_info", &["version"], "Always 1; the label is the release"),
    counter(
        "palisade_challenge_tokens_total",
        &["outcome", "provider"],
        "Widget tokens that nodes asked to verify, by outcome: passed, refused, elsewhere (for another host), used (a second time), failed (no answer from the vendor), busy (too many at once)",
    ),
    gauge("palisade_challenge_verification_failing", &["provider"], "1 while the vendor cannot verify tokens"),
    histogram(
        "palisade_challenge_verification_seconds",
        &["provider"],
        "Duration of a verification by the vendor, including a retry",
    ),
    gauge("palisade_compile_problems", &[], "Faults in the current entities; 0 if they are published to every group"),
    histogram(
        "palisade_compile_seconds",
        &["purpose"],
        "Duration of compiling all entities, by purpose: check (of a write), publish",
    ),
    gauge("palisade_compile_snapshot_bytes", &["filter", "group"], "Size of the last published snapshot"),
    counter(
        "palisade_console_logins_total",
        &["outcome"],
        "Logins of operators, by outcome: taken, second_step (a code is awaited), refused, throttled",
    ),
    counter(
        "palisade_console_refusals_total",
        &["reason"],
        "Requests that the console refused, by reason: csrf, no_session, role, second_factor, throttled",
    ),
    gauge(
        "palisade_control_plane_leads",
        &[],
        "1 on the control plane that does the work that is done once for all that share its store; always with a store of its own",
    ),
    counter(
        "palisade_counts_evicted_total",
        &["kind"],
        "Parts of shared counts that were forgotten before their time to make room, by kind: window, budget, set",
    ),
    gauge("palisade_counts_keys", &["kind"], "Keys that nodes count together, by kind: window, budget, set"),
    counter(
        "palisade_counts_lost_total",
        &[],
        "Changes of shared counts that gateways did not send, because too many keys changed at once",
    ),
    counter(
        "palisade_counts_refused_total",
        &["reason"],
        "Shared counts that were not taken or not passed on, by reason: clock (the node's is ahead), full (too many groups or nodes), invalid, message (too long), pending (the node does not keep up), store (no room for another row)",
    ),
    gauge(
        "palisade_databases_failing",
        &["database"],
        "1 while an ASN or geolocation database has an error, as `_status` shows it",
    ),
    counter(
        "palisade_databases_failures_total",
        &["database"],
        "Fetches of an ASN or geolocation database that failed",
    ),
    gauge(
        "palisade_databases_fetched_timestamp_seconds",
        &["database"],
        "Time when an ASN or geolocation database was fetched or found unchanged, since 1970; 0 without one. Of the first 64 databases of a process",
    ),
    gauge("palisade_databases_ranges", &["database"], "Address ranges of an ASN or geolocation database"),
    gauge("palisade_dnsbl_entries", &[], "Verdicts of DNS blocklists that are in force"),
    counter(
        "palisade_dnsbl_lookups_total",
        &["outcome", "zone"],
        "Lookups of addresses in a DNS blocklist, by outcome: listed, unlisted, failed (no answer that can be used)",
    ),
    gauge(
        "palisade_dnsbl_zone_failing",
        &["zone"],
        "1 while a DNS blocklist is not asked, because it cannot be believed or does not answer. Of the first 64 zones of a process",
    ),
    gauge(
        "palisade_event_store_bytes",
        &[],
        "Size of the stored events with their indexes; in a shared store, compressed and without",
    ),
    gauge("palisade_event_store_events", &[], "Stored events"),
    counter(
        "palisade_event_store_gave_way_total",
        &[],
        "Times that half of the stored events were removed, because the store of everything else had no room",
    ),
    counter(
        "palisade_events_dropped_total",
        &["exporter", "reason"],
        "Events that an exporter lost, by reason: full (its queue), refused (by its server), damaged (on disk)",
    ),
    counter(
        "palisade_events_missed_total",
        &["receiver"],
        "Events that a plugin was too slow to look at, such as those that are sent to decision services",
    ),
    counter(
        "palisade_events_total",
        &["outcome"],
        "Events, by outcome: audited (made by the control plane), taken (from nodes), refused (not valid)",
    ),
    gauge("palisade_exporter_disk_events", &["exporter"], "Events that wait on disk"),
    gauge("palisade_exporter_disk_failing", &["exporter"], "1 if events cannot be kept on disk"),
    gauge("palisade_exporter_failing", &["exporter"], "1 if the last attempt failed"),
    counter("palisade_exporter_retries_total", &["exporter"], "Failed attempts that are repeated"),
    gauge("palisade_exporter_waiting_events", &["exporter"], "Events that wait to be written"),
    histogram("palisade_exporter_write_seconds", &["exporter"], "Duration of an attempt to write a batch"),
    counter("palisade_exporter_written_events_total", &["exporter"], "Events written"),
    gauge("palisade_feeds_entries", &["feed"], "Entries of the list of a threat feed that is in force"),
    gauge("palisade_feeds_failing", &["feed"], "1 while a threat feed has an error, as `_status` shows it"),
    counter("palisade_feeds_failures_total", &["feed"], "Fetches of a threat feed that failed"),
    gauge(
        "palisade_feeds_fetched_timestamp_seconds",
        &["feed"],
        "Time when the list of a threat feed was fetched or found unchanged, since 1970; 0 without a list. Of the first 256 feeds of a process",
    ),
    gauge("palisade_feeds_ranges", &["feed"], "Address ranges that the entries of a threat feed make"),
    gauge(
        "palisade_health_troubles",
        &["part"],
        "Current problems, by part: entities (as read from the store), login (the provider), nodes (gateways that refuse what they are served), publication (groups), sources (such as threat feeds), store",
    ),
    gauge("palisade_http_connections", &[], "Open connections to the admin API"),
    counter(
        "palisade_http_connections_full_total",
        &[],
        "Connections to the admin API that waited because the limit was reached",
    ),
    histogram(
        "palisade_http_request_seconds",
        &["method", "route", "status"],
        "Requests of the admin API and the console",
    ),
    counter(
        "palisade_http_requests_total",
        &["method", "route", "status"],
        "Requests of the admin API and the console, by path pattern",
    ),
    counter(
        "palisade_ledger_lost_total",
        &[],
        "Denials that were not charged, because too many came at once or the store failed",
    ),
    counter(
        "palisade_ledger_refused_total",
        &[],
        "Denials that are not charged, because gateways may not ban their identity (a range, for example)",
    ),
    counter(
        "palisade_link_bans_total",
        &["outcome"],
        "Bans that gateways asked for, by outcome: live, refused (allowlist or lifted), rejected (not allowed for gateways), unrecorded (the store failed)",
    ),
    counter("palisade_link_dropped_total", &[], "Events that gateways lost because their link was down or too slow"),
    counter(
        "palisade_link_puzzles_total",
        &["outcome"],
        "Solved puzzles and completed waits that nodes asked to spend, by outcome: first, spent (before), failed",
    ),
    counter(
        "palisade_link_questions_total",
        &["outcome", "topic"],
        "Questions that plugins of nodes asked, by outcome: answered, unknown (could not be found out), busy (too many at once), late (not in time, or the link ended), unregistered (the topic of another release)",
    ),
    counter(
        "palisade_link_snapshots_total",
        &["outcome"],
        "Snapshots that filters reported, by outcome: taken, refused",
    ),
    gauge("palisade_link_streams", &[], "Open node links, one per worker of a gateway"),
    counter(
        "palisade_live_dropped_events_total",
        &[],
        "Events that were left out of streams of the console, because the client was slow",
    ),
    gauge("palisade_live_listeners", &[], "Open streams of events of the console"),
    counter("palisade_login_failures_total", &[], "Failed logins: wrong admin keys and wrong passwords of operators"),
    counter(
        "palisade_node_auth_failures_total",
        &["reason"],
        "Refused streams of gateways, by reason: missing (no token), wrong (token), node (the token is for another node)",
    ),
    counter(
        "palisade_node_auth_throttled_total",
        &[],
        "Streams of gateways that were refused for too many wrong tokens before",
    ),
    gauge("palisade_process_max_fds", &[], "Limit of open file descriptors"),
    gauge("palisade_process_open_fds", &[], "Open file descriptors"),
    gauge("palisade_process_resident_memory_bytes", &[], "Resident memory"),
    gauge("palisade_process_start_time_seconds", &[], "Start time of the process, since 1970"),
    gauge("palisade_process_threads", &[], "Threads"),
    counter(
        "palisade_publish_attempts_total",
        &["outcome"],
        "Publications, by outcome: published (to every group), partial (not to every group), refused (to no group)",
    ),
    gauge(
        "palisade_publish_failing",
        &["group"],
        "1 while the current entities cannot be published to the group, which keeps its last version",
    ),
    gauge(
        "palisade_publish_last_success_timestamp_seconds",
        &[],
        "Time of the last publication to every group, since 1970",
    ),
    gauge("palisade_publish_revision", &[], "Revision of the entities that were last published to every group"),
    gauge(
        "palisade_reload_failing",
        &["what"],
        "1 while changed files cannot be used, by kind: admin TLS, xDS TLS, node tokens",
    ),
    counter("palisade_reloads_total", &["outcome", "what"], "Reloads of changed files, by outcome: done, failed"),
    counter(
        "palisade_reports_dropped_total",
        &["kind"],
        "Reports of plugins that were dropped: by gateways over the quota of the kind, or because their receiver is too slow",
    ),
    counter("palisade_reports_total", &["kind"], "Reports of plugins that gateways sent"),
    counter(
        "palisade_requests_uncounted_total",
        &[],
        "Requests that gateways reported and that are not in the overview: more than a gateway can have had since its last report",
    ),
    gauge("palisade_snapshot_compiles", &[], "1 if the current entities are published to every group, else 0"),
    histogram("palisade_store_commit_seconds", &[], "Duration of a commit of one or more writes"),
    counter("palisade_store_failures_total", &[], "Failed commits"),
    counter(
        "palisade_store_messages_lost_total",
        &[],
        "Messages between control planes that share a store (counts of gateways, reports) that were lost: the server did not take them, or one was too slow",
    ),
    gauge("palisade_store_queued_writes", &[], "Writes that wait for a commit"),
    counter(
        "palisade_store_setbacks_total",
        &[],
        "Times that the server of a shared store had lost changes that this control plane knew: a restore from an older file, a failover",
    ),
    gauge("palisade_store_size_bytes", &[], "Size of the store's main file"),
    counter("palisade_store_writes_total", &[], "Committed writes"),
    counter(
        "palisade_table_refusals_total",
        &[],
        "Changes of tables that workers did not take, so that they were sent the whole table again",
    ),
    gauge(
        "palisade_tls_certificate_expires_in_seconds",
        &["port"],
        "Time until the certificate in use expires, negative afterwards, by port: admin, xds",
    ),
    counter("palisade_tls_handshake_failures_total", &["port", "reason"], "TLS handshakes that failed or timed out"),
    counter(
        "palisade_upload_scans_total",
        &["outcome"],
        "Scans of the files of uploads, by outcome: clean, infected, failed (no verdict)",
    ),
    histogram(
        "palisade_xds_acknowledge_seconds",
        &["type"],
        "Time from a change to its acknowledgement by a gateway, including compilation",
    ),
    counter(
        "palisade_xds_answers_total",
        &["outcome", "type"],
        "Acknowledgements of gateways, by outcome: taken, refused",
    ),
    gauge("palisade_xds_nodes", &[], "Connected gateways"),
    gauge("palisade_xds_nodes_refusing", &[], "Connected gateways that refuse resources of some type"),
    counter("palisade_xds_responses_total", &["type"], "xDS responses to gateways"),
    counter("palisade_xds_sent_bytes_total", &["type"], "Bytes of xDS responses to gateways, before compression"),
    gauge("palisade_xds_streams", &[], "xDS streams of gateways"),
];

/// Describes each metric to the recorder, and sets those without labels so that they exist from the start.
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
    let mut text = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
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

//! The tests of the control plane from outside: one binary, because each links the whole crate.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unreachable,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests"
)]

mod alerts;
mod alerts_support;
mod audit;
mod bootstrap_files;
mod challenge_tokens;
mod cli;
mod cli_apply;
mod cli_backup;
mod cli_compile;
mod cli_contract;
mod cli_migrate_store;
mod cli_report;
mod cli_support;
mod cli_tune;
mod console_challenges;
mod console_cli;
mod console_contracts;
mod console_entities;
mod console_events;
mod console_keys;
mod console_links;
mod console_live;
mod console_oidc;
mod console_oidc_logout;
mod console_oidc_tokens;
mod console_operations;
mod console_passkeys;
mod console_replay;
mod console_reputation;
mod console_roles;
mod console_rules;
mod console_second_factor;
mod console_second_factor_keys;
mod console_security;
mod console_session;
mod console_support;
mod entities_access;
mod entities_bulk;
mod entities_concurrent;
mod entities_conventions;
mod entities_fields;
mod entities_history;
mod entities_page;
mod entities_references;
mod entities_rest;
mod entities_samples;
mod entities_schema;
mod entities_secrets;
mod entities_support;
mod entities_unused;
mod events_exporters;
mod fabric_kill;
mod link_bodies;
mod link_proto;
mod link_streams;
mod link_support;
mod link_trust;
mod listener_sds;
mod observability;
mod oidc_support;
mod openapi;
mod openapi_requests;
mod passkey_support;
mod publication;
mod replay_support;
mod reports_envoy;
mod routes_envoy;
mod routes_import;
mod rules_warnings;
mod shared_clocks;
mod shared_control_planes;
mod shared_faults;
mod shared_replays;
mod shared_support;
mod store;
mod store_full;
mod store_kill;
mod tables_envoy;
mod tls_admin;
mod tls_cli;
mod tls_envoy;
mod tls_nodes;
mod tls_support;
mod xds_envoy;
mod xds_filter;
mod xds_fixtures;
mod xds_groups;
mod xds_reconnect;
mod xds_support;

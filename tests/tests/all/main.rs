//! The tests across the product, those against the real Envoy first of all: one binary, because each links all of it.

mod core_rule_sets;
mod e2e_actions;
mod e2e_bodies;
mod e2e_challenge;
mod e2e_challenge_noscript;
mod e2e_challenge_widget;
mod e2e_collections;
mod e2e_delivery;
mod e2e_demo;
mod e2e_edge;
mod e2e_examples;
mod e2e_fabric;
mod e2e_fabric_kill;
mod e2e_filters;
mod e2e_identity;
mod e2e_json;
mod e2e_kit;
mod e2e_limits;
mod e2e_parity;
mod e2e_policy;
mod e2e_protection;
mod e2e_resilience;
mod e2e_rewrite;
mod e2e_signals;
mod examples;
mod sample;

//! The tests of the harness from outside: one binary, because each links the VM.
#![allow(missing_docs, reason = "tests")]

mod asking;
mod benign;
mod blocking;
mod callers;
mod challenge;
mod costly;
mod counting;
mod counting_gateways;
mod envoy;
mod frame;
mod kit;
mod long_bodies;
mod parity;
mod record;
mod reload;
mod replaced;
mod replay;
mod run_command;
mod sending;
mod shipped;
mod supervised;
mod traffic;

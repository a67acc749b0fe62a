//! The test kit: a real Envoy, the control plane, a backend, and clients that may be as odd as an attacker's.
//!
//! Everything runs on loopback, on ports that nobody else has, and stops with its test.

pub mod backend;
pub mod bootstrap;
pub mod browser;
pub mod challenge;
pub mod console;
pub mod control_plane;
pub mod envoy;
pub mod figures;
pub mod fleet;
pub mod gateway;
pub mod h2;
pub mod h2_frames;
pub mod http;
pub mod load;
pub mod parts;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod redis;

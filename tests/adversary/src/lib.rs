//! Attacks on a gateway, over sockets: evasions, stalls, and harmless requests that stay just inside the limits.
//!
//! [`case`] reads the attacks from YAML files; [`template`] is the language of their payloads, [`encode`] its functions.
//! [`wire`] sends them, malformed or not. [`run`] judges evasions and harmless requests, [`stall`] measures a clean client
//! beside an attack, [`peer`] asks libmodsecurity the same, [`known`] holds the misses that are known, and [`report`]
//! prints what came of it. [`demo`] starts a gateway to attack.

pub mod case;
pub mod demo;
pub mod encode;
pub mod known;
pub mod peer;
pub mod report;
pub mod run;
pub mod stall;
pub mod template;
pub mod wire;

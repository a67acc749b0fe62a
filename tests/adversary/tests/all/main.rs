//! The tests of the attacker: one binary, because each links all of it.

mod e2e_adversary;
mod threat_model;

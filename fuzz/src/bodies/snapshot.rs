//! Stored rule sets: damaged ones are refused, and what is not refused runs.

use std::sync::Arc;

use seclang::{Engine, Program};

use super::transaction;

pub fn run(data: &[u8]) {
    let Ok(program) = Program::decode(data) else { return };
    assert_eq!(Program::decode(&program.encode()).as_ref(), Ok(&program));
    let _ = (program.warnings().count(), program.settings());
    if let Ok(engine) = Engine::new(program) {
        transaction::exchange(&Arc::new(engine), transaction::SAMPLE, 0);
    }
}

//! Rule text: parsed, checked, compiled; what compiles must build, survive being stored, and run.

use std::sync::Arc;

use seclang::compile::MAX_DIAGNOSTICS;
use seclang::{Engine, Program, Source};

use super::{Files, transaction};

pub fn run(data: &[u8]) {
    let source = Source::new("fuzz.conf", data);
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let program = match seclang::compile(&[source], &Files) {
        Ok(program) => program,
        Err(diagnostics) => {
            assert!((1..=MAX_DIAGNOSTICS).contains(&diagnostics.len()), "{} errors", diagnostics.len());
            for diagnostic in diagnostics {
                let line = (diagnostic.line as usize).checked_sub(1).and_then(|at| lines.get(at));
                let line = line.unwrap_or_else(|| panic!("outside of {} lines: {diagnostic}", lines.len()));
                assert!(
                    (1..=line.len() + 1).contains(&(diagnostic.column as usize)),
                    "outside of its line: {diagnostic}"
                );
                assert!(!diagnostic.message.is_empty());
                let shown = diagnostic.to_string();
                assert!(shown.len() < 64 * 1024, "a message of {} bytes", shown.len());
            }
            return;
        }
    };
    for warning in program.warnings() {
        assert!((1..=lines.len()).contains(&(warning.line as usize)), "a warning outside of the text: {warning:?}");
    }
    let stored = Program::decode(&program.encode()).expect("what was stored can be read");
    assert_eq!(stored, program);
    let engine = Engine::new(stored).expect("what compiles can be built");
    assert_eq!(engine.rule_count(), program.rule_count());
    transaction::exchange(&Arc::new(engine), transaction::SAMPLE, 0);
}

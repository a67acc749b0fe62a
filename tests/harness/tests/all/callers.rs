//! What is known of callers, in the VM of a worker.

use palisade_bench::callers::{fingerprint_nanos, tables_memory};
use proxy_host::Module;

use crate::kit;

#[test]
fn the_tables_of_all_lists_take_little_memory_of_a_vm_also_once_they_are_replaced() {
    let module = Module::compile(&kit::filter("preset")).unwrap();
    let memory = tables_memory(&module).unwrap();
    assert!(memory.first >= memory.tables, "the tables have arrived: {memory:?}");
    assert!(memory.replaced <= 32 << 20, "{memory:?}");
}

#[test]
fn a_fingerprint_is_judged_in_the_benchmark() {
    let module = Module::compile(&kit::filter("preset")).unwrap();
    let [without, with] = fingerprint_nanos(&module, 1).unwrap();
    assert!(without > 0 && with > 0);
}

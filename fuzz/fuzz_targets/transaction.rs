#![no_main]

libfuzzer_sys::fuzz_target!(
    init: palisade_fuzz::bodies::transaction::prepare(),
    |data: &[u8]| palisade_fuzz::bodies::transaction::run(data)
);

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| palisade_fuzz::contracts::contract_document::run(data));

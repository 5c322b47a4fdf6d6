#![no_main]

libfuzzer_sys::fuzz_target!(|records: &[u8]| {
    iodock_fuzz::bpf_records::read_all(records);
});

#![no_main]

libfuzzer_sys::fuzz_target!(|log: &[u8]| {
    iodock_fuzz::read_all(&iodock_formats::ltrace::Ltrace, log);
});

#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    iodock_fuzz::darshan::read_all(file);
});

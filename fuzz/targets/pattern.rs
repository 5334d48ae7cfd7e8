#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::pattern::parse_pattern(data, "a").map(drop);
});

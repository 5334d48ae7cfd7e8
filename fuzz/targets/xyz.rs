#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::cloud::parse_clouds(data, "a", "xyz").map(drop);
});

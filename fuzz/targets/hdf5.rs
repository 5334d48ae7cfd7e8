#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::cloud::parse_clouds(data, "a", "h5").map(drop);
});

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::words::parse_svmlight(data, "a").map(drop);
});

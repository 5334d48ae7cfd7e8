#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::words::parse_docword(data, "a").map(drop);
});

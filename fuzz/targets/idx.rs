#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::image::parse_idx_images(data, "a").map(drop);
});

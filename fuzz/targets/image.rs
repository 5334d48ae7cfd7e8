#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::image::parse_image(data, "a", &ebp::data::image::ImageOptions::CELEBA_32).map(drop);
});

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::npy::parse_npz::<f32>(data, "a").map(drop);
});

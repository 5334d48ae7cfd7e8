#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::mesh::parse_mesh(data, "a", "off").map(drop);
});

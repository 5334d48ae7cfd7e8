#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ebp::data::table::parse_table(data, "a", &ebp::data::ColumnChoice::default()).map(drop);
});

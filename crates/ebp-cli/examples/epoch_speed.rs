//! How fast batches of a cache are made: `cargo run --release -p ebp-cli --example epoch_speed -- CACHE`.
//!
//! Prints the bytes handed out per second over whole epochs in drawn order, normalised, and with
//! every set thinned to a fifth.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use ebp::data::{BatchConfig, Batches, Cache, Split};

fn main() -> ebp::Result<()> {
    let path = std::env::args().nth(1).map_or_else(|| PathBuf::from("data.ebp"), PathBuf::from);
    let cache = Arc::new(Cache::open(&path)?);
    let fifth = cache.offsets().size(0).div_ceil(5);
    for (name, num_points) in [("whole sets", None), ("a fifth of the points", Some(fifth))] {
        let config = BatchConfig { batch_size: 64, num_points, ..BatchConfig::default() };
        let batches = Batches::new(Arc::clone(&cache), Split::Train, config)?;
        let mut best = 0.0_f64;
        for epoch in 0..8 {
            let begin = Instant::now();
            let mut bytes = 0;
            for batch in batches.epoch(epoch) {
                bytes += 4 * batch?.elements.len();
            }
            best = best.max(bytes as f64 / begin.elapsed().as_secs_f64() / 1e9);
        }
        println!("{name}: {best:.2} GB/s");
    }
    Ok(())
}

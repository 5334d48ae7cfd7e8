//! Learns from a cache of clouds that is larger than what it may hold in memory, and says what that
//! took: `cargo run --release -p ebp --example large_cache -- [GIBIBYTES] [FOLDER]`.
//!
//! It writes a cache of 16 MiB and one of so many GiB (4 unless told) into a folder (the system's
//! for temporary files unless told), takes statistics of all points, some training steps, an
//! evaluation and the codes of all sets of each, and prints the largest memory of the process after
//! each. The second may be at most 1 GiB above the first; it fails otherwise.
#![expect(clippy::print_stdout, reason = "an example shows its result")]

#[path = "../tests/large_cache/mod.rs"]
mod large_cache;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

/// Steps of 64 clouds.
const NUM_STEPS: u64 = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let gibibytes: f64 = arguments.next().map_or(Ok(4.0), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join("ebp-large-cache.ebp");
    let mut peaks = Vec::new();
    for mebibytes in [16.0, 1024.0 * gibibytes] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
        let num_sets = large_cache::write_cache(&path, (mebibytes * 1_048_576.0) as usize)?;
        let begin = Instant::now();
        let learned = large_cache::learn(&path, NUM_STEPS);
        let seconds = begin.elapsed().as_secs_f64();
        std::fs::remove_file(&path)?;
        learned?;
        let peak =
            large_cache::peak_memory().ok_or("this system does not say what memory it took")?;
        println!(
            "{mebibytes:7.0} MiB, {num_sets} clouds: {seconds:6.1} s, at most {} MiB of memory",
            peak >> 20
        );
        peaks.push(peak);
    }
    let more = peaks[1].saturating_sub(peaks[0]);
    println!("{} MiB more for the larger one", more >> 20);
    if more > 1 << 30 { Err("that is more than 1 GiB".into()) } else { Ok(()) }
}

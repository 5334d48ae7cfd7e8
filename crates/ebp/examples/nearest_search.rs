//! Times both searches of nearest neighbours over sizes and dimensions: where brute force stops to
//! win is a constant of `metric/distance/nearest.rs`.
//!
//! ```sh
//! cargo run --release --example nearest_search [-- DIMENSION …]
//! ```
//!
//! prints microseconds of a pair of clouds, uniform in the cube, on one thread, the least of several
//! rounds; the arrangement of the clouds, which both searches share, is not in them.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Instant;

use ebp::metric::distance::{ArrangedCloud, NearestNeighbours, NearestSearch};
use ebp::rng::Stream;

const SIZES: [usize; 15] =
    [8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 100_000];
/// Pairs of points that a size is timed with at least, in all rounds together.
const ENOUGH: usize = 1 << 28;

fn main() -> ebp::Result<()> {
    println!("dim   points   brute force, us   tree, us   brute force / tree");
    let mut dims: Vec<usize> = std::env::args().skip(1).flat_map(|word| word.parse()).collect();
    if dims.is_empty() {
        dims = vec![2, 3, 8];
    }
    for dim in dims {
        for size in SIZES {
            let (x, y) = (cloud(dim, size, 0)?, cloud(dim, size, 1)?);
            let rounds = (ENOUGH / (size * size)).clamp(1, 200);
            let mut least = [f64::INFINITY; 2];
            for _ in 0..rounds {
                for (least, search) in
                    least.iter_mut().zip([NearestSearch::BruteForce, NearestSearch::Tree])
                {
                    let start = Instant::now();
                    let found = NearestNeighbours::by(search, &x, &y)?;
                    *least = least.min(start.elapsed().as_secs_f64());
                    std::hint::black_box(found);
                }
            }
            let [brute, tree] = least.map(|seconds| seconds * 1e6);
            println!("{dim:>3} {size:>8} {brute:>17.1} {tree:>10.1} {:>20.2}", brute / tree);
        }
    }
    Ok(())
}

fn cloud(dim: usize, size: usize, number: u64) -> ebp::Result<ArrangedCloud> {
    let mut numbers = vec![0.0_f32; size * dim];
    Stream::new(number, "nearest_search").fill_uniform(0, 0, &mut numbers);
    let points: Vec<f64> = numbers.into_iter().map(f64::from).collect();
    ArrangedCloud::new(dim, &points)
}

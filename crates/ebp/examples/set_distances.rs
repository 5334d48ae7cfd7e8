//! Times every distance between two clouds on one thread, for `bench/set_distances.py`.
//!
//! ```sh
//! cargo run --release --example set_distances -- x.npy y.npy 3
//! ```
//!
//! prints one JSON line: values, gap, and the least seconds of the rounds, the arrangement of both
//! clouds included.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::time::Instant;

use ebp::data::{Cloud, read_cloud};
use ebp::metric::distance::{ArrangedCloud, ChamferConvention, EmdMethod, NearestNeighbours, emd};

fn main() -> ebp::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [x, y, rounds] = &arguments[..] else {
        println!("usage: set_distances X Y ROUNDS");
        return Ok(());
    };
    let (x, y) = (read_cloud(x.as_ref())?, read_cloud(y.as_ref())?);
    let rounds: usize = rounds.parse().unwrap_or(3);
    let arrange = |cloud: &Cloud| {
        let points: Vec<f64> = cloud.points.iter().map(|&x| f64::from(x)).collect();
        ArrangedCloud::new(cloud.dim, &points)
    };
    let by = |method| {
        timed(rounds, || {
            let found = emd(&arrange(&x)?, &arrange(&y)?, method)?;
            Ok((found.value, found.gap.unwrap_or(0.0)))
        })
    };
    let ((chamfer, _), chamfer_seconds) = timed(rounds, || {
        let nearest = NearestNeighbours::between(&arrange(&x)?, &arrange(&y)?)?;
        Ok((nearest.chamfer(ChamferConvention::MeanOfSquares), 0.0))
    })?;
    let ((exact, gap), exact_seconds) = by(EmdMethod::Exact)?;
    let ((approxmatch, _), approxmatch_seconds) = by(EmdMethod::Approxmatch)?;
    println!(
        "{{\"chamfer\": {chamfer:e}, \"chamfer_seconds\": {chamfer_seconds:e}, \
         \"exact\": {exact:e}, \"gap\": {gap:e}, \"exact_seconds\": {exact_seconds:e}, \
         \"approxmatch\": {approxmatch:e}, \"approxmatch_seconds\": {approxmatch_seconds:e}}}"
    );
    Ok(())
}

fn timed<T>(rounds: usize, work: impl Fn() -> ebp::Result<T>) -> ebp::Result<(T, f64)> {
    let mut best = f64::INFINITY;
    let mut last = work()?;
    for _ in 0..rounds {
        let start = Instant::now();
        last = work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok((last, best))
}

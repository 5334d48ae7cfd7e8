//! Fits Gaussian processes to data drawn on the spot, and says how long it took.
//!
//! ```sh
//! cargo run --release -p ebp --example gaussian_process -- [SIZE] [EVALUATIONS] [DATA.csv]
//! ```
//!
//! For each kernel: one fit of exactly EVALUATIONS evaluations of log p and its gradient (none for
//! 0), one fit to convergence. Results are lines of JSON; the data go to DATA.csv, so that
//! `bench/gaussian_process.py` can give them to scikit-learn.
#![allow(clippy::print_stdout, reason = "an example shows its results")]

use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

use ebp::IndexedSet;
use ebp::kernel::{Kernel, Matern, Rbf, Smoothness};
use ebp::process::{ExactProcessConfig, FitConfig, GaussianProcess};
use ebp::rng::Stream;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let size: usize = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let evaluations: usize = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let set = draw(size)?;
    if let Some(path) = arguments.next() {
        let rows = set.locations().iter().zip(set.values());
        let text = rows.fold(String::from("t,x\n"), |mut text, (t, x)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{t:?},{x:?}");
            text
        });
        std::fs::write(path, text)?;
    }
    let kernels: [(&str, Box<dyn Kernel>); 2] = [
        ("rbf", Box::new(Rbf::new(1.0, 1.0)?)),
        ("matern-5/2", Box::new(Matern::new(Smoothness::FiveHalves, 1.0, 1.0)?)),
    ];
    for (name, kernel) in kernels {
        let config = ExactProcessConfig { noise_variance: 0.1, ..ExactProcessConfig::default() };
        let start = GaussianProcess::new(kernel, &config)?;
        let sets = std::slice::from_ref(&set);
        let stream = Stream::new(1, "fit");
        let plain = FitConfig { standardise: false, ..FitConfig::default() };
        let mut seconds_per_evaluation = 0.0;
        if evaluations > 0 {
            let exactly = FitConfig {
                max_evaluations: evaluations,
                gradient_tolerance: 0.0,
                value_tolerance: f64::NEG_INFINITY,
                ..plain
            };
            let clock = Instant::now();
            let (_, report) = start.fit(sets, &exactly, stream)?;
            seconds_per_evaluation = clock.elapsed().as_secs_f64() / report.num_evaluations as f64;
        }
        let at_start = start.log_marginal_gradient(sets)?;
        let clock = Instant::now();
        let (fitted, report) = start.fit(sets, &plain, stream)?;
        println!(
            "{{\"kernel\": \"{name}\", \"size\": {size}, \"start\": {:?}, \
             \"log_marginal_at_start\": {:?}, \"gradient_at_start\": {:?}, \
             \"seconds_per_evaluation\": {seconds_per_evaluation:?}, \"fitted\": {:?}, \
             \"log_marginal\": {:?}, \"evaluations\": {}, \"seconds\": {:?}, \"stop\": \"{:?}\"}}",
            start.log_parameters(),
            at_start.0,
            at_start.1,
            fitted.log_parameters(),
            report.log_marginal,
            report.num_evaluations,
            clock.elapsed().as_secs_f64(),
            report.stop,
        );
    }
    Ok(())
}

/// x = sin t + ½ cos 3t + 0.3 ξ at t ~ U(0, 20).
fn draw(size: usize) -> ebp::Result<IndexedSet> {
    let (mut uniforms, mut normals) = (vec![0.0_f32; size], vec![0.0_f32; size]);
    Stream::new(1, "times").fill_uniform(0, 0, &mut uniforms);
    Stream::new(1, "noise").fill_normal(0, 0, &mut normals);
    let times: Vec<f64> = uniforms.iter().map(|u| 20.0 * f64::from(*u)).collect();
    let value =
        |(t, noise): (&f64, &f32)| t.sin() + 0.5 * (3.0 * t).cos() + 0.3 * f64::from(*noise);
    let values = times.iter().zip(&normals).map(value).collect();
    IndexedSet::new(1, 1, times, values)
}

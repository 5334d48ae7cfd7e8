//! Trains the conditional energy-based process on built-in curves and prints how far its
//! predictive densities stay from the truth, in nats per point:
//!
//! ```sh
//! cargo run --release --example regression -- sines importance 1200
//! ```
//!
//! Arguments: a family of curves, an estimator (`importance` or `ade`), and the number of steps.
#![allow(clippy::print_stdout, reason = "an example shows what it found")]
#![allow(clippy::cast_possible_truncation, reason = "networks compute in f32")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use ebp::data::curves::CurveFamily;
use ebp::metric::predictive::{Evaluation, held_out};
use ebp::point::CpuBackend;
use ebp::process::{
    AdeConfig, EnergyBasedConfig, EnergyBasedProcess, Estimator, StepSettings, Task,
};
use ebp::rng::Stream;

/// Sets per training step, and elements per set.
const BATCH: u64 = 8;
const ELEMENTS: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let family = CurveFamily::parse(arguments.next().as_deref().unwrap_or("sines"))?;
    let estimator = arguments.next().unwrap_or_else(|| "importance".to_owned());
    let num_steps = arguments.next().map_or(Ok(1200), |steps| steps.parse())?;

    let (low, high) = family.value_range();
    let mut config = EnergyBasedConfig {
        value_domain: ((low - 0.5) as f32, (high + 0.5) as f32),
        ..EnergyBasedConfig::default()
    };
    match estimator.as_str() {
        "importance" => {}
        "ade" => {
            config.estimator = Estimator::Ade(AdeConfig::default());
            config.learning_rate = 3e-3;
            config.average_decay = 0.998;
        }
        other => return Err(format!("estimator must be importance or ade, found {other}").into()),
    }
    let mut process = EnergyBasedProcess::new(config, 1, Arc::new(CpuBackend::new()))?;

    let start = Instant::now();
    let (data, noise) = (Stream::new(1, "data"), Stream::new(1, "train"));
    for number in 0..num_steps {
        let tasks: Vec<Task> = (0..BATCH)
            .map(|set| task(family, data, number * BATCH + set))
            .collect::<ebp::Result<_>>()?;
        let stream = noise.child(number);
        let settings = StepSettings { number, num_steps, stream, learning_rate_factor: 1.0 };
        let losses = process.train_step(&tasks, &settings)?;
        if number % (num_steps / 6).max(1) == 0 {
            println!(
                "step {number:5}  {:7.3} nats  KL {:.2}  {} active units",
                losses.nats, losses.kl, losses.active_units
            );
        }
    }
    println!("trained in {:.1} s", start.elapsed().as_secs_f64());

    process.use_average()?;
    println!("context      nats     floor    excess ± standard error");
    for num_context in [5, 15, 30] {
        let score = held_out(
            &process,
            &Evaluation {
                family,
                num_context,
                num_sets: 20,
                num_locations: 100,
                stream: Stream::new(2, "evaluation"),
            },
        )?;
        println!(
            "{num_context:7} {:9.4} {:9.4} {:9.4} ± {:.4}",
            score.nll, score.floor, score.excess, score.excess_std_error
        );
    }
    Ok(())
}

/// A set cut after 3 to 32 elements.
fn task(family: CurveFamily, stream: Stream, number: u64) -> ebp::Result<Task> {
    let set = family.draw(stream, number, ELEMENTS)?.set;
    let num_context = 3 + usize::try_from(number % 30).unwrap_or(0);
    let context: Vec<_> = (0..num_context).collect();
    let target: Vec<_> = (num_context..ELEMENTS).collect();
    Ok(Task { context: set.select(&context), target: set.select(&target) })
}

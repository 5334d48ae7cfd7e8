//! Trains the energy-based process on built-in curves and prints how far its
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
use std::time::Instant;

use ebp::data::CurveFamily;
use ebp::metric::predictive::{Evaluation, held_out};
use ebp::process::EnergyBasedProcess;
use ebp::recipe::{EnergyBasedConfig, Estimator, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{
    Event, Observer, Regression, Session, TaskConfig, TaskSource, Trainer, TrainerConfig,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let family = CurveFamily::parse(arguments.next().as_deref().unwrap_or("sines"))?;
    let estimator = arguments.next().unwrap_or_else(|| "importance".to_owned());
    let num_steps = arguments.next().map_or(Ok(1200), |steps| steps.parse())?;

    let (low, high) = family.value_range();
    let space = Space::regression(1, 1, ((low - 0.5) as f32, (high + 0.5) as f32));
    let mut config = EnergyBasedConfig::default();
    match estimator.as_str() {
        "importance" => {}
        "ade" => {
            config.estimator = Estimator::Ade;
            config.beta1 = 0.0;
            config.gradient_penalty = 1e-3;
            config.learning_rate = 3e-3;
            config.average_decay = 0.998;
        }
        other => return Err(format!("estimator must be importance or ade, found {other}").into()),
    }
    let process = EnergyBasedProcess::new(config, space, 1, &Device::default())?;
    let source = TaskSource::Curves(family);
    let mut model = Regression::new(Box::new(process), source, TaskConfig::default())?;

    let start = Instant::now();
    let trainer = Trainer::new(TrainerConfig { num_steps, ..TrainerConfig::default() }, 1)?;
    trainer.run(&mut model, Session::new(&mut Printer))?;
    println!("trained in {:.1} s", start.elapsed().as_secs_f64());

    model.process_mut().use_average()?;
    println!("context      nats     floor    excess ± standard error");
    for num_context in [5, 15, 30] {
        let stream = Stream::new(2, "evaluation");
        let evaluation =
            Evaluation { family, num_context, num_sets: 20, num_locations: 100, stream };
        let score = held_out(model.process(), &evaluation)?;
        println!(
            "{num_context:7} {:9.4} {:9.4} {:9.4} ± {:.4}",
            score.nll, score.floor, score.excess, score.excess_std_error
        );
    }
    Ok(())
}

/// Shows six steps of the run.
#[derive(Debug)]
struct Printer;

impl Observer for Printer {
    fn observe(&mut self, event: &Event<'_>) -> ebp::Result<()> {
        if let Event::Step(numbers) = event
            && numbers.step.is_multiple_of((numbers.num_steps / 6).max(1))
        {
            let words: Vec<_> =
                numbers.record.iter().map(|(name, x)| format!("{name} {x:.3}")).collect();
            println!("step {:5}  {}", numbers.step, words.join("  "));
        }
        Ok(())
    }
}

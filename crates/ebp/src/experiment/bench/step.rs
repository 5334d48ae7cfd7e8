//! The case `training_step`: everything a step of `ebp train` on clouds does, over and over.
//!
//! Encoder, θ, log Z by importance sampling with as many proposals as a set has points, gradients,
//! Adam, moving average; the next batch is prepared meanwhile, as in training.

use super::workload::Workload;
use crate::data::Clouds;
use crate::point::ContextAt;
use crate::process::EnergyBasedProcess;
use crate::recipe::{EnergyBasedConfig, LatentAt, Space};
use crate::rng::Stream;
use crate::train::{CloudTraining, Step, Trainable};
use crate::{Result, SetOffsets};

/// The fewest proposals: some for the domain and some for the set's own points.
pub(super) const FEWEST_PROPOSALS: usize = 16;
/// Room around the points.
const MARGIN: f32 = 0.4;
/// Steps of the imagined run, for its schedules.
const NUM_STEPS: u64 = 100_000;
/// The most coordinates that points of the process have.
pub(super) const MOST_COORDINATES: usize = 8;

/// A process in training.
#[derive(Debug)]
pub(super) struct TrainingStep {
    training: CloudTraining,
    stream: Stream,
    next: u64,
}

/// Candidates of every set.
pub(super) fn num_proposals(work: &Workload) -> usize {
    work.batch().offsets.size(0).max(FEWEST_PROPOSALS)
}

impl TrainingStep {
    pub(super) fn new(work: &Workload, device: &crate::tape::Device) -> Result<Self> {
        let batch = work.batch();
        let energy = work.energy.shape().config();
        let encoder = work.encoder.shape().config();
        let (num_sets, num_points) = (batch.offsets.num_sets(), batch.offsets.size(0));
        let largest = batch.elements.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        let encoder_widths = encoder.hidden_widths.iter().copied().chain([encoder.output_dim]);
        let space = Space::points(energy.value_dim, largest + MARGIN);
        let config = EnergyBasedConfig {
            latent_dim: energy.context_dim.max(1),
            encoder_widths: encoder_widths.collect(),
            energy_widths: energy.hidden_widths.clone(),
            activation: energy.activation,
            latent_at: match energy.context_at {
                ContextAt::FirstLayer => LatentAt::FirstLayer,
                ContextAt::EveryLayer => LatentAt::EveryLayer,
            },
            num_proposals: num_proposals(work),
            encoder_points: num_points,
            likelihood_points: num_points,
            ..EnergyBasedConfig::points()
        };
        let names = (0..num_sets).map(|set| set.to_string()).collect();
        let offsets = SetOffsets::uniform(num_sets, num_points)?;
        let clouds = Clouds::new(energy.value_dim, batch.elements.to_vec(), offsets, names)?;
        let process = EnergyBasedProcess::new(config, space, 1, device)?;
        let training = CloudTraining::new(process, clouds, num_sets, 1)?;
        Ok(Self { training, stream: Stream::new(1, "training step"), next: 0 })
    }

    /// The next step.
    pub(super) fn run(&mut self) -> Result<()> {
        let step = |number: u64| Step {
            number,
            num_steps: NUM_STEPS,
            stream: self.stream.child(number),
            learning_rate_factor: 1.0,
        };
        let (this, next) = (step(self.next), step(self.next + 1));
        self.training.foresee(&next);
        self.training.step(&this)?;
        self.next += 1;
        Ok(())
    }
}

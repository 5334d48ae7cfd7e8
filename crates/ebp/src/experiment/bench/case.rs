//! The cases: what each of them runs, and how much arithmetic that is.
//!
//! A new case is a variant of [`BenchCase`] with a line in `name`, `run` and `flops`, or in `preset`.

use std::hint::black_box;
use std::sync::Arc;

use super::flops::{self, Extent};
use super::preset::PresetStep;
use super::size::BenchSizes;
use super::step::{MOST_COORDINATES, TrainingStep, num_proposals};
use super::workload::{NUM_STEPS, Workload};
use crate::Result;
use crate::model::{Device, Settings};
use crate::point::{
    Clip, Cotangent, Langevin, Leapfrog, Motion, PointBackend, Pooled, Pooling, ScoreCotangent,
    Wanted,
};

/// η, s and the clip of the paper's point clouds.
const STEP_SIZES: [f32; NUM_STEPS] = [0.1; NUM_STEPS];
const NOISE_SCALES: [f32; NUM_STEPS] = [0.05; NUM_STEPS];
const CLIP: Clip = Clip::Elementwise(0.1);

/// An operation to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchCase {
    /// f of every element.
    EnergyValue,
    /// f, and the mean energy's gradient by parameters and context.
    EnergyBackward,
    /// f and its gradient by every element.
    Score,
    /// Gradients by parameters and context through score and value, smooth activation.
    ScoreBackward,
    /// 20 Langevin steps, clipped, with noise.
    Langevin20,
    /// 20 leapfrog steps, clipped.
    Leapfrog20,
    /// log Z over 256 shared candidates per location, and its gradient.
    Candidates256,
    /// The encoder, max pooled.
    EncoderValue,
    /// The encoder, max pooled, and its gradient by parameters.
    EncoderBackward,
    /// A whole training step on clouds, with Adam and the next batch prepared meanwhile.
    TrainingStep,
    /// A training step of the preset `cloud`: log Z by importance sampling.
    ImportanceStep,
    /// A training step of the preset `paper/cloud`: the paper's learned sampler.
    PaperAdeStep,
    /// A training step of the preset `cloud-ade`: a flow as the learned sampler.
    AdeStep,
    /// A training step of the preset `mnist`.
    MnistStep,
    /// A training step of the preset `celeba`.
    CelebaStep,
}

/// A case that runs over and over.
pub(super) trait Runner {
    /// What a run needs, and its time leaves out.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Runs the case once.
    fn run(&mut self) -> Result<()>;

    /// The settings of a preset's step.
    fn settings(&self) -> Option<&Settings> {
        None
    }
}

impl Runner for TrainingStep {
    fn run(&mut self) -> Result<()> {
        self.run()
    }
}

/// An operation of the primitive, which has no state.
struct Operation<'a> {
    case: BenchCase,
    work: &'a Workload,
    backend: Arc<dyn PointBackend>,
}

impl Runner for Operation<'_> {
    fn run(&mut self) -> Result<()> {
        self.case.run(self.work, &*self.backend)
    }
}

impl BenchCase {
    /// Every case, in the order of the report.
    pub const ALL: [Self; 15] = [
        Self::EnergyValue,
        Self::EnergyBackward,
        Self::Score,
        Self::ScoreBackward,
        Self::Langevin20,
        Self::Leapfrog20,
        Self::Candidates256,
        Self::EncoderValue,
        Self::EncoderBackward,
        Self::TrainingStep,
        Self::ImportanceStep,
        Self::PaperAdeStep,
        Self::AdeStep,
        Self::MnistStep,
        Self::CelebaStep,
    ];

    /// Those that points of `value_dim` numbers allow.
    pub fn all_for(value_dim: usize) -> Vec<Self> {
        let is_possible =
            |case: &Self| *case != Self::TrainingStep || value_dim <= MOST_COORDINATES;
        Self::ALL.into_iter().filter(is_possible).collect()
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::EnergyValue => "energy_value",
            Self::EnergyBackward => "energy_backward",
            Self::Score => "score",
            Self::ScoreBackward => "score_backward",
            Self::Langevin20 => "langevin20",
            Self::Leapfrog20 => "leapfrog20",
            Self::Candidates256 => "candidates256",
            Self::EncoderValue => "encoder_value",
            Self::EncoderBackward => "encoder_backward",
            Self::TrainingStep => "training_step",
            Self::ImportanceStep => "importance_step",
            Self::PaperAdeStep => "paper_ade_step",
            Self::AdeStep => "ade_step",
            Self::MnistStep => "mnist_step",
            Self::CelebaStep => "celeba_step",
        }
    }

    /// The preset whose training step it is.
    pub(super) fn preset(self) -> Option<&'static str> {
        match self {
            Self::ImportanceStep => Some("cloud"),
            Self::PaperAdeStep => Some("paper/cloud"),
            Self::AdeStep => Some("cloud-ade"),
            Self::MnistStep => Some("mnist"),
            Self::CelebaStep => Some("celeba"),
            _ => None,
        }
    }

    /// What runs the case.
    pub(super) fn runner<'a>(
        self,
        work: &'a Workload,
        (sizes, seed): (&BenchSizes, u64),
        device: &Device,
    ) -> Result<Box<dyn Runner + 'a>> {
        if let Some(preset) = self.preset() {
            return Ok(Box::new(PresetStep::new(preset, sizes, seed, device)?));
        }
        if self == Self::TrainingStep {
            return Ok(Box::new(TrainingStep::new(work, device.tape())?));
        }
        Ok(Box::new(Operation { case: self, work, backend: device.backend() }))
    }

    /// Runs an operation of the primitive once.
    fn run(self, work: &Workload, backend: &dyn PointBackend) -> Result<()> {
        match self {
            // Steps have a state: see `runner`.
            Self::TrainingStep
            | Self::ImportanceStep
            | Self::PaperAdeStep
            | Self::AdeStep
            | Self::MnistStep
            | Self::CelebaStep => {}
            Self::EnergyValue => {
                black_box(backend.values(&work.energy, &work.batch())?);
            }
            Self::EnergyBackward => {
                let cotangent = Cotangent::PerElement(&work.mean_cotangent);
                let batch = work.batch();
                black_box(backend.backward(&work.energy, &batch, cotangent, Wanted::WEIGHTS)?);
            }
            Self::Score => {
                black_box(backend.score(&work.energy, &work.batch())?);
            }
            Self::ScoreBackward => {
                let cotangent =
                    ScoreCotangent { score: &work.directions, values: Some(&work.mean_cotangent) };
                let (energy, batch) = (&work.smooth_energy, work.batch());
                black_box(backend.score_backward(energy, &batch, cotangent, Wanted::WEIGHTS)?);
            }
            Self::Langevin20 => {
                let langevin = Langevin {
                    step_sizes: &STEP_SIZES,
                    noise_scales: &NOISE_SCALES,
                    noise: work.noise,
                    motion: Motion { clip: CLIP, ..Motion::default() },
                };
                black_box(backend.langevin(&work.energy, &work.batch(), &langevin)?);
            }
            Self::Leapfrog20 => {
                let leapfrog = Leapfrog {
                    step_sizes: &STEP_SIZES,
                    motion: Motion { clip: CLIP, ..Motion::default() },
                };
                let (batch, momentum) = (work.batch(), &work.directions);
                black_box(backend.leapfrog(&work.energy, &batch, momentum, &leapfrog)?);
            }
            Self::Candidates256 => {
                let (energy, candidates) = (&work.located_energy, work.candidates());
                let partition = backend.log_partition(energy, &candidates)?;
                black_box(backend.log_partition_backward(
                    energy,
                    &candidates,
                    &partition.log_partition,
                    &work.anchor_cotangent,
                    Wanted::WEIGHTS,
                )?);
            }
            Self::EncoderValue => {
                black_box(encode(work, backend)?);
            }
            Self::EncoderBackward => {
                let pooled = encode(work, backend)?;
                // L = Σ pooled², as a loss that asks something of every output.
                let cotangent: Vec<f32> = pooled.values.iter().map(|value| 2.0 * value).collect();
                black_box(backend.pool_backward(
                    &work.encoder,
                    &work.plain_batch(),
                    &pooled,
                    &cotangent,
                    Wanted { parameters: true, ..Wanted::NOTHING },
                )?);
            }
        }
        Ok(())
    }

    /// The arithmetic of one run, by the formulas of [`flops`]; `None` for steps of presets, much of
    /// whose work they have no formula for: flows, recurrent layers, the way back through dynamics.
    pub(super) fn flops(self, work: &Workload, backend: &dyn PointBackend) -> Result<Option<u64>> {
        let energy = work.energy.shape();
        let extent = work.extent();
        Ok(Some(match self {
            Self::ImportanceStep
            | Self::PaperAdeStep
            | Self::AdeStep
            | Self::MnistStep
            | Self::CelebaStep => return Ok(None),
            Self::EnergyValue => flops::forward(energy, extent),
            Self::EnergyBackward => flops::backward(energy, extent),
            Self::Score => flops::scores(energy, extent, 1),
            Self::ScoreBackward => flops::score_backward(work.smooth_energy.shape(), extent),
            // The run ends with f and ∇ₓ f at the last place: one evaluation more than steps.
            Self::Langevin20 | Self::Leapfrog20 => {
                flops::scores(energy, extent, NUM_STEPS as u64 + 1)
            }
            Self::Candidates256 => flops::log_partition_and_backward(
                work.located_energy.shape(),
                work.candidates_extent(),
                work.num_anchors(),
            ),
            Self::EncoderValue => flops::forward(work.encoder.shape(), extent),
            Self::EncoderBackward => {
                let pooled = encode(work, backend)?;
                flops::max_pool_and_backward(work.encoder.shape(), extent, &pooled)
            }
            Self::TrainingStep => {
                let proposals = Extent { rows: extent.sets * num_proposals(work), ..extent };
                let pooled = encode(work, backend)?;
                flops::backward(energy, extent)
                    + flops::backward(energy, proposals)
                    + flops::max_pool_and_backward(work.encoder.shape(), extent, &pooled)
            }
        }))
    }
}

fn encode(work: &Workload, backend: &dyn PointBackend) -> Result<Pooled> {
    backend.pool(&work.encoder, &work.plain_batch(), Pooling::Max)
}

//! Energies of whole sets, without a latent (the paper's appendix on further collapsing):
//!
//! ```text
//! p(x₁, …, xₙ) = exp u(x₁, …, xₙ) / Zₙ
//! ```
//!
//! Integrating θ out of an energy-based process couples its elements. Here that coupling is learned
//! directly, by Deep Sets or by attention (`energy.rs`), with no θ to infer. Such a model is a Gibbs
//! point process for every n: exchangeable, but the laws of different n need not agree with each
//! other, and nothing can be predicted or embedded through θ. It generates sets.
//!
//! Two things stand in for log Zₙ in training (`learn.rs`). Draws of whole sets (`draw.rs`), weighed or as the
//! paper's adversarial dynamics embedding has them: a generator, recurrent as in the paper
//! (`generator.rs`) or with a hidden variable (`hierarchy.rs`), followed by Langevin steps along the
//! joint gradient. And one element given all others (`pseudolikelihood.rs`). After training draws are weighed,
//! and follow the energy by steps that are accepted or rejected (`refine.rs`).

mod config;
mod draw;
mod energy;
mod generator;
mod hierarchy;
mod learn;
mod pseudolikelihood;
mod refine;
mod sizes;
mod written;

use std::sync::Arc;

use self::energy::{Layout, SetEnergy};
use self::generator::{DrawnSets, Recurrent};
use self::hierarchy::Hierarchy;
use crate::nn::Initialiser;
use crate::recipe::ReverseKernel;
use crate::rng::Stream;
use crate::tape::{
    AdamConfig, Array, Device, Parameter, ParameterBuilder, ParameterSet, Tape, check_taken,
};
use crate::tensor::Tensors;
use crate::{Result, SetOffsets};

pub use config::{
    GeneratorKind, GuessTarget, Interaction, SetBase, SetEnergyConfig, SetEstimator, SummaryPooling,
};
pub use refine::Refining;
pub use sizes::SizeLaw;

/// The first guess, of either kind.
#[derive(Debug)]
enum Generator {
    Recurrent(Recurrent),
    Hierarchical(Arc<Hierarchy>),
}

impl Generator {
    fn draw(
        &self,
        tape: &mut Tape,
        num_sets: usize,
        size: usize,
        stream: Stream,
    ) -> Result<DrawnSets> {
        match self {
            Self::Recurrent(recurrent) => recurrent.draw(tape, num_sets, size, stream),
            Self::Hierarchical(hierarchy) => hierarchy.draw(tape, num_sets, size, stream),
        }
    }
}

/// An energy of whole sets with its sampler and optimisers.
#[derive(Debug)]
pub struct SetEnergyProcess {
    config: SetEnergyConfig,
    energy: Arc<SetEnergy>,
    generator: Generator,
    /// log η_t, `[T]`.
    log_step_sizes: Parameter,
    /// log s_t, `[T]`, where the way back is a Langevin step.
    log_noises: Option<Parameter>,
    /// Those of the energy.
    parameters: ParameterSet,
    /// Those of the generator, the step sizes and the noises.
    sampler_parameters: ParameterSet,
}

impl SetEnergyProcess {
    /// Networks with starting values from `seed`, on a device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming the field that is outside its range.
    pub fn new(config: SetEnergyConfig, seed: u64, device: &Device) -> Result<Self> {
        config.check()?;
        let mut builder = ParameterBuilder::new(seed);
        let mut of_sampler = ParameterBuilder::new(seed);
        let mut sampler = of_sampler.group("sampler");
        let mut group = sampler.group("generator");
        let generator = match config.generator {
            GeneratorKind::Recurrent => Generator::Recurrent(Recurrent::new(&config, &mut group)?),
            GeneratorKind::Hierarchical | GeneratorKind::Mixture => {
                Generator::Hierarchical(Arc::new(Hierarchy::new(&config, &mut group)?))
            }
        };
        let guess = match &generator {
            Generator::Hierarchical(hierarchy) => Some(Arc::clone(hierarchy)),
            Generator::Recurrent(_) => None,
        };
        let energy = Arc::new(SetEnergy::new(&config, guess, &mut builder.group("energy"))?);
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let num_steps = config.num_dynamics_steps;
        let log_step_sizes = sampler.trained("log_step_sizes", &[num_steps.max(1)], start)?;
        let log_noises = if config.reverse_kernel == ReverseKernel::Langevin {
            #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
            let start = Initialiser::Constant(0.5 * config.step_size.ln() as f32);
            Some(sampler.trained("log_noises", &[num_steps.max(1)], start)?)
        } else {
            None
        };
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let of_energy = AdamConfig { beta1: config.beta1, ..settings };
        let decay = config.average_decay;
        let parameters = ParameterSet::new(builder, device, of_energy, Some(decay))?;
        // The generator is updated several times a step; its average is to reach as far back.
        let decay = decay.powf(1.0 / config.generator_updates as f32);
        // Against a moving opponent momentum overshoots.
        let beta1 = match config.guess_target {
            GuessTarget::Energy => 0.5,
            GuessTarget::Data => 0.9,
        };
        let settings = AdamConfig { beta1, ..settings };
        let sampler_parameters = ParameterSet::new(of_sampler, device, settings, Some(decay))?;
        Ok(Self {
            config,
            energy,
            generator,
            log_step_sizes,
            log_noises,
            parameters,
            sampler_parameters,
        })
    }

    /// The settings.
    pub fn config(&self) -> &SetEnergyConfig {
        &self.config
    }

    /// Whether steps are taken on a GPU.
    pub fn learns_on_gpu(&self) -> bool {
        self.parameters.device().is_gpu()
    }

    /// u of every set, `[sets]`: log p but for Zₙ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) unless `elements` `[total, d]` fits the offsets.
    pub fn log_potentials(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Vec<f32>> {
        let elements = self.upload(elements, offsets)?;
        let mut tape = self.reader();
        let elements = tape.constant(elements, self.shape(offsets))?;
        let layout = Layout::new(offsets.clone());
        let u = self.energy.log_potential(&mut tape, (elements, None), &layout)?;
        tape.download(u)
    }

    /// ∇u of every element, `[total, d]`.
    ///
    /// # Errors
    ///
    /// As [`log_potentials`](Self::log_potentials).
    pub fn scores(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Vec<f32>> {
        let elements = self.upload(elements, offsets)?;
        let layout = Layout::new(offsets.clone());
        let [_, score] = self.energy.score(self.reader(), (elements, None), &layout)?;
        self.parameters.device().download(&score)
    }

    /// A tape on which nothing is learned.
    fn reader(&self) -> Tape {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.sampler_parameters);
        tape.read(&self.parameters);
        tape
    }

    /// Coordinates of gradients that elements follow are at most so large.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn clip(&self) -> f32 {
        self.config.clip as f32
    }

    /// Uses the averages in the place of the parameters.
    pub fn use_average(&mut self) {
        self.parameters.use_average(true);
        self.sampler_parameters.use_average(true);
    }

    /// Uses the parameters themselves.
    pub fn use_parameters(&mut self) {
        self.parameters.use_average(false);
        self.sampler_parameters.use_average(false);
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    pub fn state(&self) -> Result<Tensors> {
        let mut state = self.parameters.export()?;
        state.extend(self.sampler_parameters.export()?);
        Ok(state)
    }

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does not fit or is not
    /// known.
    pub fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut state = state.clone();
        self.parameters.import(&mut state)?;
        self.sampler_parameters.import(&mut state)?;
        check_taken(&state)
    }

    fn shape(&self, offsets: &SetOffsets) -> (usize, usize) {
        (offsets.num_elements(), self.config.element_dim)
    }

    fn upload(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Array> {
        let shape = self.shape(offsets);
        crate::error::check_length("elements", elements.len(), shape.0 * shape.1, || {
            format!("total {} x element_dim {}", shape.0, shape.1)
        })?;
        self.parameters.device().upload(elements.to_vec())
    }
}

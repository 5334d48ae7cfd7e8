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
//! Training is adversarial dynamics embedding on whole sets (`learn.rs`): a generator, recurrent as in
//! the paper (`generator.rs`) or with a hidden variable (`hierarchy.rs`), followed by Langevin steps
//! along the joint gradient stands in for log Z.

mod config;
mod energy;
mod generator;
mod hierarchy;
mod learn;

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use self::energy::SetEnergy;
use self::generator::{DrawnSets, Recurrent};
use self::hierarchy::Hierarchy;
use crate::nn::{
    Adam, AdamConfig, Initialiser, MovingAverage, Parameters, StateParts, join_parts, normals,
};
use crate::point::PointBackend;
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result, SetOffsets};

pub use config::{GeneratorKind, Interaction, SetEnergyConfig, SummaryPooling};

/// Sets that are drawn together: more would not be faster.
const DRAWN_TOGETHER: usize = 100;

/// The first guess, of either kind.
#[derive(Debug)]
enum Generator {
    Recurrent(Recurrent),
    Hierarchical(Hierarchy),
}

impl Generator {
    fn draw(&self, num_sets: usize, size: usize, stream: Stream) -> Result<DrawnSets> {
        match self {
            Self::Recurrent(recurrent) => recurrent.draw(num_sets, size, stream),
            Self::Hierarchical(hierarchy) => hierarchy.draw(num_sets, size, stream),
        }
    }
}

/// An energy of whole sets with its sampler and optimisers.
#[derive(Debug)]
pub struct SetEnergyProcess {
    config: SetEnergyConfig,
    parameters: Parameters,
    energy: SetEnergy,
    generator: Generator,
    /// log η_t, `[T]`.
    log_step_sizes: Var,
    adam: Adam,
    generator_adam: Adam,
    average: MovingAverage,
}

impl SetEnergyProcess {
    /// Networks with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field that is outside its range.
    pub fn new(
        config: SetEnergyConfig,
        seed: u64,
        backend: &Arc<dyn PointBackend>,
    ) -> Result<Self> {
        config.check()?;
        let parameters = Parameters::new(seed);
        let model = parameters.group("energy");
        let sampler = parameters.group("sampler");
        let energy = SetEnergy::new(&config, &model, backend)?;
        let group = sampler.group("generator");
        let generator = match config.generator {
            GeneratorKind::Recurrent => Generator::Recurrent(Recurrent::new(&config, &group)?),
            GeneratorKind::Hierarchical => {
                Generator::Hierarchical(Hierarchy::new(&config, &group, backend)?)
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let num_steps = config.num_dynamics_steps;
        let log_step_sizes = sampler.trained("log_step_sizes", &[num_steps.max(1)], start)?;
        let settings = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        // Against a moving opponent momentum overshoots.
        let adam = Adam::new(&model, AdamConfig { beta1: 0.0, ..settings })?;
        let generator_adam = Adam::new(&sampler, AdamConfig { beta1: 0.5, ..settings })?;
        let average = MovingAverage::new(&parameters, config.average_decay)?;
        Ok(Self {
            config,
            parameters,
            energy,
            generator,
            log_step_sizes,
            adam,
            generator_adam,
            average,
        })
    }

    /// The settings.
    pub fn config(&self) -> &SetEnergyConfig {
        &self.config
    }

    /// u of every set, `[sets]`: log p but for Zₙ.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless `elements` `[total, d]` fits the offsets.
    pub fn log_potentials(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Vec<f32>> {
        let elements = self.tensor(elements, offsets)?;
        let u = self.energy.log_potential(&elements, offsets, &self.energy.weights())?;
        Ok(u.to_vec1()?)
    }

    /// ∇u of every element, `[total, d]`.
    ///
    /// # Errors
    ///
    /// As [`log_potentials`](Self::log_potentials).
    pub fn scores(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Vec<f32>> {
        let elements = self.tensor(elements, offsets)?;
        let weights = self.energy.weights().detached();
        Ok(self.energy.score(&elements, offsets, &weights)?.flatten_all()?.to_vec1()?)
    }

    /// `num_sets` sets of `size` elements, `[num_sets, size, d]`: the sampler's draws, and after them
    /// `num_refining` Langevin steps of the first step size whose noise falls to 0.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0.
    pub fn sample(
        &self,
        num_sets: usize,
        size: usize,
        num_refining: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        if num_sets == 0 || size == 0 {
            let found = format!("{num_sets} sets of {size} elements");
            return Err(Error::invalid("num_sets, size", "at least 1", found));
        }
        let weights = self.energy.weights().detached();
        let mut drawn = Vec::with_capacity(num_sets * size * self.config.element_dim);
        for (batch, start) in (0..num_sets).step_by(DRAWN_TOGETHER).enumerate() {
            let stream = stream.child(batch as u64);
            let count = DRAWN_TOGETHER.min(num_sets - start);
            let offsets = SetOffsets::uniform(count, size)?;
            let mut elements = self.draw(&offsets, size, &weights, stream)?.elements.detach();
            for number in 0..num_refining {
                let score = self.energy.score(&elements, &offsets, &weights)?;
                let score = score.clamp(-self.config.clip, self.config.clip)?;
                let left = 1.0 - (number + 1) as f64 / num_refining as f64;
                let noise = normals(score.dims2()?, stream.child(1000 + number as u64))?;
                let noise = (noise * (left * self.config.step_size.sqrt()))?;
                elements = ((elements + (score * (0.5 * self.config.step_size))?)? + noise)?;
            }
            drawn.extend(elements.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(drawn)
    }

    /// Uses the averages in the place of the parameters.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn use_average(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { Ok(()) } else { self.average.swap_in() }
    }

    /// Uses the parameters themselves.
    ///
    /// # Errors
    ///
    /// None in practice.
    pub fn use_parameters(&mut self) -> Result<()> {
        if self.average.is_swapped_in() { self.average.swap_out() } else { Ok(()) }
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] while the averages are in use.
    pub fn state(&self) -> Result<Tensors> {
        let parts = [
            ("parameters", self.parameters.export()?),
            ("adam", self.adam.export()?),
            ("generator_adam", self.generator_adam.export()?),
            ("average", self.average.export()?),
        ];
        Ok(join_parts(parts))
    }

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
    pub fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut parts = StateParts::split(state)?;
        let (parameters, adam) = (parts.take("parameters")?, parts.take("adam")?);
        let (generator_adam, average) = (parts.take("generator_adam")?, parts.take("average")?);
        parts.finish()?;
        self.parameters.import(&parameters)?;
        self.adam.import(&adam)?;
        self.generator_adam.import(&generator_adam)?;
        self.average.import(&average)
    }

    fn tensor(&self, elements: &[f32], offsets: &SetOffsets) -> Result<Tensor> {
        let shape = (offsets.num_elements(), self.config.element_dim);
        crate::error::check_length("elements", elements.len(), shape.0 * shape.1, || {
            format!("total {} x element_dim {}", shape.0, shape.1)
        })?;
        Ok(Tensor::from_slice(elements, shape, &Device::Cpu)?)
    }
}

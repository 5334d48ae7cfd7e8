//! The variational implicit process (Ma et al., 2019): a Bayesian network as prior over functions.
//!
//! ```text
//! w ~ N(μ_w, diag σ_w²),    f(t) = network(t; w),    x = f(t) + σ ε
//! ```
//!
//! The density of f is implicit. As published, the process is replaced by the Gaussian process
//! with the empirical mean and covariance of S sampled functions, f ≈ m + (1/√S) Φ a with
//! a ~ N(0, I), and inference is Bayesian linear regression on a. Published training bounds the
//! likelihood of one long data set by an α-energy over q(a). Here every set has its own a, whose
//! posterior is known exactly, so μ_w, σ_w and σ climb the **marginal likelihood** of that
//! linear-Gaussian model, summed over the sets of a batch, with fresh functions in every step.
//! Predictions use S functions drawn once from the seed; everything is then in closed form.
//!
//! Limits: the law of values is Gaussian with one σ everywhere, and a set can differ from the
//! mean function in at most S directions.

mod predictive;
mod regression;

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};

use self::predictive::ImplicitPredictive;
use self::regression::{Features, MarginalGradient, Posterior};
use super::neural::{Trained, host_numbers, host_tensor};
use super::task::{check_dimensions, check_tasks};
use super::{ExactProcess, Learner, Predictive, Process, Task};
use crate::nn::{AdamConfig, Initialiser, Parameters, PointModule, Record, Step, TensorBatch};
use crate::point::{Activation, MlpConfig, MlpShape, PointBackend};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, IndexedSet, Result, SetOffsets};

/// Settings of [`VariationalImplicitProcess`].
#[derive(Clone, Debug, PartialEq)]
pub struct VariationalImplicitProcessConfig {
    /// d_t.
    pub location_dim: usize,
    /// d_x.
    pub value_dim: usize,
    /// Widths of the hidden layers of the Bayesian network.
    pub hidden_widths: Vec<usize>,
    /// σ of every hidden layer.
    pub activation: Activation,
    /// S, the number of sampled functions, at least 2.
    pub num_functions: usize,
    /// Standard deviation of the weights at the start, in units of 1/√fan-in.
    pub initial_weight_std_dev: f64,
    /// σ of the measurements at the start.
    pub initial_noise_std_dev: f64,
    /// σ of the measurements never falls below this.
    pub min_noise_std_dev: f64,
    /// The learning rate at the start; it falls to 0 along half a cosine.
    pub learning_rate: f64,
    /// The optimiser.
    pub adam: AdamConfig,
}

impl Default for VariationalImplicitProcessConfig {
    /// For curves: 1 → 50 → 50 → 1, tanh, 20 functions.
    fn default() -> Self {
        Self {
            location_dim: 1,
            value_dim: 1,
            hidden_widths: vec![50, 50],
            activation: Activation::Tanh,
            num_functions: 20,
            initial_weight_std_dev: 0.1,
            initial_noise_std_dev: 0.5,
            min_noise_std_dev: 0.01,
            learning_rate: 1e-2,
            adam: AdamConfig { max_gradient_norm: Some(10.0), ..AdamConfig::default() },
        }
    }
}

impl VariationalImplicitProcessConfig {
    fn check(&self) -> Result<()> {
        if self.location_dim == 0 {
            return Err(Error::invalid("location_dim", "at least 1", self.location_dim));
        }
        if self.num_functions < 2 {
            return Err(Error::invalid("num_functions", "at least 2", self.num_functions));
        }
        for (field, number) in [
            ("initial_weight_std_dev", self.initial_weight_std_dev),
            ("learning_rate", self.learning_rate),
            ("min_noise_std_dev", self.min_noise_std_dev),
            ("initial_noise_std_dev", self.initial_noise_std_dev - self.min_noise_std_dev),
        ] {
            if !(number > 0.0 && number.is_finite()) {
                let expected = "positive and finite, and the initial noise above the least";
                return Err(Error::invalid(field, expected, number));
            }
        }
        Ok(())
    }
}

/// What the first layer's weights and biases are multiplied by at the start, so that its units
/// bend at different places of locations of order 1.
const INPUT_GAIN: f32 = 2.0;

/// A Gaussian process whose mean and covariance are those of a Bayesian network.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::{
///     ExactProcess, Process, VariationalImplicitProcess, VariationalImplicitProcessConfig,
/// };
///
/// let config = VariationalImplicitProcessConfig::default();
/// let process = VariationalImplicitProcess::new(config, 7, Arc::new(CpuBackend::new()))?;
/// let known = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.5, -0.5])?;
/// let next = IndexedSet::new(1, 1, vec![2.0], vec![0.1])?;
/// let both = IndexedSet::new(1, 1, vec![0.0, 1.0, 2.0], vec![0.5, -0.5, 0.1])?;
/// // p(next | known) = p(both) / p(known)
/// let conditional = process.condition(&known)?.log_density(&next)?[0].value;
/// let difference = process.log_marginal(&both)? - process.log_marginal(&known)?;
/// assert!((conditional - difference).abs() < 1e-6);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct VariationalImplicitProcess {
    config: VariationalImplicitProcessConfig,
    module: PointModule,
    /// μ_w, `[num_parameters]`.
    weight_mean: Var,
    /// log σ_w, `[num_parameters]`.
    weight_log_std_dev: Var,
    /// log(σ − least σ), `[1]`.
    noise: Var,
    trained: Trained,
    predictive_stream: Stream,
}

impl VariationalImplicitProcess {
    /// An untrained process: equal seeds give equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a setting outside its range.
    pub fn new(
        config: VariationalImplicitProcessConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        config.check()?;
        // A function of the location alone: the location is what the primitive calls value.
        let shape = MlpShape::new(MlpConfig {
            value_dim: config.location_dim,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: config.hidden_widths.clone(),
            output_dim: config.value_dim,
            activation: config.activation,
            ..MlpConfig::default()
        })?;
        let parameters = Parameters::new(seed);
        let weight_mean = parameters.point_mlp("weight_mean", &shape)?;
        let weight_log_std_dev = parameters.trained(
            "weight_log_std_dev",
            &[shape.num_parameters()],
            Initialiser::Zeros,
        )?;
        initialise(
            &shape,
            &weight_mean,
            &weight_log_std_dev,
            &config,
            Stream::new(seed, "biases"),
        )?;
        let start = (config.initial_noise_std_dev - config.min_noise_std_dev).ln();
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let noise = parameters.trained("noise", &[1], Initialiser::Constant(start as f32))?;
        let trained = Trained::new(parameters, config.adam)?;
        Ok(Self {
            module: PointModule::new(shape, backend),
            weight_mean,
            weight_log_std_dev,
            noise,
            trained,
            predictive_stream: Stream::new(seed, "predictive"),
            config,
        })
    }

    /// σ of the measurements.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if the parameter cannot be read.
    pub fn noise_std_dev(&self) -> Result<f64> {
        Ok(self.config.min_noise_std_dev + host_numbers(&self.noise)?[0].exp())
    }

    /// S functions at `locations` `[total, d_t]`, each `[total, d_x]`, with weights from `stream`.
    fn functions(
        &self,
        locations: &[f64],
        offsets: &SetOffsets,
        stream: Stream,
    ) -> Result<Vec<Tensor>> {
        let elements = host_tensor(locations, self.config.location_dim)?;
        let weight_std_dev = self.weight_log_std_dev.exp()?;
        let mut noise = vec![0.0; self.module.shape().num_parameters()];
        (0_u64..)
            .take(self.config.num_functions)
            .map(|number| {
                stream.child(number).fill_normal(0, 0, &mut noise);
                let noise = Tensor::from_slice(&noise, noise.len(), &Device::Cpu)?;
                // w_s = μ_w + σ_w ε_s
                let parameters = (self.weight_mean.as_tensor() + (&weight_std_dev * noise)?)?;
                self.module.values(&TensorBatch {
                    elements: &elements,
                    context: None,
                    parameters: &parameters,
                    offsets,
                })
            })
            .collect()
    }

    /// The functions of predictions, at `locations`; none of them has rows where there are none.
    fn features(&self, locations: &[f64]) -> Result<Features> {
        let total = locations.len() / self.config.location_dim;
        if total == 0 {
            return Ok(Features::new(&vec![&[][..]; self.config.num_functions]));
        }
        let offsets = SetOffsets::uniform(1, total)?;
        let functions = self.functions(locations, &offsets, self.predictive_stream)?;
        let host = functions.iter().map(host_numbers).collect::<Result<Vec<_>>>()?;
        Ok(Features::new(&host.iter().map(Vec::as_slice).collect::<Vec<_>>()))
    }

    fn posterior(&self, set: &IndexedSet) -> Result<Posterior> {
        check_dimensions("set", set, self.config.location_dim, self.config.value_dim)?;
        let std_dev = self.noise_std_dev()?;
        Ok(Posterior::new(&self.features(set.locations())?, set.values(), std_dev * std_dev))
    }
}

impl Process for VariationalImplicitProcess {
    fn name(&self) -> &'static str {
        "vip"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(ImplicitPredictive::new(self, self.posterior(context)?)?))
    }
}

impl Learner for VariationalImplicitProcess {
    /// One step up the log marginal likelihood of context and target together, which are one set
    /// here. Functions come from the step's stream.
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        check_tasks(tasks, self.config.location_dim, self.config.value_dim)?;
        let sets = tasks.iter().map(Task::union).collect::<Result<Vec<_>>>()?;
        let offsets = SetOffsets::from_sizes(sets.iter().map(IndexedSet::len))?;
        let locations: Vec<f64> = sets.iter().flat_map(IndexedSet::locations).copied().collect();
        let functions = self.functions(&locations, &offsets, step.stream)?;
        let host = functions.iter().map(host_numbers).collect::<Result<Vec<_>>>()?;

        let std_dev = self.noise_std_dev()?;
        let scale = -1.0 / offsets.num_elements() as f64;
        let mut cotangents = vec![Vec::with_capacity(host[0].len()); host.len()];
        let (mut log_marginal, mut noise_slope) = (0.0, 0.0);
        for (number, set) in sets.iter().enumerate() {
            let range = offsets.range(number);
            let rows = range.start * self.config.value_dim..range.end * self.config.value_dim;
            let parts: Vec<&[f64]> = host.iter().map(|function| &function[rows.clone()]).collect();
            let features = Features::new(&parts);
            let variance = std_dev * std_dev;
            let posterior = Posterior::new(&features, set.values(), variance);
            let gradient = MarginalGradient::new(&features, set.values(), variance, &posterior);
            log_marginal += posterior.log_marginal;
            noise_slope += gradient.log_std_dev;
            for (cotangent, part) in cotangents.iter_mut().zip(&gradient.functions) {
                cotangent.extend(part.iter().map(|slope| scale * slope));
            }
        }
        // d log σ / d(noise) = (σ − least σ)/σ
        let noise_slope = scale * noise_slope * (std_dev - self.config.min_noise_std_dev) / std_dev;
        // Linear in the functions and the noise, with the gradient of the loss as slope: what
        // candle carries back from here is the gradient of the loss.
        let mut surrogate = (self.noise.as_tensor() * noise_slope)?.sum_all()?;
        for (function, cotangent) in functions.iter().zip(&cotangents) {
            let cotangent = host_tensor(cotangent, self.config.value_dim)?;
            surrogate = (surrogate + (function * cotangent)?.sum_all()?)?;
        }
        let rate = step.learning_rate(self.config.learning_rate);
        Ok(vec![
            ("loss", scale * log_marginal),
            ("gradient_norm", self.trained.descend(&surrogate, rate)?),
        ])
    }

    fn state(&self) -> Result<Tensors> {
        self.trained.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.trained.restore(state)
    }
}

impl ExactProcess for VariationalImplicitProcess {
    fn log_marginal(&self, set: &IndexedSet) -> Result<f64> {
        Ok(self.posterior(set)?.log_marginal)
    }
}

/// Spreads the first layer, and sets σ_w to the wished multiple of 1/√fan-in.
#[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
fn initialise(
    shape: &MlpShape,
    weight_mean: &Var,
    weight_log_std_dev: &Var,
    config: &VariationalImplicitProcessConfig,
    biases: Stream,
) -> Result<()> {
    let mut means = weight_mean.to_vec1::<f32>()?;
    let mut log_std_devs = vec![0.0; means.len()];
    for (number, layer) in shape.layers().iter().enumerate() {
        let scale = config.initial_weight_std_dev / (layer.inputs as f64).sqrt();
        log_std_devs[layer.weight.start..layer.bias.end].fill(scale.ln() as f32);
        if number == 0 {
            biases.fill_normal(0, 0, &mut means[layer.bias.clone()]);
            for mean in &mut means[layer.weight.start..layer.bias.end] {
                *mean *= INPUT_GAIN;
            }
        }
    }
    weight_mean.set(&Tensor::new(means, &Device::Cpu)?)?;
    weight_log_std_dev.set(&Tensor::new(log_std_devs, &Device::Cpu)?)?;
    Ok(())
}

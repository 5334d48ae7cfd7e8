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

use rayon::prelude::*;

use self::predictive::ImplicitPredictive;
use self::regression::{Features, MarginalGradient, Posterior};
use super::task::check_dimensions;
use super::{ExactProcess, Learner, Predictive, Preparation, Prepared, Preparer, Process};
use crate::batch::TaskBatch;
use crate::exchange::Seat;
use crate::nn::{Initialiser, Record, Step};
use crate::point::{Activation, MlpConfig, MlpShape};
use crate::rng::Stream;
use crate::tape::{
    AdamConfig, Device, Gaussian, Group, Parameter, ParameterBuilder, ParameterSet, Points, Tape,
    Var, check_taken,
};
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
/// use ebp::IndexedSet;
/// use ebp::process::{
///     ExactProcess, Process, VariationalImplicitProcess, VariationalImplicitProcessConfig,
/// };
/// use ebp::tape::Device;
///
/// let config = VariationalImplicitProcessConfig::default();
/// let process = VariationalImplicitProcess::new(config, 7, &Device::default())?;
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
    shape: Arc<MlpShape>,
    /// μ_w, `[num_parameters]`.
    weight_mean: Parameter,
    /// log σ_w, `[num_parameters]`.
    weight_log_std_dev: Parameter,
    /// log(σ − least σ), `[1]`.
    noise: Parameter,
    parameters: ParameterSet,
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
        device: &Device,
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
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("model");
        let weight_mean = group.point_mlp("weight_mean", &shape)?;
        let dims = [shape.num_parameters()];
        let weight_log_std_dev = group.trained("weight_log_std_dev", &dims, Initialiser::Zeros)?;
        initialise(&shape, &mut group, [&weight_mean, &weight_log_std_dev], &config);
        let start = (config.initial_noise_std_dev - config.min_noise_std_dev).ln();
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let noise = group.trained("noise", &[1], Initialiser::Constant(start as f32))?;
        Ok(Self {
            shape: Arc::new(shape),
            weight_mean,
            weight_log_std_dev,
            noise,
            parameters: ParameterSet::new(builder, device, config.adam, None)?,
            predictive_stream: Stream::new(seed, "predictive"),
            config,
        })
    }

    /// σ of the measurements.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the parameter cannot be read.
    pub fn noise_std_dev(&self) -> Result<f64> {
        let found = f64::from(self.parameters.values(&self.noise)?[0]);
        Ok(self.config.min_noise_std_dev + found.exp())
    }

    /// S functions at `locations` `[total, d_t]`, side by side, `[total, S · d_x]`, with weights
    /// from `stream`.
    fn functions(
        &self,
        tape: &mut Tape,
        locations: Vec<f32>,
        offsets: &Arc<SetOffsets>,
        stream: Stream,
    ) -> Result<Var> {
        let shape = (offsets.num_elements(), self.config.location_dim);
        let elements = tape.upload(locations, shape)?;
        let law = Gaussian {
            mean: tape.parameter(&self.weight_mean)?,
            log_std_dev: tape.parameter(&self.weight_log_std_dev)?,
        };
        let mut function = |number| {
            // w_s = μ_w + σ_w ε_s
            let parameters = tape.draw(law, stream.child(number))?;
            tape.point_values(&Points {
                shape: Arc::clone(&self.shape),
                parameters,
                elements,
                context: None,
                offsets: Arc::clone(offsets),
            })
        };
        let numbers = (0_u64..).take(self.config.num_functions);
        let functions = numbers.map(&mut function).collect::<Result<Vec<_>>>()?;
        tape.concat(&functions)
    }

    /// Rows `[total, S · d_x]` as one list of d_x numbers per row for each function.
    fn by_function(&self, rows: &[f32]) -> Vec<Vec<f64>> {
        let dim = self.config.value_dim;
        let part = |number: usize| {
            let chunks = rows.chunks_exact(self.config.num_functions * dim);
            chunks.flat_map(|row| &row[number * dim..][..dim]).map(|&x| f64::from(x)).collect()
        };
        (0..self.config.num_functions).map(part).collect()
    }

    /// The functions of predictions, at `locations`; none of them has rows where there are none.
    fn features(&self, locations: &[f64]) -> Result<Features> {
        let total = locations.len() / self.config.location_dim;
        if total == 0 {
            return Ok(Features::new(&vec![&[][..]; self.config.num_functions]));
        }
        let offsets = Arc::new(SetOffsets::uniform(1, total)?);
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        let locations = rounded(locations).collect();
        let rows = self.functions(&mut tape, locations, &offsets, self.predictive_stream)?;
        let host = self.by_function(&tape.download(rows)?);
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

/// What a step reads: context and target of each task are one set here.
#[derive(Debug)]
struct Batch {
    /// Of all sets, `[total, d_x]`.
    values: Vec<f64>,
    /// Of all sets, `[total, d_t]`.
    locations: Vec<f32>,
    offsets: Arc<SetOffsets>,
}

/// Makes [`Batch`]es.
struct BatchMaker {
    location_dim: usize,
    value_dim: usize,
}

impl Preparer for BatchMaker {
    type Batch = Batch;

    fn prepare(&self, tasks: &TaskBatch, _step: &Step) -> Result<Batch> {
        tasks.check(self.location_dim, self.value_dim)?;
        let sets = tasks.context.union(&tasks.target)?;
        Ok(Batch {
            values: sets.all_values().iter().map(|&x| f64::from(x)).collect(),
            locations: sets.all_locations().to_vec(),
            offsets: Arc::new(SetOffsets::from_sizes(sets.sizes())?),
        })
    }
}

/// Networks compute in f32.
#[expect(clippy::cast_possible_truncation, reason = "that is what it is for")]
fn rounded(numbers: &[f64]) -> impl Iterator<Item = f32> + '_ {
    numbers.iter().map(|&x| x as f32)
}

/// What a batch's functions are worth, and the slope of that in each of them.
struct Slopes {
    log_marginal: f64,
    log_std_dev: f64,
    /// `[total, S · d_x]`.
    functions: Vec<f64>,
}

impl VariationalImplicitProcess {
    fn preparer(&self) -> BatchMaker {
        BatchMaker { location_dim: self.config.location_dim, value_dim: self.config.value_dim }
    }

    /// One step up the log marginal likelihood of context and target together. Functions come from
    /// the step's stream.
    fn learn_from(&mut self, batch: Batch, step: &Step) -> Result<Record> {
        let Batch { values, locations, offsets } = batch;
        let std_dev = self.noise_std_dev()?;
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let functions = self.functions(&mut tape, locations, &offsets, step.stream)?;
        let slopes = self.slopes((&values, &offsets), &tape.download(functions)?, std_dev);
        let scale = -1.0 / offsets.num_elements() as f64;
        // d log σ / d(noise) = (σ − least σ)/σ
        let share = (std_dev - self.config.min_noise_std_dev) / std_dev;
        // Linear in the functions and the noise, with the gradient of the loss as slope: what the
        // tape carries back from here is the gradient of the loss.
        let noise = tape.parameter(&self.noise)?;
        let noise = tape.affine(noise, scale * slopes.log_std_dev * share, 0.0)?;
        let slopes_of_functions = rounded(&slopes.functions).collect();
        let slopes_of_functions = tape.upload(slopes_of_functions, tape.shape(functions))?;
        let weighted = tape.multiply(functions, slopes_of_functions)?;
        let weighted = tape.sum(weighted)?;
        let weighted = tape.affine(weighted, scale, 0.0)?;
        let surrogate = tape.add(weighted, noise)?;
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.descend(tape, surrogate, rate)?;
        Ok(vec![("loss", scale * slopes.log_marginal), ("gradient_norm", update.gradient_norm)])
    }

    fn slopes(
        &self,
        (values, offsets): (&[f64], &SetOffsets),
        rows: &[f32],
        std_dev: f64,
    ) -> Slopes {
        let (dim, count) = (self.config.value_dim, self.config.num_functions);
        let variance = std_dev * std_dev;
        let of_set = |number: usize| {
            let range = offsets.range(number);
            let part = &rows[range.start * count * dim..range.end * count * dim];
            let host = self.by_function(part);
            let features = Features::new(&host.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let values = &values[range.start * dim..range.end * dim];
            let posterior = Posterior::new(&features, values, variance);
            let gradient = MarginalGradient::new(&features, values, variance, &posterior);
            // Back to rows of all functions.
            let slopes = (0..range.len()).flat_map(|row| {
                let of_function = |f: &Vec<f64>| f[row * dim..(row + 1) * dim].to_vec();
                gradient.functions.iter().flat_map(of_function).collect::<Vec<_>>()
            });
            (posterior.log_marginal, gradient.log_std_dev, slopes.collect::<Vec<f64>>())
        };
        let all: Vec<_> = (0..offsets.num_sets()).into_par_iter().map(of_set).collect();
        Slopes {
            log_marginal: all.iter().map(|set| set.0).sum(),
            log_std_dev: all.iter().map(|set| set.1).sum(),
            functions: all.into_iter().flat_map(|set| set.2).collect(),
        }
    }
}

impl Learner for VariationalImplicitProcess {
    fn preparation(&self) -> Option<Preparation> {
        Some(Preparation::new(self.preparer()))
    }

    fn learn_prepared(&mut self, batch: Prepared, step: &Step) -> Result<Record> {
        self.learn_from(batch.take()?, step)
    }

    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        self.parameters.join(seat);
        Ok(())
    }

    fn state(&self) -> Result<Tensors> {
        self.parameters.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut state = state.clone();
        self.parameters.import(&mut state)?;
        check_taken(&state)
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
    group: &mut Group<'_>,
    [weight_mean, weight_log_std_dev]: [&Parameter; 2],
    config: &VariationalImplicitProcessConfig,
) {
    let biases = group.stream("biases");
    for (number, layer) in shape.layers().iter().enumerate() {
        let scale = config.initial_weight_std_dev / (layer.inputs as f64).sqrt();
        let log_std_devs = group.values_mut(weight_log_std_dev);
        log_std_devs[layer.weight.start..layer.bias.end].fill(scale.ln() as f32);
        if number == 0 {
            let means = group.values_mut(weight_mean);
            biases.fill_normal(0, 0, &mut means[layer.bias.clone()]);
            for mean in &mut means[layer.weight.start..layer.bias.end] {
                *mean *= INPUT_GAIN;
            }
        }
    }
}

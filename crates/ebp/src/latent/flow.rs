//! A learned law of θ: couplings after a fitted Gaussian, by maximum likelihood on codes.
//!
//! ```text
//! θ = m + L z,   log p(θ) = log N(u; 0, I) + Σ_layers log |det| − Σᵢ log Lᵢᵢ,   u = layers(z)
//! ```
//!
//! A tenth of the codes is held out. The couplings start as the identity, so the flow starts as the
//! fitted Gaussian, and what is kept is the state that was best on the held-out codes: it is no worse
//! there than the Gaussian. Every step draws the codes anew from their posteriors.

use super::gaussian::{missing, saved};
use super::{Codes, GaussianPrior, Prior, PriorState, check_rows};
use crate::nn::Coupling;
use crate::rng::Stream;
use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet, Tape, Var};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// How a flow is built and fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowConfig {
    /// Couplings; at least 1.
    pub num_layers: usize,
    /// Width of their networks' two hidden layers; at least 1.
    pub hidden_width: usize,
    /// Most steps of Adam.
    pub num_steps: usize,
    /// Codes per step; at least 1.
    pub batch_size: usize,
    /// Learning rate at the start, falling to 0 by half a cosine. Positive.
    pub learning_rate: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Steps between looks at the held-out codes; at least 1.
    pub evaluate_every: usize,
    /// Looks without a better value after which fitting ends.
    pub patience: usize,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            num_layers: 8,
            hidden_width: 64,
            num_steps: 2000,
            batch_size: 256,
            learning_rate: 2e-3,
            weight_decay: 1e-2,
            evaluate_every: 50,
            patience: 10,
        }
    }
}

impl FlowConfig {
    fn check(&self) -> Result<()> {
        for (field, count) in [
            ("num_layers", self.num_layers),
            ("hidden_width", self.hidden_width),
            ("batch_size", self.batch_size),
            ("evaluate_every", self.evaluate_every),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", 0));
            }
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::invalid("learning_rate", "positive", self.learning_rate));
        }
        Ok(())
    }
}

/// What fitting reached, in nats per code on the held-out codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowFit {
    /// −log p of the Gaussian that the flow starts from.
    pub gaussian_nll: f64,
    /// −log p of the flow that was kept; at most `gaussian_nll`.
    pub flow_nll: f64,
    /// The step it was kept at.
    pub best_step: usize,
    /// Steps that were taken.
    pub num_steps: usize,
    /// How many codes were held out.
    pub num_held_out: usize,
}

/// A fitted flow.
///
/// ```
/// use ebp::latent::{Codes, FlowConfig, FlowPrior, Prior};
/// use ebp::rng::Stream;
///
/// let mut means = vec![0.0; 200 * 3];
/// Stream::new(1, "codes").fill_normal(0, 0, &mut means);
/// let codes = Codes::new(3, &means, None)?;
/// let config = FlowConfig { num_layers: 2, hidden_width: 8, num_steps: 50, ..FlowConfig::default() };
/// let (prior, fit) = FlowPrior::fit(&codes, &config, Stream::new(1, "prior"))?;
/// assert!(fit.flow_nll <= fit.gaussian_nll);
/// let thetas = prior.sample(5, Stream::new(2, "draws"))?;
/// let restored = FlowPrior::restore(&prior.state()?)?;
/// assert_eq!(restored.log_density(&thetas)?, prior.log_density(&thetas)?);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct FlowPrior {
    base: GaussianPrior,
    hidden_width: usize,
    layers: Vec<Coupling>,
    parameters: ParameterSet,
}

/// The numbers that a saved flow has beside its tensors.
const HIDDEN_WIDTH: &str = "hidden_width";
const NUM_LAYERS: &str = "num_layers";

impl FlowPrior {
    /// Fits a flow to codes; in one dimension it stays the Gaussian, as there is nothing to couple.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is out of range or there are fewer than ten codes,
    /// [`Error::NotPositiveDefinite`] as [`GaussianPrior::fit`], [`Error::NonFiniteGradient`] if the
    /// learning rate is too high.
    pub fn fit(codes: &Codes, config: &FlowConfig, stream: Stream) -> Result<(Self, FlowFit)> {
        config.check()?;
        if codes.len() < 10 {
            return Err(Error::invalid("codes", "ten or more", codes.len()));
        }
        let order = stream.child(0).permutation(codes.len());
        let (held_out, training) = order.split_at((codes.len() / 10).max(2));
        let base = GaussianPrior::fit_rows(codes, training)?;
        let settings = AdamConfig {
            weight_decay: config.weight_decay,
            max_gradient_norm: Some(10.0 * (codes.dim() as f64).sqrt()),
            ..AdamConfig::default()
        };
        let sizes = (config.num_layers, config.hidden_width);
        let mut flow = Self::new(base, sizes, seed(stream), settings, None)?;
        // A few draws of each held-out code, the same at every look.
        let draws: Vec<usize> = held_out.iter().flat_map(|&row| [row; 4]).collect();
        let judged = codes.draw(&draws, stream.child(1));
        let gaussian_nll = flow.nll(&judged)?;
        let mut fit = FlowFit {
            gaussian_nll,
            flow_nll: gaussian_nll,
            best_step: 0,
            num_steps: 0,
            num_held_out: held_out.len(),
        };
        if !flow.layers.is_empty() {
            let split = Split { codes, training, judged };
            flow.train(&split, config, stream.child(2), &mut fit)?;
        }
        Ok((flow, fit))
    }

    /// Couplings that start as the identity, or as they were saved.
    fn new(
        base: GaussianPrior,
        (num_layers, hidden_width): (usize, usize),
        seed: u64,
        settings: AdamConfig,
        state: Option<&PriorState>,
    ) -> Result<Self> {
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("flow");
        let num_layers = if base.dim() < 2 { 0 } else { num_layers };
        let mut layers = Vec::new();
        for number in 0..num_layers {
            let layer = Coupling::new(&mut group, number, base.dim(), hidden_width)?;
            if let Some(state) = state {
                let (values, dims) = saved(state, &name(number))?;
                let own = group.values_mut(layer.parameters());
                if values.len() != own.len() {
                    let expected = format!("{} numbers", own.len());
                    return Err(Error::invalid(name(number), expected, format!("{dims:?}")));
                }
                own.copy_from_slice(&values);
            }
            layers.push(layer);
        }
        let parameters = ParameterSet::new(builder, &Device::default(), settings, None)?;
        Ok(Self { base, hidden_width, layers, parameters })
    }

    fn train(
        &mut self,
        split: &Split,
        config: &FlowConfig,
        stream: Stream,
        fit: &mut FlowFit,
    ) -> Result<()> {
        let Split { codes, training, judged } = split;
        let mut best = self.parameters.export()?;
        let batch_size = config.batch_size.min(training.len());
        let base = self.base.clone();
        let batch = |step: usize| {
            let stream = stream.child(step as u64);
            let chosen = stream.permutation(training.len());
            let rows: Vec<usize> =
                chosen[..batch_size].iter().map(|&place| training[place]).collect();
            white(&base, &codes.draw(&rows, stream.child(0)))
        };
        let mut next = batch(0);
        for step in 0..config.num_steps {
            let progress = step as f64 / config.num_steps as f64;
            let rate = 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()) * config.learning_rate;
            let now = std::mem::take(&mut next);
            // The next batch is made beside this step.
            let (taken, ready) = rayon::join(|| self.descend(now, rate), || batch(step + 1));
            taken?;
            next = ready;
            fit.num_steps = step + 1;
            let is_last = fit.num_steps == config.num_steps;
            if fit.num_steps.is_multiple_of(config.evaluate_every) || is_last {
                let nll = self.nll(judged)?;
                if nll < fit.flow_nll {
                    (fit.flow_nll, fit.best_step) = (nll, fit.num_steps);
                    best = self.parameters.export()?;
                } else if fit.num_steps > fit.best_step + config.patience * config.evaluate_every {
                    break;
                }
            }
        }
        self.parameters.import(&mut best)
    }

    /// One step of Adam down −mean log density of rows z.
    fn descend(&mut self, white: Vec<f32>, rate: f64) -> Result<()> {
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let white = self.upload(&mut tape, white)?;
        let log_density = self.white_log_density(&mut tape, white)?;
        let mean = tape.mean(log_density)?;
        let loss = tape.affine(mean, -1.0, 0.0)?;
        self.parameters.descend(tape, loss, rate)?;
        Ok(())
    }

    /// What [`Prior::state`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a tensor that is missing or has another shape, the last layer
    /// among them, or if there are more layers than the state says.
    pub fn restore(state: &PriorState) -> Result<Self> {
        let base = GaussianPrior::restore(state)?;
        let count = |name: &str| {
            let number = state.get(name).and_then(Tensor::as_integer);
            number.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| missing(name))
        };
        let (num_layers, width) = (count(NUM_LAYERS)?, count(HIDDEN_WIDTH)?);
        let found = state.keys().filter(|name| name.starts_with(LAYER)).count();
        if found > num_layers {
            let expected = format!("no more layers than `{NUM_LAYERS}` = {num_layers}");
            return Err(Error::invalid("saved flow", expected, found));
        }
        Self::new(base, (num_layers, width), 0, AdamConfig::default(), Some(state))
    }

    /// u of every row of `thetas`: the standard normals that [`sample`](Prior::sample) would have to
    /// draw to give them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the rows are whole.
    pub fn latent_noise(&self, thetas: &[f32]) -> Result<Vec<f32>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        let mut tape = self.tape();
        let rows = self.upload(&mut tape, white(&self.base, thetas))?;
        let (noise, _) = self.normalise(&mut tape, rows)?;
        tape.download(noise)
    }

    fn tape(&self) -> Tape {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        tape
    }

    fn upload(&self, tape: &mut Tape, rows: Vec<f32>) -> Result<Var> {
        let shape = (rows.len() / self.base.dim(), self.base.dim());
        tape.upload(rows, shape)
    }

    /// u of rows z, and Σ log |det|; `None` without layers.
    fn normalise(&self, tape: &mut Tape, white: Var) -> Result<(Var, Option<Var>)> {
        let (mut rows, mut log_det) = (white, None);
        for layer in &self.layers {
            let (moved, change) = layer.normalise(tape, rows)?;
            rows = moved;
            log_det = Some(match log_det {
                Some(sum) => tape.add(sum, change)?,
                None => change,
            });
        }
        Ok((rows, log_det))
    }

    /// log density of z, `[n, 1]`.
    fn white_log_density(&self, tape: &mut Tape, white: Var) -> Result<Var> {
        let (u, log_det) = self.normalise(tape, white)?;
        let law = tape.standard_gaussian(tape.shape(u))?;
        let terms = tape.log_density(u, law)?;
        let log_density = tape.row_sums(terms)?;
        match log_det {
            Some(log_det) => tape.add(log_density, log_det),
            None => Ok(log_density),
        }
    }

    fn nll(&self, thetas: &[f32]) -> Result<f64> {
        let all = self.log_density(thetas)?;
        Ok(-all.iter().sum::<f64>() / all.len() as f64)
    }
}

/// z = L⁻¹(θ − m) of every row.
#[expect(clippy::cast_possible_truncation, reason = "networks are single precision")]
fn white(base: &GaussianPrior, thetas: &[f32]) -> Vec<f32> {
    base.whiten(thetas).into_iter().map(|z| z as f32).collect()
}

/// What the names of layers begin with.
const LAYER: &str = "coupling";

/// The name of a layer's parameters.
fn name(number: usize) -> String {
    format!("{LAYER}{number}")
}

/// Codes to learn from, and draws of those that judge.
struct Split<'a> {
    codes: &'a Codes<'a>,
    training: &'a [usize],
    judged: Vec<f32>,
}

/// Two words of the stream.
fn seed(stream: Stream) -> u64 {
    let mut words = [0.0; 2];
    stream.fill_uniform(0, 0, &mut words);
    u64::from(words[0].to_bits()) << 32 | u64::from(words[1].to_bits())
}

impl Prior for FlowPrior {
    fn name(&self) -> &'static str {
        "learned flow"
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let dim = self.dim();
        let mut noise = vec![0.0; count * dim];
        stream.fill_normal(0, 0, &mut noise);
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut tape = self.tape();
        let mut rows = self.upload(&mut tape, noise)?;
        for layer in self.layers.iter().rev() {
            rows = layer.generate(&mut tape, rows)?;
        }
        let white = tape.download(rows)?;
        crate::error::check_finite("draws of the prior", &white, "fit it again with a lower rate")?;
        Ok(self.base.colour(&white))
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        if thetas.is_empty() {
            return Ok(Vec::new());
        }
        let mut tape = self.tape();
        let rows = self.upload(&mut tape, white(&self.base, thetas))?;
        let found = self.white_log_density(&mut tape, rows)?;
        let white = tape.download(found)?;
        Ok(white.into_iter().map(|value| f64::from(value) - self.base.log_volume()).collect())
    }

    fn state(&self) -> Result<PriorState> {
        let mut state = self.base.state()?;
        for (name, count) in [(HIDDEN_WIDTH, self.hidden_width), (NUM_LAYERS, self.layers.len())] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            state.insert(name.to_owned(), Tensor::integer(count));
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let values = self.parameters.values(layer.parameters())?;
            state.insert(name(number), Tensor::new(vec![values.len()], values)?);
        }
        Ok(state)
    }
}

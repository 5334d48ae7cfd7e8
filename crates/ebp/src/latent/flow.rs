//! A learned law of θ: couplings after a fitted Gaussian, by maximum likelihood on codes.
//!
//! ```text
//! θ = m + L z,   log p(θ) = log N(u; 0, I) + Σ_layers log |det| − Σᵢ log Lᵢᵢ,   u = layers(z)
//! ```
//!
//! A tenth of the codes is held out. The couplings start as the identity, so the flow starts as the
//! fitted Gaussian, and what is kept is the state that was best on the held-out codes: it is no worse
//! there than the Gaussian. Every step draws the codes anew from their posteriors.

use candle_core::{Device, Tensor};

use super::coupling::Coupling;
use super::gaussian::missing;
use super::{Codes, GaussianPrior, LOG_ROOT_TAU, Prior, PriorState, check_rows};
use crate::nn::{Adam, AdamConfig, Parameters};
use crate::rng::Stream;
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
#[derive(Clone, Debug)]
pub struct FlowPrior {
    base: GaussianPrior,
    parameters: Parameters,
    layers: Vec<Coupling>,
}

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
        let flow = Self::new(base, config.num_layers, config.hidden_width, seed(stream))?;
        // A few draws of each held-out code, the same at every look.
        let draws: Vec<usize> = held_out.iter().flat_map(|&row| [row; 4]).collect();
        let judged = codes.draw(&draws, stream.child(1));
        let mut fit = FlowFit {
            gaussian_nll: flow.nll(&judged)?,
            flow_nll: f64::INFINITY,
            best_step: 0,
            num_steps: 0,
            num_held_out: held_out.len(),
        };
        fit.flow_nll = fit.gaussian_nll;
        if !flow.layers.is_empty() {
            let split = Split { codes, training, judged };
            flow.train(&split, config, stream.child(2), &mut fit)?;
        }
        Ok((flow, fit))
    }

    fn new(base: GaussianPrior, num_layers: usize, hidden: usize, seed: u64) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let num_layers = if base.dim() < 2 { 0 } else { num_layers };
        let layers = (0..num_layers)
            .map(|number| Coupling::new(&parameters, number, base.dim(), hidden))
            .collect::<Result<_>>()?;
        Ok(Self { base, parameters, layers })
    }

    fn train(
        &self,
        split: &Split,
        config: &FlowConfig,
        stream: Stream,
        fit: &mut FlowFit,
    ) -> Result<()> {
        let Split { codes, training, judged } = split;
        let settings = AdamConfig {
            weight_decay: config.weight_decay,
            max_gradient_norm: Some(10.0 * (codes.dim() as f64).sqrt()),
            ..AdamConfig::default()
        };
        let mut adam = Adam::new(&self.parameters, settings)?;
        let mut best = self.parameters.export()?;
        let batch_size = config.batch_size.min(training.len());
        for step in 0..config.num_steps {
            let stream = stream.child(step as u64);
            let chosen = stream.permutation(training.len());
            let rows: Vec<usize> =
                chosen[..batch_size].iter().map(|&place| training[place]).collect();
            let thetas = codes.draw(&rows, stream.child(0));
            let loss = self.white_log_density(&self.whitened(&thetas)?)?.mean_all()?.neg()?;
            let progress = step as f64 / config.num_steps as f64;
            let rate = 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()) * config.learning_rate;
            adam.step(&loss.backward()?, rate)?;
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
        self.parameters.import(&best)
    }

    /// What [`Prior::state`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a tensor that is missing or has another shape.
    pub fn restore(state: &PriorState) -> Result<Self> {
        let base = GaussianPrior::restore(state)?;
        let couplings: PriorState = state
            .iter()
            .filter(|(name, _)| name.starts_with("coupling"))
            .map(|(name, tensor)| (name.clone(), tensor.clone()))
            .collect();
        let is_last = |name: &&String| name.ends_with("last.weight");
        let num_layers = couplings.keys().filter(is_last).count();
        let hidden = match couplings.get("coupling0.second.bias") {
            Some(bias) => bias.dims().iter().product(),
            None if num_layers == 0 => 1,
            None => return Err(missing("coupling0.second.bias")),
        };
        let flow = Self::new(base, num_layers, hidden, 0)?;
        flow.parameters.import(&couplings)?;
        Ok(flow)
    }

    /// u of every row of `thetas`: the standard normals that [`sample`](Prior::sample) would have to
    /// draw to give them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the rows are whole.
    pub fn latent_noise(&self, thetas: &[f32]) -> Result<Vec<f32>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        Ok(self.normalise(&self.whitened(thetas)?)?.0.flatten_all()?.to_vec1()?)
    }

    /// z = L⁻¹(θ − m), `[n, k]`.
    #[expect(clippy::cast_possible_truncation, reason = "networks are single precision")]
    fn whitened(&self, thetas: &[f32]) -> Result<Tensor> {
        let dim = self.base.dim();
        let white = self.base.whiten(thetas).into_iter().map(|z| z as f32).collect::<Vec<_>>();
        let num_rows = white.len() / dim;
        Ok(Tensor::from_vec(white, (num_rows, dim), &Device::Cpu)?)
    }

    /// u and Σ log |det| of rows z.
    fn normalise(&self, white: &Tensor) -> Result<(Tensor, Tensor)> {
        let mut rows = white.clone();
        let mut log_det = white.sum(1)?.zeros_like()?;
        for layer in &self.layers {
            let (moved, change) = layer.normalise(&rows)?;
            rows = moved;
            log_det = (log_det + change)?;
        }
        Ok((rows, log_det))
    }

    /// log density of z, `[n]`.
    fn white_log_density(&self, white: &Tensor) -> Result<Tensor> {
        let (u, log_det) = self.normalise(white)?;
        let constant = self.base.dim() as f64 * LOG_ROOT_TAU;
        Ok(((log_det - (u.sqr()?.sum(1)? * 0.5)?)? - constant)?)
    }

    fn nll(&self, thetas: &[f32]) -> Result<f64> {
        let all = self.log_density(thetas)?;
        Ok(-all.iter().sum::<f64>() / all.len() as f64)
    }
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
        let mut rows = Tensor::from_vec(noise, (count, dim), &Device::Cpu)?;
        for layer in self.layers.iter().rev() {
            rows = layer.generate(&rows)?;
        }
        let white: Vec<f32> = rows.flatten_all()?.to_vec1()?;
        crate::error::check_finite("draws of the prior", &white, "fit it again with a lower rate")?;
        Ok(self.base.colour(&white))
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        if thetas.is_empty() {
            return Ok(Vec::new());
        }
        let white: Vec<f32> = self.white_log_density(&self.whitened(thetas)?)?.to_vec1()?;
        Ok(white.into_iter().map(|value| f64::from(value) - self.base.log_volume()).collect())
    }

    fn state(&self) -> Result<PriorState> {
        let mut state = self.base.state()?;
        state.extend(self.parameters.export()?);
        Ok(state)
    }
}

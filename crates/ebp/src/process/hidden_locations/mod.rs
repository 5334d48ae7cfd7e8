//! Sets whose elements have locations that nobody saw: the paper's unconditional process with its index
//! variables integrated out.
//!
//! ```text
//! p(x₁, …, xₙ) = ∫ p(θ) ∏ᵢ [ ∫ p(xᵢ | tᵢ, θ) p(tᵢ) dtᵢ ] dθ,   p(x | t, θ) = exp u(x, t; θ) / Z(t; θ)
//! θ ~ N(0, I),   tᵢ uniform on [−1, 1]^d_t, independent
//! ```
//!
//! A prior of independent tᵢ is exchangeable and consistent, so the law of the xᵢ is (theorem 2 of the
//! paper). The paper then replaces the bracket by one energy of x alone (neural collapsed inference);
//! here it stays an integral, by quadrature (`density`). What it buys over the collapsed process, which is
//! `num_nodes = 1`: a low-dimensional place on the set for each element, p(t | x, set), and densities
//! that each location may keep simple. What it costs: T times the work.
//!
//! Training climbs the evidence bound with q(θ | set) of Deep Sets. How likely a set is: importance
//! sampling over θ, with Z and the integral over t as sums over fine grids.

mod density;
mod predictive;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::density::{Asked, Candidates, Densities, Density};
use self::predictive::HiddenLocationPredictive;
use super::statistician::{SetEstimate, repeated};
use super::task::check_dimensions;
use super::{Parametric, Predictive, Process};
use crate::batch::SetBatch;
use crate::error::check_length;
use crate::linalg::log_sum_exp;
use crate::nn::{Record, Step};
use crate::posterior::Posterior;
use crate::recipe::{EnergyBasedConfig, PosteriorPooling, Space};
use crate::rng::Stream;
use crate::tape::{AdamConfig, Device, Gaussian, ParameterBuilder, ParameterSet, Tape, Var};
use crate::{Error, IndexedSet, Result, SetOffsets};

/// Settings of a [`HiddenLocationProcess`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HiddenLocationConfig {
    /// Numbers of θ.
    pub latent_dim: usize,
    /// Numbers of a location.
    pub location_dim: usize,
    /// Nodes along an axis of the locations, in training; 1 is the collapsed process, which knows none.
    pub num_nodes: usize,
    /// The same to score and to draw.
    pub num_fine_nodes: usize,
    /// Fourier pairs of each number of a location.
    pub location_frequencies: usize,
    /// Width of the hidden layers of all networks.
    pub hidden_width: usize,
    /// How many hidden layers.
    pub num_hidden: usize,
    /// Candidates of each set for Z, in training.
    pub num_candidates: usize,
    /// Cells along an axis of the values over which Z is summed to score and to draw.
    pub num_cells: usize,
    /// b: values lie within ±b standard deviations.
    pub half_width: f32,
    /// s₀ of the base measure.
    pub base_std_dev: f32,
    /// Steps over which the weight of the KL term grows to 1.
    pub kl_warm_up: u64,
    /// Learning rate at the start; it falls along half a cosine.
    pub learning_rate: f64,
    /// Gradients longer than this are shortened.
    pub max_gradient_norm: f64,
    /// Decay of the averages that are used after training.
    pub average_decay: f32,
    /// Draws of θ that predictions average over.
    pub num_draws: usize,
}

impl Default for HiddenLocationConfig {
    fn default() -> Self {
        Self {
            latent_dim: 4,
            location_dim: 1,
            num_nodes: 12,
            num_fine_nodes: 24,
            location_frequencies: 2,
            hidden_width: 48,
            num_hidden: 2,
            num_candidates: 96,
            num_cells: 48,
            half_width: 4.0,
            base_std_dev: 2.5,
            kl_warm_up: 200,
            learning_rate: 5e-3,
            max_gradient_norm: 10.0,
            average_decay: 0.995,
            num_draws: 32,
        }
    }
}

impl HiddenLocationConfig {
    fn check(&self, dim: usize) -> Result<()> {
        for (field, count) in [
            ("dim", dim),
            ("latent_dim", self.latent_dim),
            ("location_dim", self.location_dim),
            ("num_nodes", self.num_nodes),
            ("num_fine_nodes", self.num_fine_nodes),
            ("hidden_width", self.hidden_width),
            ("num_hidden", self.num_hidden),
            ("num_candidates", self.num_candidates),
            ("num_cells", self.num_cells),
            ("num_draws", self.num_draws),
        ] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        // Both are grids.
        for (field, count) in [("dim", dim), ("location_dim", self.location_dim)] {
            if count > 3 {
                return Err(Error::invalid(
                    field,
                    "at most 3: integrals are sums over grids",
                    count,
                ));
            }
        }
        for (field, value) in [
            ("half_width", f64::from(self.half_width)),
            ("base_std_dev", f64::from(self.base_std_dev)),
            ("learning_rate", self.learning_rate),
            ("max_gradient_norm", self.max_gradient_norm),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(field, "positive and finite", value));
            }
        }
        Ok(())
    }

    /// The networks, which are those of the energy-based process.
    fn networks(&self) -> EnergyBasedConfig {
        let hidden = vec![self.hidden_width; self.num_hidden];
        EnergyBasedConfig {
            latent_dim: self.latent_dim,
            encoder_widths: hidden.clone(),
            pooling: PosteriorPooling::MaxAndMean,
            head_widths: vec![self.hidden_width],
            energy_widths: hidden,
            location_frequencies: 0,
            ..EnergyBasedConfig::default()
        }
    }
}

/// A process with hidden locations.
#[derive(Debug)]
pub struct HiddenLocationProcess {
    config: HiddenLocationConfig,
    dim: usize,
    posterior: Posterior,
    density: Density,
    parameters: ParameterSet,
    /// Of predictions, so that equal questions get equal answers.
    stream: Stream,
}

impl HiddenLocationProcess {
    /// For elements of `dim` numbers, with starting values from `seed`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the field that is outside its range.
    pub fn new(
        config: HiddenLocationConfig,
        dim: usize,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        config.check(dim)?;
        let networks = config.networks();
        let space = Space::points(dim, config.half_width);
        let mut builder = ParameterBuilder::new(seed);
        let posterior = Posterior::new(&networks, &space, &mut builder.group("posterior"))?;
        let density = Density::new(&config, &networks, dim, &mut builder.group("energy"))?;
        let adam = AdamConfig {
            max_gradient_norm: Some(config.max_gradient_norm),
            ..AdamConfig::default()
        };
        let parameters = ParameterSet::new(builder, device, adam, Some(config.average_decay))?;
        let stream = Stream::new(seed, "hidden location predictions");
        Ok(Self { config, dim, posterior, density, parameters, stream })
    }

    /// The settings.
    pub fn config(&self) -> &HiddenLocationConfig {
        &self.config
    }

    /// Numbers of an element.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn tape(&self) -> Tape {
        let mut tape = self.parameters.device().tape();
        tape.read(&self.parameters);
        tape
    }

    /// That elements lie where the energy has a density.
    fn check_inside(&self, values: &[f32]) -> Result<()> {
        let outside = values.chunks_exact(self.dim).position(|value| !self.density.holds(value));
        outside.map_or(Ok(()), |place| {
            let expected = format!("within ±{} (half_width)", self.config.half_width);
            let found = format!("{:?}", &values[place * self.dim..][..self.dim]);
            Err(Error::invalid(format!("element {place}"), expected, found))
        })
    }

    /// q(θ | set) of every set of `values` `[total, d]`.
    fn read(&self, tape: &mut Tape, values: &[f32], offsets: &SetOffsets) -> Result<Gaussian> {
        let mut sets = SetBatch::new(0, self.dim);
        for set in 0..offsets.num_sets() {
            let range = offsets.range(set);
            sets.push(&[], &values[range.start * self.dim..range.end * self.dim])?;
        }
        let rows = self.posterior.rows(&sets)?.upload(self.parameters.device())?;
        Ok(self.posterior.read(tape, &rows)?.law)
    }

    /// Learns from `sets` `[num_sets, set_size, d]`, flat.
    ///
    /// The record: `nats`, minus the evidence bound per element (an estimate: log Z is by importance
    /// sampling); `fit`, −E log p(x | θ) per element; `kl` per set; `gradient_norm`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless the sets are whole and inside the domain, [`Error::NonFinite`] and
    /// [`Error::NonFiniteGradient`] if the step diverged.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "as other processes of sets, which keep them"
    )]
    pub fn learn(&mut self, sets: Vec<f32>, set_size: usize, step: &Step) -> Result<Record> {
        let sets = &sets[..];
        self.parameters.use_average(false);
        let (dim, width) = (self.dim, set_size * self.dim);
        if width == 0 || sets.is_empty() || !sets.len().is_multiple_of(width) {
            let expected = format!("whole sets of {set_size} x {dim} numbers");
            return Err(Error::invalid("sets", expected, format!("{} numbers", sets.len())));
        }
        self.check_inside(sets)?;
        let offsets = Arc::new(SetOffsets::uniform(sets.len() / width, set_size)?);
        let num_sets = offsets.num_sets();
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let law = self.read(&mut tape, sets, &offsets)?;
        let theta = tape.draw(law, step.stream.child(1))?;
        let flat = self.density.parameters(&mut tape, true)?;
        let nodes = self.density.nodes(self.config.num_nodes, num_sets, Some(step.stream.child(2)));
        let count = self.config.num_candidates;
        let candidates = self.density.candidates(sets, &offsets, count, step.stream.child(3));
        let asked = Asked { values: sets, offsets: &offsets, theta, nodes: &nodes };
        let found = self.density.log_densities(&mut tape, flat, &asked, candidates)?;
        let fit = tape.mean(found.log_density)?;
        let prior = tape.standard_gaussian((num_sets, self.config.latent_dim))?;
        let kl = tape.kl(law, prior)?;
        let kl = tape.row_sums(kl)?;
        let kl = tape.mean(kl)?;
        let weight = ((step.number + 1) as f64 / self.config.kl_warm_up.max(1) as f64).min(1.0);
        let cost = tape.affine(kl, weight / set_size as f64, 0.0)?;
        let loss = tape.subtract(cost, fit)?;
        let said = tape.concat(&[fit, kl])?;
        let said = tape.download(said)?;
        let rate = step.learning_rate(self.config.learning_rate);
        let update = self.parameters.descend(tape, loss, rate)?;
        let (fit, kl) = (f64::from(said[0]), f64::from(said[1]));
        Ok(vec![
            ("nats", kl / set_size as f64 - fit),
            ("fit", -fit),
            ("kl", kl),
            ("gradient_norm", update.gradient_norm),
        ])
    }

    /// log p(x | θ_k) of every element of `set` `[n, d]` and each of the K rows of `theta`, and the same
    /// given each node.
    fn densities(&self, tape: &mut Tape, set: &[f32], theta: Var) -> Result<Densities> {
        let (size, num_draws) = (set.len() / self.dim, tape.shape(theta).0);
        let offsets = Arc::new(SetOffsets::uniform(num_draws, size)?);
        let nodes = self.density.nodes(self.config.num_fine_nodes, num_draws, None);
        let flat = self.density.parameters(tape, false)?;
        let values = set.repeat(num_draws);
        let asked = Asked { values: &values, offsets: &offsets, theta, nodes: &nodes };
        self.density.log_densities(tape, flat, &asked, self.density.grid(self.config.num_cells))
    }

    fn check_set(&self, set: &[f32]) -> Result<usize> {
        let size = set.len() / self.dim;
        check_length("set", set.len(), size * self.dim, || format!("rows of {}", self.dim))?;
        if size == 0 {
            return Err(Error::invalid("set", "at least 1", size));
        }
        self.check_inside(set)?;
        Ok(size)
    }

    /// How likely a set `[n, d]` is, by `num_draws` draws of q(θ | set): unbiased for p up to the grids,
    /// so that E log p̂ ≤ log p.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0 or the set is empty, not whole or outside the domain.
    pub fn score(&self, set: &[f32], num_draws: usize, stream: Stream) -> Result<SetEstimate> {
        let size = self.check_set(set)?;
        if num_draws == 0 {
            return Err(Error::invalid("num_draws", "at least 1", num_draws));
        }
        let mut tape = self.tape();
        let law = self.read(&mut tape, set, &SetOffsets::uniform(1, size)?)?;
        let law = repeated(&mut tape, law, num_draws)?;
        let theta = tape.draw(law, stream)?;
        let prior = tape.standard_gaussian((num_draws, self.config.latent_dim))?;
        let [of_prior, of_law] = [tape.log_density(theta, prior)?, tape.log_density(theta, law)?];
        let ratio = tape.subtract(of_prior, of_law)?;
        let ratio = tape.row_sums(ratio)?;
        let ratio = tape.download(ratio)?;
        let found = self.densities(&mut tape, set, theta)?;
        let found = tape.download(found.log_density)?;
        let terms: Vec<f64> = found
            .chunks_exact(size)
            .zip(ratio)
            .map(|(elements, ratio)| {
                elements.iter().map(|&x| f64::from(x)).sum::<f64>() + f64::from(ratio)
            })
            .collect();
        SetEstimate::of_terms(&terms)
    }

    /// What each element of a set `[n, d]` says of its own location at θ = μ, in nats:
    /// KL(p(t | x, θ) ‖ p(t)), 0 where the energy does not look at t.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score).
    pub fn location_nats(&self, set: &[f32]) -> Result<Vec<f64>> {
        let size = self.check_set(set)?;
        let mut tape = self.tape();
        let law = self.read(&mut tape, set, &SetOffsets::uniform(1, size)?)?;
        let found = self.densities(&mut tape, set, law.mean)?;
        let given_node = tape.download(found.given_node)?;
        let count = given_node.len() / size;
        let information = |row: &[f32]| {
            let logs: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            let total = log_sum_exp(&logs);
            let weigh = |log: &f64| (log - total).exp() * (log - total + (count as f64).ln());
            logs.iter().map(weigh).sum()
        };
        Ok(given_node.chunks_exact(count).map(information).collect())
    }

    /// `num_sets` new sets of `size` elements, `[num_sets, size, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0.
    pub fn sample(&self, num_sets: usize, size: usize, stream: Stream) -> Result<Vec<f32>> {
        for (field, count) in [("num_sets", num_sets), ("size", size)] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        let mut drawn = Vec::with_capacity(num_sets * size * self.dim);
        for set in 0..num_sets {
            let stream = stream.child(set as u64);
            let mut tape = self.tape();
            let theta = tape.normals((1, self.config.latent_dim), stream.child(0))?;
            drawn.extend(self.draw_given(tape, theta, size, stream.child(1))?);
        }
        Ok(drawn)
    }

    /// `size` elements for one θ: t by its law, among the nodes, then x among the cells of the grid by
    /// its mass there, and uniform within the cell.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a node's number")]
    fn draw_given(
        &self,
        mut tape: Tape,
        theta: Var,
        size: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let per_axis = self.config.num_cells;
        let nodes = self.density.nodes(self.config.num_fine_nodes, 1, None);
        let flat = self.density.parameters(&mut tape, false)?;
        let grid = self.density.grid(per_axis);
        let Candidates::Grid(values, log_weights) = &grid else { return Ok(Vec::new()) };
        let (values, log_weights) = (values.clone(), log_weights.clone());
        let (_, potentials) =
            self.density.log_partitions(&mut tape, flat, (theta, 1), &nodes, grid)?;
        let potentials = tape.download(potentials)?;
        let num_cells = log_weights.len();
        let mut uniforms = vec![0.0_f32; size * (2 + self.dim)];
        stream.fill_uniform(0, 0, &mut uniforms);
        let width = 2.0 * self.config.half_width / per_axis as f32;
        let mut drawn = Vec::with_capacity(size * self.dim);
        for uniforms in uniforms.chunks_exact(2 + self.dim) {
            let node = ((uniforms[0] * nodes.count as f32) as usize).min(nodes.count - 1);
            let row = &potentials[node * num_cells..][..num_cells];
            let logs: Vec<f64> =
                row.iter().zip(&log_weights).map(|(f, w)| f64::from(f + w)).collect();
            let total = log_sum_exp(&logs);
            let mut left = f64::from(uniforms[1]);
            let reached = logs.iter().position(|log| {
                left -= (log - total).exp();
                left < 0.0
            });
            let cell = reached.unwrap_or(num_cells - 1);
            let middle = &values[cell * self.dim..][..self.dim];
            drawn.extend(middle.iter().zip(&uniforms[2..]).map(|(x, u)| x + width * (u - 0.5)));
        }
        Ok(drawn)
    }

    /// Mean and log σ of q(θ | set) of every set, both `[sets, latent_dim]`.
    ///
    /// # Errors
    ///
    /// [`Error::WrongLength`] unless `elements` `[total, d]` fits the offsets.
    pub fn encode(&self, elements: &[f32], offsets: &SetOffsets) -> Result<[Vec<f32>; 2]> {
        let (total, dim) = (offsets.num_elements(), self.dim);
        check_length("elements", elements.len(), total * dim, || format!("total {total} x {dim}"))?;
        let mut tape = self.tape();
        let law = self.read(&mut tape, elements, offsets)?;
        Ok([tape.download(law.mean)?, tape.download(law.log_std_dev)?])
    }
}

impl Parametric for HiddenLocationProcess {
    fn parameters(&self) -> &ParameterSet {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut ParameterSet {
        &mut self.parameters
    }
}

impl Process for HiddenLocationProcess {
    fn name(&self) -> &'static str {
        "hidden-locations"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        check_dimensions("context", context, 0, self.dim)?;
        Ok(Box::new(HiddenLocationPredictive::new(self, context)?))
    }
}

//! Maximum likelihood, log Z by importance sampling:
//!
//! ```text
//! mean [ log Ẑ(t; θ) − u(x, t; θ) ],     Ẑ(t; θ) = Σ_k exp(u(x_k, t; θ)) w_k
//! ```
//!
//! A candidate weighs w = volume/K where one lies in each of K cells of the domain, w = 1/(K r) where
//! it has a density r, and w = 1/(K e^L) where the learned sampler drew it. Parts of candidates
//! count by their shares. A draw outside of the domain weighs nothing.

use super::around::{WIDTHS, around};
use super::cells::stratified;
use super::learned::{Game, LearnedSampler};
use super::{Estimate, Partition, Round, Targets};
use crate::Result;
use crate::energy::ElementEnergy;
use crate::recipe::{EnergyBasedConfig, ProposalKind, Space};
use crate::rng::Stream;
use crate::sampler::{Draws, Followed, Purpose, mean_of_means};
use crate::tape::{Array, CandidateVars, Device, DrawDomain, LikelihoodVars, Tape, Var};

/// Candidates on the host.
#[derive(Clone, Debug)]
pub(crate) struct CandidateRows {
    /// `[anchors, K, d_x]`.
    pub(crate) values: Vec<f32>,
    /// ω, `[anchors, K]`.
    pub(crate) log_weights: Vec<f32>,
    /// Whether each lies near a point of its set; empty where that says nothing.
    pub(crate) is_near: Vec<f32>,
    /// K.
    pub(crate) count: usize,
}

/// The same on a device.
#[derive(Clone, Debug)]
pub(crate) struct CandidateArrays {
    values: Array,
    log_weights: Array,
    is_near: Option<Array>,
    count: usize,
}

impl CandidateRows {
    pub(crate) fn upload(self, device: &Device) -> Result<CandidateArrays> {
        Ok(CandidateArrays {
            values: device.upload(self.values)?,
            log_weights: device.upload(self.log_weights)?,
            is_near: if self.is_near.is_empty() {
                None
            } else {
                Some(device.upload(self.is_near)?)
            },
            count: self.count,
        })
    }

    /// Candidates for elements with locations: `values` are their own, `[n, d_x]`.
    pub(crate) fn for_elements(
        config: &EnergyBasedConfig,
        space: &Space,
        values: &[f32],
        count: usize,
        stream: Stream,
    ) -> Self {
        let dims = space.value_dim;
        let domain = domain(config, space);
        let mut rows = if config.proposal.kind == ProposalKind::Around {
            let found = around(values, (dims, count), (space.low, space.high), &WIDTHS, stream);
            let count = found.num_candidates;
            Self { values: found.values, log_weights: found.log_weights, is_near: vec![], count }
        } else {
            let n = values.len() / dims;
            let found = stratified(n, count, dims, (space.low, space.high), stream);
            let log_weights = vec![found.log_weight; n * found.num_candidates];
            let count = found.num_candidates;
            Self { values: found.values, log_weights, is_near: Vec::new(), count }
        };
        if domain.base_std_dev.is_some() {
            let pairs = rows.log_weights.iter_mut().zip(rows.values.chunks_exact(dims));
            pairs.for_each(|(weight, y)| *weight += domain.base(y));
        }
        rows
    }
}

pub(crate) fn domain(config: &EnergyBasedConfig, space: &Space) -> DrawDomain {
    DrawDomain { low: space.low, high: space.high, base_std_dev: config.base() }
}

/// log Z by candidates, those of the batch and those of a sampler.
#[derive(Clone, Debug)]
pub(crate) struct Importance {
    domain: DrawDomain,
    dims: usize,
}

/// What candidates say of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Negative log density per element, `[1, 1]`.
    pub(crate) nats: Var,
    /// f of every candidate, `[anchors, K]`, a constant.
    pub(crate) values: Var,
    /// log Ẑ of every anchor, `[anchors, 1]`, a constant.
    pub(crate) log_partition: Var,
    /// ω, `[anchors, K]`.
    pub(crate) log_weights: Var,
}

/// Names of what is recorded of candidates.
const FIGURES: [&str; 3] = ["effective_candidates", "near_share", "largest_share"];

impl Importance {
    pub(crate) fn new(config: &EnergyBasedConfig, space: &Space) -> Self {
        Self { domain: domain(config, space), dims: space.value_dim }
    }

    /// The negative log-likelihood by a batch's candidates, a sampler's draws, or both.
    pub(super) fn likelihood(
        &self,
        tape: &mut Tape,
        energy: &ElementEnergy,
        targets: &Targets,
        (theta, parameters): (Var, Var),
        (candidates, sampled): (Option<&CandidateArrays>, Option<&Draws>),
    ) -> Result<Found> {
        let (vars, log_weights) = self.candidates(tape, targets, candidates, sampled)?;
        let points = targets.points(energy, parameters, theta);
        let LikelihoodVars { nats, values, log_partition } = match targets.features {
            // One pass knows the gradients of parameters and context alone.
            Some(features) if tape.is_tracked(features) => {
                let network = (&energy.shape, parameters, Some(theta));
                let partition = tape.log_partition(network, &vars)?;
                let own = tape.point_values(&points)?;
                let terms = tape.subtract(partition.log_partition, own)?;
                let nats = mean_of_means(tape, terms, &targets.offsets)?;
                let log_partition = tape.detach(partition.log_partition);
                LikelihoodVars { nats, values: partition.values, log_partition }
            }
            _ => tape.likelihood(&points, &vars)?,
        };
        let nats = if targets.base == 0.0 { nats } else { tape.affine(nats, 1.0, -targets.base)? };
        Ok(Found { nats, values, log_partition, log_weights })
    }

    /// The same as an estimate, with figures of the weights.
    pub(crate) fn estimate(
        &self,
        tape: &mut Tape,
        energy: &ElementEnergy,
        targets: &Targets,
        vars: (Var, Var),
        (candidates, sampled): (&CandidateArrays, Option<&Draws>),
    ) -> Result<Estimate> {
        let found = self.likelihood(tape, energy, targets, vars, (Some(candidates), sampled))?;
        let near = match (&candidates.is_near, sampled) {
            (Some(near), None) => {
                let shape = (near.len() / candidates.count, candidates.count);
                Some(tape.constant(near.clone(), shape)?)
            }
            _ => None,
        };
        let figures = tape.weight_figures(found.values, Some(found.log_weights), near)?;
        Ok(Estimate { figures: vec![(&FIGURES, figures)], ..Estimate::of_nats(found.nats) })
    }

    /// ω of draws: −‖y‖²/(2 s₀²) − L and the log of their shares, `[anchors, K]`.
    pub(super) fn log_weights(&self, tape: &mut Tape, draws: &Draws) -> Result<Var> {
        let log_count = match draws.log_shares {
            Some(_) => 0.0,
            None => (draws.count as f32).ln(),
        };
        let mut weights =
            tape.weigh_draws(draws.values, draws.log_density, self.domain, log_count)?;
        if let Some(shares) = draws.log_shares {
            weights = tape.add(weights, shares)?;
        }
        let rows = tape.shape(weights).0;
        tape.reshape(weights, (rows / draws.count, draws.count))
    }

    fn candidates(
        &self,
        tape: &mut Tape,
        targets: &Targets,
        own: Option<&CandidateArrays>,
        sampled: Option<&Draws>,
    ) -> Result<(CandidateVars, Var)> {
        let places = targets.places()?;
        let (anchors, d) = (places.offsets.num_elements(), self.dims);
        // Each part is an estimate of Z, and so is their mean by shares.
        let counts = [own.map_or(0, |own| own.count), sampled.map_or(0, |draws| draws.count)];
        let count = counts[0] + counts[1];
        let log_share = |part: usize| (counts[part] as f64 / count as f64).ln();
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        if let Some(own) = own {
            values.push(tape.constant(own.values.clone(), (anchors, own.count * d))?);
            let own = tape.constant(own.log_weights.clone(), (anchors, own.count))?;
            weights.push(tape.affine(own, 1.0, log_share(0))?);
        }
        if let Some(draws) = sampled {
            values.push(tape.reshape(draws.values, (anchors, draws.count * d))?);
            let drawn = self.log_weights(tape, draws)?;
            weights.push(tape.affine(drawn, 1.0, log_share(1))?);
        }
        let values = tape.concat(&values)?;
        let weights = tape.concat(&weights)?;
        let vars = CandidateVars {
            values: tape.reshape(values, (anchors * count, d))?,
            count,
            is_shared: false,
            locations: places.features,
            log_weights: Some(weights),
            offsets: places.offsets,
        };
        Ok((vars, weights))
    }
}

/// Importance sampling as the estimator of a training step, some candidates from a sampler if asked.
#[derive(Debug)]
pub(super) struct ImportanceSampling {
    pub(super) importance: Importance,
    pub(super) sampler: Option<LearnedSampler>,
    pub(super) num_sampled: usize,
}

impl Partition for ImportanceSampling {
    fn loss(&mut self, tape: &mut Tape, round: &Round<'_>) -> Result<Estimate> {
        let energy = round.element_energy()?;
        let (mut draws, mut sampler_loss) = (None, None);
        let parameters = if let Some(learned) = &mut self.sampler {
            let game = Game::new(tape, round)?;
            sampler_loss = Some(learned.train(&game, round.step)?);
            let parameters = energy.calibrated(tape, true)?;
            // Constants: what is drawn does not depend on what is learned in this step.
            tape.read(&learned.parameters);
            let followed = Followed {
                energy,
                parameters: tape.detach(parameters),
                theta: tape.detach(round.theta),
            };
            let (mut places, count) = (round.targets.places()?, (self.num_sampled, Purpose::Use));
            places.features = places.features.map(|features| tape.detach(features));
            let stream = round.step.stream.child(2);
            draws = Some(learned.sampler.draw(tape, followed, &places, count, stream)?);
            parameters
        } else {
            energy.calibrated(tape, true)?
        };
        let candidates = (round.candidates()?, draws.as_ref());
        let vars = (round.theta, parameters);
        let mut found = self.importance.estimate(tape, energy, &round.targets, vars, candidates)?;
        if let Some(loss) = sampler_loss {
            found.figures.push((&["sampler_loss"], tape.constant(loss, (1, 1))?));
        }
        Ok(found)
    }

    fn sampler(&self) -> Option<&LearnedSampler> {
        self.sampler.as_ref()
    }

    fn sampler_mut(&mut self) -> Option<&mut LearnedSampler> {
        self.sampler.as_mut()
    }
}

//! Maximum likelihood, log Z by importance sampling:
//!
//! ```text
//! mean [ log Ẑ(t; θ) − u(x, t; θ) ],     Ẑ(t; θ) = Σ_k exp(u(x_k, t; θ)) w_k
//! ```
//!
//! A candidate weighs w = volume/K where one lies in each of K cells of the domain, w = 1/(K r) where
//! it has a density r, and w = 1/(K e^L) where the learned sampler drew it. Parts of candidates
//! count by their shares. A draw outside of the domain weighs nothing.

use super::around::around;
use super::cells::stratified;
use super::{Estimate, Targets};
use crate::Result;
use crate::energy::ElementEnergy;
use crate::recipe::{EnergyBasedConfig, ProposalKind, Space};
use crate::rng::Stream;
use crate::sampler::{Draws, Followed, Sampler};
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
            let found = around(values, dims, count, (space.low, space.high), stream);
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
    num_sampled: usize,
}

impl Importance {
    pub(crate) fn new(config: &EnergyBasedConfig, space: &Space) -> Self {
        let num_sampled = config.proposal.num_sampled(config.num_proposals, config.estimator);
        Self { domain: domain(config, space), dims: space.value_dim, num_sampled }
    }

    /// Candidates that the sampler draws in a step.
    pub(crate) fn num_sampled(&self) -> usize {
        self.num_sampled
    }

    pub(crate) fn loss(
        &self,
        tape: &mut Tape,
        energy: &ElementEnergy,
        targets: &Targets,
        (theta, parameters): (Var, Var),
        (candidates, sampled): (&CandidateArrays, Option<&Draws>),
    ) -> Result<Estimate> {
        let vars = self.candidates(tape, targets, candidates, sampled)?;
        let near = match (&candidates.is_near, sampled) {
            (Some(near), None) => {
                let shape = (near.len() / candidates.count, candidates.count);
                Some(tape.constant(near.clone(), shape)?)
            }
            _ => None,
        };
        let points = targets.points(energy, parameters, theta);
        let LikelihoodVars { nats, values, .. } = tape.likelihood(&points, &vars)?;
        let figures = tape.weight_figures(values, vars.log_weights, near)?;
        let nats = if targets.base == 0.0 { nats } else { tape.affine(nats, 1.0, -targets.base)? };
        Ok(Estimate { loss: nats, nats, figures: Some(figures), draws: None })
    }

    /// Draws of the learned sampler at the targets' places, as constants.
    pub(crate) fn draw(
        &self,
        tape: &mut Tape,
        sampler: &Sampler,
        followed: Followed<'_>,
        targets: &Targets,
        stream: Stream,
    ) -> Result<Draws> {
        let places = targets.places()?;
        sampler.draw(tape, followed, &places, (self.num_sampled, true), stream)
    }

    fn candidates(
        &self,
        tape: &mut Tape,
        targets: &Targets,
        own: &CandidateArrays,
        sampled: Option<&Draws>,
    ) -> Result<CandidateVars> {
        let places = targets.places()?;
        let anchors = places.offsets.num_elements();
        let (mut count, d) = (own.count, self.dims);
        let mut values = tape.constant(own.values.clone(), (anchors * count, d))?;
        let mut weights = tape.constant(own.log_weights.clone(), (anchors, count))?;
        if let Some(draws) = sampled {
            let more = self.num_sampled;
            let total = (count + more) as f64;
            // Each part is an estimate of Z, and so is their mean by shares.
            #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
            let log_count = (more as f32).ln() - ((more as f64 / total).ln() as f32);
            let drawn =
                tape.weigh_draws(draws.values, draws.log_density, self.domain, log_count)?;
            let drawn = tape.reshape(drawn, (anchors, more))?;
            let shared = tape.affine(weights, 1.0, (count as f64 / total).ln())?;
            weights = tape.concat(&[shared, drawn])?;
            let (left, right) = (
                tape.reshape(values, (anchors, count * d))?,
                tape.reshape(draws.values, (anchors, more * d))?,
            );
            let both = tape.concat(&[left, right])?;
            count += more;
            values = tape.reshape(both, (anchors * count, d))?;
        }
        Ok(CandidateVars {
            values,
            count,
            is_shared: false,
            locations: places.features,
            log_weights: Some(weights),
            offsets: places.offsets,
        })
    }
}

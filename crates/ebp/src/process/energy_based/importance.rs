//! Maximum likelihood, log Z by importance sampling:
//!
//! ```text
//! mean_i [ log Ẑ(tᵢ; θ) − f(xᵢ, tᵢ; θ)/τ ],     Ẑ(t; θ) = Σ_k exp(f(x_k, t; θ)/τ) w_k
//! ```
//!
//! A candidate weighs w = volume/K where one lies in each of K cells of the domain, and
//! w = 1/(K e^L) where the learned sampler drew it; `around.rs` has those near the data. A draw
//! outside the domain weighs nothing.

use candle_core::{Device, Tensor};

use super::EnergyBasedProcess;
use super::around::{NOTHING, around};
use super::config::Proposal;
use super::proposal::stratified;
use super::targets::Targets;
use crate::nn::{Mode, TensorBatch, TensorCandidates};
use crate::rng::Stream;
use crate::{Error, Result};

/// Candidates for every target: values `[n, K, d_x]` and log w `[n, K]`.
struct Candidates {
    values: Tensor,
    log_weights: Tensor,
}

impl EnergyBasedProcess {
    /// The mean in the formula above (a scalar tensor) and the effective number of candidates.
    /// `parameters` are those of f/τ.
    pub(super) fn negative_log_density(
        &self,
        targets: &Targets,
        theta: &Tensor,
        parameters: &Tensor,
        proposal: Proposal,
        stream: Stream,
    ) -> Result<(Tensor, f64)> {
        let offsets = &targets.offsets;
        let values = self.energy.module.values(&TensorBatch {
            elements: &targets.elements,
            context: Some(theta),
            parameters,
            offsets,
        })?;
        let candidates = self.candidates(targets, theta, parameters, proposal, stream)?;
        let partition = self.energy.module.log_partition(&TensorCandidates {
            values: &candidates.values,
            context: Some(theta),
            parameters,
            locations: Some(&targets.locations),
            log_weights: Some(&candidates.log_weights),
            offsets,
        })?;
        let effective = effective_candidates(&(partition.values + candidates.log_weights)?)?;
        let nats = (partition.log_partition - values.flatten_all()?)?.mean_all()?;
        Ok((nats, effective))
    }

    fn candidates(
        &self,
        targets: &Targets,
        theta: &Tensor,
        parameters: &Tensor,
        proposal: Proposal,
        stream: Stream,
    ) -> Result<Candidates> {
        let num_proposals = self.config.num_proposals;
        match proposal {
            Proposal::Stratified => self.cells(targets, num_proposals, stream),
            Proposal::Sampler => {
                self.sampled(targets, theta, parameters, num_proposals, stream.child(1))
            }
            Proposal::Around => {
                let (n, dims) = (targets.offsets.num_elements(), self.config.value_dim);
                let own = targets.elements.narrow(1, 0, dims)?.flatten_all()?.to_vec1::<f32>()?;
                let found = around(&own, dims, num_proposals, self.config.value_domain, stream);
                let k = found.num_candidates;
                Ok(Candidates {
                    values: Tensor::from_vec(found.values, (n, k, dims), &Device::Cpu)?,
                    log_weights: Tensor::from_vec(found.log_weights, (n, k), &Device::Cpu)?,
                })
            }
            Proposal::Both => {
                let half = num_proposals.div_ceil(2);
                let cells = self.cells(targets, half, stream)?;
                let sampled = self.sampled(targets, theta, parameters, half, stream.child(1))?;
                // Each is an estimate of Z; their mean is one too.
                let log_weights = Tensor::cat(&[cells.log_weights, sampled.log_weights], 1)?;
                Ok(Candidates {
                    values: Tensor::cat(&[cells.values, sampled.values], 1)?,
                    log_weights: (log_weights - std::f64::consts::LN_2)?,
                })
            }
        }
    }

    fn cells(&self, targets: &Targets, wanted: usize, stream: Stream) -> Result<Candidates> {
        let (n, dims) = (targets.offsets.num_elements(), self.config.value_dim);
        let proposals = stratified(n, wanted, dims, self.config.value_domain, stream);
        let k = proposals.num_candidates;
        Ok(Candidates {
            values: Tensor::from_vec(proposals.values, (n, k, dims), &Device::Cpu)?,
            log_weights: Tensor::full(proposals.log_weight, (n, k), &Device::Cpu)?,
        })
    }

    fn sampled(
        &self,
        targets: &Targets,
        theta: &Tensor,
        parameters: &Tensor,
        count: usize,
        stream: Stream,
    ) -> Result<Candidates> {
        let Some((sampler, _)) = &self.sampler else {
            return Err(Error::invalid("proposal", "stratified without a sampler", "sampler"));
        };
        let energy = (&self.energy, &parameters.detach());
        let draws = sampler.draw(energy, targets, &theta.detach(), (count, Mode::Train), stream)?;
        let (n, dims) = (targets.offsets.num_elements(), self.config.value_dim);
        let values = draws.values.detach();
        let (low, high) = self.config.value_domain;
        let inside = values.to_vec2::<f32>()?;
        let log_densities = draws.log_density.detach().to_vec1::<f32>()?;
        let log_count = (count as f32).ln();
        let weigh = |(value, log_density): (&Vec<f32>, &f32)| {
            let is_inside = value.iter().all(|x| (low..=high).contains(x));
            if is_inside { -log_density - log_count } else { NOTHING }
        };
        let log_weights: Vec<f32> = inside.iter().zip(&log_densities).map(weigh).collect();
        Ok(Candidates {
            values: values.reshape((n, count, dims))?,
            log_weights: Tensor::from_vec(log_weights, (n, count), &Device::Cpu)?,
        })
    }
}

/// Mean over anchors of (Σ w)² / Σ w² with w = exp of `log_weights` `[n, K]`.
fn effective_candidates(log_weights: &Tensor) -> Result<f64> {
    let rows = log_weights.to_vec2::<f32>()?;
    let total: f64 = rows
        .iter()
        .map(|row| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights = row.iter().map(|f| f64::from(f - largest).exp());
            let (sum, squares) =
                weights.fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
            sum * sum / squares
        })
        .sum();
    Ok(total / rows.len() as f64)
}

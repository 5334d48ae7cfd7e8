//! The conditional energy-based process draw by draw of θ, on values that are quantised.

use super::around::around;
use super::partition::{Distinct, Nodes, for_each_chunk};
use super::{EnergyBasedProcess, Result};
use crate::linalg::log_sum_exp;
use crate::nn::Mode;
use crate::point::{CandidateValues, Candidates, LogWeights, PointBatch, PointMlp};
use crate::process::energy_based::features::push_features;
use crate::process::energy_based::latent::Gaussians;
use crate::process::task::check_dimensions;
use crate::process::{Hypotheses, LatentProcess};
use crate::rng::Stream;
use crate::{Error, IndexedSet, SetOffsets};

/// Candidates of log Z for values of more than one number.
const NUM_AROUND: usize = 4096;

impl LatentProcess for EnergyBasedProcess {
    /// Values of one number are normalised over the cells, whose middles the nodes of the
    /// quadrature must be: 256 cells on the domain. A spike between them gains nothing then. Values
    /// of more numbers get the density times the volume of a cell, with Z by candidates around the
    /// value itself, for the same reason; their means know nothing of the value.
    fn hypotheses(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        let config = self.config();
        for (field, set) in [("context", context), ("targets", targets)] {
            check_dimensions(field, set, config.location_dim, config.value_dim)?;
        }
        let (m, dims) = (targets.len(), config.value_dim);
        if m == 0 || count == 0 {
            return Ok(Hypotheses { log_mass: vec![], log_density: vec![], mean: vec![] });
        }
        let nodes = Nodes::new(config.value_domain, dims);
        let low = f64::from(config.value_domain.0);
        let width = f64::from(config.value_domain.1) - low;
        if dims == 1 && (width / nodes.count as f64 - cell).abs() > 1e-6 {
            let expected = format!("{} cells on the domain of width {width}", nodes.count);
            return Err(Error::invalid("cell", expected, cell));
        }
        let posterior = self.posterior.encode(&[context])?;
        let repeated = Gaussians {
            mean: posterior.mean.repeat((count, 1))?,
            log_std_dev: posterior.log_std_dev.repeat((count, 1))?,
        };
        let thetas: Vec<f32> = repeated.draw(stream)?.flatten_all()?.to_vec1()?;
        let flat = self.energy.calibrated(&self.energy.parameters(Mode::Evaluate)?)?;
        let energy = PointMlp::new(self.energy.module.shape().clone(), flat.to_vec1::<f32>()?)?;
        let values = self.target_values(&energy, targets, &thetas)?;

        let near = if dims == 1 {
            Vec::new()
        } else {
            self.partitions_around(&energy, targets, &thetas, stream.child(1))?
        };
        let distinct = Distinct::new(self, targets.locations());
        let mut found = Hypotheses {
            log_mass: vec![0.0; count * m],
            log_density: vec![0.0; count * m],
            mean: vec![0.0; count * m * dims],
        };
        for_each_chunk(self, &energy, &nodes, &thetas, &distinct, |chunk| {
            let places = distinct.of_target.iter().enumerate();
            for (target, &place) in places.filter(|(_, place)| chunk.holds(**place)) {
                for draw in 0..count {
                    let exponents: Vec<f64> =
                        chunk.exponents(draw, place).iter().map(|&f| f64::from(f)).collect();
                    let total = log_sum_exp(&exponents);
                    let row = draw * m + target;
                    let log_partition = match near.get(row) {
                        Some(&log_partition) => f64::from(log_partition),
                        None => nodes.integrate(&exponents).0,
                    };
                    found.log_density[row] = f64::from(values[row]) - log_partition;
                    found.log_mass[row] = if dims == 1 {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "the cell in which a value lies"
                        )]
                        let number = ((targets.value(target)[0] - low) / cell) as usize;
                        exponents[number.min(nodes.count - 1)] - total
                    } else {
                        found.log_density[row] + dims as f64 * cell.ln()
                    };
                    let mean = &mut found.mean[row * dims..][..dims];
                    for (exponent, node) in exponents.iter().zip(nodes.points()) {
                        let share = (exponent - total).exp();
                        mean.iter_mut().zip(node).for_each(|(m, &x)| *m += share * f64::from(x));
                    }
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl EnergyBasedProcess {
    /// log Z of every target under every θ, `[count, m]`, by candidates around the target's value.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn partitions_around(
        &self,
        energy: &PointMlp,
        targets: &IndexedSet,
        thetas: &[f32],
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let config = self.config();
        let own: Vec<f32> = targets.values().iter().map(|&x| x as f32).collect();
        let found = around(&own, config.value_dim, NUM_AROUND, config.value_domain, stream);
        let mut locations = Vec::new();
        for index in 0..targets.len() {
            push_features(targets.location(index), config.location_frequencies, &mut locations);
        }
        let offsets = SetOffsets::uniform(1, targets.len())?;
        let mut partitions = Vec::new();
        for theta in thetas.chunks_exact(config.latent_dim) {
            let candidates = Candidates {
                values: CandidateValues::PerAnchor(&found.values),
                num_candidates: found.num_candidates,
                locations: &locations,
                offsets: &offsets,
                context: theta,
                log_weights: LogWeights::PerAnchor(&found.log_weights),
            };
            let backend = self.energy.module.backend();
            partitions.extend(backend.log_partition(energy, &candidates)?.log_partition);
        }
        Ok(partitions)
    }

    /// f/τ of every target under every θ, `[count, m]`.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn target_values(
        &self,
        energy: &PointMlp,
        targets: &IndexedSet,
        thetas: &[f32],
    ) -> Result<Vec<f32>> {
        let mut rows = Vec::new();
        for i in 0..targets.len() {
            rows.extend(targets.value(i).iter().map(|&x| x as f32));
            push_features(targets.location(i), self.config().location_frequencies, &mut rows);
        }
        let count = thetas.len() / self.config().latent_dim;
        let elements = rows.repeat(count);
        let offsets = SetOffsets::uniform(count, targets.len())?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: thetas };
        self.energy.module.backend().values(energy, &batch)
    }
}

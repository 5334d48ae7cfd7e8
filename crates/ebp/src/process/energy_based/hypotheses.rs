//! What single draws of θ say about quantised values.

use super::nodes::{Distinct, Nodes, for_each_chunk};
use super::{Energy, EnergyBasedProcess};
use crate::linalg::log_sum_exp;
use crate::partition::{WIDTHS, around};
use crate::point::{CandidateValues, Candidates, LogWeights, PointBatch, PointMlp};
use crate::process::hypotheses::log_mean_of_draws;
use crate::process::{Hypotheses, LatentProcess};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result, SetOffsets};

/// Candidates of log Z for values of more than one number.
const NUM_AROUND: usize = 4096;

impl LatentProcess for EnergyBasedProcess {
    /// Values of a finite alphabet are exact. Others of one number are normalised over the cells,
    /// whose middles the nodes of the quadrature must be: 256 cells on the domain. A spike between
    /// them gains nothing then. Values of more numbers get the density times the volume of a cell,
    /// with Z by candidates around the value itself, for the same reason; their means know nothing
    /// of the value.
    fn hypotheses(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        if let Energy::Levels(levels) = &self.parts.energy {
            let own = levels.alphabet.log_cell().exp();
            if (cell - own).abs() > 1e-6 {
                return Err(Error::invalid("cell", format!("{own}, that of a level"), cell));
            }
            return self.predict_levels(context)?.hypotheses(targets, count, stream);
        }
        self.of_elements(context, targets, cell, count, stream)
    }

    fn log_joint_mass(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<f64> {
        if let Energy::Levels(_) = &self.parts.energy {
            return self.predict_levels(context)?.log_joint_mass(targets, count, stream);
        }
        let found = self.hypotheses(context, targets, cell, count, stream)?;
        Ok(log_mean_of_draws(&found.log_mass, targets.len(), &vec![0.0; count]))
    }
}

/// Targets as rows: values beside the numbers of their locations.
struct Rows {
    values: Vec<f32>,
    features: Vec<f32>,
    num_features: usize,
}

impl EnergyBasedProcess {
    fn of_elements(
        &self,
        context: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        stream: Stream,
    ) -> Result<Hypotheses> {
        let context = self.as_batch("context", context)?;
        let batch = self.as_batch("targets", targets)?;
        let (m, dims) = (targets.len(), self.space.value_dim);
        if m == 0 || count == 0 {
            return Ok(Hypotheses { log_mass: vec![], log_density: vec![], mean: vec![] });
        }
        let nodes = Nodes::new(&self.space, self.domain());
        let low = f64::from(self.space.low);
        let width = f64::from(self.space.high) - low;
        if dims == 1 && (width / nodes.count as f64 - cell).abs() > 1e-6 {
            let expected = format!("{} cells on the domain of width {width}", nodes.count);
            return Err(Error::invalid("cell", expected, cell));
        }
        let thetas = self.draw_latents(&context, count, stream)?;
        let energy = self.element_network()?;
        let seen = self.observed(&context)?;
        let features = self.location_rows(seen.as_ref(), batch.locations(0))?;
        let num_features = self.parts.num_features;
        let rows = Rows { values: batch.values(0).to_vec(), features, num_features };
        let values = self.values_of(&energy, &rows, &thetas)?;
        let near = if dims == 1 {
            Vec::new()
        } else {
            self.partitions_around(&energy, &rows, &thetas, stream.child(1))?
        };
        let distinct = Distinct::new(&rows.features, num_features);
        let mut found = Hypotheses {
            log_mass: vec![0.0; count * m],
            log_density: vec![0.0; count * m],
            mean: vec![0.0; count * m * dims],
        };
        for_each_chunk(self, &energy, (&nodes, &distinct), &thetas, |chunk| {
            let places = distinct.of_target.iter().enumerate();
            for (target, &place) in places.filter(|(_, place)| chunk.holds(**place)) {
                for draw in 0..count {
                    let exponents = nodes.exponents(chunk.values(draw, place));
                    let total = log_sum_exp(&exponents);
                    let row = draw * m + target;
                    let log_partition = near.get(row).map_or(total, |&z| f64::from(z));
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

    /// log Z of every target under every θ, `[count, m]`, by candidates around the target's value.
    fn partitions_around(
        &self,
        energy: &PointMlp,
        rows: &Rows,
        thetas: &[f32],
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let (space, domain) = (&self.space, self.domain());
        let dims = space.value_dim;
        let mut found =
            around(&rows.values, (dims, NUM_AROUND), (space.low, space.high), &WIDTHS, stream);
        let pairs = found.log_weights.iter_mut().zip(found.values.chunks_exact(dims));
        pairs.for_each(|(weight, y)| *weight += domain.base(y));
        let offsets = SetOffsets::uniform(1, rows.values.len() / dims)?;
        let backend = self.device.backend();
        let mut partitions = Vec::new();
        for theta in thetas.chunks_exact(self.config.latent_dim) {
            let candidates = Candidates {
                values: CandidateValues::PerAnchor(&found.values),
                num_candidates: found.num_candidates,
                locations: &rows.features,
                offsets: &offsets,
                context: theta,
                log_weights: LogWeights::PerAnchor(&found.log_weights),
            };
            partitions.extend(backend.log_partition(energy, &candidates)?.log_partition);
        }
        Ok(partitions)
    }

    /// u of every target under every θ, `[count, m]`.
    fn values_of(&self, energy: &PointMlp, rows: &Rows, thetas: &[f32]) -> Result<Vec<f32>> {
        let (dims, domain) = (self.space.value_dim, self.domain());
        let (mut elements, mut bases) = (Vec::new(), Vec::new());
        for (value, row) in
            rows.values.chunks_exact(dims).zip(rows.features.chunks_exact(rows.num_features))
        {
            elements.extend_from_slice(value);
            elements.extend_from_slice(row);
            bases.push(domain.base(value));
        }
        let count = thetas.len() / self.config.latent_dim;
        let elements = elements.repeat(count);
        let offsets = SetOffsets::uniform(count, bases.len())?;
        let batch = PointBatch { elements: &elements, offsets: &offsets, context: thetas };
        let f = self.device.backend().values(energy, &batch)?;
        Ok(f.iter().zip(bases.iter().cycle()).map(|(f, base)| f + base).collect())
    }
}

//! Draws of the learned sampler as places with weights, which the energy corrects.

use std::sync::Arc;

use super::grid::Weighted;
use super::points::PointStart;
use super::{Energy, EnergyBasedProcess};
use crate::point::{PointBatch, PointMlp};
use crate::rng::Stream;
use crate::sampler::{Followed, Places, Purpose};
use crate::{Error, Result, SetOffsets};

impl EnergyBasedProcess {
    /// Whether a sampler was trained beside the energy.
    pub fn has_sampler(&self) -> bool {
        self.sampler().is_some()
    }

    /// `count` draws for each θ of `theta`, with log exp(u)/q; all weights are equal where they
    /// are taken as they are.
    pub(super) fn sampler_weighted(
        &self,
        mlp: &PointMlp,
        theta: &[f32],
        count: usize,
        start: PointStart,
        stream: Stream,
    ) -> Result<Vec<Weighted>> {
        let Some(learned) = self.sampler() else {
            return Err(Error::invalid("start", "the grid, as no sampler was trained", "sampler"));
        };
        if start != PointStart::Sampler && !self.config.sampler.has_densities() {
            let expected = "sampler or grid, as this sampler's draws have no density each";
            return Err(Error::invalid("start", expected, format!("{start:?}")));
        }
        let Energy::Element(energy) = &self.parts.energy else {
            return Err(Error::invalid("start", "the grid, as no sampler was trained", "sampler"));
        };
        let (k, dim) = (self.config.latent_dim, self.space.value_dim);
        let sets = theta.len() / k;
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        tape.read(&learned.parameters);
        let codes = tape.upload(theta.to_vec(), (sets, k))?;
        let parameters = energy.calibrated(&mut tape, false)?;
        let followed = Followed { energy, parameters, theta: codes };
        let places = Places { features: None, offsets: Arc::new(SetOffsets::uniform(sets, 1)?) };
        let wanted = (count, Purpose::Use);
        let draws = learned.sampler.draw(&mut tape, followed, &places, wanted, stream)?;
        let values = tape.download(draws.values)?;
        let log_densities = tape.download(draws.log_density)?;
        let batch = PointBatch { elements: &values, offsets: &draws.offsets, context: theta };
        let f = self.device.backend().values(mlp, &batch)?;
        let half = self.space.high;
        let weigh = |row: usize| {
            let x = &values[row * dim..(row + 1) * dim];
            if start == PointStart::Sampler {
                return 0.0;
            }
            let is_inside = x.iter().all(|x| x.abs() <= half);
            let log_weight = f64::from(f[row] + self.base(x) - log_densities[row]);
            if is_inside { log_weight } else { f64::NEG_INFINITY }
        };
        Ok((0..theta.len() / k)
            .map(|set| {
                let first = draws.offsets.range(set).start;
                Weighted {
                    values: values[first * dim..(first + count) * dim].to_vec(),
                    log_weights: (first..first + count).map(weigh).collect(),
                }
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::LogDensity;
    use crate::recipe::{Dynamics, EnergyBasedConfig, Estimator, SamplerConfig, Space};
    use crate::tape::Device;

    const HALF: f32 = 2.0;
    const PER_AXIS: u16 = 48;

    /// E exp(u − L) = Z over draws with their tracked log density L, against the midpoint rule: a
    /// density that forgot the base measure, a Jacobian or the momentum would miss it.
    #[test]
    fn tracked_densities_weigh_draws_to_the_partition() {
        for dynamics in [Dynamics::None, Dynamics::Hamiltonian, Dynamics::GeneralizedHamiltonian] {
            let config = EnergyBasedConfig {
                latent_dim: 2,
                encoder_widths: vec![8],
                head_widths: vec![],
                energy_widths: vec![16],
                input_scale: 1.0,
                // Narrower than the sampler's first guess, so that no weight is large.
                base_std_dev: 0.6,
                estimator: Estimator::Ade,
                sampler: SamplerConfig {
                    dynamics,
                    num_layers: 4,
                    hyper_widths: vec![8],
                    num_dynamics_steps: 5,
                    step_size: 0.05,
                    ..SamplerConfig::points()
                },
                ..EnergyBasedConfig::points()
            };
            let space = Space::points(3, HALF);
            let process = EnergyBasedProcess::new(config, space, 3, &Device::default()).unwrap();
            let theta = [0.5, -0.5];
            let mlp = process.element_network().unwrap();
            let stream = Stream::new(1, "draw");
            let start = PointStart::SamplerResampled;
            let drawn = process.sampler_weighted(&mlp, &theta, 20_000, start, stream).unwrap();
            let found = LogDensity::of_mean(&drawn[0].log_weights);

            let width = 2.0 * HALF / f32::from(PER_AXIS);
            let at = |cell: u16| (f32::from(cell) + 0.5) * width - HALF;
            let mut places = Vec::new();
            for x in 0..PER_AXIS {
                for y in 0..PER_AXIS {
                    places.extend((0..PER_AXIS).flat_map(|z| [at(x), at(y), at(z)]));
                }
            }
            let u = process.log_potentials(&places, &theta).unwrap();
            let volume = f64::from(width).powi(3);
            let exact = u.iter().map(|&u| f64::from(u).exp() * volume).sum::<f64>().ln();
            let error = (found.value - exact).abs();
            // The rule on a smooth law of width 0.6 with cells of 1/12: below 10⁻³.
            assert!(error < 4.0 * found.std_error + 1e-3, "{dynamics:?}: {found:?}, {exact}");
            assert!(found.std_error < 0.05, "{dynamics:?}: {found:?}");
        }
    }
}

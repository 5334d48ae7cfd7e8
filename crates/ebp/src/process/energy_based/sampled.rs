//! Draws of the learned sampler as places with weights, which the energy corrects.

use std::sync::Arc;

use super::EnergyBasedProcess;
use super::grid::Weighted;
use super::points::PointStart;
use crate::energy::{ElementEnergy, Energy};
use crate::partition::LearnedSampler;
use crate::point::{PointBatch, PointMlp};
use crate::rng::Stream;
use crate::sampler::{Followed, Places, Purpose};
use crate::tape::Tape;
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
        let mut tape = self.device.tape();
        let (followed, places) = self.follow(&mut tape, (learned, energy), theta, &[])?;
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

    /// A tape that reads energy and sampler, the energy at codes `[sets, k]`, and a place per set; or, with
    /// `features` `[places, width]` of locations, the places of a single set.
    pub(super) fn follow<'a>(
        &self,
        tape: &mut Tape,
        (learned, energy): (&LearnedSampler, &'a ElementEnergy),
        theta: &[f32],
        features: &[f32],
    ) -> Result<(Followed<'a>, Places)> {
        let k = self.config.latent_dim;
        let sets = theta.len() / k;
        tape.read(&self.parameters);
        tape.read(&learned.parameters);
        let theta = tape.upload(theta.to_vec(), (sets, k))?;
        let parameters = energy.calibrated(tape, false)?;
        let places = if features.is_empty() {
            Places { features: None, offsets: Arc::new(SetOffsets::uniform(sets, 1)?) }
        } else {
            let (width, numbers) = (self.parts.num_features, features.to_vec());
            let count = numbers.len() / width;
            let features = Some(tape.upload(numbers, (count, width))?);
            Places { features, offsets: Arc::new(SetOffsets::from_sizes([count])?) }
        };
        Ok((Followed { energy, parameters, theta }, places))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PartitionBounds;
    use super::*;
    use crate::process::LogDensity;
    use crate::recipe::{
        Dynamics, EnergyBasedConfig, Estimator, ReverseKernel, SamplerConfig, SamplerKind, Space,
    };
    use crate::tape::Device;
    use crate::tensor::Tensor;

    const HALF: f32 = 2.0;
    const PER_AXIS: u16 = 48;

    /// A process of three-dimensional points with a small sampler.
    fn untrained(sampler: SamplerConfig) -> EnergyBasedProcess {
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
                num_components: 8,
                num_layers: 4,
                hyper_widths: vec![8],
                num_dynamics_steps: 5,
                dynamics_widths: vec![8],
                ..sampler
            },
            ..EnergyBasedConfig::points()
        };
        let space = Space::points(3, HALF);
        let mut process = EnergyBasedProcess::new(config, space, 3, &Device::default()).unwrap();
        // Networks within steps end in zeros: they must say something.
        let mut state = process.state().unwrap();
        for (name, tensor) in &mut state {
            if ["kick", "drift"]
                .iter()
                .any(|end| name == &format!("parameters/sampler.dynamics.{end}"))
            {
                let mut numbers = vec![0.0; tensor.as_f32().unwrap().len()];
                Stream::new(4, "weights").fill_normal(0, 0, &mut numbers);
                for weight in &mut numbers {
                    *weight *= 0.05;
                }
                *tensor = Tensor::new(tensor.dims().to_vec(), numbers).unwrap();
            }
        }
        process.restore(&state).unwrap();
        process
    }

    /// E exp(u − L) = Z over draws with their tracked log density L, against the midpoint rule: a
    /// density that forgot the base measure, a Jacobian, the momentum or the way back would miss it.
    #[test]
    fn tracked_densities_weigh_draws_to_the_partition() {
        let (mixture, flow) = (SamplerKind::Mixture, SamplerKind::Flow);
        for (kind, dynamics, reverse_kernel) in [
            (mixture, Dynamics::None, ReverseKernel::Langevin),
            (mixture, Dynamics::Langevin, ReverseKernel::Langevin),
            (mixture, Dynamics::Langevin, ReverseKernel::RandomWalk),
            (flow, Dynamics::None, ReverseKernel::Langevin),
            (flow, Dynamics::Hamiltonian, ReverseKernel::Langevin),
            (flow, Dynamics::GeneralizedHamiltonian, ReverseKernel::Langevin),
            (mixture, Dynamics::GeneralizedHamiltonian, ReverseKernel::Langevin),
        ] {
            let process = untrained(SamplerConfig {
                kind,
                dynamics,
                reverse_kernel,
                uniform_share: 0.0,
                step_size: if dynamics == Dynamics::Langevin { 0.01 } else { 0.05 },
                noise: 0.0,
                ..SamplerConfig::points()
            });
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
            assert!(
                error < 4.0 * found.std_error + 1e-3,
                "{kind:?} {dynamics:?}: {found:?}, {exact}"
            );
            assert!(found.std_error < 0.05, "{kind:?} {dynamics:?}: {found:?}");
        }
    }

    /// Points of the law by resampling many uniform places: log Z lies between the bounds, which a
    /// sampler far from the law leaves apart.
    #[test]
    fn log_z_lies_between_the_bounds_of_the_sampler() {
        for dynamics in [
            Dynamics::None,
            Dynamics::Langevin,
            Dynamics::Hamiltonian,
            Dynamics::GeneralizedHamiltonian,
        ] {
            let step_size = if dynamics == Dynamics::Langevin { 0.01 } else { 0.05 };
            let process =
                untrained(SamplerConfig { dynamics, step_size, ..SamplerConfig::points() });
            let theta = [0.5, -0.5];
            let mlp = process.element_network().unwrap();
            let stream = Stream::new(5, "bounds");
            let exact = process.log_partition(&theta, 60_000, stream.child(0)).unwrap()[0];
            let (dim, start) = (3, PointStart::SamplerResampled);
            let drawn = process.sampler_weighted(&mlp, &theta, 60_000, start, stream).unwrap();
            let following = super::super::grid::resample(&drawn[0], dim, 4000, stream.child(1));
            let asked = (&theta[..], &[][..]);
            let bounds = process.partition_bounds(asked, &following, stream.child(2));
            let PartitionBounds { lower, upper } = bounds.unwrap().unwrap();
            let apart =
                |a: LogDensity, b: LogDensity| (a.value - b.value) / a.std_error.hypot(b.std_error);
            // Standard errors between: the bounds hold, and the untrained sampler leaves a gap.
            assert!(apart(exact, lower) > 4.0, "{dynamics:?}: {lower:?} below {exact:?}");
            assert!(apart(upper, exact) > 4.0, "{dynamics:?}: {upper:?} above {exact:?}");
        }
    }
}

//! Langevin steps after a generator:
//!
//! ```text
//! v_t = s ξ_t + (η_t/2) g(x),    x ← x + v_t
//! ```
//!
//! A step from x to x′ adds to L what its forward kernel gains over a kernel back, either a random walk as in
//! the paper, or the Langevin step from x′:
//!
//! ```text
//! random walk   L ← L + (‖v_t‖² − ‖sξ_t‖²)/(2s²),                    v_t = x′ − x
//! Langevin      L ← L + (‖x − x′ − (η_t/2) g(x′)‖² − ‖s_t ξ_t‖²)/(2s_t²)
//! ```
//!
//! Around a perfect first guess of a sharp law the random walk wastes all of the drift; the Langevin
//! kernel loses only what a step of finite size does (`slack` in the tests), for one more score. Its s_t
//! are learned beside the η_t. Where the paper's noise is annealed to zero there is no such density,
//! and L is that of the generator alone.

use super::dynamics::{Slopes, WalkedBack, points};
use super::{Draws, Followed};
use crate::Result;
use crate::nn::Initialiser;
use crate::recipe::{NoiseSchedule, ReverseKernel, SamplerConfig};
use crate::rng::Stream;
use crate::tape::{Group, Parameter, Tape, Var};

/// Annealed noise that keeps a density falls to this share of its start.
const LEAST_NOISE: f64 = 0.1;

#[derive(Clone, Debug)]
pub(super) struct LangevinLayers {
    num_steps: usize,
    slopes: Slopes,
    /// s of every step.
    noise_scales: Vec<f32>,
    /// s, where it is the same in every step.
    noise: Option<f64>,
    log_step_sizes: Parameter,
    /// log s of every step, where the way back is a Langevin step too.
    log_noises: Option<Parameter>,
}

impl LangevinLayers {
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn new(
        config: &SamplerConfig,
        slopes: Slopes,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let steps = config.num_dynamics_steps;
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let log_step_sizes = group.trained("log_step_sizes", &[steps], start)?;
        let is_annealed = config.noise_schedule == NoiseSchedule::Annealed;
        let is_reversed = config.reverse_kernel == ReverseKernel::Langevin;
        let last = (steps.max(2) - 1) as f64;
        let least = if is_reversed { LEAST_NOISE } else { 0.0 };
        let scale = |t: usize| {
            let left = if is_annealed { (steps - 1 - t) as f64 / last } else { 1.0 };
            least + (1.0 - least) * left
        };
        let log_noises = if is_reversed {
            let noises = group.trained("log_noises", &[steps], Initialiser::Zeros)?;
            for (t, to) in group.values_mut(&noises).iter_mut().enumerate() {
                *to = (config.noise() * scale(t)).ln() as f32;
            }
            Some(noises)
        } else {
            None
        };
        Ok(Self {
            num_steps: steps,
            slopes,
            noise_scales: (0..steps).map(|t| (config.noise() * scale(t)) as f32).collect(),
            noise: (!is_annealed).then(|| config.noise()),
            log_step_sizes,
            log_noises,
        })
    }

    /// Moves draws.
    pub(super) fn run(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        stream: Stream,
    ) -> Result<Draws> {
        let log_step_sizes = tape.parameter(&self.log_step_sizes)?;
        let step_sizes = tape.exp(log_step_sizes)?;
        let Some(log_noises) = &self.log_noises else {
            return self.forget(tape, followed, draws, step_sizes, stream);
        };
        let log_noises = tape.parameter(log_noises)?;
        let settings = (step_sizes, log_noises);
        let steps = 0..self.num_steps;
        let (values, gained) = self.hops(tape, followed, &draws, (steps, stream), settings)?;
        let log_density = tape.add(draws.log_density, gained)?;
        Ok(Draws { values, log_density, ..draws })
    }

    /// All steps at once, with the same noise in each or noise that falls to nothing.
    fn forget(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        step_sizes: Var,
        stream: Stream,
    ) -> Result<Draws> {
        let points = points(tape, followed, &draws, draws.values)?;
        let scales = &self.noise_scales;
        let run = tape.langevin(&points, step_sizes, scales, stream, &self.slopes.rules())?;
        let Some(noise) = self.noise else { return Ok(Draws { values: run.values, ..draws }) };
        let gained = tape.subtract(run.kinetic, run.noise)?;
        let gained = tape.affine(gained, 0.5 / (noise * noise), 0.0)?;
        let log_density = tape.add(draws.log_density, gained)?;
        Ok(Draws { values: run.values, log_density, ..draws })
    }

    /// Walks back where the way back is a Langevin step.
    pub(super) fn walk_back(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        ends: &Draws,
        stream: Stream,
    ) -> Result<Option<WalkedBack>> {
        let Some(log_noises) = &self.log_noises else { return Ok(None) };
        let log_noises = tape.parameter(log_noises)?;
        let step_sizes = tape.parameter(&self.log_step_sizes)?;
        let step_sizes = tape.exp(step_sizes)?;
        let steps = (0..self.num_steps).rev();
        let settings = (step_sizes, log_noises);
        let (values, lost) = self.hops(tape, followed, ends, (steps, stream), settings)?;
        Ok(Some(WalkedBack { values, gained: tape.affine(lost, -1.0, 0.0)? }))
    }

    /// Langevin steps in some order, and what the kernel of each gains over that of the way back, summed:
    /// where they end, and ½ Σ (‖x − x′ − (η/2) g(x′)‖²/s² − ‖ξ‖²).
    fn hops(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
        (steps, stream): (impl Iterator<Item = usize>, Stream),
        (step_sizes, log_noises): (Var, Var),
    ) -> Result<(Var, Var)> {
        let shape = tape.shape(draws.values);
        let halves = tape.affine(step_sizes, 0.5, 0.0)?;
        let noises = tape.exp(log_noises)?;
        let precisions = tape.affine(log_noises, -2.0, 0.0)?;
        let precisions = tape.exp(precisions)?;
        let mut values = draws.values;
        let mut slope = self.slopes.at(tape, followed, draws, values)?;
        let mut total: Option<Var> = None;
        for number in steps {
            let half = tape.columns(halves, number, 1)?;
            let noise = tape.columns(noises, number, 1)?;
            let precision = tape.columns(precisions, number, 1)?;
            // x′ = x + (η/2) g(x) + s ξ
            let xi = tape.normals(shape, stream.child(number as u64))?;
            let drift = tape.multiply(slope, half)?;
            let kick = tape.multiply(xi, noise)?;
            let moved = tape.add(drift, kick)?;
            values = tape.add(values, moved)?;
            slope = self.slopes.at(tape, followed, draws, values)?;
            // x − x′ − (η/2) g(x′), turned around
            let drift = tape.multiply(slope, half)?;
            let back = tape.add(moved, drift)?;
            let squares = tape.square(back)?;
            let back = tape.row_sums(squares)?;
            let back = tape.multiply(back, precision)?;
            let squares = tape.square(xi)?;
            let forth = tape.row_sums(squares)?;
            let gained = tape.subtract(back, forth)?;
            let gained = tape.affine(gained, 0.5, 0.0)?;
            total = Some(match total {
                Some(sum) => tape.add(sum, gained)?,
                None => gained,
            });
        }
        let nothing = crate::Error::invalid("num_dynamics_steps", "at least 1", 0);
        Ok((values, total.ok_or(nothing)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::dynamics::{DynamicsLayers, kinetic};
    use super::*;
    use crate::SetOffsets;
    use crate::energy::ElementEnergy;
    use crate::recipe::{Dynamics, EnergyBasedConfig};
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    const COUNT: usize = 20_000;

    /// E[L − u] + log Z in nats, and the effective share of weights exp(u − L), of 20 Langevin steps from
    /// a perfect first guess: draws of the law N(0, σ² I) itself, in three dimensions.
    fn slack(std_dev: f32, reverse_kernel: ReverseKernel) -> (f64, f64) {
        let config = SamplerConfig {
            dynamics: Dynamics::Langevin,
            num_dynamics_steps: 20,
            step_size: 1e-3,
            noise: 1e-3_f64.sqrt(),
            clip: 1e6,
            reverse_kernel,
            ..SamplerConfig::points()
        };
        let mut builder = ParameterBuilder::new(1);
        let model = EnergyBasedConfig {
            latent_dim: 1,
            energy_widths: vec![4],
            ..EnergyBasedConfig::points()
        };
        let mut group = builder.group("energy");
        let energy = ElementEnergy::new(&model, (3, 0), &mut group).unwrap();
        let mut group = builder.group("steps");
        let dynamics = DynamicsLayers::new(&config, (3, 0, 1), Some(std_dev), &mut group);
        let dynamics = dynamics.unwrap().unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        // f = 0: the base measure is the law.
        let parameters = energy.calibrated(&mut tape, false).unwrap();
        let parameters = tape.affine(parameters, 0.0, 0.0).unwrap();
        let theta = tape.upload(vec![0.0], (1, 1)).unwrap();
        let followed = Followed { energy: &energy, parameters, theta };
        let stream = Stream::new(2, "slack");
        let noise = tape.normals((COUNT, 3), stream.child(0)).unwrap();
        let values = tape.affine(noise, f64::from(std_dev), 0.0).unwrap();
        let log_z = 1.5 * (std::f64::consts::TAU * f64::from(std_dev).powi(2)).ln();
        let density = kinetic(&mut tape, noise).unwrap();
        let draws = Draws {
            values,
            log_density: tape.affine(density, -1.0, -log_z).unwrap(),
            log_shares: None,
            count: COUNT,
            features: None,
            offsets: Arc::new(SetOffsets::uniform(1, COUNT).unwrap()),
        };
        let moved = dynamics.run(&mut tape, followed, draws, stream.child(1)).unwrap();
        let base = crate::energy::base_measure(&mut tape, moved.values, std_dev).unwrap();
        let u = tape.download(base).unwrap();
        let densities = tape.download(moved.log_density).unwrap();
        let gaps = u.iter().zip(&densities).map(|(u, l)| f64::from(u - l) - log_z);
        let weights: Vec<f64> = gaps.clone().map(f64::exp).collect();
        let (sum, squares) =
            (weights.iter().sum::<f64>(), weights.iter().map(|w| w * w).sum::<f64>());
        (-gaps.sum::<f64>() / COUNT as f64, sum * sum / squares / COUNT as f64)
    }

    /// The random walk wastes the drift, the Langevin kernel hardly anything. Expected numbers are those
    /// of the same experiment in NumPy with 200,000 draws; a standard error here is below 0.03 nats.
    #[test]
    fn the_langevin_kernel_leaves_less_slack_than_a_random_walk() {
        for (std_dev, walk, langevin) in
            [(0.1, (0.80, 0.036), (0.001, 0.998)), (0.05, (3.4, 0.0), (0.017, 0.97))]
        {
            let (lost, share) = slack(std_dev, ReverseKernel::RandomWalk);
            assert!((lost - walk.0).abs() < 0.1, "walk, {std_dev}: {lost} nats");
            assert!((share - walk.1).abs() < 0.02, "walk, {std_dev}: share {share}");
            let (lost, share) = slack(std_dev, ReverseKernel::Langevin);
            assert!((lost - langevin.0).abs() < 0.01, "Langevin, {std_dev}: {lost} nats");
            assert!((share - langevin.1).abs() < 0.02, "Langevin, {std_dev}: share {share}");
        }
    }
}

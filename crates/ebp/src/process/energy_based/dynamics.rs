//! Dynamics after the flow, with learned step sizes and a tracked density.
//!
//! With u = f/τ, momenta v and g = clip(∇ₓu):
//!
//! ```text
//! Langevin       v_t = s ξ_t + (η_t/2) g(x),  x ← x + v_t               s² = η at the start
//! Hamiltonian    v ← v + (η_t/2) g(x),  x ← x + η_t v,  v ← v + (η_t/2) g(x)
//! generalized    v ← e^{a_t} v + b_t  before, and likewise after, each leapfrog step
//! ```
//!
//! Each map of (x, momenta) is a shear or an affine map, so the density of the joint draw is known.
//! What is tracked is L = log q(x, momenta) − log N(momenta at the end), for which
//!
//! ```text
//! E[ exp(u(x) − L) ] = ∫ exp u dx = Z        and        E[ L − u(x) ] ≥ −log Z :
//! ```
//!
//! a proper weight for importance sampling, and the dual objective of the paper with its
//! momentum terms. For Langevin steps L = log q₀ + Σ_t (‖v_t‖² − ‖sξ_t‖²)/(2s²), for Hamiltonian
//! ones L = log q₀ + (‖v_T‖² − ‖v₀‖²)/2, less the log-determinants Σ a of the scales.

use candle_core::{DType, Tensor, Var};

use super::energy::Energy;
use super::sampler_config::{Dynamics, SamplerConfig};
use crate::nn::{Initialiser, Parameters, TensorBatch, normals};
use crate::point::{Clip, Motion};
use crate::rng::Stream;
use crate::{Result, SetOffsets};

/// Where the draws live: what the energy needs to know of them beside their values.
pub(in crate::process) struct Surroundings<'a> {
    pub(in crate::process) energy: &'a Energy,
    /// Parameters of f/τ, constants.
    pub(in crate::process) parameters: &'a Tensor,
    /// Location features of every draw, `[rows, features]`; `None` where there are none.
    pub(in crate::process) locations: Option<&'a Tensor>,
    /// s₀ of a Gaussian base measure, if u has one; leapfrog steps only.
    pub(in crate::process) base_std_dev: Option<f32>,
    pub(in crate::process) theta: &'a Tensor,
    pub(in crate::process) offsets: &'a SetOffsets,
}

impl Surroundings<'_> {
    fn rows(&self, values: &Tensor) -> Result<Tensor> {
        match self.locations {
            Some(locations) => Ok(Tensor::cat(&[values, locations], 1)?),
            None => Ok(values.clone()),
        }
    }

    fn batch<'a>(&'a self, elements: &'a Tensor) -> TensorBatch<'a> {
        TensorBatch {
            elements,
            context: Some(self.theta),
            parameters: self.parameters,
            offsets: self.offsets,
        }
    }
}

/// Draws `[rows, d_x]` and their L, `[rows]`.
pub(in crate::process) struct Moved {
    pub(in crate::process) values: Tensor,
    pub(in crate::process) log_density: Tensor,
}

#[derive(Clone, Debug)]
pub(in crate::process) struct DynamicsLayers {
    kind: Dynamics,
    num_steps: usize,
    clip: f64,
    /// s of the Langevin noise.
    noise_scale: f64,
    /// log η_t, `[T]`.
    log_step_sizes: Var,
    /// a_t and b_t before and after each step, `[2 T, d_x]`; generalized only.
    affine: Option<(Var, Var)>,
}

impl DynamicsLayers {
    /// `None` if no dynamics follow the flow.
    pub(in crate::process) fn new(
        config: &SamplerConfig,
        value_dim: usize,
        group: &Parameters,
    ) -> Result<Option<Self>> {
        if config.dynamics == Dynamics::None {
            return Ok(None);
        }
        let num_steps = config.num_dynamics_steps;
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let log_step_sizes = group.trained("log_step_sizes", &[num_steps], start)?;
        let affine = if config.dynamics == Dynamics::GeneralizedHamiltonian {
            let shape = [2 * num_steps, value_dim];
            let log_scales = group.trained("log_scales", &shape, Initialiser::Zeros)?;
            Some((log_scales, group.trained("shifts", &shape, Initialiser::Zeros)?))
        } else {
            None
        };
        Ok(Some(Self {
            kind: config.dynamics,
            num_steps,
            clip: config.clip,
            noise_scale: config.step_size.sqrt(),
            log_step_sizes,
            affine,
        }))
    }

    /// Moves draws of the flow; `log_density` is their log q₀.
    pub(in crate::process) fn run(
        &self,
        surroundings: &Surroundings<'_>,
        values: &Tensor,
        log_density: &Tensor,
        stream: Stream,
    ) -> Result<Moved> {
        let step_sizes = self.log_step_sizes.exp()?;
        if self.kind == Dynamics::Langevin {
            return self.langevin(surroundings, values, log_density, &step_sizes, stream);
        }
        let momentum = normals(values.dims2()?, stream.child(0))?;
        let before = momentum.sqr()?.sum(1)?;
        let (values, momentum, log_scale) =
            self.leapfrog(surroundings, values, momentum, &step_sizes)?;
        let gained = (momentum.sqr()?.sum(1)? - before)?.affine(0.5, 0.0)?;
        let mut log_density = (log_density + gained)?;
        if let Some(log_scale) = log_scale {
            log_density = log_density.broadcast_sub(&log_scale)?;
        }
        Ok(Moved { values, log_density })
    }

    fn langevin(
        &self,
        surroundings: &Surroundings<'_>,
        values: &Tensor,
        log_density: &Tensor,
        step_sizes: &Tensor,
        stream: Stream,
    ) -> Result<Moved> {
        let (mut values, mut log_density) = (values.clone(), log_density.clone());
        for number in 0..self.num_steps {
            let rows = surroundings.rows(&values)?;
            let score = surroundings.energy.module.score(&surroundings.batch(&rows))?;
            let score = score.clamp(-self.clip, self.clip)?;
            let half_step = (step_sizes.narrow(0, number, 1)? * 0.5)?;
            let noise = normals(values.dims2()?, stream.child(number as u64))?;
            let noise = (noise * self.noise_scale)?;
            let velocity = (&noise + score.broadcast_mul(&half_step)?)?;
            values = (values + &velocity)?;
            let gained = (velocity.sqr()?.sum(1)? - noise.sqr()?.sum(1)?)?;
            let scale = 0.5 / (self.noise_scale * self.noise_scale);
            log_density = (log_density + (gained * scale)?)?;
        }
        Ok(Moved { values, log_density })
    }

    /// Values and momenta after T steps, and Σ a of the scales.
    fn leapfrog(
        &self,
        surroundings: &Surroundings<'_>,
        values: &Tensor,
        momentum: Tensor,
        step_sizes: &Tensor,
    ) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let value_dim = values.dim(1)?;
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let motion = Motion {
            clip: Clip::Elementwise(self.clip as f32),
            base_std_dev: surroundings.base_std_dev,
            ..Motion::default()
        };
        let run = |values: &Tensor, momentum: &Tensor, step_sizes: &Tensor| {
            let rows = surroundings.rows(values)?;
            let batch = surroundings.batch(&rows);
            let run = surroundings.energy.module.leapfrog(&batch, momentum, step_sizes, &motion)?;
            let values = run.elements.narrow(1, 0, value_dim)?.contiguous()?;
            Ok::<_, crate::Error>((values, run.momentum))
        };
        let Some((log_scales, shifts)) = &self.affine else {
            let (values, momentum) = run(values, &momentum, step_sizes)?;
            return Ok((values, momentum, None));
        };
        let map = |momentum: &Tensor, row: usize| -> Result<Tensor> {
            let scaled = momentum.broadcast_mul(&log_scales.narrow(0, row, 1)?.exp()?)?;
            Ok(scaled.broadcast_add(&shifts.narrow(0, row, 1)?)?)
        };
        let (mut values, mut momentum) = (values.clone(), momentum);
        for number in 0..self.num_steps {
            momentum = map(&momentum, 2 * number)?;
            (values, momentum) = run(&values, &momentum, &step_sizes.narrow(0, number, 1)?)?;
            momentum = map(&momentum, 2 * number + 1)?;
        }
        let total = log_scales.as_tensor().sum_all()?.to_dtype(DType::F32)?;
        Ok((values, momentum, Some(total)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candle_core::Device;

    use super::*;
    use crate::IndexedSet;
    use crate::nn::Mode;
    use crate::point::CpuBackend;
    use crate::process::energy_based::sampler::Sampler;
    use crate::process::energy_based::targets::Targets;
    use crate::process::{EnergyBasedConfig, Estimator, SamplerKind};

    /// E exp(u − L) = Z whatever the sampler: with many draws the mean of the weights must meet
    /// the quadrature of exp u within four standard errors.
    #[test]
    fn the_tracked_density_makes_weights_that_average_to_the_partition_function() {
        for (kind, dynamics) in [
            (SamplerKind::Flow, Dynamics::None),
            (SamplerKind::Flow, Dynamics::Langevin),
            (SamplerKind::Flow, Dynamics::Hamiltonian),
            (SamplerKind::Flow, Dynamics::GeneralizedHamiltonian),
            (SamplerKind::Block, Dynamics::None),
            (SamplerKind::Block, Dynamics::Hamiltonian),
        ] {
            let config = EnergyBasedConfig {
                estimator: Estimator::Ade,
                energy_widths: vec![8],
                input_scale: 1.0,
                temperature: 0.5,
                sampler: SamplerConfig {
                    kind,
                    block_elements: 2,
                    block_widths: vec![8],
                    block_state: 4,
                    dynamics,
                    num_dynamics_steps: 3,
                    step_size: 0.3,
                    num_layers: 3,
                    hyper_widths: vec![8],
                    ..SamplerConfig::default()
                },
                ..EnergyBasedConfig::default()
            };
            let parameters = Parameters::new(3);
            let backend = Arc::new(CpuBackend::new());
            let energy = Energy::new(
                &config,
                &parameters.group("energy"),
                Arc::<CpuBackend>::clone(&backend),
            )
            .unwrap();
            let group = parameters.group("sampler");
            let sampler = Sampler::new(&config, &group, backend).unwrap();
            // Away from the identity, so that nothing hides.
            for name in ["dynamics.log_scales", "dynamics.shifts"] {
                if let Some(variable) = group.get(name) {
                    let shape = variable.dims().to_vec();
                    let change = normals(shape, Stream::new(1, name)).unwrap();
                    variable.set(&(change * 0.2).unwrap()).unwrap();
                }
            }
            let flat = energy.parameters(Mode::Evaluate).unwrap();
            let calibrated = energy.calibrated(&flat).unwrap().detach();
            let set = IndexedSet::new(1, 1, vec![0.4], vec![0.0]).unwrap();
            let targets = Targets::new(&[&set], config.location_frequencies).unwrap();
            let theta = Tensor::zeros((1, config.latent_dim), DType::F32, &Device::Cpu).unwrap();
            let count = 20_000;
            let stream = Stream::new(2, "draws");
            let draws = sampler
                .draw((&energy, &calibrated), &targets, &theta, (count, Mode::Evaluate), stream)
                .unwrap();
            let log_potential = |values: &Tensor, count: usize| {
                let locations = targets.repeated_locations(count).unwrap();
                let offsets = targets.repeated_offsets(count).unwrap();
                let rows = Tensor::cat(&[values, &locations], 1).unwrap();
                let batch = TensorBatch {
                    elements: &rows,
                    context: Some(&theta),
                    parameters: &calibrated,
                    offsets: &offsets,
                };
                let values = energy.module.values(&batch).unwrap();
                values.flatten_all().unwrap().to_vec1::<f32>().unwrap()
            };
            // exp u alone need not have an integral: weigh by N(0, 1), with variance 4/5.
            let taper = |x: f32| -0.625 * f64::from(x).powi(2);
            let moved = draws.values.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let log_density = draws.log_density.to_vec1::<f32>().unwrap();
            let weights: Vec<f64> = log_potential(&draws.values, count)
                .iter()
                .zip(moved.iter().zip(&log_density))
                .map(|(u, (x, density))| (f64::from(u - density) + taper(*x)).exp())
                .collect();
            let n = f64::from(u32::try_from(count).unwrap());
            let mean = weights.iter().sum::<f64>() / n;
            let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / n;
            let error = (variance / n).sqrt();

            let nodes: Vec<f32> = (0..2000_u16).map(|k| -8.0 + 0.008 * f32::from(k)).collect();
            let grid = Tensor::from_vec(nodes.clone(), (2000, 1), &Device::Cpu).unwrap();
            let exact: f64 = log_potential(&grid, 2000)
                .iter()
                .zip(&nodes)
                .map(|(u, x)| (f64::from(*u) + taper(*x)).exp() * 0.008)
                .sum();
            assert!(
                (mean - exact).abs() < 4.0 * error,
                "{kind:?} {dynamics:?}: {mean} ± {error}, {exact}"
            );
            // Blocks start narrower than the law they are weighed to: their weights vary more.
            let limit = if kind == SamplerKind::Flow { 0.05 } else { 0.15 };
            assert!(error < limit * exact, "{kind:?} {dynamics:?}: {error} of {exact}");
        }
    }
}

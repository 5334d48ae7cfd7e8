//! Dynamics after a generator, with learned step sizes and a tracked density.
//!
//! With u = f/τ less the base measure, momenta v and g = clip(∇ₓu):
//!
//! ```text
//! Langevin       v_t = s ξ_t + (η_t/2) g(x),  x ← x + v_t
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
//! ones L = log q₀ + (‖v_T‖² − ‖v₀‖²)/2, less the log-determinants Σ a of the scales. Where the
//! noise is annealed to zero there is no such density, and L is that of the generator alone.

use super::{Draws, Followed};
use crate::Result;
use crate::energy::element_rows;
use crate::nn::Initialiser;
use crate::point::Clip;
use crate::recipe::{Dynamics, NoiseSchedule, SamplerConfig};
use crate::rng::Stream;
use crate::tape::{Group, MotionRules, Parameter, Points, Tape, Var};

#[derive(Clone, Debug)]
pub(super) struct DynamicsLayers {
    kind: Dynamics,
    num_steps: usize,
    rules: MotionRules,
    /// s of every Langevin step.
    noise_scales: Vec<f32>,
    /// s, where it is the same in every step.
    noise: Option<f64>,
    log_step_sizes: Parameter,
    /// a and b of the generalized kind, `[2 T, d_x]`.
    affine: Option<(Parameter, Parameter)>,
}

impl DynamicsLayers {
    /// `None` where nothing moves.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn new(
        config: &SamplerConfig,
        dims: usize,
        base_std_dev: Option<f32>,
        group: &mut Group<'_>,
    ) -> Result<Option<Self>> {
        if config.dynamics == Dynamics::None {
            return Ok(None);
        }
        let steps = config.num_dynamics_steps;
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let log_step_sizes = group.trained("log_step_sizes", &[steps], start)?;
        let affine = if config.dynamics == Dynamics::GeneralizedHamiltonian {
            let shape = [2 * steps, dims];
            let log_scales = group.trained("log_scales", &shape, Initialiser::Zeros)?;
            Some((log_scales, group.trained("shifts", &shape, Initialiser::Zeros)?))
        } else {
            None
        };
        let is_annealed = config.noise_schedule == NoiseSchedule::Annealed;
        let last = (steps.max(2) - 1) as f64;
        let scale = |t: usize| if is_annealed { (steps - 1 - t) as f64 / last } else { 1.0 };
        Ok(Some(Self {
            kind: config.dynamics,
            num_steps: steps,
            rules: MotionRules {
                clip: Clip::Elementwise(config.clip as f32),
                base_std_dev,
                ..MotionRules::default()
            },
            noise_scales: (0..steps).map(|t| (config.noise() * scale(t)) as f32).collect(),
            noise: (!is_annealed).then(|| config.noise()),
            log_step_sizes,
            affine,
        }))
    }

    /// Moves draws; differentiable with respect to the step sizes and the first draws.
    pub(super) fn run(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        stream: Stream,
    ) -> Result<Draws> {
        let log_step_sizes = tape.parameter(&self.log_step_sizes)?;
        let step_sizes = tape.exp(log_step_sizes)?;
        if self.kind == Dynamics::Langevin {
            return self.langevin(tape, followed, draws, step_sizes, stream);
        }
        let shape = tape.shape(draws.values);
        let momentum = tape.normals(shape, stream.child(0))?;
        let before = kinetic(tape, momentum)?;
        let (values, momentum, log_scale) =
            self.leapfrog(tape, followed, &draws, momentum, step_sizes)?;
        let after = kinetic(tape, momentum)?;
        let gained = tape.subtract(after, before)?;
        let mut log_density = tape.add(draws.log_density, gained)?;
        if let Some(log_scale) = log_scale {
            log_density = tape.subtract(log_density, log_scale)?;
        }
        Ok(Draws { values, log_density, ..draws })
    }

    fn langevin(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        step_sizes: Var,
        stream: Stream,
    ) -> Result<Draws> {
        let points = points(tape, followed, &draws, draws.values)?;
        let scales = &self.noise_scales;
        let run = tape.langevin(&points, step_sizes, scales, stream, &self.rules)?;
        let Some(noise) = self.noise else { return Ok(Draws { values: run.values, ..draws }) };
        let gained = tape.subtract(run.kinetic, run.noise)?;
        let gained = tape.affine(gained, 0.5 / (noise * noise), 0.0)?;
        let log_density = tape.add(draws.log_density, gained)?;
        Ok(Draws { values: run.values, log_density, ..draws })
    }

    /// Values, momenta and log |det| of the scales, `[1, 1]`.
    fn leapfrog(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
        momentum: Var,
        step_sizes: Var,
    ) -> Result<(Var, Var, Option<Var>)> {
        let Some((log_scales, shifts)) = &self.affine else {
            let points = points(tape, followed, draws, draws.values)?;
            let run = tape.leapfrog(&points, momentum, step_sizes, &self.rules)?;
            return Ok((run.values, run.momentum, None));
        };
        let dims = tape.shape(momentum).1;
        let numbers = 2 * self.num_steps * dims;
        let log_scales = tape.parameter(log_scales)?;
        let total = tape.sum(log_scales)?;
        let log_scales = tape.reshape(log_scales, (1, numbers))?;
        let scales = tape.exp(log_scales)?;
        let shifts = tape.parameter(shifts)?;
        let shifts = tape.reshape(shifts, (1, numbers))?;
        let map = |tape: &mut Tape, momentum: Var, row: usize| -> Result<Var> {
            let (scale, shift) =
                (tape.columns(scales, row * dims, dims)?, tape.columns(shifts, row * dims, dims)?);
            let scaled = tape.multiply(momentum, scale)?;
            tape.add(scaled, shift)
        };
        let (mut values, mut momentum) = (draws.values, momentum);
        for number in 0..self.num_steps {
            momentum = map(tape, momentum, 2 * number)?;
            let points = points(tape, followed, draws, values)?;
            let step = tape.columns(step_sizes, number, 1)?;
            let run = tape.leapfrog(&points, momentum, step, &self.rules)?;
            values = run.values;
            momentum = map(tape, run.momentum, 2 * number + 1)?;
        }
        Ok((values, momentum, Some(total)))
    }
}

/// ½ ‖v‖² of every row.
fn kinetic(tape: &mut Tape, momentum: Var) -> Result<Var> {
    let squares = tape.square(momentum)?;
    let sums = tape.row_sums(squares)?;
    tape.affine(sums, 0.5, 0.0)
}

/// The energy over draws at their present values.
fn points(tape: &mut Tape, followed: Followed<'_>, draws: &Draws, values: Var) -> Result<Points> {
    let rows = element_rows(tape, values, draws.features)?;
    Ok(followed.energy.points(followed.parameters, rows, followed.theta, &draws.offsets))
}

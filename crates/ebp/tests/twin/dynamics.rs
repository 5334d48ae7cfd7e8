//! Langevin and leapfrog steps of one element after the other, and the gradients through them.
//!
//! Each element's whole path is kept, so that the reverse pass can read it backwards.

use ebp::point::Motion;
use ebp::rng::Stream;

use super::motion::{Distance, Drift, Wall, is_fixed, reflect};
use super::{Network, Sets, add_to, dot};

/// [`Langevin`](ebp::point::Langevin) with step sizes in f64.
#[derive(Clone, Debug)]
pub(crate) struct LangevinPlan<'a> {
    pub(crate) step_sizes: Vec<f64>,
    pub(crate) noise_scales: Vec<f64>,
    pub(crate) noise: Stream,
    pub(crate) motion: Motion<'a>,
}

/// [`Leapfrog`](ebp::point::Leapfrog) with step sizes in f64.
#[derive(Clone, Debug)]
pub(crate) struct LeapfrogPlan<'a> {
    pub(crate) step_sizes: Vec<f64>,
    pub(crate) motion: Motion<'a>,
}

/// Everything a Langevin run gives back, as in [`LangevinRun`](ebp::point::LangevinRun).
#[derive(Clone, Debug)]
pub(crate) struct LangevinRun {
    pub(crate) elements: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) score: Vec<f64>,
    pub(crate) kinetic: Vec<f64>,
    pub(crate) final_alignment: Vec<f64>,
    pub(crate) kinetic_alignment: Vec<f64>,
}

/// Everything a leapfrog run gives back, as in [`LeapfrogRun`](ebp::point::LeapfrogRun).
#[derive(Clone, Debug)]
pub(crate) struct LeapfrogRun {
    pub(crate) elements: Vec<f64>,
    pub(crate) momentum: Vec<f64>,
    pub(crate) values: Vec<f64>,
    pub(crate) score: Vec<f64>,
    pub(crate) kinetic: Vec<f64>,
}

/// Gradients through a run, as in [`DynamicsGradients`](ebp::point::DynamicsGradients).
#[derive(Clone, Debug)]
pub(crate) struct DynamicsGradients {
    pub(crate) values: Vec<f64>,
    pub(crate) momentum: Vec<f64>,
    pub(crate) step_sizes: Vec<f64>,
    pub(crate) context: Vec<f64>,
}

struct LangevinPath {
    /// Drift at x₀ … x_{T−1}.
    drifts: Vec<Drift>,
    /// v_t, before reflection.
    velocities: Vec<Vec<f64>>,
    walls: Vec<Wall>,
    last: Vec<f64>,
    distance: Distance,
}

struct LeapfrogPath {
    /// Drift at the beginning and at the end of each step.
    drifts: Vec<[Drift; 2]>,
    /// v after the first half step, before reflection.
    velocities: Vec<Vec<f64>>,
    walls: Vec<Wall>,
    last: Vec<f64>,
    momentum: Vec<f64>,
    distance: Distance,
}

impl Network {
    /// v_t = s_t ξ + (η_t/2) g(x_t),   x_{t+1} = reflect(x_t + v_t)
    fn langevin_path(&self, sets: &Sets, plan: &LangevinPlan<'_>, i: usize) -> LangevinPath {
        let dx = self.value_dim();
        let mut distance = Distance(f64::INFINITY);
        let mut row = sets.row(i).to_vec();
        let (mut drifts, mut velocities, mut walls) = (Vec::new(), Vec::new(), Vec::new());
        let context = sets.context_of(i);
        for (t, (eta, s)) in plan.step_sizes.iter().zip(&plan.noise_scales).enumerate() {
            if is_fixed(&plan.motion, i) {
                break;
            }
            let drift = self.drift(&plan.motion, &row, context, &mut distance);
            let step = u32::try_from(t).expect("few steps");
            let velocity: Vec<_> = (0..dx)
                .map(|k| {
                    let noise = f64::from(plan.noise.normal(step, (i * dx + k) as u64));
                    s * noise + eta / 2.0 * drift.clipped[k]
                })
                .collect();
            add_to(&mut row[..dx], &velocity);
            walls.push(reflect(&plan.motion, &mut row[..dx], &mut distance));
            drifts.push(drift);
            velocities.push(velocity);
        }
        LangevinPath { drifts, velocities, walls, last: row, distance }
    }

    /// v ← v + (η/2) g(x),   x ← reflect(x + η v), v ← ±v,   v ← v + (η/2) g(x)
    fn leapfrog_path(
        &self,
        sets: &Sets,
        momentum: &[f64],
        plan: &LeapfrogPlan<'_>,
        i: usize,
    ) -> LeapfrogPath {
        let dx = self.value_dim();
        let mut distance = Distance(f64::INFINITY);
        let mut row = sets.row(i).to_vec();
        let mut v = momentum[i * dx..(i + 1) * dx].to_vec();
        let (mut drifts, mut velocities, mut walls) = (Vec::new(), Vec::new(), Vec::new());
        let context = sets.context_of(i);
        for eta in &plan.step_sizes {
            if is_fixed(&plan.motion, i) {
                break;
            }
            let before = self.drift(&plan.motion, &row, context, &mut distance);
            v.iter_mut().zip(&before.clipped).for_each(|(v, g)| *v += eta / 2.0 * g);
            velocities.push(v.clone());
            row.iter_mut().zip(&v).for_each(|(x, v)| *x += eta * v);
            let wall = reflect(&plan.motion, &mut row[..dx], &mut distance);
            v.iter_mut().zip(&wall.sign).for_each(|(v, sign)| *v *= sign);
            let after = self.drift(&plan.motion, &row, context, &mut distance);
            v.iter_mut().zip(&after.clipped).for_each(|(v, g)| *v += eta / 2.0 * g);
            drifts.push([before, after]);
            walls.push(wall);
        }
        LeapfrogPath { drifts, velocities, walls, last: row, momentum: v, distance }
    }

    /// How far element `i` stays from every kink, clip limit and wall, its end included.
    pub(crate) fn langevin_distance(&self, sets: &Sets, plan: &LangevinPlan<'_>, i: usize) -> f64 {
        let path = self.langevin_path(sets, plan, i);
        let end = self.forward(&path.last, sets.context_of(i));
        path.distance.0.min(self.kink_distance(&end))
    }

    /// As [`Self::langevin_distance`].
    pub(crate) fn leapfrog_distance(
        &self,
        sets: &Sets,
        momentum: &[f64],
        plan: &LeapfrogPlan<'_>,
        i: usize,
    ) -> f64 {
        let path = self.leapfrog_path(sets, momentum, plan, i);
        let end = self.forward(&path.last, sets.context_of(i));
        path.distance.0.min(self.kink_distance(&end))
    }

    /// The run, with per-set sums over the moving elements:
    /// kinetic Σ ‖v_t‖², final alignment Σ ⟨∇u(x_T), g(x_t)⟩, kinetic alignment Σ ⟨v_t, g(x_t)⟩.
    pub(crate) fn langevin(&self, sets: &Sets, plan: &LangevinPlan<'_>) -> LangevinRun {
        let steps = plan.step_sizes.len();
        let sums = vec![0.0; sets.offsets.num_sets() * steps];
        let mut run = LangevinRun {
            elements: Vec::new(),
            values: Vec::new(),
            score: Vec::new(),
            kinetic: sums.clone(),
            final_alignment: sums.clone(),
            kinetic_alignment: sums,
        };
        for i in 0..sets.offsets.num_elements() {
            let path = self.langevin_path(sets, plan, i);
            let context = sets.context_of(i);
            let mut unused = Distance(f64::INFINITY);
            let score = self.drift(&plan.motion, &path.last, context, &mut unused).force;
            let set = sets.offsets.set_of(i);
            for (t, (v, drift)) in path.velocities.iter().zip(&path.drifts).enumerate() {
                run.kinetic[set * steps + t] += dot(v, v);
                run.final_alignment[set * steps + t] += dot(&score, &drift.clipped);
                run.kinetic_alignment[set * steps + t] += dot(v, &drift.clipped);
            }
            run.values.push(self.forward(&path.last, context).output()[0]);
            run.elements.extend(path.last);
            run.score.extend(score);
        }
        run
    }

    /// Gradients of Σᵢ ⟨λᵢ, x_T⟩ + Σᵢ κᵢ Σ_t ‖v_t‖². Backwards through a step, with D the walls:
    ///
    /// ```text
    /// ∂L/∂v = D λ + 2 κ v,   ∂L/∂η += ½ ⟨g, ∂L/∂v⟩,   λ ← D λ + (∂g/∂x)ᵀ (η/2) ∂L/∂v
    /// ```
    pub(crate) fn langevin_backward(
        &self,
        sets: &Sets,
        plan: &LangevinPlan<'_>,
        values: &[f64],
        kinetic: &[f64],
    ) -> DynamicsGradients {
        let dx = self.value_dim();
        let mut gradients = DynamicsGradients {
            values: Vec::new(),
            momentum: Vec::new(),
            step_sizes: vec![0.0; plan.step_sizes.len()],
            context: vec![0.0; sets.context.len()],
        };
        for i in 0..sets.offsets.num_elements() {
            let path = self.langevin_path(sets, plan, i);
            let context = sets.context_of(i);
            let range = sets.context_range(sets.offsets.set_of(i));
            let mut lambda = values[i * dx..(i + 1) * dx].to_vec();
            for t in (0..path.drifts.len()).rev() {
                let (drift, eta) = (&path.drifts[t], plan.step_sizes[t]);
                lambda.iter_mut().zip(&path.walls[t].slope).for_each(|(l, slope)| *l *= slope);
                let velocity = lambda.iter().zip(&path.velocities[t]);
                let grad_v: Vec<_> = velocity.map(|(l, v)| l + 2.0 * kinetic[i] * v).collect();
                gradients.step_sizes[t] += 0.5 * dot(&drift.clipped, &grad_v);
                let w: Vec<_> = grad_v.iter().map(|g| eta / 2.0 * g).collect();
                let into = (context, &mut gradients.context[range.clone()]);
                add_to(&mut lambda, &self.pull_back(&plan.motion, drift, &w, into));
            }
            gradients.values.extend(lambda);
        }
        gradients
    }

    /// The run; kinetic is Σ ‖v_T‖² over the moving elements of a set.
    pub(crate) fn leapfrog(
        &self,
        sets: &Sets,
        momentum: &[f64],
        plan: &LeapfrogPlan<'_>,
    ) -> LeapfrogRun {
        let mut run = LeapfrogRun {
            elements: Vec::new(),
            momentum: Vec::new(),
            values: Vec::new(),
            score: Vec::new(),
            kinetic: vec![0.0; sets.offsets.num_sets()],
        };
        for i in 0..sets.offsets.num_elements() {
            let path = self.leapfrog_path(sets, momentum, plan, i);
            let context = sets.context_of(i);
            let mut unused = Distance(f64::INFINITY);
            run.score.extend(self.drift(&plan.motion, &path.last, context, &mut unused).force);
            run.values.push(self.forward(&path.last, context).output()[0]);
            if !is_fixed(&plan.motion, i) {
                run.kinetic[sets.offsets.set_of(i)] += dot(&path.momentum, &path.momentum);
            }
            run.elements.extend(path.last);
            run.momentum.extend(path.momentum);
        }
        run
    }

    /// Gradients of Σᵢ ⟨λᵢ, x_T⟩ + Σᵢ ⟨μᵢ, v_T⟩. Backwards through a step, with D the walls'
    /// slope, S their sign, v₁ the momentum after the first half step, x′ the new position:
    ///
    /// ```text
    /// ∂L/∂η += ½ ⟨g(x′), μ⟩        λ ← λ + (∂g/∂x)(x′)ᵀ (η/2) μ
    /// λ ← D λ                      ∂L/∂η += ⟨v₁, λ⟩               μ ← S μ + η λ
    /// ∂L/∂η += ½ ⟨g(x), μ⟩         λ ← λ + (∂g/∂x)(x)ᵀ (η/2) μ
    /// ```
    pub(crate) fn leapfrog_backward(
        &self,
        sets: &Sets,
        momentum: &[f64],
        plan: &LeapfrogPlan<'_>,
        (values, momenta): (&[f64], &[f64]),
    ) -> DynamicsGradients {
        let dx = self.value_dim();
        let mut gradients = DynamicsGradients {
            values: Vec::new(),
            momentum: Vec::new(),
            step_sizes: vec![0.0; plan.step_sizes.len()],
            context: vec![0.0; sets.context.len()],
        };
        for i in 0..sets.offsets.num_elements() {
            let path = self.leapfrog_path(sets, momentum, plan, i);
            let context = sets.context_of(i);
            let range = sets.context_range(sets.offsets.set_of(i));
            let mut lambda = values[i * dx..(i + 1) * dx].to_vec();
            let mut mu = momenta[i * dx..(i + 1) * dx].to_vec();
            for t in (0..path.drifts.len()).rev() {
                let ([before, after], wall) = (&path.drifts[t], &path.walls[t]);
                let eta = plan.step_sizes[t];
                let half = |mu: &[f64]| mu.iter().map(|m| eta / 2.0 * m).collect::<Vec<_>>();
                let grad_context = &mut gradients.context[range.clone()];

                gradients.step_sizes[t] += 0.5 * dot(&after.clipped, &mu);
                let into = (context, &mut *grad_context);
                add_to(&mut lambda, &self.pull_back(&plan.motion, after, &half(&mu), into));

                lambda.iter_mut().zip(&wall.slope).for_each(|(l, slope)| *l *= slope);
                gradients.step_sizes[t] += dot(&path.velocities[t], &lambda);
                mu.iter_mut().zip(&wall.sign).for_each(|(m, sign)| *m *= sign);
                mu.iter_mut().zip(&lambda).for_each(|(m, l)| *m += eta * l);

                gradients.step_sizes[t] += 0.5 * dot(&before.clipped, &mu);
                let into = (context, grad_context);
                add_to(&mut lambda, &self.pull_back(&plan.motion, before, &half(&mu), into));
            }
            gradients.values.extend(lambda);
            gradients.momentum.extend(mu);
        }
        gradients
    }
}

//! What moves an element: the drift and its derivative, the clip, and the walls.
//!
//! ```text
//! h = ∇ₓ f − x / s₀²,   g = clip(h),   ∂g/∂x = C (∇²ₓₓ f − I / s₀²),   ∂g/∂c = C ∇²ₓ꜀ f
//! elementwise clip:  C = diag(1 where |h| < limit, else 0)
//! norm clip:         C = I where ‖h‖ ≤ limit, else (limit/‖h‖) (I − h hᵀ / ‖h‖²)
//! ```

use ebp::point::{Clip, Motion};

use super::{Network, dot};

/// One evaluation of the drift.
#[derive(Clone, Debug)]
pub(super) struct Drift {
    /// The row [x, t] it was evaluated at.
    pub(super) row: Vec<f64>,
    /// h = ∇ₓ u, not clipped.
    pub(super) force: Vec<f64>,
    /// g = clip(h)
    pub(super) clipped: Vec<f64>,
}

/// What the walls did to one position.
#[derive(Clone, Debug)]
pub(super) struct Wall {
    /// ∂x′/∂x per coordinate: 1 free, −1 reflected, 0 clamped.
    pub(super) slope: Vec<f64>,
    /// −1 where reflected, else 1: what happens to the momentum.
    pub(super) sign: Vec<f64>,
}

/// A path is safe to compare in f32 only at some distance from every kink, limit and wall, where
/// values or derivatives jump. This keeps the least distance met.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distance(pub(super) f64);

impl Distance {
    pub(super) fn meet(&mut self, distance: f64) {
        self.0 = self.0.min(distance.abs());
    }
}

pub(super) fn is_fixed(motion: &Motion<'_>, i: usize) -> bool {
    motion.is_fixed.is_some_and(|mask| mask[i])
}

/// 1/s₀², zero without a base measure.
fn base_precision(motion: &Motion<'_>) -> f64 {
    motion.base_std_dev.map_or(0.0, |s| 1.0 / f64::from(s).powi(2))
}

/// clip(h)
fn clip(motion: &Motion<'_>, h: &[f64], distance: &mut Distance) -> Vec<f64> {
    match motion.clip {
        Clip::Off => h.to_vec(),
        Clip::Elementwise(limit) => {
            let limit = f64::from(limit);
            h.iter().for_each(|h| distance.meet(h.abs() - limit));
            h.iter().map(|h| h.clamp(-limit, limit)).collect()
        }
        Clip::Norm(limit) => {
            let (limit, norm) = (f64::from(limit), dot(h, h).sqrt());
            distance.meet(norm - limit);
            let factor = if norm > limit { limit / norm } else { 1.0 };
            h.iter().map(|h| factor * h).collect()
        }
    }
}

/// C w, with C = ∂clip/∂h, which is symmetric.
fn clip_derivative(motion: &Motion<'_>, h: &[f64], w: &[f64]) -> Vec<f64> {
    match motion.clip {
        Clip::Off => w.to_vec(),
        Clip::Elementwise(limit) => {
            let pass = |(h, w): (&f64, &f64)| if h.abs() < f64::from(limit) { *w } else { 0.0 };
            h.iter().zip(w).map(pass).collect()
        }
        Clip::Norm(limit) => {
            let (limit, norm) = (f64::from(limit), dot(h, h).sqrt());
            if norm <= limit {
                return w.to_vec();
            }
            let along = dot(h, w) / (norm * norm);
            h.iter().zip(w).map(|(h, w)| limit / norm * (w - along * h)).collect()
        }
    }
}

/// Reflects x at the walls: 2 low − x below, 2 high − x above, then clamps what is still outside.
pub(super) fn reflect(motion: &Motion<'_>, x: &mut [f64], distance: &mut Distance) -> Wall {
    let mut wall = Wall { slope: vec![1.0; x.len()], sign: vec![1.0; x.len()] };
    let Some(bounds) = motion.bounds else { return wall };
    let (low, high) = (f64::from(bounds.low), f64::from(bounds.high));
    for (k, x) in x.iter_mut().enumerate() {
        let width = high - low;
        [low, high, low - width, high + width].iter().for_each(|edge| distance.meet(*x - edge));
        if *x < low || *x > high {
            *x = if *x < low { 2.0 * low - *x } else { 2.0 * high - *x };
            (wall.slope[k], wall.sign[k]) = (-1.0, -1.0);
        }
        if *x < low || *x > high {
            *x = x.clamp(low, high);
            wall.slope[k] = 0.0;
        }
    }
    wall
}

impl Network {
    /// h = ∇ₓ f − x/s₀² and g = clip(h) at a row.
    pub(super) fn drift(
        &self,
        motion: &Motion<'_>,
        row: &[f64],
        context: &[f64],
        distance: &mut Distance,
    ) -> Drift {
        let trace = self.forward(row, context);
        distance.meet(self.kink_distance(&trace));
        let precision = base_precision(motion);
        let score = self.score_of(&trace);
        let force: Vec<_> = score.iter().zip(row).map(|(s, x)| s - precision * x).collect();
        let clipped = clip(motion, &force, distance);
        Drift { row: row.to_vec(), force, clipped }
    }

    /// (∂g/∂x)ᵀ w, and adds (∂g/∂c)ᵀ w to `grad_context`.
    pub(super) fn pull_back(
        &self,
        motion: &Motion<'_>,
        drift: &Drift,
        w: &[f64],
        (context, grad_context): (&[f64], &mut [f64]),
    ) -> Vec<f64> {
        let w = clip_derivative(motion, &drift.force, w);
        let trace = self.forward(&drift.row, context);
        let mut unused = vec![0.0; self.parameters.len()];
        let mut hessian_w =
            self.reverse_score(&trace, context, (&w, 0.0), (&mut unused, grad_context));
        hessian_w.truncate(w.len());
        let precision = base_precision(motion);
        hessian_w.iter_mut().zip(&w).for_each(|(h, w)| *h -= precision * w);
        hessian_w
    }
}

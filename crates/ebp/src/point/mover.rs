//! What Langevin and leapfrog share: the clipped drift, walls, and their derivatives.

use super::{Bounds, Clip, Motion};

/// The values of a block of elements on the move, `[rows, dims]` without padding.
pub(crate) struct Mover<'a> {
    pub(crate) motion: &'a Motion<'a>,
    pub(crate) dims: usize,
    /// Where the block's first element stands in the batch.
    pub(crate) first: usize,
}

impl Mover<'_> {
    pub(crate) fn is_fixed(&self, row: usize) -> bool {
        self.motion.is_fixed.is_some_and(|mask| mask[self.first + row])
    }

    /// 1/s₀², or 0 without a base measure.
    pub(crate) fn precision(&self) -> f32 {
        self.motion.base_std_dev.map_or(0.0, |std_dev| (std_dev * std_dev).recip())
    }

    /// g = clip(∇u), zero for fixed elements.
    pub(crate) fn clip(&self, gradient: &[f32], out: &mut [f32]) {
        match self.motion.clip {
            Clip::Off => out.copy_from_slice(gradient),
            Clip::Elementwise(limit) => {
                for (out, g) in out.iter_mut().zip(gradient) {
                    *out = g.clamp(-limit, limit);
                }
            }
            Clip::Norm(limit) => {
                let rows = out.chunks_exact_mut(self.dims).zip(gradient.chunks_exact(self.dims));
                for (out, g) in rows {
                    let scale = (limit / norm(g)).min(1.0);
                    for (out, g) in out.iter_mut().zip(g) {
                        *out = g * scale;
                    }
                }
            }
        }
        if self.motion.is_fixed.is_some() {
            for (row, out) in out.chunks_exact_mut(self.dims).enumerate() {
                if self.is_fixed(row) {
                    out.fill(0.0);
                }
            }
        }
    }

    /// The derivative of `clip` at ∇u, transposed, applied to `adjoint` in place.
    pub(crate) fn clip_backward(&self, gradient: &[f32], adjoint: &mut [f32]) {
        let rows = adjoint.chunks_exact_mut(self.dims).zip(gradient.chunks_exact(self.dims));
        for (row, (adjoint, g)) in rows.enumerate() {
            if self.is_fixed(row) {
                adjoint.fill(0.0);
                continue;
            }
            match self.motion.clip {
                Clip::Off => {}
                Clip::Elementwise(limit) => {
                    for (adjoint, g) in adjoint.iter_mut().zip(g) {
                        if g.abs() >= limit {
                            *adjoint = 0.0;
                        }
                    }
                }
                // c g/‖g‖ has the symmetric derivative c/‖g‖ (I − g gᵀ/‖g‖²).
                Clip::Norm(limit) => {
                    let length = norm(g);
                    if length > limit {
                        let along: f32 = adjoint.iter().zip(g).map(|(a, g)| a * g).sum();
                        let along = along / (length * length);
                        for (adjoint, g) in adjoint.iter_mut().zip(g) {
                            *adjoint = (*adjoint - along * g) * (limit / length);
                        }
                    }
                }
            }
        }
    }

    /// Reflects a coordinate at the walls. Returns the new place and its derivative.
    pub(crate) fn reflect(&self, x: f32) -> (f32, f32) {
        let Some(Bounds { low, high }) = self.motion.bounds else { return (x, 1.0) };
        let (place, slope) = if x < low {
            (2.0 * low - x, -1.0)
        } else if x > high {
            (2.0 * high - x, -1.0)
        } else {
            return (x, 1.0);
        };
        // A step of more than the whole box: stop at the wall, where the derivative is zero.
        if place < low {
            (low, 0.0)
        } else if place > high {
            (high, 0.0)
        } else {
            (place, slope)
        }
    }
}

fn norm(g: &[f32]) -> f32 {
    g.iter().map(|g| g * g).sum::<f32>().sqrt()
}

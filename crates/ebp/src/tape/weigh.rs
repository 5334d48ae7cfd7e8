//! Log weights of draws as candidates for log Z:
//!
//! ```text
//! ω = −‖y‖²/(2 s₀²) − L − log K   inside the domain,   −10⁶ outside, where a draw must not count
//! ```

use super::{Array, Device, Tape, Var, cuda};
use crate::Result;

/// A domain and a base measure.
#[derive(Clone, Copy, Debug)]
pub struct DrawDomain {
    /// Values lie between these.
    pub low: f32,
    /// See `low`.
    pub high: f32,
    /// s₀, if there is a base measure.
    pub base_std_dev: Option<f32>,
}

/// The log weight of a draw that must not count.
pub(crate) const NOTHING: f32 = -1e6;

impl DrawDomain {
    /// −‖y‖²/(2 s₀²).
    pub(crate) fn base(&self, y: &[f32]) -> f32 {
        let square = || y.iter().map(|y| y * y).sum::<f32>();
        self.base_std_dev.map_or(0.0, |std_dev| -0.5 / (std_dev * std_dev) * square())
    }

    /// Whether all coordinates are between the limits.
    pub(crate) fn holds(&self, y: &[f32]) -> bool {
        y.iter().all(|y| (self.low..=self.high).contains(y))
    }
}

impl Tape {
    /// ω of draws `[rows, d]` with L `[rows, 1]`, a constant.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn weigh_draws(
        &mut self,
        values: Var,
        log_density: Var,
        domain: DrawDomain,
        log_count: f32,
    ) -> Result<Var> {
        let (rows, dims) = self.shape(values);
        self.check("log_density", log_density, (rows, 1))?;
        let arrays = [self.array(values), self.array(log_density)];
        let weights: Array = match self.device() {
            Device::Cpu(_) => {
                let (values, densities) = (arrays[0].host()?, arrays[1].host()?);
                let weigh = |(y, density): (&[f32], &f32)| {
                    if domain.holds(y) { domain.base(y) - density - log_count } else { NOTHING }
                };
                let pairs = values.chunks_exact(dims).zip(densities.iter());
                pairs.map(weigh).collect::<Vec<_>>().into()
            }
            Device::Cuda(gpu) => {
                let arrays = [arrays[0].cuda()?, arrays[1].cuda()?];
                cuda::weigh_draws(gpu, arrays, dims, domain, log_count)?
            }
        };
        self.constant(weights, (rows, 1))
    }
}

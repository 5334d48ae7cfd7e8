//! Batch normalisation:
//!
//! ```text
//! y = γ x̂ + β,   x̂ = (x − m) / √(v + floor),     m and v of the batch, per column
//! ```
//!
//! v is the biased variance. The way back:
//!
//! ```text
//! ∂x = γ/√(v + floor) · (g − mean g − x̂ mean(g x̂)),   ∂γ = Σ g x̂,   ∂β = Σ g
//! ```

use super::{Array, Device, Shape, Tape, Var, cuda};
use crate::Result;

/// Added to variances.
pub(super) const FLOOR: f32 = 1e-5;

/// x̂, mean and 1/√(v + floor) per column.
struct Normalised {
    standard: Array,
    mean: Array,
    scale: Array,
}

#[expect(clippy::cast_possible_truncation, reason = "statistics are rounded to f32")]
fn normalise(device: &Device, x: &Array, (rows, columns): Shape) -> Result<Normalised> {
    match device {
        Device::Cpu(_) => {
            let x = x.host()?;
            let column = |c: usize| x.iter().skip(c).step_by(columns).map(|&x| f64::from(x));
            let mean: Vec<f64> =
                (0..columns).map(|c| column(c).sum::<f64>() / rows as f64).collect();
            let scale = (0..columns).map(|c| {
                let squares: f64 = column(c).map(|x| (x - mean[c]).powi(2)).sum();
                (1.0 / (squares / rows as f64 + f64::from(FLOOR)).sqrt()) as f32
            });
            let scale: Vec<f32> = scale.collect();
            let mean: Vec<f32> = mean.into_iter().map(|mean| mean as f32).collect();
            let place = |(i, x): (usize, &f32)| (x - mean[i % columns]) * scale[i % columns];
            let standard: Vec<f32> = x.iter().enumerate().map(place).collect();
            Ok(Normalised { standard: standard.into(), mean: mean.into(), scale: scale.into() })
        }
        Device::Cuda(gpu) => {
            let [standard, mean, scale] = cuda::normalise(gpu, x.cuda()?, (rows, columns))?;
            Ok(Normalised { standard, mean, scale })
        }
    }
}

fn normalise_backward(
    device: &Device,
    [standard, scale, g]: [&Array; 3],
    (rows, columns): Shape,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let (standard, scale, g) = (standard.host()?, scale.host()?, g.host()?);
            let (mut sums, mut along) = (vec![0.0_f64; columns], vec![0.0_f64; columns]);
            for (i, (g, x)) in g.iter().zip(standard.iter()).enumerate() {
                sums[i % columns] += f64::from(*g);
                along[i % columns] += f64::from(g * x);
            }
            #[expect(clippy::cast_possible_truncation, reason = "gradients are f32")]
            let share = |sums: &[f64], c: usize| (sums[c] / rows as f64) as f32;
            let entries = g.iter().zip(standard.iter()).enumerate().map(|(i, (g, x))| {
                let c = i % columns;
                scale[c] * (g - share(&sums, c) - x * share(&along, c))
            });
            Ok(entries.collect::<Vec<_>>().into())
        }
        Device::Cuda(gpu) => {
            let arrays = [standard.cuda()?, scale.cuda()?, g.cuda()?];
            cuda::normalise_backward(gpu, arrays, (rows, columns))
        }
    }
}

impl Tape {
    /// x̂ of a batch, with its mean and 1/√(v + floor) per column, `[1, columns]` each (constants).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn normalise_columns(&mut self, x: Var) -> Result<(Var, Var, Var)> {
        let shape = self.shape(x);
        let Normalised { standard, mean, scale } = normalise(self.device(), self.array(x), shape)?;
        let (kept, scales) = (standard.clone(), scale.clone());
        let standard = self.record(&[x], standard, shape, move |reversal| {
            let arrays = [&kept, &scales, reversal.cotangent()?];
            Ok(vec![Some(normalise_backward(reversal.device, arrays, shape)?)])
        });
        let mean = self.constant(mean, (1, shape.1))?;
        let scale = self.constant(scale, (1, shape.1))?;
        Ok((standard, mean, scale))
    }
}

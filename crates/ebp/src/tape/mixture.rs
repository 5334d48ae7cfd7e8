//! Mixtures of Gaussians with triangular scales: draws of every component, and the exact density of
//! the whole mixture at any place.
//!
//! A row of numbers describes a mixture: for each component a logit a, a mean μ, log σ and what
//! stands below the diagonal of its scale T, whose diagonal is σ.
//!
//! ```text
//! π = softmax a,   x = μ_m + T_m ξ,   log q(x) = log Σ_j π_j N(x; μ_j, T_j T_jᵀ)
//! ```
//!
//! Every component is drawn and weighed by its π, so an expectation under q is a sum in which no
//! component is missed and the gradient of π is exact. A part of the law may be uniform on a box:
//! q ← (1 − ε) q + ε/volume inside of it, (1 − ε) q outside.

mod cpu;

use super::{Array, Device, Tape, Var, cuda};
use crate::error::check_length;
use crate::{Error, Result};

/// log σ is kept between these.
pub(super) const LOG_SCALES: (f32, f32) = (-6.0, 1.5);
/// Dimensions of a mixture on all devices: a scale has d (d − 1)/2 numbers below its diagonal.
const MOST_DIMS: usize = 16;

/// What the numbers of a row mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixtureLaw {
    /// Components.
    pub components: usize,
    /// d.
    pub dims: usize,
}

/// The part of a law that is uniform on the box [low, high]ᵈ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniformPart {
    /// ε, in (0, 1).
    pub share: f32,
    /// The box.
    pub low: f32,
    /// See `low`.
    pub high: f32,
}

/// Draws of every component of a mixture.
#[derive(Clone, Copy, Debug)]
pub struct MixtureDraws {
    /// `[rows · components · each, d]`, one component after the other.
    pub values: Var,
    /// log(π_m / each), `[rows · components · each, 1]`: the share of a draw in its row.
    pub log_shares: Var,
}

impl MixtureLaw {
    /// Numbers of a component: a, μ, log σ, below the diagonal row by row.
    pub fn component_width(&self) -> usize {
        1 + 2 * self.dims + self.dims * (self.dims - 1) / 2
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        self.components * self.component_width()
    }

    fn check(&self) -> Result<()> {
        if !(1..=MOST_DIMS).contains(&self.dims) {
            let expected = format!("between 1 and {MOST_DIMS}");
            return Err(Error::invalid("dimensions of a mixture", expected, self.dims));
        }
        if self.components == 0 {
            return Err(Error::invalid("components", "at least 1", self.components));
        }
        Ok(())
    }
}

impl UniformPart {
    fn check(&self) -> Result<()> {
        if !(self.share > 0.0 && self.share < 1.0) {
            return Err(Error::invalid("uniform share", "between 0 and 1", self.share));
        }
        if self.low.partial_cmp(&self.high) != Some(std::cmp::Ordering::Less) {
            let found = format!("[{}, {}]", self.low, self.high);
            return Err(Error::invalid("box", "low below high", found));
        }
        Ok(())
    }

    /// log(1 − ε) and log(ε/volume).
    pub(super) fn log_parts(&self, dims: usize) -> (f32, f32) {
        ((1.0 - self.share).ln(), self.share.ln() - dims as f32 * (self.high - self.low).ln())
    }

    pub(super) fn holds(&self, x: &[f32]) -> bool {
        x.iter().all(|x| (self.low..=self.high).contains(x))
    }
}

impl Tape {
    fn check_mixture(&self, written: Var, law: &MixtureLaw) -> Result<usize> {
        law.check()?;
        let rows = self.shape(written).0;
        self.check("mixtures", written, (rows, law.width()))?;
        Ok(rows)
    }

    /// `each` draws of every component of every row, from standard normals
    /// `[rows · components · each, d]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn mixture_draws(
        &mut self,
        written: Var,
        law: MixtureLaw,
        noise: Var,
    ) -> Result<MixtureDraws> {
        let rows = self.check_mixture(written, &law)?;
        let total = self.shape(noise).0;
        let per_row = rows * law.components;
        if total == 0 || !total.is_multiple_of(per_row) {
            let expected = format!("a multiple of {per_row}, the components of all rows");
            return Err(Error::invalid("draws of a mixture", expected, total));
        }
        self.check("noise", noise, (total, law.dims))?;
        let each = total / per_row;
        let (numbers, xi) = (self.array(written).clone(), self.array(noise).clone());
        let [values, log_shares] = match self.device() {
            Device::Cpu(_) => cpu::draws(law, each, numbers.host()?, xi.host()?).map(Array::from),
            Device::Cuda(gpu) => {
                cuda::mixture_draws(gpu, law, each, [numbers.cuda()?, xi.cuda()?])?
            }
        };
        let outputs = vec![(values, (total, law.dims)), (log_shares, (total, 1))];
        let values = self.record_all(&[written], outputs, move |reversal| {
            let [of_values, of_shares] =
                [reversal.cotangents[0].as_ref(), reversal.cotangents[1].as_ref()];
            let found = match reversal.device {
                Device::Cpu(_) => {
                    let host = |given: Option<&Array>| given.map(|g| g.host().cloned()).transpose();
                    let (of_values, of_shares) = (host(of_values)?, host(of_shares)?);
                    let given = [of_values.as_deref(), of_shares.as_deref()];
                    cpu::draws_backward(law, each, numbers.host()?, xi.host()?, given).into()
                }
                Device::Cuda(gpu) => {
                    let of_values = of_values.map(Array::cuda).transpose()?;
                    let of_shares = of_shares.map(Array::cuda).transpose()?;
                    let arrays = [numbers.cuda()?, xi.cuda()?];
                    cuda::mixture_draws_backward(gpu, law, each, arrays, [of_values, of_shares])?
                }
            };
            Ok(vec![Some(found)])
        });
        Ok(MixtureDraws { values, log_shares: Var(values.0 + 1) })
    }

    /// Draws of whole mixtures, as constants `[rows · count, d]`: a component by its π, from uniforms
    /// `[rows · count, 1]`, then a draw of it, from standard normals `[rows · count, d]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn mixture_picks(
        &mut self,
        written: Var,
        law: MixtureLaw,
        [uniforms, noise]: [Var; 2],
    ) -> Result<Var> {
        let rows = self.check_mixture(written, &law)?;
        let total = self.shape(noise).0;
        if rows == 0 || !total.is_multiple_of(rows) {
            return Err(Error::invalid(
                "draws of a mixture",
                format!("a multiple of {rows}"),
                total,
            ));
        }
        self.check("noise", noise, (total, law.dims))?;
        self.check("uniforms", uniforms, (total, 1))?;
        let [numbers, uniforms, xi] = [written, uniforms, noise].map(|var| self.array(var));
        let values = match self.device() {
            Device::Cpu(_) => cpu::picks(law, numbers.host()?, uniforms.host()?, xi.host()?).into(),
            Device::Cuda(gpu) => {
                let arrays = [numbers.cuda()?, uniforms.cuda()?, xi.cuda()?];
                cuda::mixture_picks(gpu, law, rows, arrays)?
            }
        };
        self.constant(values, (total, law.dims))
    }

    /// log q of places `[rows · count, d]`, `count` of every row, as `[rows · count, 1]`. Gradients flow
    /// to the mixtures and to the places.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn mixture_log_density(
        &mut self,
        written: Var,
        law: MixtureLaw,
        uniform: Option<UniformPart>,
        places: Var,
    ) -> Result<Var> {
        let rows = self.check_mixture(written, &law)?;
        if let Some(uniform) = &uniform {
            uniform.check()?;
        }
        let (total, dims) = self.shape(places);
        check_length("columns of places", dims, law.dims, || "those of the mixture".into())?;
        if rows == 0 || !total.is_multiple_of(rows) {
            return Err(Error::invalid("places", format!("a multiple of {rows} rows"), total));
        }
        let (numbers, x) = (self.array(written).clone(), self.array(places).clone());
        let density = Density { law, uniform, count: total / rows };
        let value: Array = match self.device() {
            Device::Cpu(_) => cpu::log_density(density, numbers.host()?, x.host()?).into(),
            Device::Cuda(gpu) => {
                cuda::mixture_log_density(gpu, density, [numbers.cuda()?, x.cuda()?])?
            }
        };
        let log_density = value.clone();
        Ok(self.record(&[written, places], value, (total, 1), move |reversal| {
            let g = reversal.cotangent()?;
            let arrays = [&numbers, &x, &log_density, g];
            let [of_written, of_places] = match reversal.device {
                Device::Cpu(_) => {
                    let [numbers, x, log_density, g] = arrays.map(Array::host);
                    let arrays = [&numbers?[..], &x?[..], &log_density?[..], &g?[..]];
                    cpu::log_density_backward(density, arrays).map(Array::from)
                }
                Device::Cuda(gpu) => {
                    let [numbers, x, log_density, g] = arrays.map(Array::cuda);
                    let arrays = [numbers?, x?, log_density?, g?];
                    cuda::mixture_log_density_backward(gpu, density, arrays)?
                }
            };
            Ok(vec![Some(of_written), Some(of_places)])
        }))
    }
}

/// A density, and how many places every row has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Density {
    pub(super) law: MixtureLaw,
    pub(super) uniform: Option<UniformPart>,
    pub(super) count: usize,
}

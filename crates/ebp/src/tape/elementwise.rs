//! Functions of single entries, and sums and products of two values.
#![allow(
    clippy::inline_always,
    reason = "loops reach the machine's instruction set only when inlined into its function"
)]

use super::lanes::{
    exponential, exponential_of_any, hyperbolic_tangent, logarithm_of_one_plus, logistic,
};
use super::{Array, Device, Shape, Tape, Var, cuda, loops, reduce};
use crate::point::cpu::vectorise::{VectorLoop, Vectoriser};
use crate::{Error, Result};

/// y = m(x), entry by entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Map {
    /// a x + b
    Affine(f32, f32),
    /// eˣ
    Exp,
    /// x / (1 + e⁻ˣ)
    Silu,
    /// max(x, 0)
    Relu,
    /// x², the derivative of which is 2 x
    Square,
    /// tanh x
    Tanh,
    /// x between two limits; where it was cut the derivative is 0
    Clamp(f32, f32),
    /// log(1 + eˣ)
    Softplus,
    /// log x
    Log,
}

impl Map {
    /// m(x) of every entry. One loop per map, so that each becomes vector instructions.
    fn values(self, x: &[f32]) -> Vec<f32> {
        match self {
            Self::Affine(scale, shift) => loops::map(x, |x| scale * x + shift),
            Self::Exp => loops::map(x, exponential_of_any),
            Self::Silu => loops::map(x, silu),
            Self::Relu => loops::map(x, |x| x.max(0.0)),
            Self::Square => loops::map(x, |x| x * x),
            Self::Tanh => loops::map(x, |x| hyperbolic_tangent(x).0),
            Self::Clamp(low, high) => loops::map(x, |x| x.clamp(low, high)),
            Self::Softplus => loops::map(x, |x| {
                let rest = logarithm_of_one_plus(exponential(-x.abs()));
                if x > 0.0 { x + rest } else { rest }
            }),
            Self::Log => loops::map(x, f32::ln),
        }
    }

    /// g m′(x) of every entry.
    fn slopes(self, x: &[f32], g: &[f32]) -> Vec<f32> {
        match self {
            Self::Affine(scale, _) => loops::map(g, |g| g * scale),
            Self::Exp => loops::zip(x, g, |x, g| g * exponential_of_any(x)),
            Self::Silu => loops::zip(x, g, |x, g| g * silu_slope(x)),
            Self::Relu => loops::zip(x, g, |x, g| g * f32::from(u8::from(x > 0.0))),
            Self::Square => loops::zip(x, g, |x, g| g * (2.0 * x)),
            Self::Tanh => loops::zip(x, g, |x, g| g * hyperbolic_tangent(x).1),
            Self::Clamp(low, high) => {
                loops::zip(x, g, |x, g| g * f32::from(u8::from((low..=high).contains(&x))))
            }
            Self::Softplus => loops::zip(x, g, |x, g| g * logistic(x)),
            Self::Log => loops::zip(x, g, |x, g| g / x),
        }
    }

    /// The number of the map in the kernels, and its two settings.
    pub(super) fn code(self) -> (i32, f32, f32) {
        match self {
            Self::Affine(scale, shift) => (0, scale, shift),
            Self::Exp => (1, 0.0, 0.0),
            Self::Silu => (2, 0.0, 0.0),
            Self::Relu => (3, 0.0, 0.0),
            Self::Square => (4, 0.0, 0.0),
            Self::Tanh => (5, 0.0, 0.0),
            Self::Clamp(low, high) => (6, low, high),
            Self::Softplus => (7, 0.0, 0.0),
            Self::Log => (8, 0.0, 0.0),
        }
    }
}

/// x / (1 + e⁻ˣ).
#[inline(always)]
pub(super) fn silu(x: f32) -> f32 {
    x * logistic(x)
}

/// The derivative of x / (1 + e⁻ˣ).
#[inline(always)]
pub(super) fn silu_slope(x: f32) -> f32 {
    let share = logistic(x);
    share * (1.0 + x * (1.0 - share))
}

/// What is done to two entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Add,
    Subtract,
    Multiply,
}

/// How the right operand meets the left one, `[rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Entry by entry.
    Same,
    /// `[rows, 1]`: one number for every row.
    PerRow,
    /// `[1, columns]`: one number for every column.
    PerColumn,
    /// `[1, 1]`.
    One,
}

impl Spread {
    fn find(left: Shape, right: Shape) -> Result<Self> {
        if right == left {
            return Ok(Self::Same);
        }
        match right {
            (1, 1) => Ok(Self::One),
            (rows, 1) if rows == left.0 => Ok(Self::PerRow),
            (1, columns) if columns == left.1 => Ok(Self::PerColumn),
            (rows, columns) => {
                let expected = format!("of shape {left:?}, or a row or column of it");
                Err(Error::invalid("right operand", expected, format!("({rows}, {columns})")))
            }
        }
    }

    /// The number of this case in the kernels.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Same => 0,
            Self::PerRow => 1,
            Self::PerColumn => 2,
            Self::One => 3,
        }
    }
}

/// left ∘ right, in the shape of the left operand.
pub(super) fn join(
    device: &Device,
    (left, columns): (&Array, usize),
    (right, spread): (&Array, Spread),
    kind: Join,
) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let operands = (&left.host()?[..], &right.host()?[..]);
            let found = match kind {
                Join::Add => spread_out(operands, columns, spread, |a, b| a + b),
                Join::Subtract => spread_out(operands, columns, spread, |a, b| a - b),
                Join::Multiply => spread_out(operands, columns, spread, |a, b| a * b),
            };
            Ok(found.into())
        }
        Device::Cuda(gpu) => {
            cuda::join(gpu, (left.cuda()?, columns), (right.cuda()?, spread), kind)
        }
    }
}

/// f(a, b) of every entry a of the left operand and what the right one has for it.
fn spread_out(
    (left, right): (&[f32], &[f32]),
    columns: usize,
    spread: Spread,
    f: impl Fn(f32, f32) -> f32 + Copy + Sync,
) -> Vec<f32> {
    match spread {
        Spread::Same => loops::zip(left, right, f),
        Spread::One => {
            let b = right[0];
            loops::map(left, |a| f(a, b))
        }
        Spread::PerRow | Spread::PerColumn => {
            let mut out = vec![0.0; left.len()];
            loops::each_part(&mut out, columns, |first, out| {
                let left = &left[first * columns..][..out.len()];
                let is_per_row = spread == Spread::PerRow;
                let right = if is_per_row { &right[first..] } else { right };
                Vectoriser::new().run(Rows { left, right, out, columns, is_per_row, f });
            });
            out
        }
    }
}

/// Rows that meet one number each, or all the same row.
struct Rows<'a, F> {
    left: &'a [f32],
    right: &'a [f32],
    out: &'a mut [f32],
    columns: usize,
    is_per_row: bool,
    f: F,
}

impl<F: Fn(f32, f32) -> f32> VectorLoop for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let columns = self.columns.max(1);
        let rows = self.out.chunks_exact_mut(columns).zip(self.left.chunks_exact(columns));
        for (row, (out, left)) in rows.enumerate() {
            if self.is_per_row {
                let b = self.right[row];
                out.iter_mut().zip(left).for_each(|(out, &a)| *out = (self.f)(a, b));
            } else {
                let pairs = left.iter().zip(self.right);
                out.iter_mut().zip(pairs).for_each(|(out, (&a, &b))| *out = (self.f)(a, b));
            }
        }
    }
}

fn map(device: &Device, x: &Array, map: Map) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(map.values(x.host()?).into()),
        Device::Cuda(gpu) => cuda::map(gpu, x.cuda()?, map),
    }
}

fn map_backward(device: &Device, x: &Array, cotangent: &Array, map: Map) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(map.slopes(x.host()?, cotangent.host()?).into()),
        Device::Cuda(gpu) => cuda::map_backward(gpu, x.cuda()?, cotangent.cuda()?, map),
    }
}

impl Tape {
    fn map(&mut self, x: Var, kind: Map) -> Result<Var> {
        let argument = self.array(x).clone();
        let value = map(self.device(), &argument, kind)?;
        let shape = self.shape(x);
        Ok(self.record(&[x], value, shape, move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(map_backward(reversal.device, &argument, cotangent, kind)?)])
        }))
    }

    /// a x + b.
    ///
    /// # Errors
    ///
    /// As every operation: [`Error::InvalidValue`] if shapes do not fit, [`Error::Device`] if the
    /// device fails.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn affine(&mut self, x: Var, scale: f64, shift: f64) -> Result<Var> {
        self.map(x, Map::Affine(scale as f32, shift as f32))
    }

    /// eˣ.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn exp(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Exp)
    }

    /// x / (1 + e⁻ˣ).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn silu(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Silu)
    }

    /// max(x, 0).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn relu(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Relu)
    }

    /// x².
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn square(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Square)
    }

    /// tanh x.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn tanh(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Tanh)
    }

    /// x, cut to `low..=high`; no gradient flows where it was cut.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn clamp(&mut self, x: Var, low: f32, high: f32) -> Result<Var> {
        if low.is_nan() || high.is_nan() || low > high {
            let found = format!("[{low}, {high}]");
            return Err(Error::invalid("limits", "low at most high", found));
        }
        self.map(x, Map::Clamp(low, high))
    }

    /// log(1 + eˣ).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn softplus(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Softplus)
    }

    /// log x.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn log(&mut self, x: Var) -> Result<Var> {
        self.map(x, Map::Log)
    }

    /// left + right; the right operand may be one row, one column or one number for all.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn add(&mut self, left: Var, right: Var) -> Result<Var> {
        self.join(left, right, Join::Add)
    }

    /// left − right; see [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn subtract(&mut self, left: Var, right: Var) -> Result<Var> {
        self.join(left, right, Join::Subtract)
    }

    /// left · right, entry by entry; see [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn multiply(&mut self, left: Var, right: Var) -> Result<Var> {
        self.join(left, right, Join::Multiply)
    }

    fn join(&mut self, left: Var, right: Var, kind: Join) -> Result<Var> {
        let shape = self.shape(left);
        let spread = Spread::find(shape, self.shape(right))?;
        let (a, b) = (self.array(left).clone(), self.array(right).clone());
        let columns = shape.1;
        let value = join(self.device(), (&a, columns), (&b, spread), kind)?;
        Ok(self.record(&[left, right], value, shape, move |reversal| {
            let (device, g) = (reversal.device, reversal.cotangent()?);
            let of_left = reversal.when(0, || match kind {
                Join::Multiply => join(device, (g, columns), (&b, spread), Join::Multiply),
                _ => Ok(g.clone()),
            })?;
            let of_right = reversal.when(1, || {
                let g = match kind {
                    Join::Multiply => {
                        join(device, (g, columns), (&a, Spread::Same), Join::Multiply)?
                    }
                    Join::Subtract => map(device, g, Map::Affine(-1.0, 0.0))?,
                    Join::Add => g.clone(),
                };
                match spread {
                    Spread::Same => Ok(g),
                    Spread::PerRow => reduce::row_sums(device, &g, shape),
                    Spread::PerColumn => reduce::column_sums(device, &g, shape),
                    Spread::One => reduce::sum(device, &g),
                }
            })?;
            Ok(vec![of_left, of_right])
        }))
    }

    /// The first `start` numbers as they are, the others times `factor`: a network's last layer
    /// divided by the temperature.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn scale_from(&mut self, x: Var, start: usize, factor: f32) -> Result<Var> {
        let shape = self.shape(x);
        let length = self.array(x).len();
        if start > length {
            return Err(Error::invalid("start", format!("at most {length}"), start));
        }
        let value = scale_from(self.device(), self.array(x), start, factor)?;
        Ok(self.record(&[x], value, shape, move |reversal| {
            let cotangent = reversal.cotangent()?;
            Ok(vec![Some(scale_from(reversal.device, cotangent, start, factor)?)])
        }))
    }
}

fn scale_from(device: &Device, x: &Array, start: usize, factor: f32) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let mut values = x.host()?.to_vec();
            values[start..].iter_mut().for_each(|value| *value *= factor);
            Ok(values.into())
        }
        Device::Cuda(gpu) => cuda::scale_from(gpu, x.cuda()?, start, factor),
    }
}

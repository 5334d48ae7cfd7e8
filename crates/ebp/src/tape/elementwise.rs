//! Functions of single entries, and sums and products of two values.

use super::{Array, Device, Shape, Tape, Var, cuda, reduce};
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
    fn value(self, x: f32) -> f32 {
        match self {
            Self::Affine(scale, shift) => scale * x + shift,
            Self::Exp => x.exp(),
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::Relu => x.max(0.0),
            Self::Square => x * x,
            Self::Tanh => x.tanh(),
            Self::Clamp(low, high) => x.clamp(low, high),
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Self::Log => x.ln(),
        }
    }

    fn slope(self, x: f32) -> f32 {
        match self {
            Self::Affine(scale, _) => scale,
            Self::Exp => x.exp(),
            Self::Silu => {
                let share = 1.0 / (1.0 + (-x).exp());
                share * (1.0 + x * (1.0 - share))
            }
            Self::Relu => f32::from(u8::from(x > 0.0)),
            Self::Square => 2.0 * x,
            Self::Tanh => 1.0 - x.tanh().powi(2),
            Self::Clamp(low, high) => f32::from(u8::from((low..=high).contains(&x))),
            Self::Softplus => 1.0 / (1.0 + (-x).exp()),
            Self::Log => 1.0 / x,
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

    fn place(self, index: usize, columns: usize) -> usize {
        match self {
            Self::Same => index,
            Self::PerRow => index / columns,
            Self::PerColumn => index % columns,
            Self::One => 0,
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
            let (left, right) = (left.host()?, right.host()?);
            let combine = |(index, &a): (usize, &f32)| {
                let b = right[spread.place(index, columns)];
                match kind {
                    Join::Add => a + b,
                    Join::Subtract => a - b,
                    Join::Multiply => a * b,
                }
            };
            Ok(left.iter().enumerate().map(combine).collect::<Vec<_>>().into())
        }
        Device::Cuda(gpu) => {
            cuda::join(gpu, (left.cuda()?, columns), (right.cuda()?, spread), kind)
        }
    }
}

fn map(device: &Device, x: &Array, map: Map) -> Result<Array> {
    match device {
        Device::Cpu(_) => Ok(x.host()?.iter().map(|&x| map.value(x)).collect::<Vec<_>>().into()),
        Device::Cuda(gpu) => cuda::map(gpu, x.cuda()?, map),
    }
}

fn map_backward(device: &Device, x: &Array, cotangent: &Array, map: Map) -> Result<Array> {
    match device {
        Device::Cpu(_) => {
            let pairs = x.host()?.iter().zip(cotangent.host()?.iter());
            Ok(pairs.map(|(&x, g)| g * map.slope(x)).collect::<Vec<_>>().into())
        }
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

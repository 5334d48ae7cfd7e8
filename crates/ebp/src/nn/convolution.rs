//! Residual networks over the places of pictures, on one grid or on several, each half as fine.
//!
//! ```text
//! block    x ← x + W₂ σ(W₁ (w ∗ x) + b₁) + b₂           w ∗: every channel by its own window
//! down     x ← V (v ∗₂ x)     half as many rows and columns
//! up       x ← u ∗₂ᵀ (U x)    and back
//! ```
//!
//! Rows are places, set after set, so the dense layers are those of any rows. No parameter belongs to
//! a place: the same network reads pictures of any size.

use super::{Dense, DenseConfig, Initialiser};
use crate::point::Activation;
use crate::tape::{Convolution, Group, Parameter, Tape, Var};
use crate::{Error, Result};

/// Columns and rows of a grid.
pub type Size = (usize, usize);

/// What the last layer of a block is multiplied by at the start: some ten blocks, one after the other,
/// then double what they are given and no more.
const BLOCK_SCALE: f32 = 0.3;
/// The window that leads to the next grid and back.
const STEP_SIDE: usize = 3;

/// Windows of one number per channel and place of theirs.
#[derive(Clone, Debug)]
struct Windows {
    weights: Parameter,
    side: usize,
    stride: usize,
}

impl Windows {
    fn new(
        group: &mut Group<'_>,
        name: &str,
        channels: usize,
        (side, stride): (usize, usize),
    ) -> Result<Self> {
        // Checks the side.
        Convolution::new((1, 1), side, stride)?;
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 / side as f32 };
        let weights = group.trained(name, &[side * side, channels], law)?;
        Ok(Self { weights, side, stride })
    }

    fn on(&self, size: Size) -> Result<Convolution> {
        Convolution::new(size, self.side, self.stride)
    }

    fn forward(&self, tape: &mut Tape, x: Var, size: Size) -> Result<Var> {
        let weights = tape.parameter(&self.weights)?;
        tape.convolve(x, weights, self.on(size)?)
    }

    /// To the grid of `size` from the coarser one.
    fn transposed(&self, tape: &mut Tape, x: Var, size: Size) -> Result<Var> {
        let weights = tape.parameter(&self.weights)?;
        tape.convolve_transposed(x, weights, self.on(size)?)
    }
}

/// x + what a window and two dense layers make of it.
#[derive(Clone, Debug)]
struct ResidualBlock {
    windows: Windows,
    layers: Dense,
}

impl ResidualBlock {
    fn new(group: &mut Group<'_>, width: usize, side: usize) -> Result<Self> {
        let layers = DenseConfig {
            inputs: width,
            hidden: &[width],
            outputs: width,
            activation: Activation::Silu,
            weights: Initialiser::He,
            output_scale: BLOCK_SCALE,
        };
        let layers = Dense::new(group, "layers", &layers)?;
        Ok(Self { windows: Windows::new(group, "windows", width, (side, 1))?, layers })
    }

    fn forward(&self, tape: &mut Tape, x: Var, size: Size) -> Result<Var> {
        if !tape.device().is_gpu() {
            let windows = tape.parameter(&self.windows.weights)?;
            let layers = tape.parameter(self.layers.parameters())?;
            let (window, shape) = (self.windows.on(size)?, self.layers.shape());
            return tape.residual_block(x, (windows, window), (layers, shape));
        }
        let near = self.windows.forward(tape, x, size)?;
        let change = self.layers.forward(tape, near)?;
        tape.add(x, change)
    }
}

/// Sizes of the networks.
#[derive(Clone, Copy, Debug)]
pub struct GridConfig<'a> {
    /// Numbers of a place that go in.
    pub inputs: usize,
    /// Channels of every grid, the finest first.
    pub widths: &'a [usize],
    /// Residual blocks of every grid.
    pub blocks: usize,
    /// Side of their windows.
    pub side: usize,
}

/// The blocks of one grid.
#[derive(Clone, Debug)]
struct Level(Vec<ResidualBlock>);

impl Level {
    fn new(group: &mut Group<'_>, config: &GridConfig<'_>, width: usize) -> Result<Self> {
        let mut block = |number: usize| {
            ResidualBlock::new(&mut group.group(&number.to_string()), width, config.side)
        };
        Ok(Self((0..config.blocks).map(&mut block).collect::<Result<Vec<_>>>()?))
    }

    fn forward(&self, tape: &mut Tape, x: Var, size: Size) -> Result<Var> {
        self.0.iter().try_fold(x, |x, block| block.forward(tape, x, size))
    }
}

fn linear(group: &mut Group<'_>, name: &str, inputs: usize, outputs: usize) -> Result<Dense> {
    Dense::new(group, name, &DenseConfig::linear(inputs, outputs, Initialiser::Xavier))
}

/// From the finest grid to the coarsest.
#[derive(Clone, Debug)]
pub struct Descent {
    input: Dense,
    levels: Vec<Level>,
    steps: Vec<(Windows, Dense)>,
}

impl Descent {
    /// A network called as the group.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there is no grid, a width is 0 or the side is even or above 15.
    pub fn new(group: &mut Group<'_>, config: &GridConfig<'_>) -> Result<Self> {
        let Some(&first) = config.widths.first() else {
            return Err(Error::invalid("widths", "at least one", 0));
        };
        let input = linear(group, "input", config.inputs, first)?;
        let mut levels = Vec::with_capacity(config.widths.len());
        for (number, &width) in config.widths.iter().enumerate() {
            levels.push(Level::new(&mut group.group(&format!("down{number}")), config, width)?);
        }
        let mut steps = Vec::with_capacity(levels.len());
        for (number, pair) in config.widths.windows(2).enumerate() {
            let mut group = group.group(&format!("step{number}"));
            let windows = Windows::new(&mut group, "windows", pair[0], (STEP_SIDE, 2))?;
            steps.push((windows, linear(&mut group, "mix", pair[0], pair[1])?));
        }
        Ok(Self { input, levels, steps })
    }

    /// What there is on every grid, the finest first, with the grids' sizes; x is
    /// `[sets · places, inputs]`.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn forward(&self, tape: &mut Tape, x: Var, mut size: Size) -> Result<Vec<(Var, Size)>> {
        let mut x = self.input.forward(tape, x)?;
        let mut found = Vec::with_capacity(self.levels.len());
        for (number, level) in self.levels.iter().enumerate() {
            if number > 0 {
                let (windows, mix) = &self.steps[number - 1];
                x = windows.forward(tape, x, size)?;
                x = mix.forward(tape, x)?;
                size = halved(size);
            }
            x = level.forward(tape, x, size)?;
            found.push((x, size));
        }
        Ok(found)
    }
}

/// Columns and rows of the grid that is half as fine.
fn halved((width, height): Size) -> Size {
    (width.div_ceil(2), height.div_ceil(2))
}

/// The size of the coarsest of `count` grids.
pub fn coarsest(size: Size, count: usize) -> Size {
    (1..count).fold(size, |size, _| halved(size))
}

/// From the coarsest grid back to the finest, past what was there on the way down.
#[derive(Clone, Debug)]
pub struct Ascent {
    levels: Vec<Level>,
    steps: Vec<(Dense, Windows)>,
}

impl Ascent {
    /// A network called as the group.
    ///
    /// # Errors
    ///
    /// As [`Descent::new`].
    pub fn new(group: &mut Group<'_>, config: &GridConfig<'_>) -> Result<Self> {
        let (mut levels, mut steps) = (Vec::new(), Vec::new());
        for (number, pair) in config.widths.windows(2).enumerate() {
            let mut group = group.group(&format!("up{number}"));
            levels.push(Level::new(&mut group, config, pair[0])?);
            let mix = linear(&mut group, "mix", pair[1], pair[0])?;
            steps.push((mix, Windows::new(&mut group, "windows", pair[0], (STEP_SIDE, 2))?));
        }
        Ok(Self { levels, steps })
    }

    /// What there is at every place of the finest grid, from `lowest` on the coarsest and what
    /// [`Descent::forward`] found on the others.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn forward(&self, tape: &mut Tape, finer: &[(Var, Size)], lowest: Var) -> Result<Var> {
        let mut x = lowest;
        for (number, (level, (mix, windows))) in
            self.levels.iter().zip(&self.steps).enumerate().rev()
        {
            let (skipped, size) = finer[number];
            x = mix.forward(tape, x)?;
            let upper = windows.transposed(tape, x, size)?;
            let both = tape.add(skipped, upper)?;
            x = level.forward(tape, both, size)?;
        }
        Ok(x)
    }
}

#[cfg(test)]
mod tests {
    use super::super::differences::check;
    use super::*;
    use crate::rng::Stream;
    use crate::tape::ParameterBuilder;

    const CONFIG: GridConfig<'_> = GridConfig { inputs: 2, widths: &[3, 4], blocks: 1, side: 3 };

    #[test]
    fn gradients_reach_every_part() {
        let mut builder = ParameterBuilder::new(5);
        let mut group = builder.group("model");
        let down = Descent::new(&mut group, &CONFIG).unwrap();
        let up = Ascent::new(&mut group, &CONFIG).unwrap();
        let (block, raised) = (&down.levels[1].0[0], &up.levels[0].0[0]);
        let parameters = [
            ("input", *down.input.parameters()),
            ("step0.windows", down.steps[0].0.weights),
            ("step0.mix", *down.steps[0].1.parameters()),
            ("down1.0.windows", block.windows.weights),
            ("down1.0.layers", *block.layers.parameters()),
            ("up0.mix", *up.steps[0].0.parameters()),
            ("up0.windows", up.steps[0].1.weights),
            ("up0.0.layers", *raised.layers.parameters()),
        ];
        check(builder, &parameters, |tape| {
            let x = tape.normals((2 * 5 * 4, 2), Stream::new(1, "x"))?;
            let found = down.forward(tape, x, (5, 4))?;
            let (lowest, size) = found[1];
            assert_eq!((size, tape.shape(lowest)), ((3, 2), (2 * 6, 4)));
            up.forward(tape, &found[..1], lowest)
        });
        assert_eq!(coarsest((28, 20), 3), (7, 5));
    }
}

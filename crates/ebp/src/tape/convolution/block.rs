//! A residual block over the places of pictures, on the host:
//!
//! ```text
//! y = x + W₂ σ(W₁ (w ∗ x) + b₁) + b₂          σ(z) = z / (1 + e⁻ᶻ)
//! ```
//!
//! A few hundred places at a time go through the whole block, and on the way back through it again: of the
//! arrays `[places, width]` only x and y are ever written, the others stay in the cache. The same bits on
//! any number of threads.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::super::elementwise::{silu, silu_slope};
use super::super::{Device, Tape, Var, loops, reduce};
use super::Convolution;
use crate::error::check_finite;
use crate::point::cpu::WindowMemory;
use crate::point::{Activation, CpuBackend, LayerShape, MlpShape};
use crate::{Error, Result};

/// Places that go through a block together, or one picture: with 64 channels four arrays of them are a
/// megabyte.
const PLACES: usize = 1 << 9;

/// The sizes of a block, and how its two layers lie in their parameters.
#[derive(Clone, Debug)]
struct Block {
    window: Convolution,
    layers: [LayerShape; 2],
}

/// What a block is made of.
#[derive(Clone, Copy)]
struct Weights<'a> {
    windows: &'a [f32],
    layers: &'a [f32],
}

/// Sums over places, in f32 within a part as the products are.
struct Gradients {
    windows: Vec<f32>,
    layers: Vec<f32>,
}

impl Tape {
    /// x + W₂ σ(W₁ (w ∗ x) + b₁) + b₂ for rows x `[sets · places, width]` of the grid of `window`;
    /// `layers` are the flat parameters of a network with one hidden layer. On the CPU only.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless sizes fit and σ is `silu`, [`Error::NonFinite`] if numbers
    /// overflow.
    pub(crate) fn residual_block(
        &mut self,
        x: Var,
        (windows, window): (Var, Convolution),
        (layers, shape): (Var, &MlpShape),
    ) -> Result<Var> {
        let (rows, width) = self.shape(x);
        Convolution::num_sets(rows, window.num_fine())?;
        self.check("weights", windows, (window.num_weights(), width))?;
        self.check("layers", layers, (1, shape.num_parameters()))?;
        let Device::Cpu(cpu) = *self.device() else {
            return Err(Error::invalid("device", "the CPU", "a GPU"));
        };
        let block = Block::new(shape, window, width)?;
        let arrays = [x, windows, layers].map(|var| self.array(var).clone());
        let value = {
            let [x, windows, layers] = [&arrays[0], &arrays[1], &arrays[2]];
            let weights = Weights { windows: windows.host()?, layers: layers.host()? };
            block.forward(cpu, x.host()?, weights)?
        };
        Ok(self.record(&[x, windows, layers], value.into(), (rows, width), move |reversal| {
            let [x, windows, layers] = &arrays;
            let weights = Weights { windows: windows.host()?, layers: layers.host()? };
            let pair = (&x.host()?[..], &reversal.cotangent()?.host()?[..]);
            let (of_x, gradients) = block.backward(cpu, pair, weights);
            Ok(vec![
                Some(of_x.into()),
                Some(gradients.windows.into()),
                Some(gradients.layers.into()),
            ])
        }))
    }
}

impl Block {
    fn new(shape: &MlpShape, window: Convolution, width: usize) -> Result<Self> {
        let found: Vec<_> = shape.layers().iter().map(|l| (l.inputs, l.outputs)).collect();
        match shape.layers() {
            [first, second]
                if first.inputs == width
                    && second.outputs == width
                    && window.stride == 1
                    && shape.config().activation == Activation::Silu
                    && shape.config().context_dim == 0 =>
            {
                Ok(Self { window, layers: [first.clone(), second.clone()] })
            }
            _ => {
                let expected = format!("one hidden layer between {width} and {width} numbers");
                Err(Error::invalid("layers", expected, format!("{found:?}")))
            }
        }
    }

    /// Numbers of a part: whole pictures.
    fn part(&self) -> usize {
        let places = self.window.num_fine();
        (PLACES / places).max(1) * places * self.layers[0].inputs
    }

    fn forward(&self, cpu: CpuBackend, x: &[f32], weights: Weights<'_>) -> Result<Vec<f32>> {
        let [first, second] = &self.layers;
        let mut y = vec![0.0; x.len()];
        let parts = y.par_chunks_mut(self.part()).zip(x.par_chunks(self.part()));
        parts.try_for_each_init(
            || Scratch::new(self),
            |scratch, (y, x)| {
                let Views { z, .. } = scratch.see(self, cpu, x, weights);
                loops::rows_here(z, weights.bias(first), |z, b| silu(z + b));
                y.copy_from_slice(x);
                loops::rows_here(y, weights.bias(second), |x, b| x + b);
                let matrix = weights.matrix(second).transpose();
                product((y, second.outputs), Accum::Add, (z, second.inputs), matrix);
                check_finite("values", y, "the network's numbers overflow")
            },
        )?;
        Ok(y)
    }

    /// ∂L/∂x, and of the weights, from x and ∂L/∂y.
    fn backward(
        &self,
        cpu: CpuBackend,
        (x, g): (&[f32], &[f32]),
        weights: Weights<'_>,
    ) -> (Vec<f32>, Gradients) {
        let mut of_x = vec![0.0; x.len()];
        let inputs = x.par_chunks(self.part()).zip(g.par_chunks(self.part()));
        let parts: Vec<Gradients> = of_x
            .par_chunks_mut(self.part())
            .zip(inputs)
            .map_init(
                || Scratch::new(self),
                |scratch, (of_x, (x, g))| self.back(scratch, cpu, (x, g, of_x), weights),
            )
            .collect();
        let sum = |of: fn(&Gradients) -> &[f32]| {
            let mut sums = vec![0.0_f64; parts.first().map_or(0, |part| of(part).len())];
            for part in &parts {
                sums.iter_mut().zip(of(part)).for_each(|(sum, &term)| *sum += f64::from(term));
            }
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            sums.into_iter().map(|sum| sum as f32).collect()
        };
        (of_x, Gradients { windows: sum(|p| &p.windows), layers: sum(|p| &p.layers) })
    }

    /// The way back of a part.
    fn back(
        &self,
        scratch: &mut Scratch,
        cpu: CpuBackend,
        (x, g, of_x): (&[f32], &[f32], &mut [f32]),
        weights: Weights<'_>,
    ) -> Gradients {
        let [first, second] = &self.layers;
        let mut layers = vec![0.0; weights.layers.len()];
        let mut windows = vec![0.0; weights.windows.len()];
        let Views { memory, near, z, hidden } = scratch.see(self, cpu, x, weights);
        loops::rows_here(z, weights.bias(first), |z, b| z + b);
        loops::map_into(z, hidden, silu);
        loops::map_here(z, silu_slope);
        outer(&mut layers[second.weight.clone()], (g, second.outputs), (hidden, second.inputs));
        reduce::sums_of_columns_here(g, &mut layers[second.bias.clone()]);
        let (width, middle) = (first.inputs, second.inputs);
        product((hidden, middle), Accum::Replace, (g, width), weights.matrix(second));
        loops::pairs_here(z, hidden, |slope, g| slope * g);
        outer(&mut layers[first.weight.clone()], (z, middle), (near, width));
        reduce::sums_of_columns_here(z, &mut layers[first.bias.clone()]);
        product((near, width), Accum::Replace, (z, middle), weights.matrix(first));
        let length = self.window.num_fine() * width;
        let mut sums = vec![0.0; windows.len()];
        let pictures = x.chunks_exact(length).zip(near.chunks_exact(length));
        for ((x, near), of_x) in pictures.zip(of_x.chunks_exact_mut(length)) {
            cpu.convolve_weights(memory, (x, near), &mut sums);
            loops::pairs_here(&mut windows, &sums, |sum, term| sum + term);
            cpu.convolve(memory, (near, weights.windows), true, of_x);
        }
        loops::pairs_here(of_x, g, |sum, g| sum + g);
        Gradients { windows, layers }
    }
}

impl<'a> Weights<'a> {
    fn bias(self, layer: &LayerShape) -> &'a [f32] {
        &self.layers[layer.bias.clone()]
    }

    fn matrix(self, layer: &LayerShape) -> MatRef<'a, f32> {
        let weight = &self.layers[layer.weight.clone()];
        MatRef::from_row_major_slice(weight, layer.outputs, layer.inputs)
    }
}

/// Memory for one part after the other.
struct Scratch {
    memory: WindowMemory,
    near: Vec<f32>,
    z: Vec<f32>,
    hidden: Vec<f32>,
}

/// As much of it as a part has rows.
struct Views<'a> {
    memory: &'a mut WindowMemory,
    near: &'a mut [f32],
    z: &'a mut [f32],
    hidden: &'a mut [f32],
}

impl Scratch {
    fn new(block: &Block) -> Self {
        let [first, _] = &block.layers;
        let rows = block.part() / first.inputs;
        let zeros = |width: usize| vec![0.0; rows * width];
        let (near, z, hidden) = (zeros(first.inputs), zeros(first.outputs), zeros(first.outputs));
        Self { memory: block.window.memory(), near, z, hidden }
    }

    /// near = w ∗ x and z = W₁ near.
    fn see(
        &mut self,
        block: &Block,
        cpu: CpuBackend,
        x: &[f32],
        weights: Weights<'_>,
    ) -> Views<'_> {
        let [first, _] = &block.layers;
        let (width, middle) = (first.inputs, first.outputs);
        let rows = x.len() / width;
        let Self { memory, near, z, hidden } = self;
        let (near, z) = (&mut near[..x.len()], &mut z[..rows * middle]);
        let length = block.window.num_fine() * width;
        for (x, near) in x.chunks_exact(length).zip(near.chunks_exact_mut(length)) {
            cpu.convolve(memory, (x, weights.windows), false, near);
        }
        let matrix = weights.matrix(first).transpose();
        product((z, middle), Accum::Replace, (near, width), matrix);
        Views { memory, near, z, hidden: &mut hidden[..rows * middle] }
    }
}

/// Rows of `out` ← or += rows · right.
fn product(
    (out, columns): (&mut [f32], usize),
    accumulate: Accum,
    (rows, width): (&[f32], usize),
    right: MatRef<'_, f32>,
) {
    let count = rows.len() / width;
    let out = MatMut::from_row_major_slice_mut(out, count, columns);
    matmul(out, accumulate, MatRef::from_row_major_slice(rows, count, width), right, 1.0, Par::Seq);
}

/// out ← Σ over rows of left rightᵀ.
fn outer(out: &mut [f32], (left, n): (&[f32], usize), (right, k): (&[f32], usize)) {
    let rows = left.len() / n;
    let out = MatMut::from_row_major_slice_mut(out, n, k);
    let left = MatRef::from_row_major_slice(left, rows, n).transpose();
    let right = MatRef::from_row_major_slice(right, rows, k);
    matmul(out, Accum::Replace, left, right, 1.0, Par::Seq);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::point::{ContextAt, MlpConfig};
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, Initialiser, ParameterBuilder, ParameterSet};

    /// W₁, b₁, W₂ and b₂.
    fn layers(width: usize) -> MlpShape {
        MlpShape::new(MlpConfig {
            value_dim: width,
            location_dim: 0,
            context_dim: 0,
            hidden_widths: vec![width],
            output_dim: width,
            activation: Activation::Silu,
            context_at: ContextAt::FirstLayer,
            activate_output: false,
        })
        .unwrap()
    }

    /// y, ∂L/∂x and the gradients of both parameters, by one operation or by several.
    fn run(
        is_one: bool,
        (size, side, sets, width): ((usize, usize), usize, usize, usize),
    ) -> Vec<Vec<f32>> {
        let device = Device::default();
        let window = Convolution::new(size, side, 1).unwrap();
        let mut builder = ParameterBuilder::new(1);
        let mut group = builder.group("block");
        let law = Initialiser::Normal { mean: 0.0, std_dev: 0.3 };
        let windows = group.trained("windows", &[side * side, width], law).unwrap();
        let shape = Arc::new(layers(width));
        let dense = group.point_mlp("layers", &shape).unwrap();
        let scale = (1.0 / width as f32).sqrt();
        let numbers = group.values_mut(&dense);
        Stream::new(4, "layers").fill_normal(0, 0, numbers);
        for weight in shape.layers().iter().flat_map(|layer| layer.weight.clone()) {
            numbers[weight] *= scale;
        }
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let rows = sets * size.0 * size.1;
        let mut numbers = vec![0.0; rows * width];
        Stream::new(2, "x").fill_normal(0, 0, &mut numbers);
        let gradients = |of_x: bool| {
            let mut tape = device.tape();
            if of_x {
                tape.read(&set);
            } else {
                tape.train(&set);
            }
            let x = tape.variable(numbers.clone().into(), (rows, width)).unwrap();
            let weights = tape.parameter(&windows).unwrap();
            let y = if is_one {
                let layers = tape.parameter(&dense).unwrap();
                tape.residual_block(x, (weights, window), (layers, &shape)).unwrap()
            } else {
                let near = tape.convolve(x, weights, window).unwrap();
                let layers = tape.parameter(&dense).unwrap();
                let change = tape.dense(&shape, layers, near).unwrap();
                tape.add(x, change).unwrap()
            };
            let value = tape.download(y).unwrap();
            let factors = tape.normals((rows, width), Stream::new(9, "factors")).unwrap();
            let weighed = tape.multiply(y, factors).unwrap();
            let loss = tape.sum(weighed).unwrap();
            if of_x {
                return vec![value, device.download(&tape.gradient(loss, x).unwrap()).unwrap()];
            }
            let found = tape.backward(loss).unwrap();
            let of = |p| found.of(p, &device).unwrap().unwrap();
            vec![of(&windows), of(&dense)]
        };
        [gradients(true), gradients(false)].concat()
    }

    /// Several pictures to a part with a rest, one picture to a part, and widths that are no lines.
    #[test]
    fn a_block_is_its_operations_one_by_one() {
        for case in [((5, 4), 3, 31, 16), ((9, 7), 5, 3, 19), ((28, 20), 7, 2, 32)] {
            for (found, expected) in run(true, case).iter().zip(run(false, case)) {
                let largest = expected.iter().fold(0.0_f32, |l, x| l.max(x.abs()));
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    assert!((found - expected).abs() < 2e-5 * largest, "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let found = [1, 3].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let all = pool.install(|| run(true, ((9, 7), 3, 40, 17)).concat());
            all.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
        });
        assert!(found[0] == found[1]);
    }
}

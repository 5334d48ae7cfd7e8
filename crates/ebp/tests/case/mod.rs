//! Random cases for the tests of the point primitive, and how two answers are compared.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

pub(crate) mod differences;
pub(crate) mod operations;
pub(crate) mod strategy;

use std::fmt::Debug;
use std::sync::OnceLock;

use ebp::SetOffsets;
use ebp::point::cpu::SimdLevel;
use ebp::point::{
    Activation, ContextAt, CpuBackend, CudaBackend, Gradients, MlpConfig, MlpShape, PointBackend,
    PointBatch, PointMlp, Precision,
};
use ebp::rng::Stream;

use crate::twin::{self, Network, Sets};

/// All five activations.
pub(crate) const ACTIVATIONS: [Activation; 5] = [
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.2 },
    Activation::Silu,
    Activation::Softplus,
    Activation::Tanh,
];

/// Piecewise linear σ has jumps in its derivatives, as have clips and walls. An element closer
/// than this to one is drawn anew: f32 rounding moves a quantity of order one by some 1e-6, so it
/// could otherwise land on the other side of the jump than the twin does.
pub(crate) const CLEARANCE: f64 = 1e-4;

/// What a case is made of; everything else follows from the seed.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) config: MlpConfig,
    pub(crate) sizes: Vec<usize>,
    /// The standard deviation of the elements: 1, or more to reach the tails of σ.
    pub(crate) spread: f32,
    pub(crate) seed: u64,
}

impl Default for Spec {
    /// A small energy with everything in it, not a multiple of any vector width.
    fn default() -> Self {
        Self {
            config: MlpConfig {
                value_dim: 2,
                location_dim: 1,
                context_dim: 3,
                hidden_widths: vec![7, 5],
                output_dim: 1,
                activation: Activation::Silu,
                context_at: ContextAt::EveryLayer,
                activate_output: false,
            },
            sizes: vec![2, 1, 4],
            spread: 1.0,
            seed: 1,
        }
    }
}

/// A network and a batch, drawn.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) mlp: PointMlp,
    pub(crate) offsets: SetOffsets,
    pub(crate) elements: Vec<f32>,
    pub(crate) context: Vec<f32>,
    seed: u64,
}

impl Case {
    /// Draws a case whose elements are all at least [`CLEARANCE`] away from the kinks of σ, or
    /// `None` if forty draws of an element did not achieve that.
    pub(crate) fn draw(spec: &Spec) -> Option<Self> {
        Self::draw_where(spec, |network, sets, i| {
            let trace = network.forward(sets.row(i), sets.context_of(i));
            network.kink_distance(&trace) > CLEARANCE
        })
    }

    /// Draws a case whose elements all satisfy `is_clear`.
    pub(crate) fn draw_where(
        spec: &Spec,
        is_clear: impl Fn(&Network, &Sets, usize) -> bool,
    ) -> Option<Self> {
        let shape = MlpShape::new(spec.config.clone()).expect("the strategy makes valid shapes");
        let offsets = SetOffsets::from_sizes(spec.sizes.iter().copied()).expect("no empty set");
        let d = shape.element_dim();
        let mut case = Self {
            elements: normals(spec.seed, "elements", offsets.num_elements() * d)
                .iter()
                .map(|x| x * spec.spread)
                .collect(),
            context: normals(spec.seed, "context", offsets.num_sets() * spec.config.context_dim),
            mlp: random_network(shape, spec.seed),
            offsets,
            seed: spec.seed,
        };
        let (network, mut sets) = (case.network(), case.sets());
        let stream = Stream::new(spec.seed, "redraw");
        for i in 0..case.offsets.num_elements() {
            let row = i * d..(i + 1) * d;
            let mut attempt = 0;
            while !is_clear(&network, &sets, i) {
                attempt += 1;
                if attempt > 40 {
                    return None;
                }
                let fresh = &mut case.elements[row.clone()];
                stream.fill_normal(attempt, row.start as u64, fresh);
                for x in &mut *fresh {
                    *x *= spec.spread;
                }
                sets.elements[row.clone()].copy_from_slice(&twin::widen(fresh));
            }
        }
        Some(case)
    }

    pub(crate) fn batch(&self) -> PointBatch<'_> {
        PointBatch { elements: &self.elements, offsets: &self.offsets, context: &self.context }
    }

    pub(crate) fn network(&self) -> Network {
        Network::new(&self.mlp)
    }

    pub(crate) fn sets(&self) -> Sets {
        Sets::new(&self.batch())
    }

    /// Standard normals that belong to this case, such as cotangents.
    pub(crate) fn normals(&self, name: &str, count: usize) -> Vec<f32> {
        normals(self.seed, name, count)
    }

    /// `[total, d_x]` standard normals.
    pub(crate) fn like_values(&self, name: &str) -> Vec<f32> {
        self.normals(name, self.offsets.num_elements() * self.config().value_dim)
    }

    /// `[total]` standard normals.
    pub(crate) fn per_element(&self, name: &str) -> Vec<f32> {
        self.normals(name, self.offsets.num_elements())
    }

    pub(crate) fn config(&self) -> &MlpConfig {
        self.mlp.shape().config()
    }
}

/// Standard normals of a named stream.
pub(crate) fn normals(seed: u64, name: &str, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    Stream::new(seed, name).fill_normal(0, 0, &mut values);
    values
}

/// Weights that keep every layer's z of order one, and biases that are not zero.
pub(crate) fn random_network(shape: MlpShape, seed: u64) -> PointMlp {
    let mut parameters =
        PointMlp::random(shape.clone(), Stream::new(seed, "weights")).parameters().to_vec();
    let biases = normals(seed, "biases", parameters.len());
    for layer in shape.layers() {
        for at in layer.bias.clone() {
            parameters[at] = 0.3 * biases[at];
        }
    }
    PointMlp::new(shape, parameters).expect("the parameters fit their shape")
}

/// One backend for every instruction set of this machine, and its GPU if it has one.
pub(crate) fn backends() -> Vec<&'static dyn PointBackend> {
    static ALL: OnceLock<Vec<Box<dyn PointBackend>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let levels = SimdLevel::available();
        assert!(levels.contains(&SimdLevel::Portable), "every machine runs the portable kernels");
        let cpu = |level| CpuBackend::with_simd(level).expect("it is available");
        let mut all: Vec<Box<dyn PointBackend>> = Vec::new();
        all.extend(levels.into_iter().map(|level| Box::new(cpu(level)) as Box<dyn PointBackend>));
        // tests/cuda.rs says aloud why a GPU is not tested.
        if let Ok(gpu) = CudaBackend::new(0, Precision::F32) {
            all.push(Box::new(gpu));
        }
        all
    });
    all.iter().map(AsRef::as_ref).collect()
}

/// The largest |value|.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, v| v.abs().max(largest))
}

/// How far f32 may be from f64, relative to 1 + the largest magnitude of a result.
///
/// One f32 operation errs by at most u = 6e-8 of its result, and a sum of n terms of order one by
/// about √n u. Our longest sums have a thousand terms (width 1024, or 130 elements times some
/// layers) and follow each other through up to four layers and back: about 4 √1000 u = 8e-6. Terms
/// are of order one because the networks are drawn that way, hence the 1; sums over elements are
/// larger, hence the magnitude. The largest seen in 5000 draws was a third of this bound. A wrong
/// formula, a forgotten tail or a lost term errs by 1e-2 and more, and a coarse approximation of σ
/// (1e-4) is caught as well.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// Asserts |found − expected| ≤ [`TOLERANCE`] (1 + max |expected|), entry by entry.
#[track_caller]
pub(crate) fn assert_close(what: impl Debug, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what:?}: length");
    let bound = TOLERANCE * (1.0 + largest(expected));
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(
            error <= bound,
            "{what:?}[{index}]: found {found}, expected {expected}, error {error:e} > {bound:e}"
        );
    }
}

/// Asserts that exactly the wanted gradients are there and close to the twin's.
#[track_caller]
pub(crate) fn assert_gradients_close(
    what: impl Debug,
    found: &Gradients,
    expected: &twin::Gradients,
    shape: &MlpShape,
) {
    if let Some(found) = &found.parameters {
        // Layer by layer: a small layer's error must not hide behind a large layer's gradient.
        assert_eq!(found.len(), shape.num_parameters(), "{what:?} parameters: length");
        for (l, layer) in shape.layers().iter().enumerate() {
            let range = layer.weight.start..layer.bias.end;
            let name = format!("{what:?} parameters of layer {l}");
            assert_close(name, &found[range.clone()], &expected.parameters[range]);
        }
    }
    if let Some(found) = &found.context {
        assert_close(format!("{what:?} context"), found, &expected.context);
    }
    if let Some(found) = &found.elements {
        assert_close(format!("{what:?} elements"), found, &expected.elements);
    }
    if let Some(found) = &found.locations {
        assert_close(format!("{what:?} locations"), found, &expected.locations);
    }
}

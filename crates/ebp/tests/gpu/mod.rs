//! The GPU of a test, work of a real size for it, and how two answers are compared.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::sync::OnceLock;

use ebp::SetOffsets;
use ebp::point::{
    Activation, ContextAt, CudaBackend, MlpConfig, MlpShape, PointBatch, PointMlp, Precision,
};
use ebp::rng::Stream;

/// The GPU, or a printed reason.
pub(crate) fn gpu(precision: Precision) -> Option<CudaBackend> {
    static F32: OnceLock<Result<CudaBackend, String>> = OnceLock::new();
    let found = match precision {
        Precision::F32 => F32
            .get_or_init(|| CudaBackend::new(0, precision).map_err(|error| error.to_string()))
            .clone(),
        _ => CudaBackend::new(0, precision).map_err(|error| error.to_string()),
    };
    found.map_err(|reason| eprintln!("SKIPPED, no GPU is tested: {reason}")).ok()
}

/// 6 sets of about a thousand points and a network of real widths.
pub(crate) struct Work {
    pub(crate) mlp: PointMlp,
    pub(crate) offsets: SetOffsets,
    pub(crate) elements: Vec<f32>,
    pub(crate) context: Vec<f32>,
}

impl Work {
    pub(crate) fn new(widths: &[usize], output_dim: usize, activation: Activation) -> Self {
        Self::at(0, widths, output_dim, activation)
    }

    /// With locations of so many numbers.
    pub(crate) fn at(
        location_dim: usize,
        widths: &[usize],
        output_dim: usize,
        activation: Activation,
    ) -> Self {
        let config = MlpConfig {
            location_dim,
            context_dim: 32,
            hidden_widths: widths.to_vec(),
            output_dim,
            activation,
            context_at: ContextAt::EveryLayer,
            ..MlpConfig::default()
        };
        let stream = Stream::new(5, "cuda");
        let mlp = PointMlp::random(MlpShape::new(config).unwrap(), stream.child(0));
        let offsets = SetOffsets::from_sizes([1000, 1, 777, 2048, 130, 999]).unwrap();
        let mut elements = vec![0.0; offsets.num_elements() * mlp.shape().element_dim()];
        stream.fill_normal(1, 0, &mut elements);
        let mut context = vec![0.0; offsets.num_sets() * 32];
        stream.fill_normal(2, 0, &mut context);
        Self { mlp, offsets, elements, context }
    }

    pub(crate) fn batch(&self) -> PointBatch<'_> {
        PointBatch { elements: &self.elements, offsets: &self.offsets, context: &self.context }
    }
}

pub(crate) fn normals(name: &str, count: usize) -> Vec<f32> {
    let mut out = vec![0.0; count];
    Stream::new(9, name).fill_normal(0, 0, &mut out);
    out
}

/// ‖found − expected‖ / ‖expected‖
pub(crate) fn distance(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |x: f64| x * x;
    let pairs = || found.iter().zip(expected);
    let error: f64 = pairs().map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
    let size: f64 = expected.iter().map(|b| square(f64::from(*b))).sum();
    (error / size.max(1e-300)).sqrt()
}

#[track_caller]
pub(crate) fn assert_near(what: &str, found: &[f32], expected: &[f32], bound: f64) -> f64 {
    let distance = distance(found, expected);
    assert!(distance <= bound, "{what}: relative distance {distance:e}, at most {bound:e}");
    distance
}

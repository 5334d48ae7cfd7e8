//! The primitive by itself: scores of the points of two sets of different sizes, and twenty Langevin
//! steps: `cargo run --release -p ebp --example primitive`.

use ebp::SetOffsets;
use ebp::point::{
    CpuBackend, Langevin, MlpConfig, MlpShape, Motion, PointBackend, PointBatch, PointMlp,
};
use ebp::rng::Stream;

fn main() -> ebp::Result<()> {
    // f(x; θ) for points x of the plane and a context θ of four numbers: 2 → 32 → 16 → 1.
    let (value_dim, context_dim, hidden_widths) = (2, 4, vec![32, 16]);
    let config = MlpConfig { value_dim, context_dim, hidden_widths, ..MlpConfig::default() };
    let energy = PointMlp::random(MlpShape::new(config)?, Stream::new(0, "energy"));

    // A set of three points and a set of one, each with its own θ.
    let offsets = SetOffsets::from_sizes([3, 1])?;
    let elements = [0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8];
    let context = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    let batch = PointBatch { elements: &elements, offsets: &offsets, context: &context };

    let cpu = CpuBackend::new();
    let score = cpu.score(&energy, &batch)?; // f and ∇ₓ f of every point
    assert_eq!((score.values.len(), score.score.len()), (4, 8));

    // x ← x + (η/2) ∇ₓ f(x; θ) + s ξ with η = s² targets exp f.
    let (step_sizes, noise_scales) = ([0.01; 20], [0.1; 20]);
    let noise = Stream::new(0, "noise");
    let motion = Motion { base_std_dev: Some(2.0), ..Motion::default() };
    let run = cpu.langevin(
        &energy,
        &batch,
        &Langevin { step_sizes: &step_sizes, noise_scales: &noise_scales, noise, motion },
    )?;
    assert_eq!(run.elements.len(), elements.len());
    Ok(())
}

//! Dynamics on the GPU against the CPU, at sizes of real work, and the way back through them. On a
//! machine without a GPU every test says why it is skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

mod gpu;

use ebp::point::{
    Activation, Bounds, Clip, CpuBackend, CudaBackend, DynamicsCotangent, DynamicsGradients,
    Langevin, Leapfrog, Motion, PointBackend, Precision,
};
use ebp::rng::Stream;
use gpu::{Work, assert_near, gpu, normals};

#[test]
fn twenty_langevin_steps_end_in_the_same_places() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    for widths in [&[128, 64][..], &[512, 512, 256]] {
        let work = Work::new(widths, 1, Activation::Silu);
        let steps = 20;
        let langevin = Langevin {
            step_sizes: &vec![0.1; steps],
            noise_scales: &vec![0.05; steps],
            noise: Stream::new(3, "langevin"),
            motion: Motion { base_std_dev: Some(2.5), ..Motion::default() },
        };
        let run = |backend: &dyn PointBackend| {
            backend.langevin(&work.mlp, &work.batch(), &langevin).unwrap()
        };
        let (found, expected) = (run(&gpu), run(&CpuBackend::new()));
        assert_near("elements", &found.elements, &expected.elements, 1e-5);
        assert_near("score", &found.score, &expected.score, 1e-4);
        assert_near("kinetic", &found.kinetic, &expected.kinetic, 1e-5);
        assert_near("alignment", &found.final_alignment, &expected.final_alignment, 1e-4);
    }
}

/// The kernel that takes all steps at once, in the other precisions: the score where it starts, then
/// where steps lead.
#[test]
fn tensor_cores_move_elements_to_nearly_the_same_places() {
    for (precision, least, most) in [(Precision::Tf32, 5e-5, 3e-3), (Precision::Bf16, 8e-4, 3e-2)] {
        let Some(gpu) = gpu(precision) else { return };
        for activation in [Activation::Relu, Activation::Silu] {
            let work = Work::new(&[128, 64], 1, activation);
            let (batch, cpu) = (work.batch(), CpuBackend::new());
            let langevin = |steps: usize, size: f32, backend: &dyn PointBackend| {
                let langevin = Langevin {
                    step_sizes: &vec![size; steps],
                    noise_scales: &vec![0.5 * size; steps],
                    noise: Stream::new(3, "langevin"),
                    motion: Motion { base_std_dev: Some(2.5), ..Motion::default() },
                };
                backend.langevin(&work.mlp, &batch, &langevin).unwrap()
            };
            let (found, expected) = (langevin(1, 0.0, &gpu), langevin(1, 0.0, &cpu));
            let name = precision.name();
            let error = assert_near("values", &found.values, &expected.values, most);
            assert!(error > least, "{name}: {error:e}, more than {least:e} expected");
            if activation == Activation::Silu {
                // A rectifier's slope jumps where a rounded argument changes its sign.
                let error = assert_near("score", &found.score, &expected.score, most);
                eprintln!("{name}: scores differ from the CPU's by {error:.1e}");
            }
            let (found, expected) = (langevin(20, 0.1, &gpu), langevin(20, 0.1, &cpu));
            let error = assert_near("elements", &found.elements, &expected.elements, most);
            eprintln!("{name}: after 20 steps elements are off by {error:.1e}");
            assert_near("kinetic", &found.kinetic, &expected.kinetic, most);
            let leapfrog = |backend: &dyn PointBackend| {
                let settings = Leapfrog { motion: Motion::default(), step_sizes: &[0.1; 5] };
                let momentum = normals("momentum", batch.elements.len());
                backend.leapfrog(&work.mlp, &batch, &momentum, &settings).unwrap()
            };
            let (found, expected) = (leapfrog(&gpu), leapfrog(&cpu));
            assert_near("leapt", &found.elements, &expected.elements, most);
            assert_near("momentum", &found.momentum, &expected.momentum, most);
        }
    }
}

#[track_caller]
fn assert_dynamics_near(found: &DynamicsGradients, expected: &DynamicsGradients, bound: f64) {
    assert_near("start", &found.values, &expected.values, bound);
    assert_near("momentum", &found.momentum, &expected.momentum, bound);
    assert_near("step sizes", &found.step_sizes, &expected.step_sizes, bound);
    assert_near("context", &found.context, &expected.context, bound);
}

/// The way back through dynamics with everything in them, whole and in chunks that cut through sets.
#[test]
fn gradients_through_dynamics_agree() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let small = CudaBackend::new(0, Precision::F32).unwrap();
    small.limit_memory(2 << 20).unwrap();
    for (location_dim, activation) in
        [(0, Activation::Silu), (2, Activation::Softplus), (1, Activation::Relu)]
    {
        let work = Work::at(location_dim, &[48, 32], 1, activation);
        let (batch, total) = (work.batch(), work.offsets.num_elements());
        let is_fixed: Vec<bool> = (0..total).map(|row| row % 7 == 3).collect();
        let motion = Motion {
            clip: Clip::Norm(2.0),
            base_std_dev: Some(1.5),
            bounds: Some(Bounds { low: -4.0, high: 4.0 }),
            is_fixed: Some(&is_fixed),
        };
        let (step_sizes, noise_scales) = (&[0.02, 0.05, 0.01], &[0.1, 0.0, 0.05]);
        let noise = Stream::new(4, "dynamics");
        let langevin = Langevin { step_sizes, noise_scales, noise, motion };
        let leapfrog = Leapfrog { step_sizes, motion };
        let (values, momentum) = (normals("values", total * 3), normals("momentum", total * 3));
        let (kinetic, pull) = (normals("kinetic", total), normals("pull", total * 3));
        let of_langevin =
            DynamicsCotangent { values: &values, momentum: None, kinetic: Some(&kinetic) };
        let of_leapfrog =
            DynamicsCotangent { values: &values, momentum: Some(&pull), kinetic: None };
        let run = |backend: &dyn PointBackend| {
            let mlp = &work.mlp;
            let first = backend.langevin_backward(mlp, &batch, &langevin, of_langevin);
            let second = backend.leapfrog_backward(mlp, &batch, &momentum, &leapfrog, of_leapfrog);
            (first.unwrap(), second.unwrap())
        };
        let expected = run(&CpuBackend::new());
        for gpu in [&gpu, &small] {
            let found = run(gpu);
            // A rectifier's slope jumps where rounding changes a sign: a row or two of five thousand
            // may be off by some of their size, which is 3e-3 of all.
            let bound = if activation == Activation::Relu { 1e-2 } else { 2e-5 };
            assert_dynamics_near(&found.0, &expected.0, bound);
            assert_dynamics_near(&found.1, &expected.1, bound);
        }
    }
}

/// Steps of size zero leave the noise alone: its bits are the CPU's.
#[test]
fn noise_has_the_bits_of_the_cpu() {
    let Some(gpu) = gpu(Precision::F32) else { return };
    let mut work = Work::new(&[16], 1, Activation::Silu);
    work.elements.fill(0.0);
    let noise = Stream::new(3, "langevin");
    let langevin =
        Langevin { step_sizes: &[0.0], noise_scales: &[1.0], noise, motion: Motion::default() };
    let found = gpu.langevin(&work.mlp, &work.batch(), &langevin).unwrap().elements;
    let mut expected = vec![0.0; found.len()];
    noise.fill_normal(0, 0, &mut expected);
    let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&expected));
}

//! What only the library itself can reach: buffers, kernels of others, helpers. On a machine without a
//! GPU every test says why it is skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use super::launch::{flat, kernels};
use super::{
    AdamNumbers, AdamState, Buffer, CudaBackend, Device, DeviceBatch, DeviceCotangent,
    DeviceLangevin, DeviceMlp, DeviceMotion, Precision, Sets, plain, transposed,
};
use crate::SetOffsets;
use crate::point::{MlpConfig, MlpShape, Motion, PointMlp, Pooling, Wanted};
use crate::rng::Stream;

kernels! {
    /// A table beside the GPU's own, as other modules have.
    struct Extra from [r#"
extern "C" __global__ void twice(const float *in, float *out, const u32 *skip, u64 count, float more) {
    GRID(i, count) out[i] = skip && skip[i] ? 0.0f : 2.0f * in[i] + more;
}
"#];
    fn twice(input: &Buffer, out: &Buffer, skip: Option<&Buffer<u32>>, count: u64, more: f32);
}

/// Does `test` on the GPU, or says why not.
fn on_gpu(test: impl FnOnce(&Device)) {
    match CudaBackend::new(0, Precision::F32) {
        Ok(gpu) => test(&gpu.lock().unwrap()),
        Err(reason) => eprintln!("SKIPPED, no GPU is tested: {reason}"),
    }
}

fn normals(name: &str, count: usize) -> Vec<f32> {
    let mut out = vec![0.0; count];
    Stream::new(9, name).fill_normal(0, 0, &mut out);
    out
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-4 * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn views_keep_their_memory_and_know_their_place() {
    on_gpu(|device| {
        let whole = device.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let part = whole.view(1, 3);
        let inner = part.view(1, 2);
        drop((whole, part));
        // Memory that was freed would be taken again by these.
        let others: Vec<_> = (0..8).map(|_| device.filled(9.0, 5).unwrap()).collect();
        assert_eq!(device.download(&inner).unwrap(), [3.0, 4.0]);
        device.copy(&inner, &others[0].view(3, 2)).unwrap();
        assert_eq!(device.download(&others[0]).unwrap(), [9.0, 9.0, 9.0, 3.0, 4.0]);
        assert_eq!(device.land(&inner).unwrap().read().unwrap(), [3.0, 4.0]);
        // Dropped by a thread that has never seen the GPU.
        std::thread::spawn(move || drop((inner, others))).join().unwrap();
        device.synchronize().unwrap();
    });
}

#[test]
#[should_panic(expected = "3 numbers from 1 on, of 0")]
fn a_view_of_more_than_there_is_is_refused() {
    let _ = Buffer::<f32>::none().view(1, 3);
}

#[test]
fn a_constant_is_sent_once_and_found_by_its_numbers() {
    on_gpu(|device| {
        let first = device.constant(&[0.5, 0.25]).unwrap();
        let other = device.constant(&[0.5]).unwrap();
        let again = device.constant(&[0.5, 0.25]).unwrap();
        assert_eq!(first.address(), again.address());
        assert_ne!(first.address(), other.address());
        assert_eq!(device.download(&again).unwrap(), [0.5, 0.25]);
        assert_eq!(device.download(&other).unwrap(), [0.5]);
    });
}

#[test]
fn other_modules_have_kernels_of_their_own() {
    on_gpu(|device| {
        let kernels = Extra::load(&device.context, &[]).unwrap();
        let (input, skip) =
            (device.upload(&[1.0_f32, 2.0]).unwrap(), device.upload(&[0, 1]).unwrap());
        let out = device.buffer::<f32>(2).unwrap();
        kernels.twice(device, flat(2), &input, &out, None, 2, 0.5).unwrap();
        assert_eq!(device.download(&out).unwrap(), [2.5, 4.5]);
        kernels.twice(device, flat(2), &input, &out, Some(&skip), 2, 0.5).unwrap();
        assert_eq!(device.download(&out).unwrap(), [2.5, 0.0]);
    });
}

#[test]
fn products_read_either_factor_transposed_and_add() {
    on_gpu(|device| {
        // a = [1 2 3; 4 5 6],  b = [1 0; 2 1; 0 3],  a b = [5 11; 14 23]
        let a = device.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let b = device.upload(&[1.0_f32, 0.0, 2.0, 1.0, 0.0, 3.0]).unwrap();
        let a_t = device.upload(&[1.0_f32, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap();
        let b_t = device.upload(&[1.0_f32, 2.0, 0.0, 0.0, 1.0, 3.0]).unwrap();
        let out = device.filled(0.0, 4).unwrap();
        let mut expected = vec![0.0; 4];
        for (left, right) in [
            (plain(&a, 3), plain(&b, 2)),
            (transposed(&a_t, 2), plain(&b, 2)),
            (plain(&a, 3), transposed(&b_t, 3)),
            (transposed(&a_t, 2), transposed(&b_t, 3)),
        ] {
            device.product((2, 2, 3), left, right, (&out, true), Precision::F32).unwrap();
            for (sum, term) in expected.iter_mut().zip([5.0, 11.0, 14.0, 23.0]) {
                *sum += term;
            }
            assert_eq!(device.download(&out).unwrap(), expected);
        }
        device
            .product((2, 2, 3), plain(&a, 3), plain(&b, 2), (&out, false), Precision::F32)
            .unwrap();
        assert_eq!(device.download(&out).unwrap(), [5.0, 11.0, 14.0, 23.0]);
    });
}

#[test]
fn normals_have_the_bits_of_the_cpu() {
    on_gpu(|device| {
        let (stream, mut expected) = (Stream::new(3, "normals"), vec![0.0; 1000]);
        stream.fill_normal(5, 77, &mut expected);
        let out = device.buffer::<f32>(1000).unwrap();
        device.normals(&out, stream, 5, 77).unwrap();
        assert_eq!(device.download(&out).unwrap(), expected);
    });
}

/// One step from zero moments: m = gain1 g, v = gain2 g², w ← keep w − rate m / (root √v + floor).
#[test]
fn adam_takes_the_step_of_the_formula() {
    on_gpu(|device| {
        let w = [1.0_f32, -2.0, 0.5];
        let (parameters, gradient) =
            (device.upload(&w).unwrap(), device.upload(&[3.0, 0.0, -4.0]).unwrap());
        let (first, second) = (device.zeros(3).unwrap(), device.zeros(3).unwrap());
        let average = device.upload(&w).unwrap();
        let square = device.zeros::<f64>(1).unwrap();
        let numbers = AdamNumbers {
            beta1: 0.9,
            gain1: 0.1,
            beta2: 0.99,
            gain2: 0.01,
            keep: 1.0,
            rate: 0.2,
            root: 10.0,
            floor: 1e-8,
            average_gain: 0.5,
            // ‖g‖ = 5 is shortened to 1.
            limit: 1.0,
        };
        let parts = device.square_parts(&gradient).unwrap();
        for average in [Some(&average), None] {
            let state = AdamState {
                parameters: &device.upload(&w).unwrap(),
                first: &first,
                second: &second,
                average,
            };
            device.clear(&first).unwrap();
            device.clear(&second).unwrap();
            device.adam(&state, (&gradient, &parts), numbers, &square).unwrap();
            // m/√v = ±0.1/0.1, so the step is 0.2 · 1/10.
            assert_near(&device.download(state.parameters).unwrap(), &[0.98, -2.0, 0.52]);
        }
        assert_eq!(device.download(&square).unwrap(), [25.0]);
        assert_near(&device.download(&average).unwrap(), &[0.99, -2.0, 0.51]);
        assert_eq!(device.download(&parameters).unwrap(), w);
    });
}

/// A small energy and three sets.
struct Work {
    mlp: PointMlp,
    parameters: Buffer,
    elements: Buffer,
    sets: Sets,
    context: Buffer,
}

impl Work {
    fn new(device: &Device) -> Self {
        let shape = MlpShape::new(MlpConfig {
            value_dim: 2,
            location_dim: 1,
            context_dim: 4,
            hidden_widths: vec![16, 8],
            ..MlpConfig::default()
        });
        let mlp = PointMlp::random(shape.unwrap(), Stream::new(2, "work"));
        Self {
            parameters: device.upload(mlp.parameters()).unwrap(),
            elements: device.upload(&normals("elements", 300 * 3)).unwrap(),
            sets: Sets::new(device, &SetOffsets::from_sizes([100, 1, 199]).unwrap()).unwrap(),
            context: device.upload(&normals("context", 3 * 4)).unwrap(),
            mlp,
        }
    }

    fn network<'a>(&'a self, gradient: Option<&'a Buffer>) -> DeviceMlp<'a> {
        DeviceMlp { shape: self.mlp.shape(), parameters: &self.parameters, gradient }
    }

    fn batch(&self) -> DeviceBatch<'_> {
        DeviceBatch { elements: &self.elements, sets: &self.sets, context: &self.context }
    }
}

/// Where the owner of the parameters has a gradient, passes add to it, and change nothing else that
/// was given to them.
#[test]
fn gradients_are_added_to_those_of_the_owner() {
    on_gpu(|device| {
        let work = Work::new(device);
        let g = device.upload(&normals("cotangent", 3)).unwrap();
        let (cotangent, before) = (DeviceCotangent::PerSet(&g), device.download(&g).unwrap());
        let alone =
            device.backward(&work.network(None), &work.batch(), cotangent, Wanted::ALL).unwrap();
        let alone = device.download(&alone.gradients.parameters.unwrap()).unwrap();
        let own = device.filled(0.25, alone.len()).unwrap();
        let network = work.network(Some(&own));
        device.backward(&network, &work.batch(), cotangent, Wanted::ALL).unwrap();
        let pooled = device.pool(&network, &work.batch(), Pooling::Sum, true).unwrap();
        device.pool_backward(&network, &work.batch(), &pooled, &g, Wanted::WEIGHTS).unwrap();
        let expected: Vec<f32> = alone.iter().map(|alone| 0.25 + 2.0 * alone).collect();
        assert_near(&device.download(&own).unwrap(), &expected);
        assert_eq!(device.download(&g).unwrap(), before);
        assert_eq!(device.download(&work.parameters).unwrap(), work.mlp.parameters());
    });
}

/// Σ_t ‖v_t‖² of elements adds up to that of sets, and the elements that went in stay as they were.
#[test]
fn elements_have_the_kinetic_energy_of_their_set() {
    on_gpu(|device| {
        let work = Work::new(device);
        let settings = DeviceLangevin {
            step_sizes: &device.upload(&[0.1, 0.05]).unwrap(),
            noise_scales: &[0.2, 0.1],
            noise: Stream::new(1, "kinetic"),
            motion: &DeviceMotion::new(device, &Motion::default()).unwrap(),
        };
        let found = device.langevin(&work.network(None), &work.batch(), &settings).unwrap();
        let of_elements = device.download(&found.element_kinetic).unwrap();
        let of_sets = device.download(&found.kinetic).unwrap();
        let sums = |set: usize| of_elements[work.sets.offsets().range(set)].iter().sum::<f32>();
        let expected: Vec<f32> = of_sets.chunks_exact(2).map(|steps| steps.iter().sum()).collect();
        assert_near(&[sums(0), sums(1), sums(2)], &expected);
        assert_eq!(device.download(&work.elements).unwrap(), normals("elements", 300 * 3));
        assert_ne!(device.download(&found.elements).unwrap(), normals("elements", 300 * 3));
    });
}

/// Maxima whose critical rows were gathered at once, and maxima that the host knows.
#[test]
fn maxima_go_back_the_same_way_from_either_side() {
    on_gpu(|device| {
        let work = Work::new(device);
        let (network, batch) = (work.network(None), work.batch());
        let g = device.upload(&normals("cotangent", 3)).unwrap();
        let [first, second] = [true, false].map(|will_go_back| {
            let pooled = device.pool(&network, &batch, Pooling::Max, will_go_back).unwrap();
            assert_eq!(pooled.rows.is_some(), will_go_back);
            let back = device.pool_backward(&network, &batch, &pooled, &g, Wanted::ALL).unwrap();
            let elements = device.download(&back.elements.unwrap()).unwrap();
            (device.download(&back.parameters.unwrap()).unwrap(), elements)
        });
        assert_eq!(first, second);
        let touched = first.1.chunks_exact(3).filter(|row| row.iter().any(|&g| g != 0.0)).count();
        assert_eq!(touched, 3);
    });
}

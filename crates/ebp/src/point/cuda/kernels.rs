//! The kernels that every GPU has compiled, with their parameters; see the sources for what each does.

use super::adam::AdamNumbers;
use super::buffer::Buffer;
use super::launch::kernels;
use super::motion::MotionCode;

kernels! {
    /// Compiled kernels.
    pub(crate) struct Kernels from [
        include_str!("kernels.cu"),
        include_str!("candidates.cu"),
        include_str!("dynamics.cu"),
        include_str!("critical.cu"),
        include_str!("adam.cu"),
    ];

    // kernels.cu
    fn to_bf16(input: &Buffer, out: &Buffer<u16>, count: u64);
    fn split_weights(weights: &Buffer, out: &Buffer, n: u32, k: u32);
    fn activate(
        z: &Buffer, out: &Buffer, shift: &Buffer, set: Option<&Buffer<u32>>, slope: Option<&Buffer>,
        curvature: Option<&Buffer>, rows: u64, n: u32, kind: i32, leak: f32, is_split: i32,
    );
    fn first_layer(
        x: &Buffer, weights: &Buffer, shift: &Buffer, set: Option<&Buffer<u32>>, out: &Buffer,
        slope: Option<&Buffer>, curvature: Option<&Buffer>, rows: u64, d: u32, n: u32, kind: i32,
        leak: f32, is_split: i32,
    );
    fn scalar_output(
        a: &Buffer, weights: &Buffer, shift: &Buffer, set: Option<&Buffer<u32>>, out: &Buffer,
        rows: u64, n: u32,
    );
    fn scalar_output_backward(
        cotangent: Option<&Buffer>, weights: &Buffer, slope: &Buffer, g: &Buffer, rows: u64, n: u32,
    );
    fn product(out: &Buffer, a: &Buffer, b: &Buffer, count: u64);
    fn take_columns(input: &Buffer, out: &Buffer, rows: u64, width: u32, first: u32, n: u32);
    fn pad_columns(input: &Buffer, out: &Buffer, rows: u64, n: u32, width: u32);
    fn first_layer_backward(g: &Buffer, weights: &Buffer, out: &Buffer, rows: u64, d: u32, n: u32);
    fn second_order(
        g: &Buffer, p: &Buffer, slope: &Buffer, curvature: &Buffer, tangent: &Buffer, count: u64,
    );
    fn set_sums(
        g: &Buffer, starts: &Buffer<u32>, parts: &Buffer<f64>, out: &Buffer, first_set: u32, n: u32,
    );
    fn add_parts(parts: &Buffer<f64>, out: &Buffer, num_parts: u32, count: u64);
    fn set_squares(a: &Buffer, starts: &Buffer<u32>, out: &Buffer, first_set: u32, d: u32);
    fn langevin_dots(
        v: &Buffer, g: &Buffer, score: &Buffer, length: u64, starts: &Buffer<u32>, out: &Buffer,
        out_length: u64, first_set: u32, steps: u32, d: u32,
    );
    fn column_sums(input: &Buffer, out: &Buffer, rows: u32, n: u32);
    fn over_sizes(input: &Buffer, starts: &Buffer<u32>, out: &Buffer, sets: u32, n: u32);
    fn set_shares(starts: &Buffer<u32>, out: &Buffer, sets: u32, factor: f32);
    fn name_sets(starts: &Buffer<u32>, set: &Buffer<u32>, first_set: u32);
    fn spread(input: &Buffer, set: Option<&Buffer<u32>>, out: &Buffer, rows: u64, n: u32);
    fn pool_max(
        z: &Buffer, starts: &Buffer<u32>, shift: Option<&Buffer>, is_per_set: i32, kind: i32, leak: f32,
        best: &Buffer, row_of: &Buffer<u32>, first_set: u32, first_row: u32, n: u32,
    );
    fn normals(out: &Buffer, count: u64, start: u64, step: u32, k0: u32, k1: u32);

    // candidates.cu
    fn candidate_rows(
        values: &Buffer, locations: &Buffer, anchor_set: &Buffer<u32>, rows: &Buffer,
        set: &Buffer<u32>, count: u64, k: u32, dx: u32, dt: u32, is_shared: i32,
    );
    fn log_sum_exp(f: &Buffer, log_weights: Option<&Buffer>, out: &Buffer, k: u32, mode: i32);
    fn candidate_weights(
        f: &Buffer, log_weights: Option<&Buffer>, log_partition: &Buffer, cotangent: &Buffer,
        out: &Buffer, count: u64, k: u32, mode: i32,
    );
    fn gather_shared(input: &Buffer, out: &Buffer, anchors: u32, k: u32, d: u32, dx: u32);
    fn location_sums(input: &Buffer, out: &Buffer, k: u32, d: u32, dx: u32);

    // dynamics.cu
    fn drift_only(
        x: &Buffer, gradient: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode,
        score: &Buffer, g: &Buffer, rows: u64, d: u32, dx: u32,
    );
    fn langevin_step(
        x: &Buffer, gradient: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode,
        score: Option<&Buffer>, g: &Buffer, v: &Buffer, rows: u64, d: u32, dx: u32, first_row: u64,
        step_size: &Buffer, noise: f32, step: u32, k0: u32, k1: u32,
    );
    fn langevin_back(
        x: &Buffer, v: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode,
        kinetic: Option<&Buffer>, adjoint: &Buffer, push: &Buffer, rows: u64, d: u32, dx: u32,
    );
    fn leapfrog_back(
        x: &Buffer, v: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode, adjoint: &Buffer,
        pull: &Buffer, parts: &Buffer<f64>, rows: u64, d: u32, dx: u32, step_size: &Buffer,
    );
    fn kick_back(
        u: &Buffer, g: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode, push: &Buffer,
        adjoint: &Buffer, direction: &Buffer, parts: &Buffer<f64>, rows: u64, d: u32, dx: u32,
        begun: Option<&Buffer>, ended: Option<&Buffer>,
    );
    fn add_values(term: &Buffer, adjoint: &Buffer, rows: u64, d: u32, dx: u32);
    fn leapfrog_step(
        x: &Buffer, v: &Buffer, gradient: &Buffer, fixed: Option<&Buffer<u8>>, motion: MotionCode,
        score: Option<&Buffer>, g: &Buffer, halfway: Option<&Buffer>, rows: u64, d: u32, dx: u32,
        ended: Option<&Buffer>, begun: Option<&Buffer>,
    );
    fn moving(v: &Buffer, fixed: Option<&Buffer<u8>>, out: &Buffer, rows: u64, dx: u32);
    fn element_squares(v: &Buffer, out: &Buffer, rows: u64, dx: u32, steps: u32);
    fn noise_squares(
        out: &Buffer, fixed: Option<&Buffer<u8>>, scales: &Buffer, rows: u64, dx: u32, steps: u32,
        k0: u32, k1: u32,
    );
    fn step_size_sums(
        kicks: &Buffer<f64>, moves: Option<&Buffer<f64>>, out: &Buffer<f64>, parts: u32,
    );
    fn to_float(input: &Buffer<f64>, out: &Buffer, count: u64);

    // critical.cu
    fn mark(critical: &Buffer<u32>, rank: &Buffer<u32>, count: u32);
    fn rank_marked(starts: &Buffer<u32>, rank: &Buffer<u32>, sizes: &Buffer<u32>);
    fn first_places(sizes: &Buffer<u32>, places: &Buffer<u32>, sets: u32);
    fn gather_marked(
        x: &Buffer, starts: &Buffer<u32>, rank: &Buffer<u32>, places: &Buffer<u32>, out: &Buffer,
        d: u32,
    );
    fn scatter_marked(
        cotangent: &Buffer, critical: &Buffer<u32>, rank: &Buffer<u32>, places: &Buffer<u32>,
        g: &Buffer, count: u32, n: u32, first: u32, rows: u32,
    );
    fn spread_marked(
        input: &Buffer, starts: &Buffer<u32>, rank: &Buffer<u32>, places: &Buffer<u32>, out: &Buffer,
        d: u32,
    );

    // adam.cu
    fn square_sums(g: &Buffer, parts: &Buffer<f64>, count: u64);
    fn adam(
        parameters: &Buffer, first: &Buffer, second: &Buffer, average: Option<&Buffer>,
        gradient: &Buffer, parts: &Buffer<f64>, num_parts: u32, numbers: AdamNumbers, count: u64,
        square: &Buffer<f64>,
    );
}

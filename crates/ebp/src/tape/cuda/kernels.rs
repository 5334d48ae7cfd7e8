//! The tape's kernels, with their parameters; see the sources for what each does.

use crate::point::cuda::Buffer;
use crate::point::cuda::launch::kernels;

kernels! {
    /// Compiled kernels.
    pub(super) struct Kernels from [
        include_str!("entries.cu"),
        include_str!("sums.cu"),
        include_str!("laws.cu"),
        include_str!("planar.cu"),
        include_str!("mixture.cu"),
        include_str!("attention.cu"),
        include_str!("spectral_norm.cu"),
        include_str!("convolution.cu"),
    ];

    // entries.cu
    fn map_entries(x: &Buffer, out: &Buffer, count: u64, kind: i32, a: f32, b: f32);
    fn map_entries_backward(
        x: &Buffer, g: &Buffer, out: &Buffer, count: u64, kind: i32, a: f32, b: f32,
    );
    fn join_entries(
        left: &Buffer, right: &Buffer, out: &Buffer, count: u64, columns: u32, spread: i32, kind: i32,
    );
    fn scale_entries(x: &Buffer, out: &Buffer, count: u64, start: u64, factor: f32);
    fn repeat_number(x: &Buffer, out: &Buffer, count: u64);
    fn repeat_columns(x: &Buffer, out: &Buffer, count: u64, columns: u32);
    fn arrange_columns(x: &Buffer, order: &Buffer<u32>, out: &Buffer, count: u64, columns: u32);
    fn gather_rows(x: &Buffer, rows: &Buffer<u32>, out: &Buffer, count: u64, columns: u32);
    fn gather_rows_backward(
        g: &Buffer, starts: &Buffer<u32>, choices: &Buffer<u32>, out: &Buffer, count: u64,
        columns: u32,
    );
    fn cut_columns(x: &Buffer, out: &Buffer, count: u64, columns: u32, start: u32, width: u32);
    fn place_columns(x: &Buffer, out: &Buffer, count: u64, columns: u32, start: u32, width: u32);
    fn write_columns(x: &Buffer, out: &Buffer, count: u64, columns: u32, start: u32, width: u32);
    fn interpolate(
        x: &Buffer, rows: &Buffer<u32>, cells: &Buffer<u32>, weights: &Buffer, out: &Buffer,
        count: u64, columns: u32, places: u32, num_cells: u32,
    );
    fn interpolate_backward(
        g: &Buffer, starts: &Buffer<u32>, choices: &Buffer<u32>, first: &Buffer<u32>,
        around: &Buffer<u32>, weights: &Buffer, out: &Buffer, count: u64, columns: u32, places: u32,
        num_cells: u32,
    );
    fn weigh_draws(
        y: &Buffer, density: &Buffer, out: &Buffer, rows: u64, dims: u32, low: f32, high: f32,
        half_precision: f32, log_count: f32, nothing: f32,
    );

    // sums.cu
    fn row_totals(x: &Buffer, out: &Buffer, rows: u64, columns: u32);
    fn total(x: &Buffer, parts: &Buffer<f64>, out: &Buffer, count: u64);
    fn finish_parts(parts: &Buffer<f64>, out: &Buffer, num_parts: u32, columns: u32);
    fn column_totals(
        x: &Buffer, parts: &Buffer<f64>, out: &Buffer, rows: u64, columns: u32, rows_per_part: u64,
    );
    fn set_totals(x: &Buffer, starts: &Buffer<u32>, out: &Buffer, columns: u32);
    fn spread_rows(x: &Buffer, set: &Buffer<u32>, out: &Buffer, count: u64, columns: u32);
    fn normalise_columns(
        x: &Buffer, standard: &Buffer, mean: &Buffer, scale: &Buffer, rows: u64, columns: u32,
        floor: f32,
    );
    fn normalise_columns_backward(
        standard: &Buffer, scale: &Buffer, g: &Buffer, out: &Buffer, rows: u64, columns: u32,
    );

    // laws.cu
    fn draw(mean: &Buffer, log_std_dev: &Buffer, noise: &Buffer, out: &Buffer, count: u64);
    fn draw_backward(log_std_dev: &Buffer, noise: &Buffer, g: &Buffer, out: &Buffer, count: u64);
    fn kl(
        mean: &Buffer, log_std_dev: &Buffer, prior_mean: &Buffer, prior_log_std_dev: &Buffer,
        out: &Buffer, count: u64,
    );
    fn kl_backward(
        mean: &Buffer, log_std_dev: &Buffer, prior_mean: &Buffer, prior_log_std_dev: &Buffer,
        g: &Buffer, out: &Buffer, count: u64,
    );
    fn log_mass(f: &Buffer, symbols: &Buffer<u32>, out: &Buffer, rows: u64, size: u32);
    fn log_mass_backward(
        f: &Buffer, symbols: &Buffer<u32>, mass: &Buffer, g: &Buffer, out: &Buffer, count: u64,
        size: u32,
    );
    fn log_sum_exp(f: &Buffer, out: &Buffer, rows: u64, size: u32);
    fn softmax(f: &Buffer, out: &Buffer, rows: u64, size: u32);
    fn cell(
        gates: &Buffer, state: &Buffer, hidden: &Buffer, memory: &Buffer, count: u64, width: u32,
    );
    fn cell_backward(
        gates: &Buffer, state: &Buffer, of_hidden: Option<&Buffer>, of_memory: Option<&Buffer>,
        to_gates: &Buffer, to_state: &Buffer, count: u64, width: u32,
    );
    fn weight_rows(
        f: &Buffer, log_weights: Option<&Buffer>, near: Option<&Buffer>, out: &Buffer<f64>,
        anchors: u64, count: u32, mode: i32,
    );
    fn figure_means(rows: &Buffer<f64>, out: &Buffer, anchors: u64);
    fn mean_nats(
        log_partition: &Buffer, starts: &Buffer<u32>, means: &Buffer, out: &Buffer, sets: u32,
    );

    // planar.cu
    fn planar(
        layers: &Buffer, noise: &Buffer, values: &Buffer, log_density: &Buffer, rows: u64, draws: u32,
        dims: u32, num_layers: u32,
    );
    fn planar_backward(
        layers: &Buffer, noise: &Buffer, of_values: Option<&Buffer>, of_density: Option<&Buffer>,
        kept: &Buffer, sums: &Buffer, gradient: &Buffer, rows: u64, draws: u32, dims: u32,
        num_layers: u32,
    );

    // mixture.cu
    fn mixture_shares(written: &Buffer, log_pi: &Buffer, rows: u64, components: u32, dims: u32);
    fn mixture_draws(
        written: &Buffer, log_pi: &Buffer, noise: &Buffer, values: &Buffer, shares: &Buffer,
        count: u64, dims: u32, each: u32, log_each: f32,
    );
    fn mixture_draws_backward(
        written: &Buffer, noise: &Buffer, of_values: Option<&Buffer>, of_shares: Option<&Buffer>,
        gradient: &Buffer, count: u64, dims: u32, each: u32,
    );
    fn mixture_picks(
        written: &Buffer, log_pi: &Buffer, uniforms: &Buffer, noise: &Buffer, values: &Buffer,
        count: u64, per_row: u32, components: u32, dims: u32,
    );
    fn mixture_log_density(
        written: &Buffer, log_pi: &Buffer, places: &Buffer, out: &Buffer, per_row: u32,
        components: u32, dims: u32, log_rest: f32, log_even: f32, low: f32, high: f32,
        has_uniform: i32,
    );
    fn mixture_density_places(
        written: &Buffer, log_pi: &Buffer, places: &Buffer, log_density: &Buffer, g: &Buffer,
        out: &Buffer, per_row: u32, components: u32, dims: u32, log_rest: f32,
    );
    fn mixture_density_components(
        written: &Buffer, log_pi: &Buffer, places: &Buffer, log_density: &Buffer, g: &Buffer,
        gradient: &Buffer, per_row: u32, components: u32, dims: u32, log_rest: f32,
    );
    fn mixture_logits(
        log_pi: &Buffer, gradient: &Buffer, rows: u64, components: u32, dims: u32,
    );

    // attention.cu
    fn attention(
        q: &Buffer, k: &Buffer, v: &Buffer, set: &Buffer<u32>, starts: &Buffer<u32>, out: &Buffer,
        queries: u64, width: u32, n: u32,
    );
    fn attention_queries(
        q: &Buffer, k: &Buffer, v: &Buffer, g: &Buffer, set: &Buffer<u32>, starts: &Buffer<u32>,
        to_q: &Buffer, figures: &Buffer, queries: u64, width: u32, n: u32,
    );
    fn attention_keys(
        q: &Buffer, k: &Buffer, v: &Buffer, g: &Buffer, set: &Buffer<u32>, starts: &Buffer<u32>,
        figures: &Buffer, to_k: &Buffer, to_v: &Buffer, keys: u64, width: u32, n: u32,
    );

    // spectral_norm.cu
    fn spectral_norm(
        weights: &Buffer, left: &Buffer, table: &Buffer<u32>, us: &Buffer<f64>, vs: &Buffer<f64>,
        products: &Buffer<f64>, out: &Buffer, out_left: &Buffer, out_right: &Buffer, norms: &Buffer,
        moves: i32, floor: f32,
    );
    fn spectral_norm_backward(
        g: &Buffer, normalised: &Buffer, left: &Buffer, right: &Buffer, norms: &Buffer,
        table: &Buffer<u32>, out: &Buffer,
    );

    // convolution.cu
    fn convolve(
        x: &Buffer, w: &Buffer, out: &Buffer, count: u64, channels: u32, width: u32, height: u32,
        out_width: u32, out_height: u32, side: u32, stride: u32, turned: i32,
    );
    fn convolve_transposed(
        y: &Buffer, w: &Buffer, out: &Buffer, count: u64, channels: u32, width: u32, height: u32,
        out_width: u32, out_height: u32, side: u32, stride: u32,
    );
    fn convolve_weights(
        x: &Buffer, y: &Buffer, parts: &Buffer<f64>, lines: u64, lines_per_part: u64, channels: u32,
        width: u32, height: u32, out_width: u32, out_height: u32, side: u32, stride: u32,
    );
}

//! Clouds of one to ten dimensions: log Z and draws against closed forms and quadrature, and every
//! operation on points with further coordinates.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use ebp::batch::{SetBatch, TaskBatch};
use ebp::metric::collection::{CollectionOptions, evaluate};
use ebp::metric::distance::ArrangedCloud;
use ebp::nn::Step;
use ebp::process::{DenoiseSettings, DrawSettings, EnergyBasedProcess, PointMethod, ScoreSettings};
use ebp::recipe::{EnergyBasedConfig, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensor;

const HALF: f32 = 2.0;

fn config() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 2,
        encoder_widths: vec![8, 16],
        head_widths: vec![8],
        energy_widths: vec![8],
        base_std_dev: 1.5,
        num_proposals: 128,
        encoder_points: 64,
        likelihood_points: 64,
        learning_rate: 5e-3,
        learning_rate_warm_up: 10,
        kl_warm_up: 10,
        ..EnergyBasedConfig::points()
    }
}

fn process(config: EnergyBasedConfig, dim: usize) -> EnergyBasedProcess {
    EnergyBasedProcess::new(config, Space::points(dim, HALF), 7, &Device::default()).unwrap()
}

fn batch<'a>(dim: usize, sets: impl IntoIterator<Item = &'a [f32]>) -> SetBatch {
    let mut batch = SetBatch::new(0, dim);
    sets.into_iter().for_each(|set| batch.push(&[], set).unwrap());
    batch
}

/// A process whose energy network has the parameters that `fill` makes of those at the start.
fn with_energy(
    config: EnergyBasedConfig,
    dim: usize,
    fill: impl Fn(Vec<f32>) -> Vec<f32>,
) -> EnergyBasedProcess {
    let mut process = process(config, dim);
    let mut state = process.state().unwrap();
    let mut num_found = 0;
    for (name, tensor) in &mut state {
        // The parameters themselves and their average.
        if name.contains("energy") && !name.starts_with("adam") && tensor.dims() != [1] {
            let flat = fill(tensor.as_f32().unwrap().to_vec());
            *tensor = Tensor::new(tensor.dims().to_vec(), flat).unwrap();
            num_found += 1;
        }
    }
    assert!(num_found >= 1, "{:?}", state.keys());
    process.restore(&state).unwrap();
    process
}

/// log ∫ exp g over [−b, b] by the midpoint rule, and the mean of x and x² under exp g.
fn quadrature(g: impl Fn(f64) -> f64) -> [f64; 3] {
    let count = 20_000;
    let width = 2.0 * f64::from(HALF) / f64::from(count);
    let mut sums = [0.0; 3];
    for place in 0..count {
        let x = (f64::from(place) + 0.5) * width - f64::from(HALF);
        let weight = g(x).exp() * width;
        sums[0] += weight;
        sums[1] += weight * x;
        sums[2] += weight * x * x;
    }
    [sums[0].ln(), sums[1] / sums[0], sums[2] / sums[0]]
}

fn base(x: f64) -> f64 {
    -x * x / (2.0 * 1.5 * 1.5)
}

/// Without weights f is its last bias, so that Z is a product of Gaussian integrals.
#[test]
fn a_plain_energy_has_the_partition_of_its_base_measure() {
    for dim in [1, 2, 3, 4, 6, 10] {
        let process = with_energy(config(), dim, |parameters| {
            let mut zero = vec![0.0; parameters.len()];
            zero[parameters.len() - 1] = 0.7;
            zero
        });
        let theta = [0.3, -1.0, 2.0, 0.0];
        let found = process.log_partition(&theta, 16_384, Stream::new(1, "z")).unwrap();
        let exact = 0.7 + dim as f64 * quadrature(base)[0];
        for log_z in found {
            let error = (log_z.value - exact).abs();
            assert!(error < 4.0 * log_z.std_error + 1e-4, "{dim}: {log_z:?}, {exact}");
            assert!(log_z.std_error < 0.1, "{dim}: {log_z:?}");
        }
    }
}

/// log p of a whole set in closed form: f is constant, so p(x | θ) is the base measure on the
/// domain whatever θ is, and log p(x₁, …, xₙ) = Σ log p(xᵢ) with θ integrated out exactly. The head of
/// the encoder says N(μ, σ²) of every set: the prior itself, or a law that is a little wider (a
/// narrower one would have weights p(θ)/q(θ) without a variance).
#[test]
fn the_log_likelihood_of_a_plain_energy_is_known() {
    for (dim, (mean, std_dev)) in
        [(1, (0.0, 1.0)), (2, (0.3, 1.2)), (3, (0.0, 1.0)), (3, (-0.4, 1.3)), (5, (0.3, 1.2_f32))]
    {
        let mut process = with_energy(config(), dim, |parameters| vec![0.0; parameters.len()]);
        let mut state = process.state().unwrap();
        let mut num_found = 0;
        for (name, tensor) in &mut state {
            if !name.ends_with("posterior.head") {
                continue;
            }
            // The last numbers are the biases of the last layer, those of μ first; log σ has −2 added.
            let mut flat = vec![0.0; tensor.dims().iter().product()];
            let biases = [mean, mean, std_dev.ln() + 2.0, std_dev.ln() + 2.0];
            let start = flat.len() - biases.len();
            flat[start..].copy_from_slice(&biases);
            *tensor = Tensor::new(tensor.dims().to_vec(), flat).unwrap();
            num_found += 1;
        }
        assert!(num_found >= 2, "{:?}", state.keys());
        process.restore(&state).unwrap();
        let mut set = vec![0.0; 40 * dim];
        Stream::new(2, "points").fill_uniform(0, 0, &mut set);
        for x in &mut set {
            *x = 2.0 * *x - 1.0;
        }
        let settings =
            ScoreSettings { num_draws: 400, most_draws: 400, ..ScoreSettings::default() };
        let score = process.score(&[&set], &settings, Stream::new(3, "score")).unwrap().remove(0);
        assert!(
            score.holds && score.pareto_k.is_some_and(|k| k < 0.7),
            "{dim}: {:?}",
            score.pareto_k
        );
        let of_base: f64 = set.iter().map(|&x| base(f64::from(x))).sum();
        let exact = of_base - 40.0 * dim as f64 * quadrature(base)[0];
        let found = score.log_likelihood;
        let error = (found.value - exact).abs();
        assert!(error < 4.0 * found.std_error + 1e-3, "{dim}: {found:?}, {exact}");
        // 40 times the 0.01 that log Z may be off, and what 400 draws of θ add.
        assert!(found.std_error < 0.8, "{dim}: {found:?}");
        let kl = 2.0 * f64::from(0.5 * (std_dev * std_dev + mean * mean - 1.0) - std_dev.ln());
        assert!((score.kl - kl).abs() < 1e-4, "{} {kl}", score.kl);
        let one = f64::from(score.log_densities[0]);
        let first: f64 = set[..dim].iter().map(|&x| base(f64::from(x))).sum();
        let exact = first - dim as f64 * quadrature(base)[0];
        assert!((one - exact).abs() < 4.0 * score.log_partition.std_error + 1e-4, "{one} {exact}");
    }
}

/// Hidden units per axis of [`tents`].
const UNITS: usize = 4;
/// How steep the silu's bend is.
const SHARP: f32 = 40.0;
/// The first axis has a second top, lower than the first one's and with a valley of 10 nats between:
/// where u bends, and by how much its slope changes there in units of the steepness. The first of them
/// lies outside of the domain and gives the slope at its left end.
const TOPS: [(f32, f32); 4] = [(-3.0, 1.0), (-1.1, -2.0), (-0.25, 2.0), (0.5, -2.0)];

/// One hidden layer each unit of which sees one axis: u is a sum over axes, and Z a product of
/// integrals on a line. Each axis is a tent exp(−steepness |x − c|), of silu(k z) + silu(−k z) ≈ k|z|.
fn tents(num_parameters: usize, dim: usize, steepness: f32) -> Vec<f32> {
    // The layout: weights [units, d], context weights [units, 2], biases, weights [units], bias.
    let units = UNITS * dim;
    let mut flat = vec![0.0; num_parameters];
    let bias = units * (dim + 2);
    let output = bias + units;
    assert_eq!(output + units + 1, flat.len(), "the layout that the test believes in");
    for axis in 0..dim {
        let bends: Vec<(f32, f32, f32)> = match axis {
            0 => TOPS.iter().map(|(shift, bend)| (*shift, 1.0, steepness * bend)).collect(),
            _ => [1.0, -1.0].map(|factor| (centre(axis), factor, -steepness)).to_vec(),
        };
        for (number, (shift, factor, weight)) in bends.into_iter().enumerate() {
            let unit = UNITS * axis + number;
            flat[unit * dim + axis] = SHARP * factor;
            flat[bias + unit] = -SHARP * factor * shift;
            flat[output + unit] = weight / SHARP;
        }
    }
    flat
}

fn centre(axis: usize) -> f32 {
    [0.5, -0.25, 1.0, 0.0, -1.25, 0.75][axis % 6]
}

/// g of one axis in f64.
fn tent(axis: usize, steepness: f64, x: f64) -> f64 {
    let sharp = f64::from(SHARP);
    let silu = |z: f64| sharp * z / (1.0 + (-sharp * z).exp()) / sharp;
    let bends = |(shift, bend): &(f32, f32)| f64::from(*bend) * silu(x - f64::from(*shift));
    let c = f64::from(centre(axis));
    let slopes = match axis {
        0 => TOPS.iter().map(bends).sum(),
        _ => -silu(x - c) - silu(c - x),
    };
    steepness * slopes + base(x)
}

/// Laws a twelfth of a unit wide in six dimensions: one part in 10⁹ of the domain.
#[test]
fn narrow_products_have_the_partition_and_the_moments_of_their_axes() {
    let steepness = 12.0;
    for dim in [4, 6] {
        let widths = vec![UNITS * dim];
        let settings = EnergyBasedConfig { energy_widths: widths, ..config() };
        let process = with_energy(settings, dim, |p| tents(p.len(), dim, steepness));
        let axes: Vec<[f64; 3]> =
            (0..dim).map(|axis| quadrature(|x| tent(axis, f64::from(steepness), x))).collect();
        let exact: f64 = axes.iter().map(|axis| axis[0]).sum();
        let theta = [0.1, 0.2, -0.5, 1.0, 0.0, 0.0, 2.0, -2.0];
        let found = process.log_partition(&theta, 32_768, Stream::new(1, "z")).unwrap();
        for log_z in &found {
            let error = (log_z.value - exact).abs();
            assert!(error < 4.0 * log_z.std_error, "{dim}: {log_z:?}, {exact}");
            assert!(log_z.std_error < 0.4, "{dim}: {log_z:?}");
        }
        // θ changes nothing, so these are four independent estimates: E Ẑ/Z = 1.
        let ratios: Vec<f64> = found.iter().map(|log_z| (log_z.value - exact).exp()).collect();
        let mean = ratios.iter().sum::<f64>() / 4.0;
        let error = found.iter().map(|z| z.std_error.powi(2)).sum::<f64>().sqrt() / 4.0;
        assert!((mean - 1.0).abs() < 4.0 * error, "{dim}: {ratios:?}");
        let draw = DrawSettings {
            method: PointMethod::Mala,
            num_steps: 20,
            step_size: 1e-3,
            ..DrawSettings::default()
        };
        let count = 4096;
        let (points, report) =
            process.draw_points(&theta[..2], count, &draw, Stream::new(2, "draw")).unwrap();
        assert!(report.effective_proposals > 1000.0, "{report:?}");
        for (axis, [_, first, second]) in axes.iter().enumerate() {
            let mean = points.iter().skip(axis).step_by(dim).map(|&x| f64::from(x)).sum::<f64>();
            // Particles of a group have ancestors in common: as if an eighth of them were drawn.
            let error = ((second - first * first) / (count as f64 / 8.0)).sqrt();
            let mean = mean / count as f64;
            assert!((mean - first).abs() < 4.0 * error, "{dim}, axis {axis}: {mean}, {first}");
        }
    }
}

/// A random network in four dimensions against the midpoint rule on 20⁴ cells.
#[test]
fn a_random_network_in_four_dimensions_has_the_partition_of_quadrature() {
    let settings = EnergyBasedConfig { energy_widths: vec![24, 24], input_scale: 2.0, ..config() };
    let process = process(settings, 4);
    let theta = [0.5, -0.5];
    let per_axis = 20_u16;
    let at = |cell: u16| -2.0 + 4.0 * (f32::from(cell) + 0.5) / f32::from(per_axis);
    let mut places = Vec::new();
    for cell in 0..u32::from(per_axis).pow(4) {
        let side = u32::from(per_axis);
        for power in 0..4 {
            places.push(at(u16::try_from(cell / side.pow(power) % side).unwrap()));
        }
    }
    let u = process.log_potentials(&places, &theta).unwrap();
    let volume = (4.0 / f64::from(per_axis)).powi(4);
    let exact = u.iter().map(|&u| f64::from(u).exp() * volume).sum::<f64>().ln();
    let log_z = process.log_partition(&theta, 16_384, Stream::new(1, "z")).unwrap()[0];
    let error = (log_z.value - exact).abs();
    // The rule's own error, from the next coarser one of the same order: below 0.01 here.
    assert!(error < 4.0 * log_z.std_error + 0.01, "{log_z:?}, {exact}");
    assert!(log_z.std_error < 0.05, "{log_z:?}");
}

/// A sphere with its normals, and further numbers that follow from the place.
fn shell(number: u64, dim: usize, count: usize) -> Vec<f32> {
    let mut points = vec![0.0; 3 * count];
    Stream::new(number, "shell").fill_normal(0, 0, &mut points);
    let radius = 0.6 + 0.1 * (number % 5) as f32;
    points
        .chunks_exact(3)
        .flat_map(|p| {
            let norm = p.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-3);
            let place = |axis: usize| match axis {
                0..3 => radius * p[axis] / norm,
                _ => 0.8 * p[axis % 3] / norm,
            };
            (0..dim).map(place).collect::<Vec<f32>>()
        })
        .collect()
}

#[test]
fn points_with_further_coordinates_train_evaluate_and_draw() {
    for dim in [6, 10] {
        let settings = EnergyBasedConfig {
            energy_widths: vec![24, 24],
            input_scale: 4.0,
            num_proposals: 256,
            ..config()
        };
        let mut process = process(settings, dim);
        let sets: Vec<Vec<f32>> = (0..8).map(|number| shell(number, dim, 80)).collect();
        let nats = |process: &EnergyBasedProcess| {
            let sets = batch(dim, sets.iter().map(Vec::as_slice));
            process.evaluate(&sets, Stream::new(1, "evaluate")).unwrap()[0].1
        };
        let before = nats(&process);
        for step_number in 0..60_usize {
            let number = step_number as u64;
            let stream = Stream::new(3, "steps").child(number);
            let step = Step { number, num_steps: 60, stream, learning_rate_factor: 1.0 };
            let chosen = sets.iter().cycle().skip(4 * (step_number % 2)).take(4);
            let tasks = TaskBatch::whole(batch(dim, chosen.map(Vec::as_slice)));
            let prepared = process.batch_maker().prepare(&tasks, &step).unwrap();
            process.learn(&prepared, &step).unwrap();
        }
        let after = nats(&process);
        assert!(after < before - 1.0, "{dim}: {before} to {after}");
        let codes = process.encode(&batch(dim, [&sets[0][..], &sets[1]])).unwrap();
        let draw = DrawSettings { num_steps: 2, ..DrawSettings::default() };
        let (points, report) =
            process.draw_points(&codes.mean, 300, &draw, Stream::new(1, "draw")).unwrap();
        assert_eq!(points.len(), 2 * 300 * dim);
        assert!(points.iter().all(|x| x.abs() <= HALF) && report.effective_proposals > 100.0);
        let settings = ScoreSettings { num_draws: 2, most_draws: 2, num_proposals: 8192 };
        let score = process.score(&[&sets[0]], &settings, Stream::new(1, "s")).unwrap().remove(0);
        assert!(score.log_likelihood.value.is_finite() && score.log_partition.std_error < 0.5);
        let settings = DenoiseSettings { num_steps: 2, ..DenoiseSettings::default() };
        let moved = process.denoise(&sets[0], None, None, &settings).unwrap();
        // Every coordinate moves, the last ones too.
        let is_moved = |axis: usize| moved[axis].to_bits() != sets[0][axis].to_bits();
        assert!((0..dim).all(is_moved), "{dim}");
        let arrange = |points: &[f32]| {
            let points: Vec<f64> = points.iter().map(|&x| f64::from(x)).collect();
            ArrangedCloud::new(dim, &points).unwrap()
        };
        let drawn: Vec<ArrangedCloud> = points.chunks_exact(300 * dim).map(arrange).collect();
        let references: Vec<ArrangedCloud> = sets[..2].iter().map(|set| arrange(set)).collect();
        let options = CollectionOptions { emd: None, cache: None, seed: 0 };
        let found = evaluate(&drawn, &references, &options, &mut |_| ()).unwrap();
        assert!(found.divergence.is_none(), "its grid is one of three dimensions");
        assert!(found.chamfer.matching_distance.value.is_finite());
    }
}

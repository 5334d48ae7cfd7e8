//! The unconditional energy-based process: exchangeable, consistent, right about its own density,
//! and able to learn.

use ebp::SetOffsets;
use ebp::batch::TaskBatch;
use ebp::metric::distance::{ArrangedCloud, ChamferConvention, NearestNeighbours};
use ebp::nn::{Record, Step};
use ebp::process::{
    DenoiseSettings, DrawSettings, EnergyBasedProcess, LatentCodes, PointMethod, PointStart,
    ScoreSettings,
};
use ebp::recipe::{
    Dynamics, EnergyBasedConfig, Estimator, NegativePhase, NoiseSchedule, PerturbationConfig,
    ProposalConfig, SamplerConfig, SamplerKind, Space,
};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{CloudTraining, Trainable};

fn small() -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 4,
        encoder_widths: vec![16, 24],
        head_widths: vec![16],
        energy_widths: vec![24, 24],
        input_scale: 4.0,
        num_proposals: 128,
        encoder_points: 64,
        likelihood_points: 64,
        learning_rate: 5e-3,
        learning_rate_warm_up: 10,
        kl_warm_up: 10,
        average_decay: 0.95,
        perturbation: PerturbationConfig { share: 0.5, ..PerturbationConfig::default() },
        ..EnergyBasedConfig::points()
    }
}

fn process(config: EnergyBasedConfig) -> EnergyBasedProcess {
    let space = Space::points(3, 2.0);
    EnergyBasedProcess::new(config, space, 7, &Device::default()).expect("a process")
}

fn encode(process: &EnergyBasedProcess, sets: &[&[f32]]) -> LatentCodes {
    process.encode(&process.point_sets(sets).expect("points")).expect("codes")
}

fn learn(process: &mut EnergyBasedProcess, sets: &[&[f32]], step: &Step) -> Record {
    let tasks = TaskBatch::whole(process.point_sets(sets).expect("points"));
    let batch = process.batch_maker().prepare(&tasks, step).expect("a batch");
    process.learn(&batch, step).expect("a step")
}

/// A ring around the z axis of radius 0.5 to 1.2, by `number`.
fn ring(number: u64, count: usize) -> Vec<f32> {
    let mut draws = vec![0.0; 2 * count];
    let stream = Stream::new(number, "ring");
    stream.fill_uniform(0, 0, &mut draws);
    let radius = 0.5 + 0.7 * stream.child(1).normal(0, 0).abs().min(1.0);
    draws
        .chunks_exact(2)
        .flat_map(|u| {
            let (sine, cosine) = (std::f32::consts::TAU * u[0]).sin_cos();
            [radius * cosine, radius * sine, 0.1 * (u[1] - 0.5)]
        })
        .collect()
}

fn step(number: u64) -> Step {
    let stream = Stream::new(3, "steps").child(number);
    Step { number, num_steps: 250, stream, learning_rate_factor: 1.0 }
}

fn train(process: &mut EnergyBasedProcess, num_steps: u64) -> Vec<f64> {
    let sets: Vec<Vec<f32>> = (0..12).map(|number| ring(number, 64)).collect();
    (0..num_steps)
        .map(|number| {
            let chosen: Vec<&[f32]> =
                (0..4).map(|place| sets[((4 * number + place) % 12) as usize].as_slice()).collect();
            let record = learn(process, &chosen, &step(number));
            assert!(record.iter().all(|(_, value)| value.is_finite()), "{record:?}");
            record.iter().find(|(name, _)| *name == "nats").map_or(f64::NAN, |(_, value)| *value)
        })
        .collect()
}

fn bits(process: &EnergyBasedProcess) -> Vec<(String, Vec<u32>)> {
    let state = process.state().expect("parameters");
    state
        .into_iter()
        .filter_map(|(name, tensor)| {
            let values = tensor.as_f32()?;
            Some((name, values.iter().map(|value| value.to_bits()).collect()))
        })
        .collect()
}

/// The middles of the cells of a grid over [−2, 2]³, `[per_axis³, 3]`.
fn middles(per_axis: u16) -> Vec<f32> {
    let at = |cell: u16| -2.0 + 4.0 * (f32::from(cell) + 0.5) / f32::from(per_axis);
    let mut grid = Vec::new();
    for z in 0..per_axis {
        for y in 0..per_axis {
            grid.extend((0..per_axis).flat_map(|x| [at(x), at(y), at(z)]));
        }
    }
    grid
}

#[test]
fn the_order_of_points_does_not_matter() {
    let process = process(small());
    for n in [1, 5, 100, 2048] {
        let set = ring(1, n);
        let order = Stream::new(1, "order").permutation(n);
        let shuffled: Vec<f32> =
            order.iter().flat_map(|&row| set[3 * row..3 * row + 3].to_vec()).collect();
        let codes = |set: &[f32]| encode(&process, &[set]);
        assert_eq!(codes(&set).mean, codes(&shuffled).mean, "n = {n}");
        let stream = Stream::new(2, "score");
        let settings = ScoreSettings { num_draws: 4, most_draws: 4, num_proposals: 4096 };
        let score = |set: &[f32]| process.score(&[set], &settings, stream).unwrap().remove(0);
        let (a, b) = (score(&set), score(&shuffled));
        // The same numbers, added in another order: relative rounding of f64 sums of f32.
        let scale = a.log_likelihood.value.abs().max(1.0);
        assert!((a.log_likelihood.value - b.log_likelihood.value).abs() < 1e-6 * scale, "n = {n}");
        for (row, &from) in order.iter().enumerate() {
            assert!((b.energies[row] - a.energies[from]).abs() < 1e-4);
        }
    }
}

/// Given θ the law of some points does not change when further ones are looked at: each point of a
/// set has the density exp u/Z with Z by quadrature, whatever the others are and however many.
#[test]
fn a_part_of_a_set_has_the_law_of_the_part() {
    let process = process(small());
    let set = ring(3, 300);
    let code = encode(&process, &[&set]).mean;
    let stream = Stream::new(1, "z");
    let settings = ScoreSettings { num_draws: 1, most_draws: 1, num_proposals: 40_000 };
    let whole = process.score(&[&set], &settings, stream).unwrap().remove(0);
    let u = process.log_potentials(&middles(60), &code).unwrap();
    let volume = (4.0_f64 / 60.0).powi(3);
    let exact = u.iter().map(|&u| f64::from(u).exp() * volume).sum::<f64>().ln();
    let allowed = 4.0 * whole.log_partition.std_error + 0.01;
    assert!(whole.log_partition.std_error < 0.02);
    for size in [1, 2, 299] {
        let part = process.log_potentials(&set[..3 * size], &code).unwrap();
        for (alone, log_density) in part.iter().zip(&whole.log_densities) {
            let expected = f64::from(*alone) - exact;
            assert!((f64::from(*log_density) - expected).abs() < allowed, "{size}: {log_density}");
        }
    }
}

#[test]
fn sets_of_any_number_of_points_are_drawn_encoded_scored_and_denoised() {
    let process = process(small());
    let code = encode(&process, &[&ring(1, 50)]).mean;
    for n in [1, 100, 2048, 20_000] {
        let settings =
            DrawSettings { cells_per_axis: 16, proposals_per_point: 2, ..DrawSettings::default() };
        let (points, report) =
            process.draw_points(&code, n, &settings, Stream::new(1, "draw")).unwrap();
        assert_eq!(points.len(), 3 * n);
        assert!(report.effective_proposals > 100.0, "{}", report.effective_proposals);
        assert!(points.iter().all(|x| x.abs() <= 2.0));
        let settings = DenoiseSettings { num_steps: 2, ..DenoiseSettings::default() };
        let denoised = process.denoise(&points, None, None, &settings).unwrap();
        assert_eq!(denoised.len(), 3 * n);
        assert_eq!(encode(&process, &[&points, &ring(1, 7)]).num_sets(), 2);
    }
    assert!(process.point_sets(&[&[1.0, 2.0]]).is_err());
    // Nothing is known of an empty set: it has a code as any other.
    assert_eq!(encode(&process, &[&[]]).num_sets(), 1);
}

/// log Z by importance sampling against the midpoint rule on 60³ cells.
#[test]
fn log_partitions_are_integrals() {
    let mut process = process(small());
    train(&mut process, 20);
    process.use_average();
    let code = encode(&process, &[&ring(1, 64), &ring(2, 64)]).mean;
    let found = process.log_partition(&code, 40_000, Stream::new(1, "z")).unwrap();
    let grid = middles(60);
    for (set, log_z) in found.iter().enumerate() {
        let theta = &code[4 * set..4 * set + 4];
        let u = process.log_potentials(&grid, theta).unwrap();
        let volume = (4.0_f64 / 60.0).powi(3);
        let exact: f64 = u.iter().map(|&u| f64::from(u).exp() * volume).sum();
        let error = (log_z.value - exact.ln()).abs();
        // The rule is second order: cells of 1/15 against features of about ½.
        assert!(error < 4.0 * log_z.std_error + 0.01, "{} {} {error}", log_z.value, exact.ln());
        assert!(log_z.std_error < 0.02, "{}", log_z.std_error);
    }
}

/// Draws fall into the eight octants (and shells) as often as the density says: a χ² test.
#[test]
fn draws_have_the_law_of_the_density() {
    let mut process = process(small());
    train(&mut process, 30);
    let code = encode(&process, &[&ring(1, 64)]).mean;
    let grid = middles(48);
    // Cubes of 12³ grid cells: 4³ bins.
    let bin = |x: &[f32]| {
        let place = |x: f32| usize::from(x >= -1.0) + usize::from(x >= 0.0) + usize::from(x >= 1.0);
        place(x[0]) + 4 * place(x[1]) + 16 * place(x[2])
    };
    let u = process.log_potentials(&grid, &code).unwrap();
    let mut expected = vec![0.0; 64];
    for (x, u) in grid.chunks_exact(3).zip(&u) {
        expected[bin(x)] += f64::from(*u).exp();
    }
    let total: f64 = expected.iter().sum();
    let count = 4000;
    for (method, num_steps) in
        [(PointMethod::Langevin, 0), (PointMethod::Langevin, 5), (PointMethod::Mala, 20)]
    {
        let settings = DrawSettings {
            method,
            num_steps,
            step_size: 2e-3,
            proposals_per_point: 16,
            ..DrawSettings::default()
        };
        let (points, report) =
            process.draw_points(&code, count, &settings, Stream::new(5, "draw")).unwrap();
        if method == PointMethod::Mala {
            assert!(report.acceptance.unwrap() > 0.9, "{:?}", report.acceptance);
        }
        let mut counts = vec![0.0; 64];
        points.chunks_exact(3).for_each(|x| counts[bin(x)] += 1.0);
        let (mut statistic, mut degrees, mut rest) = (0.0, 0.0, (0.0, 0.0));
        for (found, expected) in counts.iter().zip(&expected) {
            let expected = expected / total * count as f64;
            if expected < 20.0 {
                rest = (rest.0 + found, rest.1 + expected);
            } else {
                statistic += (found - expected).powi(2) / expected;
                degrees += 1.0;
            }
        }
        if rest.1 > 5.0 {
            statistic += (rest.0 - rest.1).powi(2) / rest.1;
        }
        // Mean d, standard deviation √(2d); systematic resampling only lowers it.
        let limit = degrees + 4.0 * (2.0_f64 * degrees).sqrt();
        assert!(degrees > 10.0 && statistic < limit, "{method:?}: {statistic} of {degrees}");
    }
}

/// Resampled and rejected draws of an untrained flow have the mean and spread of the density.
#[test]
fn corrected_draws_of_the_sampler_have_the_law_of_the_density() {
    let process = process(EnergyBasedConfig {
        proposal: ProposalConfig { sampler_share: 0.25, ..ProposalConfig::points() },
        sampler: SamplerConfig {
            kind: SamplerKind::Flow,
            num_layers: 2,
            hyper_widths: vec![8],
            ..SamplerConfig::points().as_published()
        },
        // So smooth that an untrained flow covers it.
        input_scale: 1.0,
        bias_scale: 0.0,
        ..small()
    });
    let code = encode(&process, &[&ring(1, 64)]).mean;
    let grid = middles(40);
    let u = process.log_potentials(&grid, &code).unwrap();
    let total: f64 = u.iter().map(|&u| f64::from(u).exp()).sum();
    for start in [PointStart::SamplerResampled, PointStart::SamplerRejected] {
        let settings = DrawSettings {
            start,
            num_steps: 0,
            proposals_per_point: 150,
            ..DrawSettings::default()
        };
        let count = 2000;
        let stream = Stream::new(3, "draw");
        let (points, report) = process.draw_points(&code, count, &settings, stream).unwrap();
        assert!(report.effective_proposals > 2000.0, "{report:?}");
        if start == PointStart::SamplerRejected {
            assert!(report.kept.is_some_and(|kept| kept > 0.005 && kept < 1.0), "{report:?}");
        }
        for axis in 0..3 {
            let moments = |power: i32| {
                let exact: f64 = grid
                    .chunks_exact(3)
                    .zip(&u)
                    .map(|(x, &u)| f64::from(x[axis]).powi(power) * f64::from(u).exp() / total)
                    .sum();
                let found: f64 =
                    points.chunks_exact(3).map(|x| f64::from(x[axis]).powi(power)).sum();
                found / 2000.0 - exact
            };
            // Coordinates within ±2: standard errors of at most 2/√2000 and 4/√2000, less for
            // these spread-out laws; resampling adds a little.
            assert!(moments(1).abs() < 0.12, "{start:?}, axis {axis}: {}", moments(1));
            assert!(moments(2).abs() < 0.15, "{start:?}, axis {axis}: {}", moments(2));
        }
    }
}

/// How much larger u is on rings that are learned from than anywhere in the domain, in nats. Every
/// estimator raises it, whatever it makes of log Z.
fn contrast(process: &EnergyBasedProcess) -> f64 {
    let mut anywhere = vec![0.0; 3 * 2000];
    Stream::new(9, "anywhere").fill_uniform(0, 0, &mut anywhere);
    for x in &mut anywhere {
        *x = 4.0 * *x - 2.0;
    }
    let gaps = (0..12).map(|number| {
        let set = ring(number, 64);
        let code = encode(process, &[&set]).mean;
        let mean = |points: &[f32]| {
            let u = process.log_potentials(points, &code).expect("potentials");
            u.iter().map(|&u| f64::from(u)).sum::<f64>() / u.len() as f64
        };
        mean(&set) - mean(&anywhere)
    });
    gaps.sum::<f64>() / 12.0
}

#[test]
fn every_estimator_learns() {
    let sampler = SamplerConfig {
        num_layers: 6,
        hyper_widths: vec![16],
        block_elements: 32,
        block_widths: vec![8, 16],
        block_state: 8,
        num_components: 32,
        num_dynamics_steps: 3,
        num_draws: 64,
        // Few steps: the sampler must keep up from the start.
        learning_rate: 5e-3,
        updates_per_step: 2,
        ..SamplerConfig::points()
    };
    let with = |estimator, kind, dynamics, noise_schedule| EnergyBasedConfig {
        estimator,
        sampler: SamplerConfig { kind, dynamics, noise_schedule, ..sampler.clone().as_published() },
        ..small()
    };
    let mixture = |negative_phase, dynamics| EnergyBasedConfig {
        estimator: Estimator::Ade,
        sampler: SamplerConfig { negative_phase, dynamics, ..sampler.clone() },
        ..small()
    };
    let (flow, block) = (SamplerKind::Flow, SamplerKind::Block);
    let (constant, annealed) = (NoiseSchedule::Constant, NoiseSchedule::Annealed);
    let importance = Estimator::Importance;
    let cases = [
        (with(importance, flow, Dynamics::None, constant), 1.0),
        (
            EnergyBasedConfig {
                proposal: ProposalConfig { sampler_share: 0.25, ..ProposalConfig::points() },
                ..with(importance, flow, Dynamics::None, constant)
            },
            1.0,
        ),
        (with(Estimator::ScoreMatching, flow, Dynamics::None, constant), 0.2),
        (mixture(NegativePhase::Weighted, Dynamics::None), 0.5),
        (mixture(NegativePhase::Weighted, Dynamics::Langevin), 0.5),
        (mixture(NegativePhase::Plain, Dynamics::None), 0.1),
        (with(Estimator::Ade, flow, Dynamics::Langevin, constant), 0.1),
        (with(Estimator::Ade, flow, Dynamics::Langevin, annealed), 0.1),
        (with(Estimator::Ade, flow, Dynamics::Hamiltonian, constant), 0.1),
        (with(Estimator::Ade, flow, Dynamics::GeneralizedHamiltonian, constant), 0.1),
        // A block LSTM of so few steps is no match for the energy, whose nats get worse for a while;
        // what must come, and falls if a sign is wrong, is the contrast below.
        (with(Estimator::Ade, block, Dynamics::Langevin, constant), f64::NEG_INFINITY),
    ];
    for (config, least_gain) in cases {
        let label = format!("{:?} {:?}", config.estimator, config.sampler);
        let mut process = process(config);
        let before = contrast(&process);
        let nats = train(&mut process, 60);
        let after = contrast(&process);
        assert!(after > before + 0.5, "{label}: contrast {before} to {after}");
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let gain = mean(&nats[..5]) - mean(&nats[55..]);
        assert!(gain > least_gain, "{label}: {gain} ({} to {})", nats[0], nats[59]);
        if process.has_sampler() {
            let sampler = &process.config().sampler;
            let has_densities = sampler.kind != block
                && (sampler.dynamics != Dynamics::Langevin || sampler.noise_schedule == constant);
            for start in [PointStart::Sampler, PointStart::SamplerResampled] {
                let settings = DrawSettings { start, ..DrawSettings::default() };
                let stream = Stream::new(1, "draw");
                let drawn = process.draw_points(&[0.0; 8], 50, &settings, stream);
                assert_eq!(drawn.is_ok(), has_densities || start == PointStart::Sampler);
                assert!(drawn.is_err() || drawn.unwrap().0.len() == 2 * 50 * 3);
            }
        }
    }
}

/// Clouds drawn from the codes of rings have the radii of those rings.
#[test]
fn codes_tell_rings_apart() {
    let mut process = process(EnergyBasedConfig {
        perturbation: PerturbationConfig::default(),
        kl_weight: 0.1,
        ..small()
    });
    train(&mut process, 250);
    let sets: Vec<Vec<f32>> = (0..12).map(|number| ring(number, 64)).collect();
    let radius = |points: &[f32]| {
        let sum: f32 = points.chunks_exact(3).map(|x| x[0].hypot(x[1])).sum();
        f64::from(sum / (points.len() / 3) as f32)
    };
    let slices: Vec<&[f32]> = sets.iter().map(Vec::as_slice).collect();
    let codes = encode(&process, &slices);
    let settings = DrawSettings { cells_per_axis: 20, ..DrawSettings::default() };
    let (drawn, _) =
        process.draw_points(&codes.mean, 300, &settings, Stream::new(1, "draw")).unwrap();
    let pairs: Vec<(f64, f64)> =
        slices.iter().zip(drawn.chunks_exact(900)).map(|(a, b)| (radius(a), radius(b))).collect();
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / 12.0;
    let (a, b) = (mean(&|p| p.0), mean(&|p| p.1));
    let covariance = mean(&|p| (p.0 - a) * (p.1 - b));
    let scale = (mean(&|p| (p.0 - a).powi(2)) * mean(&|p| (p.1 - b).powi(2))).sqrt();
    assert!(covariance / scale > 0.8, "correlation {}: {pairs:?}", covariance / scale);
    let slope = covariance / mean(&|p| (p.0 - a).powi(2));
    assert!((0.5..1.3).contains(&slope), "slope {slope}: {pairs:?}");
    assert!(codes.num_active() > 0);

    // Denoising denoises: noisy rings come nearer to the clean ones, by their own codes.
    let settings = DenoiseSettings { noise: Some(0.15), ..DenoiseSettings::default() };
    let mut sums = [0.0; 2];
    for set in &slices {
        let mut noisy = vec![0.0; set.len()];
        Stream::new(4, "noise").fill_normal(0, 0, &mut noisy);
        for (x, clean) in noisy.iter_mut().zip(*set) {
            *x = clean + 0.15 * *x;
        }
        let denoised = process.denoise(&noisy, None, None, &settings).unwrap();
        sums[0] += chamfer(&noisy, set);
        sums[1] += chamfer(&denoised, set);
    }
    assert!(sums[1] < 0.75 * sums[0], "noisy {}, denoised {}", sums[0], sums[1]);
}

fn chamfer(a: &[f32], b: &[f32]) -> f64 {
    let [a, b] = [a, b].map(|points| {
        let points: Vec<f64> = points.iter().map(|&x| f64::from(x)).collect();
        ArrangedCloud::new(3, &points).expect("a cloud")
    });
    let nearest = NearestNeighbours::between(&a, &b).expect("one dimension");
    nearest.chamfer(ChamferConvention::MeanOfSquares)
}

#[test]
fn a_restored_process_goes_on_bit_for_bit() {
    for estimator in [Estimator::Importance, Estimator::Ade] {
        let config = EnergyBasedConfig {
            estimator,
            sampler: SamplerConfig {
                num_components: 16,
                num_dynamics_steps: 2,
                num_draws: 32,
                ..SamplerConfig::points()
            },
            ..small()
        };
        let mut whole = process(config.clone());
        train(&mut whole, 3);
        let saved = whole.state().unwrap();
        let sets = [ring(1, 64), ring(2, 40)];
        let sets: Vec<&[f32]> = sets.iter().map(Vec::as_slice).collect();
        whole.use_average();
        learn(&mut whole, &sets, &step(3));
        let mut resumed = process(config);
        resumed.restore(&saved).unwrap();
        learn(&mut resumed, &sets, &step(3));
        assert_eq!(bits(&whole), bits(&resumed));
        let mut damaged = saved;
        damaged.pop_first();
        assert!(resumed.restore(&damaged).is_err());
    }
}

#[test]
fn one_and_two_threads_compute_the_same_bytes() {
    let with_threads = |count: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
        pool.install(|| {
            let mut process = process(small());
            train(&mut process, 4);
            let code = encode(&process, &[&ring(1, 64)]).mean;
            let stream = Stream::new(1, "draw");
            let (points, _) =
                process.draw_points(&code, 500, &DrawSettings::default(), stream).unwrap();
            (bits(&process), points)
        })
    };
    assert_eq!(with_threads(1), with_threads(2));
}

/// A batch that was foreseen is the one that the step would have made, and one that was foreseen
/// for another stream is not used.
#[test]
fn batches_prepared_ahead_change_nothing() {
    let sets: Vec<f32> = (0..6).flat_map(|number| ring(number, 40)).collect();
    let names = (0..6).map(|number| number.to_string()).collect();
    let clouds =
        ebp::data::Clouds::new(3, sets, SetOffsets::uniform(6, 40).unwrap(), names).unwrap();
    let run = |count: usize, foresees: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
        pool.install(|| {
            let mut training = CloudTraining::new(process(small()), clouds.clone(), 4, 1).unwrap();
            let mut records = Vec::new();
            for number in 0..4 {
                if foresees {
                    let stream = Stream::new(8, "another").child(number);
                    training.foresee(&Step { stream, ..step(number + 1) });
                    training.foresee(&step(number + 1));
                }
                records.push(training.step(&step(number)).unwrap());
            }
            (records, bits(training.process()))
        })
    };
    let plain = run(1, false);
    assert_eq!(plain, run(1, true));
    assert_eq!(plain, run(3, true));
}

#[test]
fn settings_outside_their_range_are_refused_by_name() {
    let refused = |config: EnergyBasedConfig| {
        let space = Space::points(3, 2.0);
        EnergyBasedProcess::new(config, space, 1, &Device::default()).unwrap_err().to_string()
    };
    let message = refused(EnergyBasedConfig { latent_dim: 0, ..small() });
    assert_eq!(message, "`latent_dim` must be at least 1, found 0");
    let proposal = ProposalConfig { uniform_share: 0.0, ..ProposalConfig::points() };
    assert!(refused(EnergyBasedConfig { proposal, ..small() }).contains("uniform_share"));
    let proposal = ProposalConfig { sampler_share: 0.9, ..ProposalConfig::points() };
    assert!(refused(EnergyBasedConfig { proposal, ..small() }).contains("sampler_share"));
    assert!(refused(EnergyBasedConfig { temperature: -1.0, ..small() }).contains("temperature"));
}

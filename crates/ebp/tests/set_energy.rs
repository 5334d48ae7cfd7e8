//! Energies of whole sets: no order, true gradients, steps that can be repeated, and learning.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::SetOffsets;
use ebp::data::{Clouds, PlanarFamily};
use ebp::metric::collection::{CollectionOptions, evaluate};
use ebp::metric::distance::ArrangedCloud;

use ebp::process::{
    GeneratorKind, GuessTarget, Interaction, Refining, SetBase, SetEnergyConfig, SetEnergyProcess,
    SetEstimator, SizeLaw, SummaryPooling,
};
use ebp::recipe::NegativePhase;
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{SetSource, SetTraining, Step, Trainable};

fn model(interaction: Interaction, pooling: SummaryPooling) -> SetEnergyProcess {
    let config = SetEnergyConfig {
        interaction,
        pooling,
        summary_widths: vec![16, 8],
        energy_widths: vec![16],
        generator_width: 8,
        num_heads: 2,
        ..SetEnergyConfig::default()
    };
    let device = Device::default();
    SetEnergyProcess::new(config, 3, &device).unwrap()
}

const KINDS: [(Interaction, SummaryPooling); 4] = [
    (Interaction::DeepSets, SummaryPooling::Mean),
    (Interaction::DeepSets, SummaryPooling::Sum),
    (Interaction::DeepSets, SummaryPooling::Max),
    (Interaction::Attention, SummaryPooling::Mean),
];

fn elements(count: usize) -> Vec<f32> {
    let mut values = vec![0.0; 2 * count];
    Stream::new(5, "elements").fill_normal(0, 0, &mut values);
    values
}

#[test]
fn the_order_of_elements_does_not_matter_and_sets_do_not_see_each_other() {
    let (first, second) = (elements(7), elements(12)[14..].to_vec());
    let offsets = SetOffsets::from_sizes([7, 5]).unwrap();
    for (interaction, pooling) in KINDS {
        let model = model(interaction, pooling);
        let both = [first.clone(), second.clone()].concat();
        let expected = model.log_potentials(&both, &offsets).unwrap();
        let mut shuffled = Vec::new();
        for (points, stream) in [(&first, 1), (&second, 2)] {
            for row in Stream::new(stream, "order").permutation(points.len() / 2) {
                shuffled.extend_from_slice(&points[2 * row..][..2]);
            }
        }
        let found = model.log_potentials(&shuffled, &offsets).unwrap();
        let alone = model.log_potentials(&second, &SetOffsets::from_sizes([5]).unwrap()).unwrap();
        for (found, expected) in found.iter().zip(&expected).chain([(&alone[0], &expected[1])]) {
            // Sums of a dozen single-precision terms in another order.
            assert!(
                (found - expected).abs() < 1e-5 * expected.abs().max(1.0),
                "{found} {expected}"
            );
        }
        // It is one energy of the set, not a sum over elements on their own.
        let halves = SetOffsets::from_sizes([3, 4]).unwrap();
        let parts: f32 = model.log_potentials(&first, &halves).unwrap().iter().sum();
        assert!((parts - expected[0]).abs() > 1e-3, "{interaction:?} {parts} {}", expected[0]);
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let points = elements(6);
    let offsets = SetOffsets::from_sizes([2, 4]).unwrap();
    for (interaction, pooling) in KINDS {
        let model = model(interaction, pooling);
        let found = model.scores(&points, &offsets).unwrap();
        let total = |points: &[f32]| -> f64 {
            let u = model.log_potentials(points, &offsets).unwrap();
            u.iter().map(|&u| f64::from(u)).sum()
        };
        for (place, &gradient) in found.iter().enumerate() {
            let h = 0.002_f32;
            let moved = |sign: f32| {
                let mut points = points.clone();
                points[place] += sign * h;
                total(&points)
            };
            let difference = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(h));
            // Rounding: 1e-7 of u, which is about 5, over 2 h, 1e-4 in all; the third derivative of
            // networks that see 3 x is of the order of 27, times h²/6 = 2e-5.
            let error = (difference - f64::from(gradient)).abs();
            assert!(
                error < 2e-3 * difference.abs().max(1.0),
                "{interaction:?} {pooling:?} {error}"
            );
        }
    }
}

fn step(number: u64, num_steps: u64) -> Step {
    let stream = Stream::new(1, "training").child(number);
    Step { number, num_steps, stream, learning_rate_factor: 1.0 }
}

#[test]
fn a_restored_run_goes_on_to_the_last_bit() {
    let published = SetEnergyConfig::default().as_published();
    let following = SetEnergyConfig {
        base: SetBase::Gaussian,
        guess_target: GuessTarget::Energy,
        num_dynamics_steps: 2,
        ..SetEnergyConfig::default()
    };
    for config in [
        SetEnergyConfig { generator: GeneratorKind::Recurrent, ..published.clone() },
        published,
        following,
        SetEnergyConfig {
            base: SetBase::Gaussian,
            estimator: SetEstimator::Composite,
            energy_components: 3,
            ..SetEnergyConfig::default()
        },
        SetEnergyConfig { num_couplings: 2, ..SetEnergyConfig::default() },
    ] {
        check_restored(&config);
    }
}

fn check_restored(config: &SetEnergyConfig) {
    let training = || {
        let config = SetEnergyConfig {
            interaction: Interaction::Attention,
            generator_width: 8,
            block_size: 4,
            num_draws: 4,
            num_candidates: 8,
            ..config.clone()
        };
        let device = Device::default();
        let model = SetEnergyProcess::new(config, 3, &device).unwrap();
        let sizes = SizeLaw::fitted([5, 6, 7]).unwrap();
        SetTraining::new(model, SetSource::Planar(PlanarFamily::Sticks), 4, sizes).unwrap()
    };
    let (mut whole, mut first, mut second) = (training(), training(), training());
    for number in 0..4 {
        whole.step(&step(number, 4)).unwrap();
    }
    for number in 0..2 {
        first.step(&step(number, 4)).unwrap();
    }
    second.restore(&first.state().unwrap()).unwrap();
    for number in 2..4 {
        second.step(&step(number, 4)).unwrap();
    }
    let draw =
        |run: &SetTraining| run.model().sample(3, 6, refining(2), Stream::new(9, "draws")).unwrap();
    assert_eq!(draw(&whole), draw(&second));
    let mut broken = first.state().unwrap();
    broken.retain(|name, _| !name.starts_with("average/"));
    assert!(training().restore(&broken).is_err());
}

fn refining(num_steps: usize) -> Refining {
    Refining { num_guesses: 3, num_steps }
}

fn clouds(flat: &[f32], size: usize) -> Vec<ArrangedCloud> {
    let wide: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
    wide.chunks_exact(2 * size).map(|set| ArrangedCloud::new(2, set).unwrap()).collect()
}

/// Sticks of twelve points: after a short training generated sets are nearer to held-out ones than
/// sets of the same points dealt at random, whose elements are independent.
#[test]
fn a_trained_model_draws_better_sets_than_independent_elements() {
    let size = 12;
    let config = SetEnergyConfig {
        summary_widths: vec![32, 16],
        energy_widths: vec![32],
        generator_width: 32,
        num_draws: 64,
        kl_warm_up: 60,
        average_decay: 0.95,
        ..SetEnergyConfig::default()
    };
    let device = Device::default();
    let model = SetEnergyProcess::new(config, 1, &device).unwrap();
    let sizes = SizeLaw::fixed(size).unwrap();
    let mut training =
        SetTraining::new(model, SetSource::Planar(PlanarFamily::Sticks), 16, sizes).unwrap();
    let before =
        training.model().sample(60, size, Refining::NONE, Stream::new(4, "draws")).unwrap();
    for number in 0..200 {
        training.step(&step(number, 200)).unwrap();
    }
    training.model_mut().use_average();
    let after = training.model().sample(60, size, refining(40), Stream::new(4, "draws")).unwrap();
    let held_out =
        SetSource::Planar(PlanarFamily::Sticks).draw(60, size, 2, Stream::new(77, "held out"));
    let options = CollectionOptions { emd: None, cache: None, seed: 0 };
    let distance = |sets: &[f32]| {
        let found = evaluate(&clouds(sets, size), &clouds(&held_out, size), &options, &mut |_| ());
        found.unwrap().chamfer.matching_distance.value
    };
    // The same points as real sets have, dealt at random.
    let source = SetSource::Planar(PlanarFamily::Sticks);
    let real = source.draw(60, size, 2, Stream::new(78, "dealt"));
    let order = Stream::new(79, "dealt").permutation(60 * size);
    let dealt: Vec<f32> =
        order.iter().flat_map(|&row| [real[2 * row], real[2 * row + 1]]).collect();
    let [before, after, dealt] = [before, after, dealt].map(|sets| distance(&sets));
    assert!(after < 0.8 * before && after < 0.9 * dealt, "{before} {after} {dealt}");
}

#[test]
fn settings_out_of_range_are_named() {
    let device = Device::default();
    let message = |config: SetEnergyConfig| {
        SetEnergyProcess::new(config, 1, &device).unwrap_err().to_string()
    };
    let config = SetEnergyConfig { num_heads: 5, ..SetEnergyConfig::default() };
    assert!(message(config).contains("`summary_widths` must be a last width that num_heads 5"));
    let config = SetEnergyConfig { step_size: 0.0, ..SetEnergyConfig::default() };
    assert!(message(config).contains("`step_size` must be positive"));
    let config =
        SetEnergyConfig { generator: GeneratorKind::Hierarchical, ..SetEnergyConfig::default() };
    assert!(message(config).contains("`guess_target` must be `energy` for this generator"));
    for (config, field) in [
        (
            SetEnergyConfig { guess_target: GuessTarget::Energy, ..SetEnergyConfig::default() },
            "`base` must be `gaussian`",
        ),
        (
            SetEnergyConfig { estimator: SetEstimator::Composite, ..SetEnergyConfig::default() },
            "`estimator` must be `ade`",
        ),
        (
            SetEnergyConfig { num_dynamics_steps: 1, ..SetEnergyConfig::default() },
            "`num_dynamics_steps` must be 0",
        ),
        (
            SetEnergyConfig { negative_phase: NegativePhase::Plain, ..SetEnergyConfig::default() },
            "`negative_phase` must be `weighted`",
        ),
    ] {
        let found = message(config);
        assert!(found.contains(field), "{found}");
    }
    let model = model(Interaction::DeepSets, SummaryPooling::Mean);
    let offsets = SetOffsets::uniform(1, 1).unwrap();
    let solid = Clouds::new(3, vec![0.0; 3], offsets, vec!["solid".into()]).unwrap();
    let sizes = SizeLaw::fixed(6).unwrap();
    let error = SetTraining::new(model, SetSource::Clouds(solid.into()), 4, sizes).unwrap_err();
    assert_eq!(error.to_string(), "`clouds` must be of 2 numbers a point, found 3");
}

//! Properties of trained processes that hold for any weights, checked on untrained ones.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]
#![allow(dead_code, reason = "the shared module serves another test file too")]

mod neural;

use ebp::IndexedSet;
use ebp::nn::{Record, Step};
use ebp::process::neural::{NetworkConfig, NeuralProcessConfig};
use ebp::process::{Learner, Task};
use ebp::rng::Stream;
use neural::{Curve, SMALL, Sizes, all, curve_set, random_set, train};

const WIDE: Sizes = Sizes { location_dim: 2, value_dim: 3, width: 16, num_draws: 3 };

#[test]
fn the_order_of_the_context_does_not_matter() {
    for process in all(WIDE, 1) {
        let context = random_set(WIDE, 11, Stream::new(1, "context"));
        let targets = random_set(WIDE, 5, Stream::new(1, "targets"));
        let mixed = context.select(&[7, 3, 10, 0, 5, 1, 9, 2, 8, 4, 6]);
        let first = process.condition(&context).unwrap().log_density(&targets).unwrap();
        let second = process.condition(&mixed).unwrap().log_density(&targets).unwrap();
        for (a, b) in first.iter().zip(&second) {
            let difference = (a.value - b.value).abs();
            assert!(difference < 1e-5 * (1.0 + a.value.abs()), "{}: {a:?} {b:?}", process.name());
        }
    }
}

#[test]
fn targets_are_answered_one_by_one_and_contexts_may_have_any_size() {
    for process in all(WIDE, 2) {
        let targets = random_set(WIDE, 6, Stream::new(1, "targets"));
        for n in [0, 1, 2, 40] {
            let context = random_set(WIDE, n, Stream::new(2, "context"));
            let predictive = process.condition(&context).unwrap();
            let together = predictive.log_density(&targets).unwrap();
            let alone = predictive.log_density(&targets.select(&[4])).unwrap();
            assert!((together[4].value - alone[0].value).abs() < 1e-4, "{}", process.name());
            assert!(together.iter().all(|d| d.value.is_finite() && d.std_error >= 0.0));
            let stream = Stream::new(1, "draws");
            let draws = predictive.sample(targets.locations(), 2, stream).unwrap();
            assert_eq!(draws.len(), 2 * 6 * 3);
            assert_eq!(draws, predictive.sample(targets.locations(), 2, stream).unwrap());
            assert!(predictive.sample(&[], 2, stream).unwrap().is_empty());
            assert!(predictive.log_density(&IndexedSet::empty(2, 3).unwrap()).unwrap().is_empty());
        }
    }
}

#[test]
fn other_dimensions_are_refused() {
    for process in all(WIDE, 3) {
        let narrow = random_set(SMALL, 3, Stream::new(1, "narrow"));
        assert!(process.condition(&narrow).is_err(), "{}", process.name());
        let predictive = process.condition(&IndexedSet::empty(2, 3).unwrap()).unwrap();
        assert!(predictive.log_density(&narrow).is_err());
        assert!(predictive.sample(&[1.0, 2.0, 3.0], 1, Stream::new(1, "a")).is_err());
    }
    let network = NetworkConfig { min_std_dev: 0.0, ..NetworkConfig::default() };
    let config = NeuralProcessConfig { network, ..NeuralProcessConfig::latent() };
    let error = ebp::process::neural::NeuralProcess::new(config, 1, &ebp::tape::Device::default())
        .unwrap_err();
    assert_eq!(error.to_string(), "`min_std_dev` must be in (0, 1), found 0");
}

/// The midpoint rule with steps h errs by about exp(−2π²σ²/h²): steps of 0.01 are fine for every
/// σ above the floor of 0.01.
#[test]
fn densities_integrate_to_one_and_draws_follow_them() {
    let num_draws = 100;
    for process in all(Sizes { num_draws, ..SMALL }, 4) {
        let (count, step) = (3000_u32, 0.01);
        let nodes: Vec<f64> = (0..count).map(|k| -15.0 + step * (f64::from(k) + 0.5)).collect();
        let context = random_set(SMALL, 4, Stream::new(1, "context"));
        let predictive = process.condition(&context).unwrap();
        let time = 0.7;
        let targets = IndexedSet::new(1, 1, vec![time; nodes.len()], nodes.clone()).unwrap();
        let densities = predictive.log_density(&targets).unwrap();
        let [mass, mean, square] = [0, 1, 2].map(|power| {
            let terms = densities.iter().zip(&nodes);
            terms.map(|(d, x)| d.value.exp() * x.powi(power) * step).sum::<f64>()
        });
        assert!((mass - 1.0).abs() < 1e-5, "{}: {mass}", process.name());
        let std_dev = (square - mean * mean).sqrt();
        let draws = predictive.sample(&[time], 2000, Stream::new(1, "draws")).unwrap();
        let found = draws.iter().sum::<f64>() / 2000.0;
        // 4 standard errors of 2000 draws, and of the 100 latents behind the density.
        let tolerance = 4.0 * std_dev * (1.0 / 2000.0 + 1.0 / 100.0_f64).sqrt();
        assert!((found - mean).abs() < tolerance, "{}: {found} {mean}", process.name());
        // The standard deviation of 100 latents alone is off by 7 %: 4 standard errors.
        let spread = draws.iter().map(|x| (x - found) * (x - found)).sum::<f64>() / 1999.0;
        assert!((spread.sqrt() / std_dev - 1.0).abs() < 0.3, "{}: {spread}", process.name());
    }
}

#[test]
fn equal_seeds_give_equal_bytes_and_a_restored_run_goes_on_exactly() {
    let tasks = |step: u64| {
        let stream = Stream::new(5, "tasks").child(step);
        // A context of every kind: none, some, nearly all.
        let task = |set: u64| {
            let stream = stream.child(set);
            Task::split(&curve_set(Curve::Sine, 8, stream), 0..=7, stream.child(9)).unwrap()
        };
        (0..3).map(task).collect::<Vec<_>>()
    };
    let bits = |learner: &dyn Learner| -> Vec<(String, Vec<u32>)> {
        let state = learner.state().unwrap().into_iter();
        let floats = state.filter(|(_, tensor)| tensor.as_f32().is_some());
        floats
            .map(|(name, tensor)| {
                let values = tensor.as_f32().unwrap();
                (name, values.iter().map(|x| x.to_bits()).collect())
            })
            .collect()
    };
    let step = |learner: &mut dyn Learner, number: u64| {
        let stream = Stream::new(6, "steps").child(number);
        let step = Step { number, num_steps: 4, stream, learning_rate_factor: 1.0 };
        learner.learn(&tasks(number), &step).unwrap()
    };
    let whole = all(SMALL, 5);
    let halves = all(SMALL, 5);
    let others = all(SMALL, 6);
    for ((mut whole, mut half), mut other) in whole.into_iter().zip(halves).zip(others) {
        assert_eq!(bits(whole.as_ref()), bits(half.as_ref()));
        assert_ne!(bits(whole.as_ref()), bits(other.as_ref()));
        for number in 0..4 {
            step(whole.as_mut(), number);
        }
        step(half.as_mut(), 0);
        step(half.as_mut(), 1);
        other.restore(&half.state().unwrap()).unwrap();
        step(other.as_mut(), 2);
        step(other.as_mut(), 3);
        assert_eq!(bits(whole.as_ref()), bits(other.as_ref()), "{}", whole.name());

        let mut damaged = half.state().unwrap();
        let name = damaged.keys().next().unwrap().clone();
        damaged.remove(&name);
        let before = bits(other.as_ref());
        assert!(other.restore(&damaged).is_err());
        assert_eq!(bits(other.as_ref()), before);
    }
}

#[test]
fn tasks_that_do_not_fit_are_refused_before_anything_changes() {
    for mut process in all(SMALL, 7) {
        let set = curve_set(Curve::Sine, 4, Stream::new(1, "set"));
        let none = IndexedSet::empty(1, 1).unwrap();
        let wide = random_set(WIDE, 2, Stream::new(1, "wide"));
        let stream = Stream::new(1, "step");
        let step = Step { number: 0, num_steps: 1, stream, learning_rate_factor: 1.0 };
        let mut refuse = |context: &IndexedSet, target: &IndexedSet| {
            let task = Task { context: context.clone(), target: target.clone() };
            process.learn(&[task], &step).is_err()
        };
        assert!(refuse(&none, &none));
        assert!(refuse(&set, &none));
        assert!(refuse(&set, &wide));
        assert!(!refuse(&none, &set));
        assert!(process.learn(&[], &step).is_err());
    }
}

#[test]
fn every_variant_lowers_its_loss() {
    for mut process in all(SMALL, 8) {
        let records = train(process.as_mut(), Curve::Phase, 40, 4);
        let number = |record: &Record, name: &str| {
            record.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
        };
        let mean = |part: &[Record]| {
            part.iter().filter_map(|record| number(record, "loss")).sum::<f64>() / 5.0
        };
        let (first, last) = (mean(&records[..5]), mean(&records[35..]));
        assert!(last < first, "{}: {first} {last}", process.name());
        for record in &records {
            assert!(number(record, "kl").is_none_or(|kl| kl >= -1e-4));
            assert!(number(record, "gradient_norm").unwrap() > 0.0);
        }
    }
}

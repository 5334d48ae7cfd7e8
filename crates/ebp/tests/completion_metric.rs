//! Scores of completions against laws that are known.

use ebp::data::digits::draw_digits;
use ebp::data::image::{Images, KnownPart};
use ebp::metric::completion::{
    Classifier, ClassifierConfig, CompletionTask, Judges, RoundsTask, judge_completions,
};
use ebp::process::{Hypotheses, LatentProcess, LogDensity, Predictive, Process};
use ebp::rng::Stream;
use ebp::{IndexedSet, Result};

/// Every level is as likely as any other, and every draw has its own constant mean.
#[derive(Debug)]
struct Uniform;

impl Process for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn condition<'a>(&'a self, _: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(Black))
    }
}

/// Every draw is black.
#[derive(Debug)]
struct Black;

impl Predictive for Black {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        Ok(vec![LogDensity { value: 0.5_f64.ln(), std_error: 0.0 }; targets.len()])
    }

    fn sample(&self, locations: &[f64], count: usize, _: Stream) -> Result<Vec<f64>> {
        Ok(vec![-1.0; count * locations.len() / 2])
    }
}

impl LatentProcess for Uniform {
    fn hypotheses(
        &self,
        _: &IndexedSet,
        targets: &IndexedSet,
        cell: f64,
        count: usize,
        _: Stream,
    ) -> Result<Hypotheses> {
        let m = targets.len();
        let last = (count - 1).max(1) as f64;
        let mean = (0..count).flat_map(|draw| vec![-(draw as f64) / last; m]);
        Ok(Hypotheses {
            log_mass: vec![(cell / 2.0).ln(); count * m],
            log_density: vec![0.5_f64.ln(); count * m],
            mean: mean.collect(),
        })
    }
}

fn black() -> Images {
    let names = (0..3).map(|number| number.to_string()).collect();
    Images::new(10, 10, 1, vec![0; 300], names).expect("it fits")
}

#[test]
fn a_uniform_law_has_eight_bits_and_known_errors() {
    let images = black();
    let task = CompletionTask {
        images: &images,
        num_pictures: 3,
        part: KnownPart::TopHalf,
        num_draws: 5,
        rounds: Some(RoundsTask { rounds: 4, num_pictures: 2, num_completions: 3 }),
        stream: Stream::new(1, "task"),
    };
    let score = judge_completions(&Uniform, &task, None).unwrap();
    for bits in [score.bits, score.joint_bits, score.density_bits] {
        assert!((bits.mean - 8.0).abs() < 1e-9 && bits.stderr < 1e-9, "{bits:?}");
    }
    // The draws are 0, −¼, …, −1; black is −1 to within a cell.
    assert!(score.best_error.mean < 1e-4);
    // Their variance, n − 1 in the denominator: Σ (k/4 − ½)² / 4 = 0.15625.
    assert!((score.diversity.mean - 0.156_25).abs() < 1e-9);
    assert!(score.agreement.is_none());
    // However it is cut into portions; every pixel is shown as its mean given the others, which is 0, and black is
    // spread over the cell from −1 to −1 + 1/128.
    let rounds = score.rounds.unwrap();
    assert!((rounds.bits.mean - 8.0).abs() < 1e-9 && rounds.agreement.is_none());
    let least = (1.0 - 1.0 / 128.0_f64).powi(2);
    assert!(rounds.best_error.mean > least && rounds.best_error.mean < 1.0, "{rounds:?}");
    let none = CompletionTask { num_draws: 0, ..task };
    assert!(judge_completions(&Uniform, &none, None).is_err());
}

#[test]
fn the_classifier_reads_drawn_digits_and_judges_completions() {
    let (images, labels) = draw_digits(16, 0, 3000, 0).unwrap();
    let (test, test_labels) = draw_digits(16, 50_000, 300, 0).unwrap();
    let config = ClassifierConfig {
        hidden_widths: vec![48],
        num_steps: 400,
        batch: 64,
        ..ClassifierConfig::default()
    };
    let train = |config: &ClassifierConfig| {
        Classifier::train(&images, &labels, config, 1, &ebp::tape::Device::default()).unwrap()
    };
    let whole = train(&config);
    let accuracy = whole.accuracy(&test, &test_labels).unwrap();
    assert!(accuracy > 0.9, "{accuracy}");
    let top = train(&ClassifierConfig { part: Some(KnownPart::TopHalf), ..config });
    let judges = Judges { labels: &test_labels, whole: &whole, part: Some(&top) };
    let task = CompletionTask {
        images: &test,
        num_pictures: 40,
        part: KnownPart::TopHalf,
        num_draws: 4,
        rounds: None,
        stream: Stream::new(1, "task"),
    };
    let score = judge_completions(&Uniform, &task, Some(&judges)).unwrap();
    // Completions in one tone show next to nothing: far from the whole picture's accuracy.
    let agreement = score.agreement.unwrap().mean;
    assert!(agreement < accuracy - 0.1, "{agreement}");
    assert!((0.0..=1.0).contains(&score.decided.unwrap()));
    assert!(score.num_kinds.unwrap().mean >= 1.0);
    let few = Judges { labels: &test_labels[..5], ..judges };
    assert!(judge_completions(&Uniform, &task, Some(&few)).is_err());
}

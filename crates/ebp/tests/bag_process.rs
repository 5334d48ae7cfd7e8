//! Bags of words as a kind of data of the energy-based process: latent Dirichlet allocation is its exact
//! special case, laws of n and n + 1 words agree, and draws follow the law that is said.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ebp::IndexedSet;
use ebp::batch::SetBatch;
use ebp::latent::{DirichletPrior, Prior};
use ebp::nn::Step;
use ebp::process::{EnergyBasedProcess, Learner, Process, Task};
use ebp::recipe::{EnergyBasedConfig, EnergyForm, LatentLaw, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::tensor::Tensor;

const TOPICS: [[f64; 4]; 2] = [[0.55, 0.25, 0.15, 0.05], [0.05, 0.1, 0.25, 0.6]];
const DOCUMENT: [u32; 6] = [0, 0, 3, 1, 2, 0];

fn config(energy: EnergyForm, urn: f64) -> EnergyBasedConfig {
    EnergyBasedConfig {
        latent_dim: 2,
        encoder_widths: vec![8],
        energy,
        urn,
        ..EnergyBasedConfig::bags()
    }
}

fn process(config: EnergyBasedConfig, num_words: usize) -> EnergyBasedProcess {
    EnergyBasedProcess::new(config, Space::bag(num_words), 5, &Device::default()).unwrap()
}

/// A process whose Φ is known.
fn with_topics(config: EnergyBasedConfig) -> EnergyBasedProcess {
    let mut process = process(config, TOPICS[0].len());
    let mut state = process.state().unwrap();
    let place = state.get_mut("parameters/model.energy.topics").unwrap();
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    let logs = (0..4).flat_map(|word| TOPICS.map(|topic| topic[word].ln() as f32)).collect();
    *place = Tensor::new(vec![4, 2], logs).unwrap();
    process.restore(&state).unwrap();
    process
}

fn bag(words: &[u32]) -> SetBatch {
    let mut batch = SetBatch::new(0, 1);
    batch.push(&[], &words.iter().map(|&word| word as f32).collect::<Vec<_>>()).unwrap();
    batch
}

fn set(words: &[u32]) -> IndexedSet {
    IndexedSet::new(0, 1, vec![], words.iter().map(|&word| f64::from(word)).collect()).unwrap()
}

/// log p of a document under latent Dirichlet allocation: the sum over every assignment of its words to
/// topics, with the moments of the Dirichlet law in closed form.
fn enumerated(document: &[u32], alpha: f64) -> f64 {
    let n = document.len();
    let mut total = 0.0;
    for assignment in 0..1_usize << n {
        let topic = |i: usize| (assignment >> i) & 1;
        let counts = [0, 1].map(|k| (0..n).filter(|&i| topic(i) == k).count() as f64);
        // Γ(2α)/Γ(2α + n) Π_k Γ(α + n_k)/Γ(α), as products.
        let rising = |a: f64, n: f64| {
            let mut product = 1.0;
            let mut j = 0.0;
            while j < n {
                product *= a + j;
                j += 1.0;
            }
            product
        };
        let moment =
            rising(alpha, counts[0]) * rising(alpha, counts[1]) / rising(2.0 * alpha, n as f64);
        let words: f64 = (0..n).map(|i| TOPICS[topic(i)][document[i] as usize]).product();
        total += moment * words;
    }
    total.ln()
}

/// θ on a square grid, whose trapezoid rule is exact to rounding: log gammas are analytic and fall
/// exponentially.
fn grid(alpha: f64) -> (Vec<f32>, f32) {
    let step = 0.25_f32;
    // e^(α θ) < 1e-9 below.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
    let below = (21.0 / alpha / f64::from(step)) as u32;
    let axis: Vec<f32> = (0..=below + 20).map(|i| 5.0 - step * i as f32).collect();
    let thetas = axis.iter().flat_map(|&a| axis.iter().flat_map(move |&b| [a, b])).collect();
    (thetas, step)
}

#[test]
fn latent_dirichlet_allocation_is_the_special_case() {
    for alpha in [0.4, 1.7] {
        let process = with_topics(EnergyBasedConfig {
            latent_law: LatentLaw::Dirichlet,
            concentration: alpha,
            ..config(EnergyForm::Topics, 0.0)
        });
        let (thetas, step) = grid(alpha);
        let prior = DirichletPrior::new(2, alpha).unwrap().log_density(&thetas).unwrap();
        for n in [1, 3, DOCUMENT.len()] {
            let document = &DOCUMENT[..n];
            let masses = process.log_masses_given(&bag(document), &thetas).unwrap();
            let terms = masses.iter().zip(&prior).map(|(mass, prior)| (mass + prior).exp());
            let found = (terms.sum::<f64>() * f64::from(step).powi(2)).ln();
            let expected = enumerated(document, alpha);
            // Potentials are f32: n log masses of a relative error of 2⁻²³ each.
            assert!((found - expected).abs() < 5e-6, "{alpha}, {n} words: {found} {expected}");
        }
    }
}

/// The estimate by draws of θ agrees with the sum over assignments, and the bound lies below it.
#[test]
fn the_evidence_is_that_of_latent_dirichlet_allocation() {
    let alpha = 2.0;
    let process = with_topics(EnergyBasedConfig {
        latent_law: LatentLaw::Dirichlet,
        concentration: alpha,
        first_log_std_dev: 0.3,
        ..config(EnergyForm::Topics, 0.0)
    });
    let found = process.evidence(&bag(&DOCUMENT), 20_000, Stream::new(1, "draws")).unwrap()[0];
    let (expected, likelihood) = (enumerated(&DOCUMENT, alpha), found.log_likelihood);
    assert!(likelihood.std_error < 0.05, "{found:?}");
    let gap = (likelihood.value - expected).abs();
    assert!(gap < 4.0 * likelihood.std_error, "{found:?} {expected}");
    assert!(found.bound.value < likelihood.value, "{found:?}");
    assert!(found.effective_draws > 100.0, "{found:?}");
}

/// KL(q ‖ p) as a step records it, against quadrature of its definition.
#[test]
fn the_divergence_from_the_dirichlet_law_is_its_integral() {
    let alpha = 0.6;
    let mut process = process(
        EnergyBasedConfig {
            latent_law: LatentLaw::Dirichlet,
            concentration: alpha,
            ..config(EnergyForm::Topics, 0.0)
        },
        4,
    );
    let codes = process.encode(&bag(&DOCUMENT)).unwrap();
    let prior = DirichletPrior::new(1, alpha).unwrap();
    let mut expected = 0.0;
    for (mean, log_std_dev) in codes.mean.iter().zip(&codes.log_std_dev) {
        let std_dev = log_std_dev.exp();
        for i in -800..=800_i16 {
            let z = f32::from(i) / 100.0;
            let theta = mean + std_dev * z;
            let log_q = -0.5 * f64::from(z * z) - f64::from(*log_std_dev) - 0.918_938_533_204_672_7;
            let gap = log_q - prior.log_density(&[theta]).unwrap()[0];
            expected += 0.01 * f64::from(std_dev) * log_q.exp() * gap;
        }
    }
    let task = Task { context: set(&[]), target: set(&DOCUMENT) };
    let stream = Stream::new(1, "step");
    let step = Step { number: 0, num_steps: 1, stream, learning_rate_factor: 1.0 };
    let record = Learner::learn(&mut process, &[task], &step).unwrap();
    let found = record.iter().find(|(name, _)| *name == "kl").unwrap().1;
    assert!((found - expected).abs() < 1e-4 * expected.abs().max(1.0), "{found} {expected}");
}

/// Laws of n and of n + 1 words agree, and an urn is the product that it is said to be.
#[test]
fn laws_of_any_number_of_words_agree() {
    let thetas = [0.4, -1.1];
    for (energy, urn) in [
        (EnergyForm::Words, 0.0),
        (EnergyForm::Words, 1.5),
        (EnergyForm::Topics, 0.0),
        (EnergyForm::Topics, 3.0),
    ] {
        let process = process(config(energy, urn), 4);
        let mass = |words: &[u32]| process.log_masses_given(&bag(words), &thetas).unwrap()[0].exp();
        let single: Vec<f64> = (0..4).map(|word| mass(&[word])).collect();
        assert!((single.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        for words in [&[2][..], &[1, 3, 1], &[0, 0]] {
            let longer: f64 = (0..4).map(|word| mass(&[words, &[word]].concat())).sum();
            assert!((longer / mass(words) - 1.0).abs() < 1e-5, "{energy:?} {urn} {words:?}");
        }
        let shares = process.word_shares(&thetas).unwrap();
        let m = |word: usize| f64::from(shares[word]);
        let expected = if urn > 0.0 {
            let above = urn * m(1) * (urn * m(1) + 1.0) * (urn * m(1) + 2.0) * urn * m(3);
            above / (urn * (urn + 1.0) * (urn + 2.0) * (urn + 3.0))
        } else {
            m(1).powi(3) * m(3)
        };
        let found = mass(&[1, 3, 1, 1]);
        assert!((found / expected - 1.0).abs() < 1e-5, "{energy:?} {urn}: {found} {expected}");
    }
}

/// Words that occurred are likelier with an urn; draws follow the law that is said, and so does the law of
/// every word that completes a document.
#[test]
fn draws_and_completions_follow_the_law() {
    let urn = 2.0;
    let process = process(EnergyBasedConfig { num_draws: 5, ..config(EnergyForm::Words, urn) }, 4);
    let context = [1, 1, 1, 2];
    let predictive = process.condition(&set(&context)).unwrap();
    let said = predictive.log_density(&set(&[0, 1, 2, 3])).unwrap();
    let law: Vec<f64> = said.iter().map(|density| density.value.exp()).collect();
    assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-5);
    // (c + s m)/(n + s) is at least c/(n + s).
    assert!(law[1] > 3.0 / 6.0 && law[2] > 1.0 / 6.0, "{law:?}");
    let count = 3000_u32;
    let mut counts = [0_u32; 4];
    for number in 0..count {
        let drawn = predictive.sample(&[], 2, Stream::new(u64::from(number), "words")).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "words")]
        let words = [drawn[0] as usize, drawn[1] as usize];
        // The second word alone has the same law: exchangeable.
        counts[words[1]] += 1;
    }
    for (count_of, p) in counts.iter().zip(&law) {
        let error = (p * (1.0 - p) / f64::from(count)).sqrt();
        let share = f64::from(*count_of) / f64::from(count);
        assert!((share - p).abs() < 4.0 * error, "{counts:?} {law:?}");
    }
    let mut contexts = bag(&context);
    contexts.push(&[], &[]).unwrap();
    let laws = process.word_laws(&contexts, 400, Stream::new(2, "laws")).unwrap();
    for law in laws.chunks_exact(4) {
        assert!((law.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn bad_words_are_refused() {
    let mut process = process(config(EnergyForm::Words, 0.0), 4);
    for value in [4.0, -1.0, 0.5] {
        let wrong = IndexedSet::new(0, 1, vec![], vec![value]).unwrap();
        let message = process.condition(&wrong).unwrap_err().to_string();
        assert!(message.contains("`word`") && message.contains("below 4"), "{message}");
        let known = process.condition(&set(&[1])).unwrap();
        assert!(known.log_density(&wrong).is_err());
    }
    let mut nan = SetBatch::new(0, 1);
    nan.push(&[], &[f32::NAN]).unwrap();
    assert!(process.evidence(&nan, 2, Stream::new(1, "draws")).is_err());
    let mut empty = SetBatch::new(0, 1);
    empty.push(&[], &[]).unwrap();
    let error = process.evidence(&empty, 2, Stream::new(1, "draws")).unwrap_err();
    assert!(matches!(error, ebp::Error::EmptySet { .. }), "{error}");
    let error = process.tell_frequencies(&[1, 2]).unwrap_err().to_string();
    assert!(error.contains("one for each of 4 words"), "{error}");
    process.tell_frequencies(&[9, 0, 4, 1]).unwrap();
    // Half a count each: 9.5, 0.5, 4.5 and 1.5 of 16.
    let state = process.state().unwrap();
    let base = state.get("parameters/model.energy.base").unwrap().as_f32().unwrap();
    assert!((base[1] - (0.5_f32 / 16.0).ln()).abs() < 1e-6);
}

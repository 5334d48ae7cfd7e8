//! Topic models: against scikit-learn and BayesSets, against enumeration, and what all of them have in common.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::sync::Arc;

use ebp::model::{Data, Model, Settings, TrainOptions};
use ebp::nn::Step;
use ebp::process::LogDensity;
use ebp::rng::Stream;
use ebp::topic::bayesian_sets::BayesianSets;
use ebp::topic::ctm::{Ctm, CtmConfig};
use ebp::topic::held_out::{bound_perplexity, completion_perplexity};
use ebp::topic::lda::{LdaConfig, LdaInference, corpus_bound};
use ebp::topic::plsi::{Plsi, PlsiConfig};
use ebp::topic::rsm::{Rsm, RsmConfig};
use ebp::topic::{Corpus, TopicLearner, TopicMixture, TopicModel, lda};

const DOCUMENTS: u32 = 7;
const WORDS: u32 = 11;
const TOPICS: u32 = 3;

/// The documents of `tools/reference/topics.py`.
fn documents() -> Vec<Vec<(u32, u32)>> {
    let count =
        |d: u32, w: u32| ((3 * d + 5 * w + d * w) % 7).saturating_sub(3) + u32::from(w == 0);
    let document = |d| (0..WORDS).map(|w| (w, count(d, w))).collect();
    (0..DOCUMENTS).map(document).collect()
}

fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::new(WORDS as usize, documents()).unwrap())
}

/// `tools/reference/topics.py`, scikit-learn 1.9.1: α, η, `_approx_bound` at given λ and γ.
const BOUNDS: [(f64, f64, f64); 2] =
    [(0.3, 0.05, -321.411_231_160_333_84), (0.9, 0.7, -276.564_208_303_500_8)];

/// The same script, BayesSets 0.2.1: scores of all documents like documents 1 and 4.
const SCORES: [f64; 7] = [
    -0.927_498_275_759_569_1,
    1.240_284_776_408_498_8,
    -2.372_375_183_872_098_3,
    -0.782_917_046_948_461_4,
    1.384_866_005_219_606_7,
    -0.927_498_275_759_569_1,
    -0.927_498_275_759_569_1,
];

#[test]
fn the_bound_is_that_of_scikit_learn() {
    let lambda: Vec<f64> = (0..WORDS)
        .flat_map(|w| (0..TOPICS).map(move |k| 0.25 + f64::from((2 * k + 3 * w + k * w) % 5)))
        .collect();
    let gamma: Vec<f64> = (0..DOCUMENTS)
        .flat_map(|d| (0..TOPICS).map(move |k| 0.5 + f64::from((d + 2 * k) % 4)))
        .collect();
    for (alpha, eta, expected) in BOUNDS {
        let found = corpus_bound(&corpus(), &[alpha; 3], eta, &lambda, &gamma);
        // scikit-learn's own digamma is good to about 1e-10, and there are hundreds of terms.
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn bayesian_sets_are_those_of_the_package() {
    let items: Vec<Vec<u32>> = corpus().documents().map(|d| d.words.to_vec()).collect();
    let sets = BayesianSets::new(WORDS as usize, &items).unwrap();
    for (found, expected) in sets.scores(&[1, 4], 2.0).unwrap().iter().zip(SCORES) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

fn step(number: u64, num_steps: u64) -> Step {
    let stream = Stream::new(5, "train").child(number);
    Step { number, num_steps, stream, learning_rate_factor: 1.0 }
}

/// One of each, untrained.
fn learners() -> Vec<Box<dyn TopicLearner>> {
    let lda = |inference| {
        let config = LdaConfig { num_topics: 3, inference, batch_size: 4, ..LdaConfig::default() };
        lda::learner(corpus(), &config, 2).unwrap()
    };
    let plsi = PlsiConfig { num_topics: 3, ..PlsiConfig::default() };
    let ctm = CtmConfig { num_topics: 3, num_draws: 4000, ..CtmConfig::default() };
    let rsm = RsmConfig {
        num_units: 4,
        batch_size: 5,
        num_temperatures: 50,
        learning_rate: 0.05,
        ..RsmConfig::default()
    };
    vec![
        lda(LdaInference::Gibbs),
        lda(LdaInference::Variational),
        lda(LdaInference::Online),
        Box::new(Plsi::new(corpus(), &plsi, 2).unwrap()),
        Box::new(Ctm::new(corpus(), &ctm, 2).unwrap()),
        Box::new(Rsm::new(corpus(), &rsm, 2).unwrap()),
    ]
}

fn trained() -> Vec<Box<dyn TopicModel>> {
    let train = |mut learner: Box<dyn TopicLearner>| {
        (0..20).for_each(|number| drop(learner.step(&step(number, 20)).unwrap()));
        learner.model().unwrap()
    };
    learners().into_iter().map(train).collect()
}

fn one(pairs: &[(u32, u32)]) -> Corpus {
    Corpus::new(WORDS as usize, [pairs.to_vec()]).unwrap()
}

#[test]
fn any_number_of_words_in_any_order() {
    let stream = Stream::new(1, "asked");
    let empty = ebp::topic::Document { words: &[], counts: &[] };
    for model in trained() {
        let name = model.name();
        let check_law = |law: Vec<f64>| {
            assert_eq!(law.len(), WORDS as usize);
            assert!(law.iter().all(|&p| p > 0.0), "{name}: {law:?}");
            assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}");
        };
        check_law(model.completion(empty, stream).unwrap());
        // p of nothing is 1: exactly, or within the error of an estimate.
        let LogDensity { value, std_error } = model.bound(empty, stream).unwrap();
        assert!(value.abs() <= 1e-9 + 4.0 * std_error, "{name}: {value} ± {std_error}");
        for pairs in [vec![(3, 1)], vec![(1, 2), (9, 3)], vec![(0, 300), (5, 200), (10, 1)]] {
            let forth = one(&pairs);
            // The same words one by one from the other end.
            let turned: Vec<(u32, u32)> = pairs
                .iter()
                .rev()
                .flat_map(|&(word, count)| std::iter::repeat_n((word, 1), count as usize))
                .collect();
            let back = one(&turned);
            let law = model.completion(forth.document(0), stream).unwrap();
            assert_eq!(law, model.completion(back.document(0), stream).unwrap(), "{name}");
            check_law(law);
            let bound = model.bound(forth.document(0), stream).unwrap();
            assert!(bound.value < 0.0 && bound.std_error.is_finite(), "{name}: {bound:?}");
            assert_eq!(bound, model.bound(back.document(0), stream).unwrap(), "{name}");
            let shares = model.shares(forth.document(0), stream).unwrap();
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name}: {shares:?}");
        }
        let outside = ebp::topic::Document { words: &[WORDS], counts: &[1] };
        assert!(model.completion(outside, stream).is_err(), "{name}");
        assert!(model.bound(outside, stream).is_err(), "{name}");
    }
}

/// Interrupted after any step and restored into a fresh learner, on another number of threads.
#[test]
fn a_run_goes_on_to_the_last_bit() {
    for ((mut whole, mut first), mut second) in
        learners().into_iter().zip(learners()).zip(learners())
    {
        (0..14).for_each(|number| drop(whole.step(&step(number, 14)).unwrap()));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            (0..9).for_each(|number| drop(first.step(&step(number, 14)).unwrap()));
        });
        second.restore(&first.state().unwrap()).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        pool.install(|| {
            (9..14).for_each(|number| drop(second.step(&step(number, 14)).unwrap()));
        });
        assert!(whole.state().unwrap() == second.state().unwrap());
        let mut wrong = first.state().unwrap();
        wrong.pop_first();
        assert!(second.restore(&wrong).is_err());
    }
}

/// p(words) of LDA by all assignments of topics: Γ-ratios of Pólya's urn.
fn exact(alpha: &[f64], topics: &[Vec<f64>], words: &[u32]) -> f64 {
    fn from(alpha: &[f64], topics: &[Vec<f64>], words: &[u32], urn: &mut Vec<f64>) -> f64 {
        let Some((&word, rest)) = words.split_first() else { return 1.0 };
        let total: f64 = urn.iter().sum();
        (0..alpha.len())
            .map(|k| {
                let p = urn[k] / total * topics[k][word as usize];
                urn[k] += 1.0;
                let below = from(alpha, topics, rest, urn);
                urn[k] -= 1.0;
                p * below
            })
            .sum()
    }
    from(alpha, topics, words, &mut alpha.to_vec())
}

/// ψ(α_k) − ψ(Σα) of α = (0.4, 0.9), by SciPy's `digamma`.
const EXPECTED_LOG_SHARES: [f64; 2] = [
    -2.561_384_544_585_116_4 + 0.169_190_888_866_799_6,
    -0.754_926_949_947_051_6 + 0.169_190_888_866_799_6,
];

/// Consistent over n, the bound below log p, and predictions near to the exact ones.
#[test]
fn lda_against_all_assignments() {
    let topics = [vec![0.6, 0.3, 0.1], vec![0.1, 0.2, 0.7]];
    let alpha = [0.4, 0.9];
    let model = TopicMixture::from_topics("lda", &alpha, &topics).unwrap();
    let stream = Stream::new(0, "none");
    for words in [vec![0], vec![0, 2], vec![0, 0, 1], vec![2, 2, 2, 1, 0, 2]] {
        let p = exact(&alpha, &topics, &words);
        let more: Vec<f64> =
            (0..3).map(|word| exact(&alpha, &topics, &[&words[..], &[word]].concat())).collect();
        assert!((more.iter().sum::<f64>() / p - 1.0).abs() < 1e-12);
        let document = Corpus::new(3, [words.iter().map(|&word| (word, 1)).collect()]).unwrap();
        let bound = model.bound(document.document(0), stream).unwrap().value;
        // Below log p, and not below the bound of q(θ) = p(θ): Σᵢ log Σ_k β_kw exp E log θ_k.
        let of_prior: f64 = words
            .iter()
            .map(|&word| {
                let mass = |k: usize| topics[k][word as usize] * EXPECTED_LOG_SHARES[k].exp();
                (mass(0) + mass(1)).ln()
            })
            .sum();
        assert!(
            bound <= p.ln() + 1e-9 && bound >= of_prior - 1e-9,
            "{bound} {of_prior} {}",
            p.ln()
        );
        let law = model.completion(document.document(0), stream).unwrap();
        for (found, exact) in law.iter().zip(&more) {
            assert!((found - exact / p).abs() < 0.03, "{found} {}", exact / p);
        }
    }
    // One word: p(w) = Σ_k α_k β_kw / Σα, and the collapsed rule is exact.
    let law = model.completion(ebp::topic::Document { words: &[], counts: &[] }, stream).unwrap();
    for (word, found) in (0..3).zip(law) {
        assert!((found - exact(&alpha, &topics, &[word])).abs() < 1e-12);
    }
}

/// The correlated model's importance weights estimate one law for all n: Σ_w p(words, w) = p(words) within
/// four standard errors.
#[test]
fn correlated_topics_are_consistent() {
    let models = trained();
    let model = models.iter().find(|model| model.name() == "ctm").unwrap();
    let p = |pairs: &[(u32, u32)], number: u64| {
        let stream = Stream::new(number, "weights");
        let LogDensity { value, std_error } = model.bound(one(pairs).document(0), stream).unwrap();
        (value.exp(), value.exp() * std_error)
    };
    let words = [(0, 1), (4, 2)];
    let (whole, mut square) = (p(&words, 100).0, p(&words, 100).1.powi(2));
    let mut sum = 0.0;
    for word in 0..WORDS {
        let (value, error) = p(&[&words[..], &[(word, 1)]].concat(), u64::from(word));
        sum += value;
        square += error.powi(2);
    }
    assert!((sum - whole).abs() < 4.0 * square.sqrt(), "{sum} {whole} ± {}", square.sqrt());
}

/// Nine tenths of the way, in nats, from 100 words alike to the truth, which is known of the built-in bars: 360
/// short documents do not tell more of twenty topics.
#[test]
fn lda_finds_the_bars() {
    let changes = ["data.num_documents=400", "data.document_length=60", "train.num_steps=120"];
    let settings = Settings::preset("lda", &changes).unwrap();
    let Data::Topics(data) = Data::load(&settings).unwrap() else { panic!("documents") };
    let whole = Data::Topics(data.clone());
    let model = Model::train_on(settings, &whole, TrainOptions::default()).unwrap();
    let law = model.topics().unwrap().model();
    let found = completion_perplexity(law, &data.held_out, 0).unwrap();
    let truth = completion_perplexity(data.truth.as_ref().unwrap(), &data.held_out, 0).unwrap();
    let way = |perplexity: f64| (100.0 / perplexity).ln();
    assert!(way(found.value) > 0.9 * way(truth.value), "{found:?} {truth:?}");
    assert!(bound_perplexity(law, &data.held_out, 0).unwrap().value > truth.value);
}

#[test]
fn documents_of_files_are_read_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("news.feat");
    let line = |i: usize| format!("{} 1:2 {}:1 9:4\n", i % 2, 2 + i % 3);
    let text: String = (0..20).map(line).collect();
    std::fs::write(&file, format!("{text}0\n1 9:1\n0 3:1\n")).unwrap();
    std::fs::write(file.with_extension("vocab"), "god 12\nspace 3\ncar 2\nice 1\n").unwrap();
    let source = format!("data.source={:?}", file.display().to_string());
    let settings = Settings::preset("lda", &[source.as_str()]).unwrap();
    let Data::Topics(data) = Data::load(&settings).unwrap() else { panic!("documents") };
    assert_eq!((data.training.len(), data.held_out.len()), (19, 2));
    // Line 21 is empty, line 22 has nothing but word 9, which stands 20 times elsewhere with count 4.
    assert_eq!((data.num_empty, data.num_unknown), (2, 81));
    assert_eq!(data.vocabulary, ["god", "space", "car", "ice"]);
    assert_eq!((data.classes.len(), data.labels.len()), (2, 19));
    // Documents 8 and 18 are left out, 9 and 19 held out as before.
    let changes = [source.as_str(), "data.left_out_part=8"];
    let Data::Topics(fewer) = Data::load(&Settings::preset("lda", &changes).unwrap()).unwrap()
    else {
        panic!("documents")
    };
    assert_eq!((fewer.training.len(), fewer.labels.len()), (17, 17));
    assert_eq!(fewer.held_out, data.held_out);
    assert_eq!(fewer.training.document(8), data.training.document(9));
    for (change, word) in [
        ("data.held_out_part=10".to_owned(), "held_out_part"),
        ("data.left_out_part=9".to_owned(), "not the one that is held out"),
        ("data.source=nowhere".to_owned(), "must name documents"),
        (
            format!("data.source={:?}", folder.path().join("news.vocab").display().to_string()),
            "ending",
        ),
    ] {
        let settings = Settings::preset("lda", &[source.clone(), change]).unwrap();
        let error = Data::load(&settings).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

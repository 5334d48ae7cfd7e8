//! The evaluation of predictions, on processes whose score is known.

use ebp::data::CurveFamily;
use ebp::metric::predictive::{
    Evaluation, best_gaussian, best_prediction, coverage, cross_entropy, held_out, peak_mass,
};
use ebp::process::{LogDensity, Predictive, Process};
use ebp::rng::Stream;
use ebp::{Error, IndexedSet, Result};

const LN_2: f64 = std::f64::consts::LN_2;
const LN_TAU: f64 = 1.837_877_066_409_345_3;

/// Answers a fixed density, whatever the context, or the best prediction of a family.
#[derive(Debug, Clone, Copy)]
enum Fake {
    Bayes(CurveFamily),
    /// The moments' Gaussian of `sines`: mean (sin + cos)/2, variance σ² + (sin − cos)²/4.
    OneGaussian,
    /// Only the branch sin 2t.
    OneBranch,
    NotANumber,
    Impossible,
}

#[derive(Debug)]
struct FakePredictive {
    fake: Fake,
    context: IndexedSet,
}

impl Process for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(FakePredictive { fake: *self, context: context.clone() }))
    }
}

impl Predictive for FakePredictive {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        let log_normal = |d: f64, s: f64| -0.5 * (d / s).powi(2) - s.ln() - 0.5 * LN_TAU;
        let bayes = match self.fake {
            Fake::Bayes(family) => family.bayes(&self.context)?,
            _ => CurveFamily::Sines.bayes(&self.context)?,
        };
        let answer = |(&t, &x): (&f64, &f64)| {
            let (a, b) = (2.0 * t).sin_cos();
            let value = match self.fake {
                Fake::Bayes(_) => bayes.log_density(t, x),
                Fake::OneGaussian => {
                    log_normal(x - 0.5 * (a + b), (0.01 + 0.25 * (a - b).powi(2)).sqrt())
                }
                Fake::OneBranch => log_normal(x - a, 0.1),
                Fake::NotANumber => f64::NAN,
                Fake::Impossible => f64::NEG_INFINITY,
            };
            LogDensity { value, std_error: 0.0 }
        };
        Ok(targets.locations().iter().zip(targets.values()).map(answer).collect())
    }

    fn sample(&self, _: &[f64], _: usize, _: Stream) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
}

fn evaluation(family: CurveFamily) -> Evaluation {
    Evaluation {
        family,
        num_context: 10,
        num_sets: 20,
        num_locations: 60,
        stream: Stream::new(3, "evaluation"),
    }
}

#[test]
fn the_true_law_has_no_excess() {
    for family in [CurveFamily::Sines, CurveFamily::Lines, CurveFamily::Circle, CurveFamily::Sine] {
        let fake = Fake::Bayes(family);
        let fresh = held_out(&fake, &evaluation(family)).unwrap();
        assert!(fresh.excess.abs() < 1e-12, "{family:?} {fresh:?}");
        assert!((fresh.nll - family.floor()).abs() < 4.0 * fresh.std_error, "{family:?} {fresh:?}");
        let exact = cross_entropy(&fake, &evaluation(family)).unwrap();
        assert!(exact.excess.abs() < 1e-12, "{family:?} {exact:?}");
        // 60 midpoints over t see the circle's ends roughly.
        assert!((exact.nll - family.floor()).abs() < 0.01, "{family:?} {exact:?}");
    }
}

#[test]
fn one_gaussian_pays_the_bound() {
    let bound = CurveFamily::Sines.single_gaussian_excess();
    let fresh = held_out(&Fake::OneGaussian, &evaluation(CurveFamily::Sines)).unwrap();
    assert!((fresh.excess - bound).abs() < 4.0 * fresh.excess_std_error, "{fresh:?} {bound}");
    assert!(fresh.excess_std_error < 0.05, "{fresh:?}");
    let exact = cross_entropy(&Fake::OneGaussian, &evaluation(CurveFamily::Sines)).unwrap();
    assert!((exact.excess - bound).abs() < 2e-3, "{exact:?} {bound}");
    assert!(exact.excess_std_error < 1e-12, "all sets are alike: {exact:?}");
    let best = best_gaussian(&evaluation(CurveFamily::Sines)).unwrap();
    assert!((best.excess - exact.excess).abs() < 1e-9, "{best:?} {exact:?}");
}

/// Where the best prediction is Gaussian one Gaussian loses nothing. On `phase`, with the phase all but known, it
/// loses what it loses on `sines`, which is that family with φ = 0: averaged over φ as over t.
#[test]
fn the_best_gaussian_has_the_moments_of_the_best_prediction() {
    let few = |family, num_context| Evaluation { num_context, num_sets: 8, ..evaluation(family) };
    let gp = few(CurveFamily::Gp, 5);
    let (best, gaussian) = (best_prediction(&gp).unwrap(), best_gaussian(&gp).unwrap());
    assert!((best.excess - gaussian.excess).abs() < 1e-9, "{best:?} {gaussian:?}");
    let known = best_gaussian(&few(CurveFamily::Phase, 400)).unwrap();
    let bound = CurveFamily::Sines.single_gaussian_excess();
    let error = known.excess_std_error;
    assert!((known.excess - bound).abs() < 4.0 * error + 0.01, "{known:?} {bound}");
    assert!(error < 0.05, "{known:?}");
}

/// With a latent the best prediction pays for what the context leaves open, the less the more it
/// is told, and no prediction is better.
#[test]
fn the_best_prediction_pays_for_what_the_context_leaves_open() {
    for family in [CurveFamily::Phase, CurveFamily::Gp] {
        let few = Evaluation { num_sets: 8, num_locations: 20, ..evaluation(family) };
        let at = |num_context| Evaluation { num_context, ..few };
        let excess: Vec<f64> =
            [0, 5, 30].iter().map(|&n| best_prediction(&at(n)).unwrap().excess).collect();
        assert!(excess[0] > excess[1] && excess[1] > excess[2] && excess[2] > 0.0, "{excess:?}");
        let told = cross_entropy(&Fake::Bayes(family), &at(5)).unwrap();
        assert!((told.excess - excess[1]).abs() < 1e-12, "{told:?}");
        let untold = cross_entropy(&Fake::Bayes(CurveFamily::Sines), &at(5)).unwrap();
        assert!(untold.excess > excess[1], "{untold:?}");
    }
}

#[test]
fn peaks_are_weighed() {
    let evaluation = evaluation(CurveFamily::Sines);
    let truth = peak_mass(&Fake::Bayes(CurveFamily::Sines), &evaluation).unwrap().unwrap();
    // ½ erf(4/√2) far apart; ½ [P(|z| < 2) + P(2 < z < 6)] = 0.489 where peaks are 4σ apart
    assert!(truth.smallest > 0.488 && (truth.largest - 0.5).abs() < 1e-4, "{truth:?}");
    assert!((truth.balanced - 1.0).abs() < 1e-12 && (truth.mean_total - 1.0).abs() < 0.02);
    let one = peak_mass(&Fake::OneBranch, &evaluation).unwrap().unwrap();
    assert!(one.smallest < 1e-4 && (one.largest - 1.0).abs() < 1e-3, "{one:?}");
    assert!(one.balanced < 1e-12 && one.num_locations > 100, "{one:?}");
    let single = Evaluation { family: CurveFamily::Sine, ..evaluation };
    let sine = peak_mass(&Fake::OneBranch, &single).unwrap().unwrap();
    assert!((sine.smallest - 1.0).abs() < 1e-3 && (sine.balanced - 1.0).abs() < 1e-12);
}

#[test]
fn intervals_cover_what_they_promise() {
    let levels = [0.5, 0.9];
    let evaluation = evaluation(CurveFamily::Sines);
    for found in coverage(&Fake::Bayes(CurveFamily::Sines), &evaluation, &levels).unwrap() {
        assert!((found.actual - found.nominal).abs() < 4.0 * found.std_error, "{found:?}");
    }
    // A model that knows one branch only is far too sure.
    let narrow = coverage(&Fake::OneBranch, &evaluation, &levels).unwrap();
    assert!(narrow[1].actual < 0.9 - 4.0 * narrow[1].std_error, "{narrow:?}");
}

#[test]
fn broken_models_and_questions_are_told_apart() {
    let evaluation = evaluation(CurveFamily::Sines);
    let error = held_out(&Fake::NotANumber, &evaluation).unwrap_err();
    assert!(matches!(error, Error::NonFinite { field: "log density", .. }), "{error}");
    assert!(held_out(&Fake::Impossible, &evaluation).unwrap().nll.is_infinite());
    for wrong in
        [Evaluation { num_sets: 1, ..evaluation }, Evaluation { num_locations: 0, ..evaluation }]
    {
        assert!(held_out(&Fake::OneGaussian, &wrong).is_err());
    }
    // The dropped branch costs far more than the coin.
    assert!(cross_entropy(&Fake::OneBranch, &evaluation).unwrap().excess > LN_2);
}

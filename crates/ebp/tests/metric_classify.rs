//! Linear support vector machines against scikit-learn, against their own certificate, and by
//! symmetry.
//!
//! The numbers were printed by `python tools/reference/linear_svm.py` with scikit-learn 1.9.1 and
//! NumPy 2.4.6.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::metric::classify::{
    COSTS, Cost, Features, Labelled, LinearSvm, SvmConfig, cross_validate, fit_choosing,
    stratified_folds,
};
use ebp::rng::Stream;

const NUM: usize = 60;
const DIM: usize = 5;

struct Golden {
    num_classes: usize,
    cost: f64,
    correct: usize,
    /// Five weights and the intercept of each class; of the second alone where there are two.
    weights: &'static [[f64; DIM + 1]],
}

const GOLDEN: [Golden; 4] = [
    Golden {
        num_classes: 3,
        cost: 1.0,
        correct: 41,
        weights: &[
            [
                0.447_241_899_031_911_25,
                -0.248_070_818_379_600_4,
                -0.232_556_719_547_144_32,
                0.428_148_701_811_471_7,
                -0.122_662_395_162_976_21,
                -0.298_237_142_241_886_8,
            ],
            [
                -0.083_228_355_203_212_31,
                -0.128_450_419_980_818_58,
                0.182_983_343_064_238_27,
                -0.030_764_868_165_143_414,
                -0.143_123_379_663_573_8,
                -0.494_813_655_895_043_34,
            ],
            [
                -0.355_934_860_397_511_4,
                0.400_247_333_809_65,
                0.009_236_114_240_230_898,
                -0.410_195_608_598_952_5,
                0.329_338_546_513_094_6,
                -0.265_313_680_547_281_4,
            ],
        ],
    },
    Golden {
        num_classes: 3,
        cost: 0.01,
        correct: 42,
        weights: &[
            [
                0.199_214_282_218_842_02,
                -0.087_875_324_991_400_5,
                -0.123_485_184_626_418_8,
                0.191_495_404_743_010_83,
                -0.039_755_235_853_773_24,
                -0.152_736_250_077_409_93,
            ],
            [
                -0.011_684_811_393_527_457,
                -0.020_305_232_174_081_887,
                0.025_672_731_410_266_915,
                -0.004_399_694_514_275_868,
                -0.015_847_506_935_975_03,
                -0.194_042_418_028_535_3,
            ],
            [
                -0.138_035_060_615_350_87,
                0.185_306_780_124_216_86,
                -0.017_367_742_766_148_296,
                -0.168_376_965_283_211_67,
                0.156_736_498_403_728_4,
                -0.140_590_865_548_956_17,
            ],
        ],
    },
    Golden {
        num_classes: 4,
        cost: 30.0,
        correct: 43,
        weights: &[
            [
                0.496_560_942_512_924_26,
                0.484_394_317_021_601_96,
                0.506_552_216_504_970_4,
                3.357_334_782_280_524_6,
                0.807_184_752_301_418,
                -1.883_736_855_891_113,
            ],
            [
                -0.232_168_433_250_516_14,
                0.114_173_313_128_759_6,
                -4.456_373_070_363_772e-05,
                0.324_500_082_601_631_9,
                -0.334_442_421_186_274_4,
                -0.576_229_504_899_390_1,
            ],
            [
                -0.035_221_916_979_448_716,
                -0.290_215_486_752_357_37,
                -0.259_866_009_939_603_24,
                -1.002_356_700_045_804_7,
                -0.424_899_435_315_944_15,
                -0.916_774_344_308_889_9,
            ],
            [
                0.064_750_764_981_428_37,
                0.223_776_730_950_949_8,
                -0.065_830_634_423_312_97,
                -0.335_850_254_717_786_5,
                0.621_124_559_897_285_3,
                -0.657_998_132_624_565_4,
            ],
        ],
    },
    Golden {
        num_classes: 2,
        cost: 1.0,
        correct: 45,
        weights: &[[
            -0.454_089_124_858_663_26,
            0.159_612_506_014_561_26,
            0.333_353_215_477_088,
            -0.430_824_730_286_599_57,
            0.022_155_229_131_282_286,
            0.096_439_381_617_854_56,
        ]],
    },
];

/// The formulas of the script.
fn data(num_classes: usize) -> (Features, Vec<usize>) {
    let labels: Vec<usize> = (0..NUM).map(|i| i % num_classes).collect();
    let mut values = Vec::new();
    for (i, &label) in labels.iter().enumerate() {
        for j in 0..DIM {
            let (i, j, class) = (i as f64, j as f64, label as f64);
            let value =
                (1.3 * i + 2.1 * j + 0.1 * i * j).sin() + 0.6 * (1.0 + class + 2.0 * j).cos();
            #[expect(clippy::cast_possible_truncation, reason = "features are single precision")]
            values.push(value as f32);
        }
    }
    (Features::new(DIM, &values).unwrap(), labels)
}

fn every(features: &Features) -> Vec<usize> {
    (0..features.len()).collect()
}

#[test]
fn weights_are_those_of_scikit_learn() {
    let config = SvmConfig { tolerance: 1e-9, max_passes: 100_000, ..SvmConfig::default() };
    for golden in &GOLDEN {
        let (features, labels) = data(golden.num_classes);
        let labelled = Labelled::new(&features, &labels, golden.num_classes).unwrap();
        let config = SvmConfig { cost: golden.cost, ..config };
        let rows = every(&features);
        let svm = LinearSvm::fit(&labelled, &rows, &config, Stream::new(1, "svm")).unwrap();
        let first = golden.num_classes - golden.weights.len();
        for (class, expected) in (first..).zip(golden.weights) {
            let class = if golden.num_classes == 2 { 1 } else { class };
            let (weights, intercept) = svm.weights(class);
            let found = weights.iter().chain([&intercept]);
            for (found, expected) in found.zip(expected) {
                // Both stop at gradients of 1e-9; features rounded from the last bit of a sine differ
                // by 6e-8 at the most, and then by C times that in the weights.
                assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
        let predicted = svm.predict(&features, &rows).unwrap();
        let correct = predicted.iter().zip(&labels).filter(|(a, b)| a == b).count();
        assert_eq!(correct, golden.correct);
        assert!(svm.gap().abs() < 1e-9, "{}", svm.gap());
    }
}

/// D is at most P, and the gap closes as passes are spent.
#[test]
fn the_gap_bounds_what_is_left() {
    let (features, labels) = data(3);
    let labelled = Labelled::new(&features, &labels, 3).unwrap();
    let gap = |max_passes: usize| {
        let config = SvmConfig { max_passes, tolerance: 1e-12, ..SvmConfig::default() };
        let rows = every(&features);
        LinearSvm::fit(&labelled, &rows, &config, Stream::new(2, "svm")).unwrap().gap()
    };
    // From 50 passes on, Newton steps finish what is left.
    let gaps = [gap(1), gap(10), gap(1000)];
    assert!(gaps[0] > 1e-3 && gaps[0] > gaps[1] && gaps[1] > gaps[2], "{gaps:?}");
    assert!(gaps[2] > -1e-12 && gaps[2] < 1e-9, "{gaps:?}");
}

#[test]
fn folds_hold_their_share_of_every_class() {
    let labels: Vec<usize> =
        (0..103).map(|i| usize::from(i % 7 == 0) + usize::from(i % 3 == 0)).collect();
    let features = Features::new(1, &vec![0.5; labels.len()]).unwrap();
    let data = Labelled::new(&features, &labels, 3).unwrap();
    let rows = every(&features);
    let folds = stratified_folds(&data, &rows, 5, Stream::new(3, "folds")).unwrap();
    let spread = |counts: Vec<usize>| counts.iter().max().unwrap() - counts.iter().min().unwrap();
    let count = |fold: usize, class: usize| {
        folds.iter().zip(&labels).filter(|&(&f, &c)| f == fold && c == class).count()
    };
    for class in 0..3 {
        assert!(spread((0..5).map(|fold| count(fold, class)).collect()) <= 1);
    }
    assert!(spread((0..5).map(|fold| (0..3).map(|class| count(fold, class)).sum()).collect()) <= 1);
    assert!(stratified_folds(&data, &rows, 1, Stream::new(3, "folds")).is_err());
    assert!(stratified_folds(&data, &rows, 104, Stream::new(3, "folds")).is_err());
}

/// Gaussians of standard deviation 1 with centres 6√2 apart: the best plane errs for Φ(−3√2) of them,
/// one in 10⁵.
fn blobs(num: usize, num_classes: usize, dim: usize) -> (Features, Vec<usize>) {
    let labels: Vec<usize> = (0..num).map(|i| i % num_classes).collect();
    let mut values = vec![0.0_f32; num * dim];
    Stream::new(5, "blobs").fill_normal(0, 0, &mut values);
    for (row, &label) in values.chunks_exact_mut(dim).zip(&labels) {
        row[label] += 6.0;
    }
    (Features::new(dim, &values).unwrap(), labels)
}

#[test]
fn separated_classes_are_found_and_nonsense_is_not() {
    let (features, labels) = blobs(200, 4, 8);
    let data = Labelled::new(&features, &labels, 4).unwrap();
    let stream = Stream::new(6, "svm");
    let found = cross_validate(&data, 5, Cost::Fixed(1.0), &SvmConfig::default(), stream).unwrap();
    assert!(found.confusion.accuracy() > 0.98, "{:?}", found.confusion);
    assert_eq!((found.confusion.total(), found.fold_accuracies.len()), (200, 5));
    // Shuffled labels leave a quarter, give or take 4 standard errors.
    let order = Stream::new(7, "order").permutation(labels.len());
    let shuffled: Vec<usize> = order.iter().map(|&place| labels[place]).collect();
    let data = Labelled::new(&features, &shuffled, 4).unwrap();
    let found = cross_validate(&data, 5, Cost::Fixed(1.0), &SvmConfig::default(), stream).unwrap();
    let error = (0.25_f64 * 0.75 / 200.0).sqrt();
    assert!((found.confusion.accuracy() - 0.25).abs() < 4.0 * error, "{:?}", found.confusion);
}

#[test]
fn the_chosen_cost_is_the_best_of_its_list_whatever_the_number_of_threads() {
    let (features, labels) = data(3);
    let data = Labelled::new(&features, &labels, 3).unwrap();
    let run = || {
        let stream = Stream::new(8, "svm");
        let config = SvmConfig::default();
        fit_choosing(&data, &every(&features), Cost::CrossValidated(4), &config, stream).unwrap()
    };
    let chosen = run();
    let best = chosen.accuracies.iter().copied().fold(0.0, f64::max);
    let place = chosen.accuracies.iter().position(|&accuracy| accuracy >= best).unwrap();
    assert!((chosen.cost - COSTS[place]).abs() < 1e-15);
    let alone = rayon_of_one(run);
    assert_eq!(alone.accuracies, chosen.accuracies);
    for class in 0..3 {
        assert_eq!(alone.svm.weights(class), chosen.svm.weights(class));
    }
}

fn rayon_of_one<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

#[test]
fn what_does_not_fit_is_named() {
    let message = |result: ebp::Result<Features>| result.unwrap_err().to_string();
    assert!(message(Features::new(3, &[1.0; 7])).contains("whole rows of dim 3"));
    assert!(message(Features::new(1, &[f32::NAN])).contains("`features` must be finite"));
    let features = Features::new(1, &[1.0, 2.0]).unwrap();
    let error = Labelled::new(&features, &[0, 5], 2).unwrap_err().to_string();
    assert_eq!(error, "`labels` must be below num_classes 2, found 5 in row 1");
    assert!(Labelled::new(&features, &[0], 2).is_err());
    assert!(Labelled::new(&features, &[0, 0], 1).is_err());
    let data = Labelled::new(&features, &[0, 1], 2).unwrap();
    let config = SvmConfig { cost: 0.0, ..SvmConfig::default() };
    assert!(LinearSvm::fit(&data, &[0, 1], &config, Stream::new(0, "svm")).is_err());
}

/// Long rows that are much alike: descent alone would take many thousands of passes.
#[test]
fn newton_steps_finish_where_descent_is_slow() {
    let (num, dim) = (120, 20);
    let mut values = vec![0.0_f32; num * dim];
    Stream::new(5, "rows").fill_normal(0, 0, &mut values);
    for value in &mut values {
        *value += 30.0;
    }
    let mut coins = vec![0.0_f32; num];
    Stream::new(6, "labels").fill_uniform(0, 0, &mut coins);
    let labels: Vec<usize> = coins.iter().map(|&u| usize::from(u < 0.4)).collect();
    let features = Features::new(dim, &values).unwrap();
    let data = Labelled::new(&features, &labels, 2).unwrap();
    let gap = |max_passes: usize| {
        let config = SvmConfig { max_passes, ..SvmConfig::default() };
        LinearSvm::fit(&data, &every(&features), &config, Stream::new(1, "svm")).unwrap().gap()
    };
    let (passes_alone, finished) = (gap(50), gap(1000));
    assert!(passes_alone > 1e-3, "{passes_alone}");
    assert!(finished.abs() < 1e-9, "{finished}");
}

/// More features than rows, and alike: here the system of rows is the smaller one.
#[test]
fn newton_steps_finish_on_wide_features_too() {
    let (num, dim, narrow) = (150, 200, 90);
    let mut values = vec![0.0_f32; num * narrow];
    Stream::new(5, "rows").fill_normal(0, 0, &mut values);
    for value in &mut values {
        *value += 10.0;
    }
    // Zeros beside the features change neither products nor decisions, only which system is solved.
    let widened: Vec<f32> = values
        .chunks_exact(narrow)
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(0.0, dim - narrow)))
        .collect();
    let labels: Vec<usize> = (0..num).map(|i| i % 3).collect();
    let fit = |dim: usize, values: &[f32], max_passes: usize| {
        let features = Features::new(dim, values).unwrap();
        let data = Labelled::new(&features, &labels, 3).unwrap();
        let config = SvmConfig { max_passes, ..SvmConfig::default() };
        let svm = LinearSvm::fit(&data, &every(&features), &config, Stream::new(1, "svm")).unwrap();
        (svm.gap(), svm.decisions(&features, &every(&features)).unwrap())
    };
    let (passes_alone, _) = fit(dim, &widened, 50);
    assert!(passes_alone > 1e-3, "{passes_alone}");
    let ((gap, by_features), (wide_gap, by_rows)) =
        (fit(narrow, &values, 1000), fit(dim, &widened, 1000));
    assert!(gap.abs() < 1e-9 && wide_gap.abs() < 1e-9, "{gap} {wide_gap}");
    // ‖Δw‖² ≤ 2P·gap: with P ≈ 10, ‖x‖ ≈ 95 and the gaps found, below 10⁻¹⁰, decisions may differ by
    // 4·10⁻³; they differ by 2·10⁻⁶.
    for (a, b) in by_features.iter().zip(&by_rows) {
        assert!((a - b).abs() < 1e-4, "{a} {b}, gaps {gap} {wide_gap}");
    }
}

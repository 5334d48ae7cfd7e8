//! Exact processes against scikit-learn and SciPy.
//!
//! The numbers were printed by `python tools/reference/exact_process.py` with scikit-learn 1.9.1,
//! SciPy 1.17.1 and NumPy 2.4.6.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ebp::IndexedSet;
use ebp::kernel::{Kernel, Matern, Periodic, Rbf, Smoothness};
use ebp::process::{ExactProcess, ExactProcessConfig, GaussianProcess, StudentTProcess};

const NUM: i32 = 12;
const NOISE: f64 = 0.05;
const NEW: [f64; 4] = [-0.5, 1.0, 2.2, 6.0];
const DEGREES: f64 = 4.5;

/// 1e-8 as promised for log p; the condition number of these covariances is below 1e3, so that
/// both sides are good to about 1e-12.
const TOLERANCE: f64 = 1e-10;

#[derive(Debug)]
enum Name {
    Rbf,
    Half,
    ThreeHalves,
    FiveHalves,
    Periodic,
}

#[derive(Debug)]
struct Golden {
    kernel: Name,
    dim: usize,
    log_marginal: f64,
    gradient: &'static [f64],
    mean: [f64; 4],
    std_dev: [f64; 4],
    student_t: f64,
}

impl Golden {
    fn kernel(&self) -> Box<dyn Kernel> {
        let matern = |smoothness| Box::new(Matern::new(smoothness, 0.9, 1.1).unwrap());
        match self.kernel {
            Name::Rbf => Box::new(Rbf::new(1.3, 0.8).unwrap()),
            Name::Half => matern(Smoothness::Half),
            Name::ThreeHalves => matern(Smoothness::ThreeHalves),
            Name::FiveHalves => matern(Smoothness::FiveHalves),
            Name::Periodic => Box::new(Periodic::new(1.2, 0.9, 3.1).unwrap()),
        }
    }

    fn config(&self) -> ExactProcessConfig {
        ExactProcessConfig { location_dim: self.dim, value_dim: 1, noise_variance: NOISE }
    }
}

fn locations(times: &[f64], dim: usize) -> Vec<f64> {
    if dim == 1 { times.to_vec() } else { times.iter().flat_map(|t| [*t, t.cos()]).collect() }
}

/// t = 0.37 i + 0.11 sin 3i, x = sin 2t + 0.3 cos 7i.
fn data(dim: usize) -> IndexedSet {
    let index = || (0..NUM).map(f64::from);
    let times: Vec<f64> = index().map(|i| 0.37 * i + 0.11 * (3.0 * i).sin()).collect();
    let values =
        index().zip(&times).map(|(i, t)| (2.0 * t).sin() + 0.3 * (7.0 * i).cos()).collect();
    IndexedSet::new(dim, 1, locations(&times, dim), values).unwrap()
}

fn assert_close(found: f64, expected: f64, what: &str, golden: &Golden) {
    assert!(
        (found - expected).abs() < TOLERANCE,
        "{what} of {:?} in {}-D: {found}, expected {expected}",
        golden.kernel,
        golden.dim
    );
}

#[test]
fn log_marginals_and_gradients_equal_those_of_scikit_learn() {
    for golden in &GOLDEN {
        let process = GaussianProcess::new(golden.kernel(), &golden.config()).unwrap();
        let (value, gradient) = process.log_marginal_gradient(&[data(golden.dim)]).unwrap();
        assert_close(value, golden.log_marginal, "log p", golden);
        assert_eq!(gradient.len(), golden.gradient.len());
        for (found, expected) in gradient.iter().zip(golden.gradient) {
            assert_close(*found, *expected, "gradient", golden);
        }
    }
}

#[test]
fn predictions_equal_those_of_scikit_learn() {
    for golden in &GOLDEN {
        let process = GaussianProcess::new(golden.kernel(), &golden.config()).unwrap();
        let posterior = process.posterior(&data(golden.dim)).unwrap();
        let prediction = posterior.predict(&locations(&NEW, golden.dim)).unwrap();
        for j in 0..NEW.len() {
            assert_close(prediction.mean[j], golden.mean[j], "mean", golden);
            assert_close(prediction.variance[j].sqrt(), golden.std_dev[j], "deviation", golden);
        }
    }
}

#[test]
fn student_t_marginals_equal_those_of_scipy() {
    for golden in &GOLDEN {
        let process = StudentTProcess::new(golden.kernel(), &golden.config(), DEGREES).unwrap();
        let found = process.log_marginal(&data(golden.dim)).unwrap();
        assert_close(found, golden.student_t, "Student-t log p", golden);
    }
}

const GOLDEN: [Golden; 7] = [
    Golden {
        kernel: Name::Rbf,
        dim: 1,
        log_marginal: -5.892_903_358_678_286,
        gradient: &[-1.360_645_759_531_221_6, 2.793_830_305_693_232_3, -2.628_149_257_643_544_3],
        mean: [
            -0.199_764_027_842_880_05,
            0.787_217_394_644_525_4,
            -1.061_855_702_815_395_7,
            0.000_190_665_714_268_721_88,
        ],
        std_dev: [
            0.601_065_123_948_852_3,
            0.270_198_281_986_404_1,
            0.270_445_175_209_587,
            1.155_573_988_057_494_2,
        ],
        student_t: -4.223_608_398_848_813,
    },
    Golden {
        kernel: Name::Rbf,
        dim: 2,
        log_marginal: -6.923_732_381_085_347_5,
        gradient: &[-1.912_424_253_562_464_5, 4.068_667_395_383_911, -2.203_939_039_762_585],
        mean: [
            -0.132_864_914_396_160_22,
            0.817_398_201_850_093_6,
            -1.058_946_670_856_856,
            0.001_919_898_509_989_088_2,
        ],
        std_dev: [
            0.637_871_433_039_164_2,
            0.286_279_918_939_773_5,
            0.283_543_735_142_912_76,
            1.161_700_095_713_917_9,
        ],
        student_t: -5.052_809_771_142_405,
    },
    Golden {
        kernel: Name::Half,
        dim: 1,
        log_marginal: -10.140_753_427_677_101,
        gradient: &[-2.197_029_008_052_27, 1.406_596_492_367_998_8, -0.718_807_357_404_354_2],
        mean: [
            0.210_659_832_324_118_58,
            0.679_534_806_312_084_3,
            -0.934_693_819_476_005_3,
            0.160_710_519_099_342_11,
        ],
        std_dev: [
            0.778_220_562_642_797_8,
            0.487_053_572_332_579,
            0.416_266_297_250_984_8,
            0.958_537_547_158_013_4,
        ],
        student_t: -9.745_063_029_850_758,
    },
    Golden {
        kernel: Name::ThreeHalves,
        dim: 1,
        log_marginal: -7.194_870_584_747_744,
        gradient: &[-0.605_785_925_719_720_9, 0.469_164_112_039_316_74, -1.893_061_413_806_301],
        mean: [
            0.050_528_605_352_172_63,
            0.753_580_709_839_641_3,
            -1.005_645_372_969_832_5,
            0.137_875_101_299_785_75,
        ],
        std_dev: [
            0.605_540_723_265_961_6,
            0.299_796_543_899_040_8,
            0.292_475_884_500_377_2,
            0.950_780_333_041_279_4,
        ],
        student_t: -7.140_024_574_364_947,
    },
    Golden {
        kernel: Name::ThreeHalves,
        dim: 2,
        log_marginal: -7.668_277_683_082_211,
        gradient: &[-1.267_426_901_847_353_8, 1.907_638_558_231_711_5, -1.618_661_938_526_890_6],
        mean: [
            0.073_158_154_248_820_88,
            0.776_563_774_774_899_1,
            -1.008_762_401_357_066_2,
            0.072_342_997_870_549_13,
        ],
        std_dev: [
            0.618_976_452_641_742_2,
            0.323_302_967_402_076_65,
            0.305_808_311_548_253_8,
            0.967_899_821_665_636_9,
        ],
        student_t: -7.299_270_187_499_777,
    },
    Golden {
        kernel: Name::FiveHalves,
        dim: 1,
        log_marginal: -6.576_263_079_918_7,
        gradient: &[0.221_087_477_061_419_96, -1.695_867_095_066_386_6, -2.304_375_720_805_836],
        mean: [
            -0.021_113_066_397_172_364,
            0.751_696_512_425_300_7,
            -1.014_520_163_319_106_3,
            0.103_652_273_785_845_2,
        ],
        std_dev: [
            0.542_741_817_614_892_8,
            0.276_671_064_418_625_77,
            0.275_801_785_477_676_8,
            0.945_579_268_845_860_5,
        ],
        student_t: -6.797_613_941_942_24,
    },
    Golden {
        kernel: Name::Periodic,
        dim: 1,
        log_marginal: -5.346_042_901_158_642,
        gradient: &[
            -2.258_349_180_325_281,
            5.697_427_644_272_47,
            7.673_027_258_901_362,
            -2.420_404_178_823_817,
        ],
        mean: [
            -0.790_348_014_158_638_1,
            0.881_847_138_229_369_9,
            -1.026_909_211_825_327_4,
            -0.193_390_350_017_021_65,
        ],
        std_dev: [
            0.321_052_256_474_050_4,
            0.283_690_660_628_549_9,
            0.318_828_113_466_925_86,
            0.276_180_854_622_080_5,
        ],
        student_t: -2.405_632_623_488_999_8,
    },
];

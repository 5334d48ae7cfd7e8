//! Set metrics against SciPy, POT, scikit-learn and plain NumPy.
//!
//! The numbers were printed by `python tools/reference/set_metrics.py` with NumPy 2.4.6, SciPy 1.17.1,
//! scikit-learn 1.9.1 and POT 0.9.7.post1.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod metric;

use ebp::metric::collection::{CollectionOptions, evaluate};
use ebp::metric::distance::{ArrangedCloud, ChamferConvention, EmdMethod, NearestNeighbours, emd};
use metric::{arranged, formula};

struct Golden {
    n: usize,
    m: usize,
    dim: usize,
    chamfer: f64,
    chamfer_sum: f64,
    hausdorff: f64,
    exact: f64,
    approxmatch: f64,
    squared: f64,
    sinkhorn: f64,
}

const DISTANCES: [Golden; 6] = [
    Golden {
        n: 24,
        m: 24,
        dim: 3,
        chamfer: 0.026_052_051_244_582_15,
        chamfer_sum: 5.087_912_068_256_549,
        hausdorff: 0.194_047_970_418_724_76,
        exact: 0.118_940_384_954_990_82,
        approxmatch: 0.131_664_226_697_570_1,
        squared: 0.024_424_971_260_169_213,
        sinkhorn: 0.199_162_608_489_367_07,
    },
    Golden {
        n: 24,
        m: 17,
        dim: 3,
        chamfer: 0.029_302_563_904_846_42,
        chamfer_sum: 4.677_909_179_282_062,
        hausdorff: 0.183_055_419_554_940_73,
        exact: 0.142_587_082_172_004_47,
        approxmatch: 0.162_566_243_124_234_48,
        squared: 0.044_507_483_046_902_41,
        sinkhorn: 0.206_031_740_638_937_6,
    },
    Golden {
        n: 12,
        m: 36,
        dim: 2,
        chamfer: 0.016_261_080_774_476_067,
        chamfer_sum: 4.330_912_227_350_334,
        hausdorff: 0.191_276_574_132_028_2,
        exact: 0.129_037_899_603_067_08,
        approxmatch: 0.154_338_207_628_914_3,
        squared: 0.049_554_279_816_477_72,
        sinkhorn: 0.178_786_656_309_105_78,
    },
    Golden {
        n: 30,
        m: 30,
        dim: 1,
        chamfer: 0.000_290_859_540_080_519_07,
        chamfer_sum: 0.536_358_932_543_322_3,
        hausdorff: 0.040_357_977_798_716_68,
        exact: 0.026_194_288_996_586_87,
        approxmatch: 0.030_623_510_495_298_62,
        squared: 0.004_485_933_562_505_146,
        sinkhorn: 0.060_645_276_493_988_89,
    },
    Golden {
        n: 20,
        m: 33,
        dim: 5,
        chamfer: 0.064_769_047_492_985_98,
        chamfer_sum: 9.341_031_968_782,
        hausdorff: 0.285_337_893_902_575_6,
        exact: 0.214_882_489_199_524_7,
        approxmatch: 0.261_010_202_820_470_3,
        squared: 0.114_249_920_646_650_02,
        sinkhorn: 0.307_297_214_009_113_1,
    },
    Golden {
        n: 100,
        m: 100,
        dim: 3,
        chamfer: 0.010_241_891_549_873_833,
        chamfer_sum: 13.203_534_594_195_675,
        hausdorff: 0.146_392_598_120_745_2,
        exact: 0.085_760_905_502_835_51,
        approxmatch: 0.103_282_808_851_382_14,
        squared: 0.025_081_140_505_016_42,
        sinkhorn: 0.204_870_507_576_994_85,
    },
];
const CHAMFER: [f64; 3] =
    [0.009_378_991_696_698_608, 0.666_666_666_666_666_6, 0.230_769_230_769_230_78];
const EXACT: [f64; 3] = [0.068_180_857_173_880_45, 0.5, 0.230_769_230_769_230_78];
const DIVERGENCE: f64 = 0.710_547_756_402_906_9;

/// Sums of at most a hundred numbers of size 1, rounded in two orders.
const ROUNDING: f64 = 1e-13;
/// approxmatch computes kernels in f32 as the original does; see its module.
const SINGLE: f64 = 2e-6;
/// Sinkhorn's updates end when masses are right to 10⁻⁶ on average.
const MASSES: f64 = 2e-6;

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() < tolerance, "{what}: {found} against {expected}");
}

#[test]
fn distances_agree_with_the_references() {
    for golden in DISTANCES {
        let name = format!("{} and {} points, {} coordinates", golden.n, golden.m, golden.dim);
        let x = arranged(&formula(1.0, golden.n, golden.dim));
        let y = arranged(&formula(2.0, golden.m, golden.dim));
        let nearest = NearestNeighbours::between(&x, &y).unwrap();
        let by = |convention| nearest.chamfer(convention);
        assert_near(by(ChamferConvention::MeanOfSquares), golden.chamfer, ROUNDING, &name);
        assert_near(by(ChamferConvention::SumOfDistances), golden.chamfer_sum, ROUNDING, &name);
        assert_near(nearest.hausdorff(), golden.hausdorff, ROUNDING, &name);
        let by = |method| emd(&x, &y, method).unwrap().value;
        assert_near(by(EmdMethod::Exact), golden.exact, ROUNDING, &name);
        assert_near(by(EmdMethod::Approxmatch), golden.approxmatch, SINGLE, &name);
        assert_near(by(EmdMethod::Squared), golden.squared, SINGLE, &name);
        let regularised = by(EmdMethod::Sinkhorn { regularisation: 0.2 });
        assert_near(regularised, golden.sinkhorn, MASSES, &name);
    }
}

#[test]
fn collections_agree_with_the_references() {
    let sets = |count: u8, step: f64, start: f64| -> Vec<ArrangedCloud> {
        (0..count).map(|s| arranged(&formula(step * f64::from(s) + start, 36, 3))).collect()
    };
    let (samples, references) = (sets(7, 0.9, 0.0), sets(6, 0.5, 0.25));
    let options = CollectionOptions { emd: Some(EmdMethod::Exact), cache: None, seed: 1 };
    let found = evaluate(&samples, &references, &options, &mut |_| ()).unwrap();
    let exact = found.emd.unwrap();
    for (found, expected) in [(found.chamfer, CHAMFER), (exact.metrics, EXACT)] {
        assert_near(found.matching_distance.value, expected[0], ROUNDING, "matching distance");
        assert_near(found.coverage.value, expected[1], ROUNDING, "coverage");
        assert_near(found.one_nn_accuracy.value, expected[2], ROUNDING, "accuracy");
    }
    assert!(exact.largest_gap.unwrap() < 1e-12);
    let divergence = found.divergence.unwrap();
    assert_near(divergence.divergence.value, DIVERGENCE, ROUNDING, "divergence");
}

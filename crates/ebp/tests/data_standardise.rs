//! Standardising: moments, the way back, and densities that do not depend on units.

use ebp::IndexedSet;
use ebp::data::{CurveFamily, Standardiser};
use ebp::rng::Stream;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

type Numbers = Vec<(String, f64)>;

#[test]
fn training_data_get_mean_zero_and_standard_deviation_one() {
    let sets = [
        IndexedSet::new(2, 1, vec![1.0, 5.0, 2.0, 5.0], vec![1e6, 1e6 + 3.0]).unwrap(),
        IndexedSet::new(2, 1, vec![6.0, 5.0], vec![1e6 - 7.0]).unwrap(),
    ];
    let standardiser = Standardiser::fit(&sets).unwrap();
    let scaled = sets.each_ref().map(|set| standardiser.apply(set).unwrap());
    let values: Vec<f64> = scaled.iter().flat_map(|set| set.values().to_vec()).collect();
    let first: Vec<f64> = scaled.iter().flat_map(|s| s.locations().to_vec()).step_by(2).collect();
    // The mean near 10⁶ is known to 10⁻¹⁰.
    for column in [values, first] {
        let mean = column.iter().sum::<f64>() / 3.0;
        let variance = column.iter().map(|z| z * z).sum::<f64>() / 3.0;
        assert!(mean.abs() < 1e-10 && (variance - 1.0).abs() < 1e-9, "{column:?}");
    }
    // The second location never changes: it is centred and keeps its scale.
    assert_eq!(scaled[0].location(0)[1].to_bits(), 0);
    assert_eq!(standardiser.to_numbers()[3], ("location.1.std_dev".to_owned(), 1.0));
}

/// log p in the units of the data from the density in scaled units, for a known law.
#[test]
fn densities_do_not_depend_on_units() {
    let drawn = CurveFamily::Circle.draw(Stream::new(1, "units"), 0, 40).unwrap();
    let standardiser = Standardiser::fit([&drawn.set]).unwrap();
    let scaled = standardiser.apply(&drawn.set).unwrap();
    // The scaled law, written independently: z = (x − m)/s has density s p(m + s z).
    let (h, mut total) = (1e-3, 0.0);
    let (t, z) = (drawn.set.location(0)[0], scaled.value(0)[0]);
    let raw = |z: f64| standardiser.invert_values(&[z]).unwrap()[0];
    let s = (raw(z + h) - raw(z)) / h;
    let log_scaled = s.ln() + drawn.law.log_density(t, raw(z));
    for k in -8000..8000 {
        total += (s.ln() + drawn.law.log_density(t, raw(f64::from(k) * h))).exp() * h;
    }
    assert!((total - 1.0).abs() < 1e-9, "a density in scaled units, {total}");
    let back = log_scaled + standardiser.log_density_correction();
    assert!((back - drawn.law.log_density(t, drawn.set.value(0)[0])).abs() < 1e-9);
}

#[test]
fn stored_numbers_are_checked() {
    let set = IndexedSet::new(1, 2, vec![0.0, 1.0], vec![1.0, 2.0, 3.0, 9.0]).unwrap();
    let standardiser = Standardiser::fit([&set]).unwrap();
    let mut numbers = standardiser.to_numbers();
    numbers.reverse();
    assert_eq!(Standardiser::from_numbers(&numbers).unwrap(), standardiser);
    let broken = |change: &dyn Fn(&mut Numbers)| {
        let mut numbers = standardiser.to_numbers();
        change(&mut numbers);
        Standardiser::from_numbers(&numbers).unwrap_err().to_string()
    };
    assert!(broken(&|n| n[1].1 = 0.0).contains("`location.0.std_dev` must be positive"));
    assert!(broken(&|n| n[0].1 = f64::NAN).contains("must be finite"));
    assert!(broken(&|n| n.truncate(5)).contains("`value.1.std_dev`"));
    assert!(broken(&|n| n.push(n[0].clone())).contains("given once"));
    assert!(broken(&|n| n.push(("value.7.mean".into(), 1.0))).contains("2 x 3 columns"));
    assert!(broken(&Vec::clear).contains("location.0.mean"));
}

#[test]
fn what_cannot_be_standardised_is_refused() {
    assert!(Standardiser::fit([]).is_err());
    assert!(Standardiser::fit([&IndexedSet::empty(1, 1).unwrap()]).is_err());
    let huge = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![1e308, -1e308]).unwrap();
    assert!(Standardiser::fit([&huge]).unwrap_err().to_string().contains("column 0 of the values"));
    let set = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![1.0, 2.0]).unwrap();
    let other = IndexedSet::empty(2, 1).unwrap();
    assert!(Standardiser::fit([&set, &other]).is_err());
    let standardiser = Standardiser::fit([&set]).unwrap();
    assert!(standardiser.apply(&other).is_err() && standardiser.invert(&other).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    /// Back within rounding of the column's largest magnitude.
    #[test]
    fn inverting_undoes_applying(
        rows in prop::collection::vec((-1e9..1e9, -1e-3..1e-3, 5.0..5.1), 1..30),
    ) {
        let locations = rows.iter().map(|row| row.0).collect();
        let values: Vec<f64> = rows.iter().flat_map(|row| [row.1, row.2]).collect();
        let set = IndexedSet::new(1, 2, locations, values).unwrap();
        let standardiser = Standardiser::fit([&set]).unwrap();
        let back = standardiser.invert(&standardiser.apply(&set).unwrap()).unwrap();
        let pairs = set.locations().iter().zip(back.locations());
        for (before, after) in pairs {
            prop_assert!((before - after).abs() <= 1e-15 * 4e9, "{} {}", before, after);
        }
        for (before, after) in set.values().iter().zip(back.values()) {
            prop_assert!((before - after).abs() <= 1e-15 * 21.0, "{} {}", before, after);
        }
    }
}

//! Caches: what was put in comes out, and a damaged file is an error.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "helpers of tests fail as tests do, and the numbers are small"
)]

use std::fs;
use std::path::Path;

use ebp::Error;
use ebp::data::cache::{CacheOptions, Kind, SetInfo, random_splits};
use ebp::data::normalise::NormaliseBy;
use ebp::data::{Cache, CacheWriter, Split};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn options(normalise_by: NormaliseBy) -> CacheOptions {
    CacheOptions {
        kind: Kind::Clouds,
        dim: 2,
        value_dim: 2,
        picture_size: None,
        source: "made by a test".into(),
        normalise_by,
    }
}

fn info(number: usize, split: Split) -> SetInfo {
    let class = (!number.is_multiple_of(3)).then(|| format!("class {}", number % 3));
    SetInfo { name: format!("set {number}"), class, split }
}

/// Set `i` has i + 1 points (i, j).
fn write(path: &Path, num_sets: usize, by: NormaliseBy) {
    let mut writer = CacheWriter::create(path, options(by)).unwrap();
    for i in 0..num_sets {
        let points: Vec<f32> = (0..=i).flat_map(|j| [i as f32, j as f32]).collect();
        let split = if i % 4 == 3 { Split::Test } else { Split::Train };
        writer.push(&points, info(i, split)).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_cache_gives_back_what_was_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 8, NormaliseBy::None);
    let cache = Cache::open(&path).unwrap();
    assert_eq!(cache.len(), 8);
    assert_eq!(cache.set(2), [2.0, 0.0, 2.0, 1.0, 2.0, 2.0]);
    assert_eq!(cache.names()[7], "set 7");
    assert_eq!(cache.meta().classes, ["class 1", "class 2"]);
    assert_eq!((cache.label(0), cache.label(1), cache.label(5)), (None, Some(0), Some(1)));
    assert_eq!(cache.members(Split::Test), [3, 7]);
    assert!(cache.pixels().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_global_normalisation_knows_the_training_sets_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 4, NormaliseBy::Global);
    let cache = Cache::open(&path).unwrap();
    let affine = cache.affine(3).unwrap();
    // Sets 0, 1, 2: x = 0, 1, 1, 2, 2, 2 (mean 4/3); y = 0, 0, 1, 0, 1, 2 (mean 2/3). All twelve
    // numbers: mean 1, squares 0+1+1+4+4+4 + 0+0+1+0+1+4 = 20, so σ² = 20/12 − 1 = 2/3.
    assert!((affine.centre[0] - 4.0 / 3.0).abs() < 1e-6);
    assert!((affine.centre[1] - 2.0 / 3.0).abs() < 1e-6);
    assert!((affine.scale - (2.0_f32 / 3.0).sqrt()).abs() < 1e-6);

    // Other splits, other statistics: everything for training now.
    cache.rewrite(&path, NormaliseBy::Global, |_| Split::Train).unwrap();
    let again = Cache::open(&path).unwrap();
    assert_eq!(again.set(3), cache.set(3));
    assert!((again.affine(0).unwrap().centre[0] - 2.0).abs() < 1e-6, "20 / 10");
}

#[test]
fn clouds_normalised_one_by_one_have_their_own_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 5, NormaliseBy::Sphere);
    let cache = Cache::open(&path).unwrap();
    // Points (4, 0) … (4, 4): centre (4, 2), farthest 2 away.
    let affine = cache.affine(4).unwrap();
    assert_eq!((affine.centre.as_slice(), affine.scale), (&[4.0, 2.0][..], 2.0));
    assert_eq!(cache.normalised(4)[..4], [0.0, -1.0, 0.0, -0.5]);
    write(&path, 5, NormaliseBy::None);
    let plain = Cache::open(&path).unwrap();
    assert!(plain.affine(4).is_none() && plain.normalised(4) == plain.set(4));
}

#[test]
fn wrong_sets_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    let mut writer = CacheWriter::create(&path, options(NormaliseBy::None)).unwrap();
    let message = |result: ebp::Result<()>| result.unwrap_err().to_string();
    assert!(message(writer.push(&[], info(0, Split::Train))).contains("whole rows of 2"));
    assert!(message(writer.push(&[1.0], info(0, Split::Train))).contains("whole rows of 2"));
    let nan = writer.push(&[1.0, 2.0, 3.0, f32::NAN], info(0, Split::Train));
    assert_eq!(message(nan), "`element 1 of `set 0`` must be finite, found NaN");
    assert!(writer.push_bytes(&[1, 2], info(0, Split::Train)).is_err());
    assert!(message(writer.finish()).contains("at least one set"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn random_splits_have_their_shares() {
    let splits = random_splits(1000, 0.1, 0.25, 7).unwrap();
    let count = |split: Split| splits.iter().filter(|&&other| other == split).count();
    assert_eq!(
        (count(Split::Train), count(Split::Validation), count(Split::Test)),
        (650, 100, 250)
    );
    assert_eq!(splits, random_splits(1000, 0.1, 0.25, 7).unwrap());
    assert!(random_splits(10, 0.5, 0.5, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    /// A damaged cache is an error or, where only numbers or names were hit, a cache of the same
    /// shape.
    #[test]
    fn damaged_caches_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        thread_local! {
            static INTACT: (tempfile::TempDir, Vec<u8>) = {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("a.ebp");
                write(&path, 6, NormaliseBy::Sphere);
                let bytes = fs::read(&path).expect("a cache");
                (folder, bytes)
            };
        }
        INTACT.with(|(folder, intact)| {
            let mut bytes = intact.clone();
            for (place, bit) in &flips {
                let index = place.index(bytes.len());
                bytes[index] ^= 1 << bit;
            }
            if let Some(cut) = &cut {
                bytes.truncate(cut.index(bytes.len()).max(1));
            }
            let path = folder.path().join("b.ebp");
            fs::write(&path, &bytes).unwrap();
            match Cache::open(&path) {
                Ok(cache) => {
                    let total: usize = (0..cache.len()).map(|set| cache.set(set).len()).sum();
                    assert_eq!(total, cache.elements().len());
                }
                Err(Error::Damaged { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        });
    }
}

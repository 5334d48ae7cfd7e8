//! Caches and batches: what was put in comes out, in an order that depends on seed and epoch only.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "helpers of tests fail as tests do, and the numbers are small"
)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use ebp::Error;
use ebp::data::augment::Augmentation;
use ebp::data::cache::{CacheOptions, Kind, SetInfo, random_splits};
use ebp::data::normalise::NormaliseBy;
use ebp::data::pixels::level_of_value;
use ebp::data::{BatchConfig, Batches, Cache, CacheWriter, Split};
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
    let affine = Cache::open(&path).unwrap().affine(3);
    // Sets 0, 1, 2: x = 0, 1, 1, 2, 2, 2 (mean 4/3); y = 0, 0, 1, 0, 1, 2 (mean 2/3). All twelve
    // numbers: mean 1, squares 0+1+1+4+4+4 + 0+0+1+0+1+4 = 20, so σ² = 20/12 − 1 = 2/3.
    assert!((affine.centre[0] - 4.0 / 3.0).abs() < 1e-6);
    assert!((affine.centre[1] - 2.0 / 3.0).abs() < 1e-6);
    assert!((affine.scale - (2.0_f32 / 3.0).sqrt()).abs() < 1e-6);

    // Other splits, other statistics: everything for training now.
    let cache = Cache::open(&path).unwrap();
    cache.rewrite(&path, NormaliseBy::Global, |_| Split::Train).unwrap();
    let again = Cache::open(&path).unwrap();
    assert_eq!(again.set(3), cache.set(3));
    assert!((again.affine(0).centre[0] - 2.0).abs() < 1e-6, "20 / 10");
}

#[test]
fn clouds_normalised_one_by_one_have_their_own_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 5, NormaliseBy::Sphere);
    let cache = Cache::open(&path).unwrap();
    // Points (4, 0) … (4, 4): centre (4, 2), farthest 2 away.
    assert_eq!((cache.affine(4).centre, cache.affine(4).scale), (vec![4.0, 2.0], 2.0));
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

fn batches(path: &Path, config: BatchConfig) -> Batches {
    Batches::new(Arc::new(Cache::open(path).unwrap()), Split::Train, config).unwrap()
}

#[test]
fn the_order_is_a_function_of_seed_and_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 40, NormaliseBy::None);
    let config = BatchConfig { batch_size: 7, seed: 5, ..BatchConfig::default() };
    let made = batches(&path, config.clone());
    let epoch: Vec<_> = made.epoch(3).map(Result::unwrap).collect();
    assert_eq!(epoch.len(), made.num_batches());
    // Every training set once, ragged, without padding.
    let mut sets: Vec<usize> = epoch.iter().flat_map(|batch| batch.sets.clone()).collect();
    assert_ne!(sets, (0..40).filter(|i| i % 4 != 3).collect::<Vec<_>>(), "a drawn order");
    sets.sort_unstable();
    assert_eq!(sets, (0..40).filter(|i| i % 4 != 3).collect::<Vec<_>>());
    for batch in &epoch {
        for (place, &set) in batch.sets.iter().enumerate() {
            assert_eq!(batch.offsets.size(place), set + 1);
        }
        assert_eq!(batch.elements.len(), 2 * batch.offsets.num_elements());
    }
    // The same from anywhere, and another order in another epoch or under another seed.
    assert_eq!(batches(&path, config.clone()).batch(3, 2).unwrap(), epoch[2]);
    assert_ne!(made.order(3), made.order(4));
    assert_ne!(made.order(3), batches(&path, BatchConfig { seed: 6, ..config.clone() }).order(3));
    assert!(made.batch(3, 99).is_err());
    // An epoch that is not read to its end does not hang.
    drop(made.epoch(0));
}

#[test]
fn sets_are_thinned_anew_every_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    let mut writer = CacheWriter::create(&path, options(NormaliseBy::None)).unwrap();
    let points: Vec<f32> = (0..100_u8).flat_map(|j| [f32::from(j), 0.0]).collect();
    writer.push(&points, SetInfo::default()).unwrap();
    writer.finish().unwrap();
    let config =
        BatchConfig { num_points: Some(20), points_from: Some(0..60), ..BatchConfig::default() };
    let made = batches(&path, config.clone());
    let drawn = |epoch: u64| -> Vec<u32> {
        let batch = made.batch(epoch, 0).unwrap();
        batch.elements.chunks_exact(2).map(|point| point[0] as u32).collect()
    };
    let [first, second] = [drawn(0), drawn(1)];
    let distinct: HashSet<u32> = first.iter().copied().collect();
    assert_eq!((first.len(), distinct.len()), (20, 20), "no point twice");
    assert!(first.iter().all(|&x| x < 60), "only from the first 60");
    assert_ne!(first, second);
    assert_eq!(first, drawn(0));
    // Over many epochs every point comes up about equally often: 600 draws of 20 from 60 give each
    // point 200 ± √(600 · ⅓ · ⅔) = 11.5; five standard errors.
    let mut counts = [0_i32; 60];
    for epoch in 0..600 {
        for x in drawn(epoch) {
            counts[x as usize] += 1;
        }
    }
    assert!(counts.iter().all(|count| (count - 200).abs() < 58), "{counts:?}");
    let wrong = BatchConfig { points_from: Some(100..200), ..config };
    let cache = Arc::new(Cache::open(&path).unwrap());
    assert!(Batches::new(Arc::clone(&cache), Split::Train, wrong).is_err());
    assert!(Batches::new(Arc::clone(&cache), Split::Test, BatchConfig::default()).is_err());
    let turning = Augmentation { gravity_axis: Some(2), noise_std_dev: 0.0 };
    let flat = BatchConfig { augmentation: turning, ..BatchConfig::default() };
    assert!(Batches::new(cache, Split::Train, flat).is_err(), "no gravity in the plane");
}

#[test]
fn pictures_are_sets_of_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    // Pictures of three columns and two rows, two channels: 10 · picture + pixel, and its double.
    let options = CacheOptions {
        kind: Kind::Images,
        picture_size: Some([3, 2]),
        ..options(NormaliseBy::None)
    };
    let mut writer = CacheWriter::create(&path, options.clone()).unwrap();
    for picture in 0..5_u8 {
        let pixels: Vec<u8> =
            (0..6).flat_map(|i| [10 * picture + i, 20 * picture + 2 * i]).collect();
        writer.push_bytes(&pixels, info(usize::from(picture), Split::Train)).unwrap();
    }
    writer.finish().unwrap();
    let config = BatchConfig { batch_size: 2, ..BatchConfig::default() };
    let made = batches(&path, config.clone());
    assert_eq!((made.dim(), made.value_dim()), (4, 2));
    let level = |value: f32| usize::from(level_of_value(value));
    let mut seen = HashSet::new();
    for batch in made.epoch(1).map(Result::unwrap) {
        for (place, &set) in batch.sets.iter().enumerate() {
            seen.insert(set);
            let rows = batch.offsets.range(place);
            assert_eq!(rows.len(), 6);
            let elements = &batch.elements[4 * rows.start..4 * rows.end];
            for (pixel, element) in elements.chunks_exact(4).enumerate() {
                let [column, row] = [pixel % 3, pixel / 3];
                assert_eq!(
                    [level(element[0]), level(element[1])],
                    [1, 2].map(|k| k * (10 * set + pixel))
                );
                // Columns at −2/3, 0 and 2/3, rows at ∓1/2.
                assert_eq!(
                    element[2..],
                    [[-2.0_f32 / 3.0, 0.0, 2.0 / 3.0][column], [-0.5, 0.5][row]]
                );
            }
        }
    }
    assert_eq!(seen.len(), 5);
    // Thinned pictures keep what belongs together, and are drawn anew each epoch.
    let few = batches(&path, BatchConfig { num_points: Some(3), ..config.clone() });
    let batch = few.batch(0, 0).unwrap();
    for (place, &set) in batch.sets.iter().enumerate() {
        for row in batch.offsets.range(place) {
            let element = &batch.elements[4 * row..4 * row + 4];
            let pixel = level(element[0]) - 10 * set;
            assert_eq!(element[2..3], [[-2.0_f32 / 3.0, 0.0, 2.0 / 3.0][pixel % 3]]);
        }
    }
    assert_eq!(batch, few.batch(0, 0).unwrap());
    let augmentation = Augmentation { gravity_axis: None, noise_std_dev: 0.1 };
    let cache = Arc::new(Cache::open(&path).unwrap());
    let noisy = Batches::new(cache, Split::Train, BatchConfig { augmentation, ..config.clone() });
    assert!(noisy.unwrap_err().to_string().contains("none for pictures"));
    // A cache whose pictures are not of the size it says.
    let mut writer =
        CacheWriter::create(&path, CacheOptions { picture_size: Some([4, 2]), ..options }).unwrap();
    writer.push_bytes(&[0; 12], info(0, Split::Train)).unwrap();
    writer.finish().unwrap();
    let cache = Arc::new(Cache::open(&path).unwrap());
    let wrong = Batches::new(cache, Split::Train, config).unwrap_err().to_string();
    assert!(wrong.contains("pictures of 4 x 2 pixels"), "{wrong}");
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

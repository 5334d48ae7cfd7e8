//! Clouds in memory and in a mapped cache are the same clouds, normalised as the cache says.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "helpers of tests fail as tests do, and the numbers are small"
)]

use std::path::Path;

use ebp::data::cache::{CacheOptions, Kind, SetInfo};
use ebp::data::normalise::{Affine, NormaliseBy};
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::{
    Cache, CacheWriter, CloudSource, Clouds, Parts, PartsRule, ReportSplit, Split, read_clouds,
};
use ebp::nn::{Record, Step};
use ebp::process::EnergyBasedProcess;
use ebp::recipe::{EnergyBasedConfig, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{CloudTraining, Trainable};
use ebp::{Error, SetOffsets};

const DIM: usize = 3;
const ALL: [NormaliseBy; 4] =
    [NormaliseBy::None, NormaliseBy::Global, NormaliseBy::Shape, NormaliseBy::Sphere];

/// Clouds of different sizes far from the origin: forgetting a centre or scale shows.
fn cloud(number: usize) -> Vec<f32> {
    let mut points = vec![0.0; DIM * (20 + number)];
    Stream::new(number as u64, "cloud").fill_normal(0, 0, &mut points);
    points.iter().map(|x| 50.0 + number as f32 + 7.0 * x).collect()
}

fn write(path: &Path, count: usize, by: NormaliseBy, split: impl Fn(usize) -> Split) {
    let options = CacheOptions {
        kind: Kind::Clouds,
        dim: DIM,
        value_dim: DIM,
        picture_size: None,
        source: "made by a test".into(),
        normalise_by: by,
    };
    let mut writer = CacheWriter::create(path, options).unwrap();
    for number in 0..count {
        let info = SetInfo { name: format!("set {number}"), class: None, split: split(number) };
        writer.push(&cloud(number), info).unwrap();
    }
    writer.finish().unwrap();
}

/// What the table of `data::normalise` says, written down once more in f64.
fn expected(by: NormaliseBy, count: usize) -> Vec<Vec<f64>> {
    let clouds: Vec<Vec<f64>> =
        (0..count).map(|number| cloud(number).into_iter().map(f64::from).collect()).collect();
    let mean = |points: &[f64]| -> Vec<f64> {
        let n = (points.len() / DIM) as f64;
        (0..DIM).map(|axis| points.iter().skip(axis).step_by(DIM).sum::<f64>() / n).collect()
    };
    let all = clouds.concat();
    let whole = mean(&all);
    let middle = all.iter().sum::<f64>() / all.len() as f64;
    let spread = (all.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
    let normalise = |points: &Vec<f64>| {
        let own = mean(points);
        let squares: Vec<f64> = points
            .chunks_exact(DIM)
            .map(|p| p.iter().zip(&own).map(|(x, c)| (x - c).powi(2)).sum())
            .collect();
        let (centre, scale) = match by {
            NormaliseBy::None => (vec![0.0; DIM], 1.0),
            NormaliseBy::Global => (whole.clone(), spread),
            NormaliseBy::Shape => (own, (squares.iter().sum::<f64>() / points.len() as f64).sqrt()),
            NormaliseBy::Sphere => (own, squares.iter().copied().fold(0.0, f64::max).sqrt()),
        };
        points.iter().enumerate().map(|(i, x)| (x - centre[i % DIM]) / scale).collect()
    };
    clouds.iter().map(normalise).collect()
}

fn is_near(found: &[f32], expected: &[f64]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4)
}

#[test]
fn every_reader_of_a_cache_applies_its_normalisation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    for by in ALL {
        write(&path, 5, by, |_| Split::Train);
        let expected = expected(by, 5);
        let cache = Cache::open(&path).unwrap();
        let source = CloudSource::open(&path).unwrap();
        let read = read_clouds(&path).unwrap();
        for (number, expected) in expected.iter().enumerate() {
            assert!(is_near(&cache.normalised(number), expected), "{by:?}");
            assert!(is_near(&source.set(number), expected), "{by:?}");
            assert!(is_near(read.cloud(number), expected), "{by:?}");
            assert_eq!(cache.set(number), cloud(number), "the numbers of the source stay");
        }
    }
}

fn in_memory(source: &CloudSource, affine: &Affine) -> Clouds {
    let mut points: Vec<f32> =
        (0..source.num_sets()).flat_map(|index| source.set(index).into_owned()).collect();
    affine.apply(&mut points);
    let sizes = (0..source.num_sets()).map(|index| source.size(index));
    let names = (0..source.num_sets()).map(|index| source.name(index)).collect();
    Clouds::new(DIM, points, SetOffsets::from_sizes(sizes).unwrap(), names).unwrap()
}

fn learned(clouds: impl Into<CloudSource>, half_width: f32) -> (Vec<Record>, Vec<f32>) {
    let config = EnergyBasedConfig {
        latent_dim: 2,
        encoder_widths: vec![8],
        head_widths: vec![],
        energy_widths: vec![8],
        num_proposals: 32,
        encoder_points: 16,
        likelihood_points: 16,
        ..EnergyBasedConfig::points()
    };
    let source = clouds.into();
    let space = Space::points(DIM, half_width);
    let process = EnergyBasedProcess::new(config, space, 1, &Device::default()).unwrap();
    let mut training = CloudTraining::new(process, source.clone(), 3, 1).unwrap();
    let records = (0..4)
        .map(|number| {
            let stream = Stream::new(3, "steps").child(number);
            let step = Step { number, num_steps: 4, stream, learning_rate_factor: 1.0 };
            training.step(&step).unwrap()
        })
        .collect();
    let sets: Vec<Vec<f32>> =
        (0..source.num_sets()).map(|index| source.set(index).into_owned()).collect();
    let sets: Vec<&[f32]> = sets.iter().map(Vec::as_slice).collect();
    let process = training.process();
    let codes = process.encode(&process.point_sets(&sets).unwrap()).unwrap();
    (records, codes.mean)
}

/// Training from the map is training from memory, to the last bit.
#[test]
fn a_mapped_cache_trains_as_its_clouds_in_memory_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    for by in ALL {
        write(&path, 9, by, |number| if number < 7 { Split::Train } else { Split::Test });
        let all = CloudSource::open(&path).unwrap();
        let (train, held_out) = all.hold_out(0, Stream::new(1, "split")).unwrap();
        assert_eq!(
            (train.num_sets(), held_out.num_sets(), held_out.name(1)),
            (7, 2, "set 8".into())
        );
        let statistics = train.statistics().unwrap();
        let memory = in_memory(&train, &statistics.affine);
        let raw = in_memory(&train, &Affine::identity(DIM));
        let sets = (0..raw.num_clouds()).map(|index| raw.cloud(index));
        assert_eq!(statistics.affine, Affine::of_all(sets, DIM));
        let largest = memory.points().iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        assert_eq!(statistics.largest.to_bits(), largest.to_bits());
        let half_width = largest + 0.4;
        let mapped = train.standardised(statistics.affine).unwrap();
        assert_eq!(learned(mapped, half_width), learned(memory, half_width), "{by:?}");
    }
}

#[test]
fn parts_of_a_source_are_lists_of_its_members() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 6, NormaliseBy::None, |_| Split::Train);
    let all = CloudSource::open(&path).unwrap();
    let some = all.select(&[4, 0, 2]).unwrap();
    assert_eq!((some.num_sets(), some.dim(), some.size(0)), (3, DIM, 24));
    assert_eq!(*some.set(1), cloud(0));
    assert_eq!(*some.select(&[2]).unwrap().set(0), cloud(2));
    assert!(all.select(&[]).is_err() && some.select(&[3]).is_err());
    // Without splits the first of a drawn order are held out, and every set is in one part.
    let (train, held_out) = all.hold_out(2, Stream::new(1, "split")).unwrap();
    let mut names: Vec<String> = (0..4).map(|index| train.name(index)).collect();
    names.extend((0..2).map(|index| held_out.name(index)));
    names.sort();
    assert_eq!(names, (0..6).map(|number| format!("set {number}")).collect::<Vec<_>>());
    for wrong in [0, 6] {
        let message = all.hold_out(wrong, Stream::new(1, "split")).unwrap_err().to_string();
        assert!(message.contains("held_out"), "{message}");
    }
    let wrong = Affine { centre: vec![0.0], scale: 1.0 };
    assert!(all.clone().standardised(wrong).is_err());
}

const RULE: PartsRule =
    PartsRule { choose: 3, report: 4, report_part: 1, report_on: ReportSplit::Test, seed: 1 };

fn names(sets: &CloudSource) -> Vec<String> {
    (0..sets.num_sets()).map(|set| sets.name(set)).collect()
}

fn report_names(parts: &Parts) -> Vec<String> {
    let report = parts.report.as_ref().unwrap();
    (0..report.num_sets()).map(|set| report.name(set)).collect()
}

/// Every set is in one part, reports of different parts share none, and what settings are chosen by
/// is the same for all of them and for models that report nothing.
#[test]
fn sets_are_learned_from_chosen_by_or_reported_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    write(&path, 13, NormaliseBy::None, |_| Split::Train);
    let all = CloudSource::open(&path).unwrap();
    let (_, before) = all.hold_out(3, Stream::new(1, "split")).unwrap();
    let mut reported = Vec::new();
    for report_part in 1..=2 {
        let parts = all.parts(&PartsRule { report_part, ..RULE }).unwrap();
        assert_eq!(names(&parts.choose), names(&before));
        let report = report_names(&parts);
        let mut together = [names(&parts.train), names(&parts.choose), report.clone()].concat();
        together.sort();
        together.dedup();
        assert_eq!((together.len(), report.len(), parts.train.num_sets()), (13, 4, 6));
        reported.extend(report);
    }
    reported.sort();
    reported.dedup();
    assert_eq!(reported.len(), 8, "two parts share no set");
    let none = all.parts(&PartsRule { report: 0, ..RULE }).unwrap();
    assert!(none.report.is_none() && names(&none.choose) == names(&before));
    assert_eq!(none.train.num_sets(), 10);
    for wrong in [0, 3] {
        let message = all.parts(&PartsRule { report_part: wrong, ..RULE }).unwrap_err().to_string();
        assert!(message.contains("report_part") && message.contains("from 1 to 2"), "{message}");
    }
    assert!(all.parts(&PartsRule { choose: 13, ..RULE }).is_err());
}

/// Validation and test are two things: one is chosen by, the other reported on, and never both.
#[test]
fn splits_of_a_source_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    let split = |number: usize| match number {
        0..6 => Split::Train,
        6..8 => Split::Validation,
        _ => Split::Test,
    };
    let called = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|number| format!("set {number}")).collect()
    };
    write(&path, 11, NormaliseBy::None, split);
    let all = CloudSource::open(&path).unwrap();
    let parts = all.parts(&RULE).unwrap();
    assert_eq!(names(&parts.train), called(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(names(&parts.choose), called(&[6, 7]));
    assert_eq!(report_names(&parts), called(&[8, 9, 10]));
    assert_eq!(parts.report.unwrap().description(), "the test split");
    // The published protocol reports on the validation split: what is chosen by comes from training.
    let parts = all.parts(&PartsRule { report_on: ReportSplit::Validation, ..RULE }).unwrap();
    assert_eq!(report_names(&parts), called(&[6, 7]));
    let mut learned = [names(&parts.train), names(&parts.choose)].concat();
    learned.sort();
    assert_eq!(learned, called(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(parts.choose.num_sets(), 3);
    // Without a validation split too.
    let path = folder.path().join("b.ebp");
    write(
        &path,
        9,
        NormaliseBy::None,
        |number| if number < 7 { Split::Train } else { Split::Test },
    );
    let parts = CloudSource::open(&path).unwrap().parts(&RULE).unwrap();
    assert_eq!(report_names(&parts), called(&[7, 8]));
    assert_eq!((parts.train.num_sets(), parts.choose.num_sets()), (4, 3));
}

/// Several paths are one source, a cache among them still mapped and normalised.
#[test]
fn several_caches_are_one_source() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.ebp", "b.ebp"].map(|name| folder.path().join(name));
    write(&paths[0], 2, NormaliseBy::Sphere, |_| Split::Train);
    write(&paths[1], 3, NormaliseBy::None, |number| match number {
        1 => Split::Test,
        _ => Split::Train,
    });
    let all = CloudSource::open_all(&paths).unwrap();
    assert_eq!(all.num_sets(), 5);
    let first = CloudSource::open(&paths[0]).unwrap();
    for set in 0..2 {
        assert_eq!(all.set(set), first.set(set));
    }
    for set in 0..3 {
        assert_eq!(*all.set(2 + set), cloud(set));
        assert_eq!(
            (all.name(2 + set), all.size(2 + set)),
            (format!("set {set}"), cloud(set).len() / DIM)
        );
    }
    assert_eq!(all.members(Split::Test), [3]);
    let none: [&Path; 0] = [];
    assert!(CloudSource::open_all(&none).is_err());
    let flat = folder.path().join("flat.npy");
    let square = Array::new(vec![1, 4, 2], vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]).unwrap();
    write_npy(&flat, &square, Precision::Single).unwrap();
    let message = CloudSource::open_all(&[&paths[0], &flat]).unwrap_err().to_string();
    assert!(message.contains("found 2 in `") && message.contains("flat.npy"), "{message}");
}

#[test]
fn numbers_that_are_not_finite_are_found_by_name() {
    let offsets = SetOffsets::from_sizes([1, 2]).unwrap();
    let names = vec!["first".into(), "second".into()];
    let points = vec![0.0, 1.0, 2.0, 3.0, f32::NAN, 5.0];
    let source = CloudSource::from(Clouds::new(2, points, offsets, names).unwrap());
    for result in [source.check_finite(), source.statistics().map(|_| ())] {
        let message = result.unwrap_err().to_string();
        assert_eq!(message, "`point 1 of `second`` must be finite, found NaN");
    }
}

/// Only clouds are sets of points, and a file that begins as a cache is read as one.
#[test]
fn what_is_no_cache_of_clouds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ebp");
    std::fs::write(&path, b"EBPDATA1 and nothing else").unwrap();
    assert!(matches!(CloudSource::open(&path).unwrap_err(), Error::Damaged { .. }));
    assert!(matches!(read_clouds(&path).unwrap_err(), Error::Damaged { .. }));
    let options = CacheOptions {
        kind: Kind::Images,
        dim: 1,
        value_dim: 1,
        picture_size: Some([2, 1]),
        source: "made by a test".into(),
        normalise_by: NormaliseBy::None,
    };
    let mut writer = CacheWriter::create(&path, options).unwrap();
    writer.push_bytes(&[1, 2], SetInfo::default()).unwrap();
    writer.finish().unwrap();
    let message = CloudSource::open(&path).unwrap_err().to_string();
    assert!(message.contains("of clouds"), "{message}");
}

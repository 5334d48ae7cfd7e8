//! The model as a library user meets it: every kind trained, saved, loaded and asked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ebp::data::cache::{CacheOptions, Kind, SetInfo};
use ebp::data::digits::draw_digits;
use ebp::data::normalise::NormaliseBy;
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::table::Locations;
use ebp::data::{CacheWriter, CloudSource, Clouds};
use ebp::model::{
    CompleteOptions, Data, GivenPicture, Model, PredictOptions, PriorKind, SampleOptions,
    ScoreOptions, Settings, TrainOptions,
};
use ebp::process::{DenoiseSettings, ScoreSettings};
use ebp::rng::Stream;
use ebp::train::{Event, Existing, Observer};
use ebp::{Error, IndexedSet, SetOffsets};

const CLOUDS: [&str; 9] = [
    "data.num_shapes=12",
    "data.num_points=80",
    "data.held_out=4",
    "evaluation.num_sets=4",
    "model.encoder_widths=[8, 12]",
    "model.energy_widths=[12]",
    "model.latent_dim=3",
    "model.num_proposals=40",
    "batch_size=3",
];

const CURVES: [&str; 6] = [
    "evaluation.num_sets=2",
    "model.encoder_widths=[8]",
    "model.head_widths=[8]",
    "model.energy_widths=[12]",
    "model.latent_dim=2",
    "tasks.num_sets=4",
];

fn settings(preset: &str, changes: &[&str], more: &[&str]) -> Settings {
    Settings::preset(preset, &[changes, more].concat()).unwrap()
}

fn tiny_clouds(more: &[&str]) -> Settings {
    settings("shapes", &CLOUDS, &[&["train.num_steps=4"], more].concat())
}

fn in_folder(folder: &Path) -> TrainOptions<'_> {
    TrainOptions { directory: Some(folder.into()), ..TrainOptions::default() }
}

fn two_clouds() -> CloudSource {
    let points: Vec<f32> = (0..60).map(|i| (i as f32 * 0.37).sin() * 0.3).collect();
    let offsets = SetOffsets::from_sizes([12, 8]).unwrap();
    Clouds::new(3, points, offsets, vec!["a/0".into(), "b/0".into()]).unwrap().into()
}

#[test]
fn clouds_are_trained_in_memory_saved_and_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::train(tiny_clouds(&[]), TrainOptions::default()).unwrap();
    assert!(model.directory().is_none() && model.is_finished() && model.seconds().is_some());
    let path = folder.path().join("model");
    let saved = model.save(&path).unwrap();
    assert_eq!(saved.no_codes, None);
    assert!(saved.files.contains(&"codes.npy".to_owned()), "{:?}", saved.files);
    let card = std::fs::read_to_string(path.join("README.md")).unwrap();
    assert!(card.starts_with("---\nlibrary_name: ebp\ntags:\n- energy-based-process\n- clouds\n"));
    assert!(card.contains("trained for 4 steps on `chair` with seed 1"), "{card}");
    let state = path.join("checkpoints/step-000000000004/state.safetensors");
    let header = String::from_utf8_lossy(&std::fs::read(state).unwrap()[8..60]).into_owned();
    assert!(header.starts_with("{\"__metadata__\":{\"format\":\"pt\"}"), "{header}");
    assert!(model.save(&path).unwrap_err().to_string().contains("found files in it"));

    let loaded = Model::load(&path).unwrap();
    assert!(!loaded.is_resumable() && model.is_resumable());
    let options = SampleOptions { count: 2, num_points: Some(40), ..SampleOptions::default() };
    let drawn = loaded.sample(&options).unwrap();
    assert_eq!(drawn, model.sample(&options).unwrap());
    assert_eq!((drawn.sets.len(), drawn.sets[0].len(), drawn.prior), (2, 120, "kernel"));

    let clouds = two_clouds();
    let codes = loaded.encode(&clouds).unwrap();
    assert_eq!((codes.num_sets(), codes.pooled.len()), (2, 24));
    let settings = ScoreSettings { num_draws: 4, most_draws: 4, num_proposals: 300 };
    let options = ScoreOptions { settings, ..ScoreOptions::default() };
    let scores = loaded.score(&clouds, &options).unwrap();
    assert_eq!((scores.len(), scores[1].energies.len()), (2, 8));
    let standard = ScoreOptions { prior: PriorKind::Standard, ..options };
    let by_standard = loaded.score(&clouds, &standard).unwrap();
    // Only p(θ) differs.
    assert_eq!(by_standard[0].log_densities, scores[0].log_densities);
    assert!((by_standard[0].inside.value - scores[0].inside.value).abs() > 1e-6);
    let cleaned = loaded.denoise(&clouds.set(0), &DenoiseSettings::default()).unwrap();
    assert_eq!(cleaned.len(), 36);

    let error = loaded.curves().unwrap_err();
    assert!(error.to_string().ends_with("holds a model of clouds"), "{error}");
    assert!(error.help().unwrap().contains("ebp train sines"));
    let nowhere = Model::load(folder.path()).unwrap_err();
    assert!(matches!(nowhere, Error::Refused { .. }) && nowhere.help().is_some());
}

/// A cache is learned from where it lies, with the same codes and draws to the last bit as its clouds in
/// memory have.
#[test]
fn a_cache_trains_as_an_array_of_its_clouds_does() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, array) = (folder.path().join("a.ebp"), folder.path().join("a.npy"));
    let mut points = vec![0.0; 9 * 30 * 3];
    Stream::new(1, "clouds").fill_normal(0, 0, &mut points);
    let options = CacheOptions {
        kind: Kind::Clouds,
        dim: 3,
        value_dim: 3,
        picture_size: None,
        source: "made by a test".into(),
        normalise_by: NormaliseBy::None,
    };
    let mut writer = CacheWriter::create(&cache, options).unwrap();
    for (number, cloud) in points.chunks_exact(90).enumerate() {
        let info = SetInfo { name: number.to_string(), ..SetInfo::default() };
        writer.push(cloud, info).unwrap();
    }
    writer.finish().unwrap();
    let clouds = Array::new(vec![9, 30, 3], points).unwrap();
    write_npy(&array, &clouds, Precision::Single).unwrap();
    let [mapped, in_memory] = [&cache, &array].map(|path| {
        let source = format!("data.source={:?}", path.display().to_string());
        let model = Model::train(tiny_clouds(&[&source]), TrainOptions::default()).unwrap();
        let options = SampleOptions { count: 2, num_points: Some(20), ..SampleOptions::default() };
        (model.encode(&CloudSource::open(path).unwrap()).unwrap(), model.sample(&options).unwrap())
    });
    assert_eq!(mapped.0.num_sets(), 9);
    assert_eq!(mapped, in_memory);
}

#[test]
fn training_goes_on_from_weights_of_the_same_sizes_only() {
    let folder = tempfile::tempdir().unwrap();
    let (first, weights) = (folder.path().join("first"), folder.path().join("weights"));
    let model = Model::train(tiny_clouds(&[]), in_folder(&first)).unwrap();
    model.save(&weights).unwrap();
    let clouds = two_clouds();
    let codes = model.encode(&clouds).unwrap();
    // No step: what comes out is what went in, from a run or from exported weights.
    for from in [&first, &weights] {
        let options = TrainOptions { from: Some(from.clone()), ..TrainOptions::default() };
        let none = tiny_clouds(&["train.num_steps=0", "seed=9"]);
        let same = Model::train(none, options).unwrap();
        assert_eq!(same.encode(&clouds).unwrap(), codes);
        let options = TrainOptions { from: Some(from.clone()), ..TrainOptions::default() };
        let other = tiny_clouds(&["data.source=lamp", "seed=9"]);
        let tuned = Model::train(other, options).unwrap();
        assert_ne!(tuned.encode(&clouds).unwrap(), codes);
    }
    let refused = |settings: Settings| {
        let options = TrainOptions { from: Some(weights.clone()), ..TrainOptions::default() };
        let error = Model::train(settings, options).unwrap_err();
        (error.to_string(), error.help().unwrap_or_default().to_owned())
    };
    let (message, help) = refused(tiny_clouds(&["model.latent_dim=4"]));
    assert!(message.starts_with("the weights to start from do not fit"), "{message}");
    assert!(help.contains("`model.latent_dim` was 3, now 4"), "{help}");
    let (message, help) = refused(tiny_clouds(&["model.energy_widths=[16]"]));
    assert!(message.contains("must be of shape"), "{message}");
    assert!(help.contains("`model.energy_widths` was [12], now [16]"), "{help}");
    let (message, _) = refused(settings("sines", &CURVES, &["train.num_steps=2"]));
    assert!(message.ends_with("holds a model of clouds, these settings are for curves"));
}

#[test]
fn curves_and_all_rivals_are_trained_kept_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let context = IndexedSet::new(1, 1, vec![-1.0, 0.5], vec![0.3, -0.4]).unwrap();
    let at = Locations {
        names: vec!["t".into()],
        location_dim: 1,
        locations: vec![0.0, 1.0],
        targets: None,
    };
    let options = PredictOptions { num_values: 50, num_samples: 3, ..PredictOptions::default() };
    let small = [
        "neural.encoder_widths=[8]",
        "neural.representation_dim=8",
        "neural.decoder_widths=[8]",
        "neural.embedding_widths=[8]",
        "implicit.hidden_widths=[8]",
        "exact.num_restarts=0",
        "tasks.num_sets=4",
    ];
    for (preset, name) in [
        ("sines", "ebp-importance"),
        ("rival/cnp", "cnp"),
        ("rival/np", "np"),
        ("rival/anp", "anp"),
        ("rival/vip", "vip"),
        ("rival/gp", "gp"),
        ("rival/tp", "student-t"),
    ] {
        let steps = if name == "gp" || name == "student-t" { 1 } else { 3 };
        let steps = format!("train.num_steps={steps}");
        let path = folder.path().join(name);
        let chosen = settings(preset, &CURVES, &[&small[..], &[&steps]].concat());
        let model = Model::train(chosen, in_folder(&path)).unwrap();
        assert_eq!(model.name(), name);
        let forecast = model.predict(&context, &at, &options).unwrap();
        assert_eq!((forecast.locations.len(), forecast.samples.len()), (2, 3), "{name}");
        assert_eq!(forecast.locations[0].quantiles.len(), 5);
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded.predict(&context, &at, &options).unwrap(), forecast, "{name}");
        let saved = folder.path().join(format!("{name}-saved"));
        loaded.save(&saved).unwrap();
        let again = Model::load(&saved).unwrap();
        assert_eq!(again.predict(&context, &at, &options).unwrap(), forecast, "{name}");
    }
}

/// Raises a flag after some steps.
#[derive(Debug)]
struct StopAfter<'a> {
    step: u64,
    stop: &'a AtomicBool,
}

impl Observer for StopAfter<'_> {
    fn observe(&mut self, event: &Event<'_>) -> ebp::Result<()> {
        if let Event::Step(numbers) = event
            && numbers.step + 1 == self.step
        {
            self.stop.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[test]
fn an_interrupted_rival_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    let small = ["neural.encoder_widths=[8]", "neural.representation_dim=8", "train.num_steps=9"];
    let chosen = || settings("rival/np", &small, &["tasks.num_sets=2"]);
    Model::train(chosen(), in_folder(&whole)).unwrap();

    let stop = AtomicBool::new(false);
    let mut observer = StopAfter { step: 4, stop: &stop };
    let options =
        TrainOptions { observer: Some(&mut observer), stop: Some(&stop), ..in_folder(&stopped) };
    let error = Model::train(chosen(), options).unwrap_err();
    assert!(matches!(error, Error::Interrupted { step: 4 }), "{error}");
    assert_eq!(Model::load(&stopped).unwrap().step(), 4);
    let refused = Model::train(chosen(), in_folder(&stopped)).unwrap_err();
    assert!(matches!(refused, Error::Occupied { .. }), "{refused}");
    let options = TrainOptions { existing: Some(Existing::Resume), ..in_folder(&stopped) };
    let model = Model::train(chosen(), options).unwrap();
    assert!(model.is_finished());
    let state = |run: &Path| {
        let name = std::fs::read_to_string(run.join("checkpoints/last")).unwrap();
        let file = run.join("checkpoints").join(name.trim()).join("state.safetensors");
        std::fs::read(file).unwrap()
    };
    assert_eq!(state(&whole), state(&stopped));
    let metrics = |run: &Path| std::fs::read(run.join("metrics.jsonl")).unwrap();
    assert_eq!(metrics(&whole), metrics(&stopped));
}

#[test]
fn energies_of_whole_sets_are_sampled_too() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = settings("sticks", &["train.num_steps=2", "data.num_sets=3"], &[]);
    let model = Model::train(chosen, in_folder(folder.path())).unwrap();
    let options = SampleOptions { count: 3, num_points: Some(6), ..SampleOptions::default() };
    let drawn = Model::load(folder.path()).unwrap().sample(&options).unwrap();
    assert_eq!(drawn, model.sample(&options).unwrap());
    assert_eq!((drawn.sets.len(), drawn.sets[0].len(), drawn.dim), (3, 12, 2));
    let energies = model.set_energies().unwrap().energies(&drawn.sets.concat(), 6).unwrap();
    assert!(energies.len() == 3 && energies.iter().all(|energy| energy.is_finite()));
}

#[test]
fn what_cannot_be_learned_from_is_refused_with_a_way_out() {
    let error = Data::load(&settings("shapes", &["data.source=nowhere"], &[])).unwrap_err();
    assert_eq!(error.to_string(), "there are no clouds `nowhere`");
    assert!(error.help().unwrap().contains("airplane"));
    let error = Data::load(&settings("sines", &["data.source=spiral"], &[])).unwrap_err();
    assert_eq!(error.help(), Some("or give the path of a CSV file"));
    assert_eq!(
        Model::load("models").unwrap_err().help().map(|help| help.contains("run")),
        Some(true)
    );
}

/// `models/chairs` is what docs/start.md draws from.
#[test]
fn the_model_in_the_repository_can_be_asked() {
    let chairs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/chairs");
    let model = Model::load(chairs).unwrap();
    assert_eq!(model.settings().kind(), "clouds");
    let options = SampleOptions { count: 1, num_points: Some(64), ..SampleOptions::default() };
    assert_eq!(model.sample(&options).unwrap().sets[0].len(), 192);
}

/// `models/digits` fills in nine digits one by one, given a quarter of their pixels: nearer to them than the
/// best single grey, although it was trained on written digits and these are drawn.
#[test]
fn the_digits_in_the_repository_are_completed() {
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/digits");
    let model = Model::load(digits).unwrap();
    let pictures = model.pictures().unwrap();
    assert_eq!((pictures.size().width, pictures.size().channels), (28, 1));
    let (images, _) = draw_digits(28, 0, 9, 3).unwrap();
    let (mut error, mut of_one_grey) = (0.0, 0.0);
    for number in 0..9 {
        let levels = images.image(number);
        let mut uniforms = vec![0.0; levels.len()];
        Stream::new(number as u64, "mask").fill_uniform(0, 0, &mut uniforms);
        let mask: Vec<bool> = uniforms.iter().map(|u| *u < 0.25).collect();
        let given = given(28, levels, &mask);
        let options = CompleteOptions { count: 1, ..CompleteOptions::default() };
        let completed = &pictures.complete(&given, &options).unwrap().pictures[0];
        let missing: Vec<usize> = (0..levels.len()).filter(|&place| !mask[place]).collect();
        let squares = |guess: &dyn Fn(usize) -> f64| -> f64 {
            missing.iter().map(|&place| (guess(place) - f64::from(levels[place])).powi(2)).sum()
        };
        let mean = missing.iter().map(|&place| f64::from(levels[place])).sum::<f64>()
            / missing.len() as f64;
        error += squares(&|place| f64::from(completed[place]));
        of_one_grey += squares(&|_| mean);
    }
    assert!(error < 0.5 * of_one_grey, "{error} {of_one_grey}");
}

/// `models/faces` reads colours of 32 × 32 and fills in a hole; what is known stays.
#[test]
fn the_faces_in_the_repository_can_be_asked() {
    const SIDE: usize = 32;
    let faces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/faces");
    let model = Model::load(faces).unwrap();
    let pictures = model.pictures().unwrap();
    assert_eq!((pictures.size().width, pictures.size().channels), (SIDE, 3));
    let is_hole =
        |place: usize| (8..24).contains(&(place / SIDE)) && (8..24).contains(&(place % SIDE));
    let mask: Vec<bool> = (0..SIDE * SIDE).map(|place| !is_hole(place)).collect();
    // Skin, lighter to the right.
    let levels: Vec<u8> = (0..SIDE * SIDE)
        .flat_map(|place| {
            [200, 150, 120].map(|level: u8| level - 40 + u8::try_from(place % SIDE).unwrap())
        })
        .collect();
    let given = GivenPicture { width: SIDE, channels: 3, levels, mask, notes: Vec::new() };
    let options = CompleteOptions { count: 2, ..CompleteOptions::default() };
    let found = pictures.complete(&given, &options).unwrap();
    assert_eq!(found.energies.len(), 256);
    for completed in &found.pictures {
        for place in (0..SIDE * SIDE).filter(|&place| !is_hole(place)) {
            assert_eq!(
                completed[3 * place..][..3],
                given.levels[3 * place..][..3],
                "known pixels stay"
            );
        }
    }
}

/// What stands at missing pixels is not looked at.
fn given(width: usize, levels: &[u8], mask: &[bool]) -> GivenPicture {
    GivenPicture {
        width,
        channels: 1,
        levels: levels.iter().zip(mask).map(|(x, known)| if *known { *x } else { 77 }).collect(),
        mask: mask.to_vec(),
        notes: Vec::new(),
    }
}

/// Nine digits side by side are completed in tiles: known pixels stay, and neighbours are as alike across the
/// borders of tiles as elsewhere. What stands in a tile is no centred digit, so that nothing is asked of the error.
#[test]
fn a_picture_larger_than_the_model_is_completed_in_tiles_without_seams() {
    const SIDE: usize = 84;
    let digits = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/digits");
    let model = Model::load(digits).unwrap();
    let pictures = model.pictures().unwrap();
    let (images, _) = draw_digits(28, 0, 9, 3).unwrap();
    let level = |x: usize, y: usize| images.image(y / 28 * 3 + x / 28)[y % 28 * 28 + x % 28];
    let levels: Vec<u8> = (0..SIDE * SIDE).map(|place| level(place % SIDE, place / SIDE)).collect();
    let mut uniforms = vec![0.0; SIDE * SIDE];
    Stream::new(5, "mask").fill_uniform(0, 0, &mut uniforms);
    let mask: Vec<bool> = uniforms.iter().map(|u| *u < 0.25).collect();
    let given = given(SIDE, &levels, &mask);
    let options = CompleteOptions { count: 1, ..CompleteOptions::default() };
    let mut seen = Vec::new();
    let found =
        pictures.complete_watched(&given, &options, &mut |done, of| seen.push((done, of))).unwrap();
    let missing = given.missing().len();
    assert!(seen.is_sorted() && seen.len() == 25 && seen[24] == (missing, missing), "{seen:?}");
    assert_eq!((found.variances.len(), found.energies.len()), (missing, missing));
    // −log p of a level that is certain to the last digit is 0.
    assert!(found.energies.iter().all(|energy| energy.is_finite() && *energy >= 0.0));
    let completed = &found.pictures[0];
    for place in (0..SIDE * SIDE).filter(|&place| mask[place]) {
        assert_eq!(completed[place], levels[place], "known pixels stay");
    }

    // Tiles begin at 0, 14, …, 56; what is kept of them meets in the middle of what they share.
    let change = |levels: &[u8], a: usize, b: usize| f64::from(levels[a].abs_diff(levels[b]));
    let (mut across, mut elsewhere) = (Vec::new(), Vec::new());
    for y in 0..SIDE {
        for x in 1..SIDE {
            for (a, b) in [(y * SIDE + x - 1, y * SIDE + x), ((x - 1) * SIDE + y, x * SIDE + y)] {
                if !(mask[a] && mask[b]) {
                    let more = change(completed, a, b) - change(&levels, a, b);
                    if [21, 35, 49, 63].contains(&x) { &mut across } else { &mut elsewhere }
                        .push(more);
                }
            }
        }
    }
    let law = |changes: &[f64]| {
        let count = changes.len() as f64;
        let mean = changes.iter().sum::<f64>() / count;
        (mean, changes.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count / count)
    };
    let ((at_borders, first), (inside, second)) = (law(&across), law(&elsewhere));
    let error = (first + second).sqrt();
    assert!((at_borders - inside).abs() < 4.0 * error, "{at_borders} {inside} {error}");
}

//! Sets in memory teach what the same sets in a file teach: the weights are equal to the last bit.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::fs;
use std::path::Path;

use ebp::data::Clouds;
use ebp::data::events::{events_bytes, read_events};
use ebp::data::image::{ImageOptions, read_images};
use ebp::data::npy::{Array, Precision, write_npy};
use ebp::data::pattern::{PointPattern, pattern_bytes};
use ebp::data::table::{ColumnChoice, read_table};
use ebp::model::{Data, Given, Model, Settings, TrainOptions};
use ebp::pattern::{Events, Hawkes, Pattern, Window};
use ebp::rng::Stream;
use ebp::{Error, SetOffsets};

/// The weights after training.
fn weights(settings: Settings, data: &Data) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = Model::train_on(settings, data, TrainOptions::default()).unwrap();
    model.save(&path).unwrap();
    let step = fs::read_dir(path.join("checkpoints")).unwrap();
    let step = step.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    fs::read(step.join("state.safetensors")).unwrap()
}

fn assert_alike(preset: &str, changes: &[&str], source: &Path, given: Given) {
    let with = |source: &str| {
        let source = format!("data.source={source:?}");
        Settings::preset(preset, &[changes, &[&source]].concat()).unwrap()
    };
    let (named, memory) = (with(&source.display().to_string()), with("memory"));
    let from_file = Data::load(&named).unwrap();
    let from_memory = Data::given(&memory, given).unwrap();
    assert!(weights(named, &from_file) == weights(memory, &from_memory), "{preset}");
}

fn normals(count: usize) -> Vec<f32> {
    let mut numbers = vec![0.0; count];
    Stream::new(1, "given").fill_normal(0, 0, &mut numbers);
    numbers
}

fn clouds() -> Clouds {
    let names = (0..9).map(|number: usize| number.to_string()).collect();
    Clouds::new(3, normals(9 * 20 * 3), SetOffsets::uniform(9, 20).unwrap(), names).unwrap()
}

const SMALL: [&str; 4] = [
    "model.encoder_widths=[8, 12]",
    "model.energy_widths=[12]",
    "model.latent_dim=3",
    "train.num_steps=3",
];

#[test]
fn clouds_in_memory_teach_what_their_file_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clouds.npy");
    let array = Array::new(vec![9, 20, 3], clouds().points().to_vec()).unwrap();
    write_npy(&path, &array, Precision::Single).unwrap();
    let more = ["data.held_out=3", "model.num_proposals=40", "batch_size=2"];
    assert_alike("shapes", &[&SMALL[..], &more].concat(), &path, Given::Clouds(clouds()));
    let few = ["train.num_steps=2", "data.num_training=6", "data.set_size=5", "data.sizes=fixed"];
    assert_alike("sticks", &few, &path, Given::Clouds(clouds()));
}

#[test]
fn curves_in_memory_teach_what_their_table_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let rows = normals(200);
    let rows: Vec<String> =
        rows.chunks(2).enumerate().map(|(i, r)| format!("{},{},{}", i / 5, r[0], r[1])).collect();
    fs::write(&path, format!("set,t,x\n{}\n", rows.join("\n"))).unwrap();
    let sets = read_table(&path, &ColumnChoice::default()).unwrap();
    let more = ["model.head_widths=[8]", "tasks.num_sets=4", "evaluation.num_sets=2"];
    assert_alike("table", &[&SMALL[..], &more].concat(), &path, Given::Curves(sets));
}

#[test]
fn pictures_in_memory_teach_what_their_folder_teaches() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..16_u8 {
        let pixel = |x: u32, y: u32| image::Luma([number * 11 + u8::try_from(x * y).unwrap()]);
        let picture = image::GrayImage::from_fn(9, 8, pixel);
        picture.save(folder.path().join(format!("{number:02}.png"))).unwrap();
    }
    let images = read_images(folder.path(), &ImageOptions::default()).unwrap();
    let small = [
        "train.num_steps=2",
        "data.side=0",
        "data.num_training=0",
        "data.num_test=4",
        "tasks.num_pictures=4",
        "tasks.max_context=20",
    ];
    assert_alike("digits", &small, folder.path(), Given::Pictures(images));
}

#[test]
fn documents_in_memory_teach_what_their_file_teaches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.feat");
    let document = |number: u32| vec![(number % 4, 2), (4 + number % 3, 1 + number % 5)];
    let documents: Vec<Vec<(u32, u32)>> = (0..30).map(document).collect();
    // svmlight counts words from 1.
    let line = |document: &Vec<(u32, u32)>| {
        let words = document.iter().map(|(word, count)| format!(" {}:{count}", word + 1));
        format!("0{}\n", words.collect::<String>())
    };
    fs::write(&path, documents.iter().map(line).collect::<String>()).unwrap();
    let given = Given::Documents { documents, vocabulary: None, labels: Vec::new() };
    assert_alike("lda", &["train.num_steps=5"], &path, given);
}

#[test]
fn patterns_and_events_in_memory_teach_what_their_files_teach() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.dat");
    let points: Vec<[f64; 2]> = normals(80)
        .chunks(2)
        .map(|pair| [f64::from(pair[0]).rem_euclid(1.0), f64::from(pair[1]).rem_euclid(1.0)])
        .collect();
    let pattern = PointPattern {
        title: "points".into(),
        window: [[0.0, 1.0], [0.0, 1.0]],
        points: points.clone(),
    };
    fs::write(&path, pattern_bytes(&pattern)).unwrap();
    let given = Given::Patterns(vec![Pattern::new(Window::unit(), points).unwrap()]);
    assert_alike("strauss", &[], &path, given);

    let path = folder.path().join("times.txt");
    let law = Hawkes { background: 0.5, branching: 0.6, decay: 2.0 };
    let drawn = law.simulate(300.0, Stream::new(1, "events")).unwrap();
    fs::write(&path, events_bytes(drawn.times())).unwrap();
    let times = read_events(&path).unwrap();
    let end = times[times.len() - 1];
    assert_alike("hawkes", &[], &path, Given::Events(Events::new(times, end).unwrap()));
}

#[test]
fn sets_of_another_kind_are_refused() {
    for (preset, wanted) in [("sines", "curves"), ("hawkes", "patterns"), ("gplvm", "latents")] {
        let settings = Settings::preset(preset, &[] as &[&str]).unwrap();
        let error = Data::given(&settings, Given::Clouds(clouds())).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }));
        let expected = format!("these settings are for {wanted}, the sets in memory are clouds");
        assert_eq!(error.to_string(), expected);
    }
    let settings = Settings::preset("strauss", &[] as &[&str]).unwrap();
    let events = Given::Events(Events::new(vec![1.0], 2.0).unwrap());
    let error = Data::given(&settings, events).unwrap_err().to_string();
    assert!(error.starts_with("these settings are for the process `strauss`"), "{error}");
}

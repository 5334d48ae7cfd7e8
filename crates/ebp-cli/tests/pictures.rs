//! `ebp train digits`, `complete` and `reproduce completion` as a user meets them.

mod program;

use std::fs;
use std::path::Path;

use serde_json::Value;

use program::{TINY_PICTURES as TINY, failure, good, refusal, timeless};

fn with_tiny<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let settings = TINY.iter().flat_map(|setting| ["--set", setting]);
    arguments.iter().copied().chain(settings).collect()
}

fn train(folder: &Path, out: &str) -> Value {
    let arguments =
        ["train", "digits", "-q", "--json", "--set", "train.num_steps=12", "--out", out];
    serde_json::from_str(&good(folder, &with_tiny(&arguments))).expect("JSON")
}

/// A grey picture of 8 × 8 whose right half is transparent, and a mask that says the same.
fn write_pictures(folder: &Path) {
    let picture = image::GrayAlphaImage::from_fn(8, 8, |x, y| {
        let level = if x == y { 255 } else { 0 };
        image::LumaA([level, if x < 4 { 255 } else { 0 }])
    });
    picture.save(folder.join("torn.png")).expect("a picture");
    let plain = image::GrayImage::from_fn(8, 8, |x, y| image::Luma([if x == y { 255 } else { 0 }]));
    plain.save(folder.join("plain.png")).expect("a picture");
    let mask = image::GrayImage::from_fn(8, 8, |x, _| image::Luma([if x < 4 { 0 } else { 255 }]));
    mask.save(folder.join("mask.png")).expect("a mask");
    let black = image::GrayImage::new(8, 8);
    black.save(folder.join("black.png")).expect("a mask");
    let large = image::GrayImage::new(20, 10);
    large.save(folder.join("large.png")).expect("a picture");
}

#[test]
fn drawn_digits_become_a_model_that_completes_pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let report = train(folder, "run");
    assert_eq!(report["model"], "ebp-exact");
    assert_eq!(report["scores"].as_array().map(Vec::len), Some(2));
    assert!(report["scores"][0][1]["bits"]["mean"].as_f64().is_some_and(|bits| bits < 9.0));
    assert!(folder.join("run/plots/completions.png").is_file());

    write_pictures(folder);
    let complete = |extra: &[&str]| {
        let mut arguments = vec!["complete", "run", "--json", "-k", "3"];
        arguments.extend(extra);
        serde_json::from_str::<Value>(&good(folder, &arguments)).expect("JSON")
    };
    let masked = complete(&["--image", "plain.png", "--mask", "mask.png", "--out", "a"]);
    assert_eq!(masked["missing_pixels"], 32);
    assert!(masked["energy"].as_f64().is_some_and(|energy| energy > 0.0));
    let completed = image::open(folder.join("a/completion-2.png")).expect("a picture").to_luma8();
    for (x, y, pixel) in completed.enumerate_pixels().filter(|(x, _, _)| *x < 4) {
        assert_eq!(pixel.0[0], if x == y { 255 } else { 0 }, "known pixels stay");
    }
    for name in ["grid.png", "energy.png", "std-dev.png", "completion-3.png"] {
        assert!(folder.join("a").join(name).is_file(), "{name}");
    }
    // Transparency says the same as the mask, and what is hidden does not matter.
    complete(&["--image", "torn.png", "--out", "b"]);
    let bytes = |path: &str| fs::read(folder.join(path)).expect("a file");
    assert_eq!(bytes("a/completion-1.png"), bytes("b/completion-1.png"));
    good(folder, &["export", "run", "--out", "model"]);
    good(folder, &["complete", "model", "--image", "torn.png", "--out", "g", "-k", "3"]);
    assert_eq!(bytes("a/completion-1.png"), bytes("g/completion-1.png"), "as the run does");
    complete(&["--image", "torn.png", "--out", "c", "--grain", "--seed", "4"]);
    assert_ne!(bytes("a/completion-1.png"), bytes("c/completion-1.png"));
    complete(&["--image", "torn.png", "--out", "d", "--rounds", "3"]);
    let inverted = ["--image", "plain.png", "--mask", "mask.png", "--invert-mask", "--out", "e"];
    complete(&inverted);
    let picture = ["--image", "large.png", "--mask", "mask.png", "--resize", "--out", "f"];
    assert_eq!(complete(&picture)["known_pixels"], 32);

    let refuse = |extra: &[&str]| refusal(folder, &[&["complete", "run"], extra].concat());
    let steps = refuse(&["--image", "torn.png", "--langevin", "5"]);
    assert!(steps.contains("`--langevin` is for models over (x, t)"), "{steps}");
    assert!(refuse(&["--image", "plain.png"]).contains("no transparent pixels"));
    let wrong = refuse(&["--image", "large.png", "--mask", "mask.png"]);
    assert!(wrong.contains("must have 20 x 10 pixels as `large.png`, found 8 x 8"), "{wrong}");
    assert!(wrong.contains("`--resize` brings picture and mask"), "{wrong}");
    let nothing = refuse(&["--image", "plain.png", "--mask", "black.png"]);
    assert!(nothing.contains("nothing is missing"), "{nothing}");
    let turned = ["--image", "plain.png", "--mask", "black.png", "--invert-mask"];
    assert!(refuse(&turned).contains("nothing is known"));
    let elsewhere = ["complete", "nowhere", "--image", "plain.png"];
    assert!(refusal(folder, &elsewhere).contains("there is no model in `nowhere`"));
}

#[test]
fn a_run_of_pictures_is_the_same_for_any_threads_and_refuses_what_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for threads in ["1", "2"] {
        let base = ["train", "digits", "-q", "--set", "train.num_steps=6", "--threads", threads];
        let arguments = [&base[..], &["--out", threads]].concat();
        good(folder, &with_tiny(&arguments));
    }
    let metrics = |run: &str| fs::read(folder.join(run).join("metrics.jsonl")).expect("metrics");
    assert_eq!(metrics("1"), metrics("2"));
    let missing = refusal(folder, &["train", "mnist"]);
    assert!(missing.contains("there are no pictures in `mnist`"), "{missing}");
    let unknown = with_tiny(&["train", "digits", "--set", "evaluation.parts=[\"half\"]", "-q"]);
    let mut unknown = unknown;
    unknown.extend(["--set", "evaluation.parts=[\"half\"]", "--set", "train.num_steps=1"]);
    assert!(refusal(folder, &unknown).contains("found `half`"));
}

#[test]
fn all_models_of_completion_are_trained_for_the_same_time_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = with_tiny(&[
        "reproduce",
        "completion",
        "-q",
        "--json",
        "--out",
        "all",
        "--models",
        "ebp-exact,cnp,np,anp",
        "--set",
        "train.num_steps=4",
    ]);
    let run = || timeless(serde_json::from_str(&good(folder, &arguments)).expect("JSON"));
    let report = run();
    let names: Vec<_> = report["outcomes"]
        .as_array()
        .expect("outcomes")
        .iter()
        .map(|outcome| outcome["model"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names, ["ebp-exact", "cnp", "np", "anp"]);
    assert!(folder.join("all/anp.png").is_file());
    // Every model leaves its curves.
    good(folder, &["plot", "all/anp", "--out", "curves.png"]);
    assert!(folder.join("curves.png").is_file());
    // What is kept is not trained again.
    assert_eq!(run(), report);
    // The model of the experiment completes pictures.
    write_pictures(folder);
    good(folder, &["complete", "all/ebp-exact", "--image", "torn.png"]);
    // A budget in place of steps; the plan is kept, so that the same steps are taken again.
    let timed = with_tiny(&["reproduce", "completion", "-q", "--json", "--out", "timed"]);
    let timed = [&timed[..], &["--models", "ebp-exact", "--seconds", "1"]].concat();
    let report: Value = serde_json::from_str(&good(folder, &timed)).expect("JSON");
    let steps = report["outcomes"][0]["steps"].as_u64().expect("a count");
    fs::remove_file(folder.join("timed/ebp-exact.json")).expect("a file");
    let again: Value = serde_json::from_str(&good(folder, &timed)).expect("JSON");
    assert_eq!(again["outcomes"][0]["steps"].as_u64(), Some(steps));
    assert_eq!(again["outcomes"][0]["scores"], report["outcomes"][0]["scores"]);
    let unknown = ["reproduce", "completion", "--models", "gan"];
    assert!(refusal(folder, &unknown).contains("there is no model `gan`"));
}

/// Pictures as people have them: JPEG, colours, larger than the model, damaged.
#[test]
fn any_picture_is_completed_or_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    train(folder, "run");
    write_pictures(folder);
    let complete = |extra: &[&str]| {
        let arguments = [&["complete", "run", "--json", "-k", "2"], extra].concat();
        serde_json::from_str::<Value>(&good(folder, &arguments)).expect("JSON")
    };
    let opened = |path: &str| image::open(folder.join(path)).expect("a picture").to_rgb8();

    // A photograph with colours, 21 x 17, and a hole in it that is larger than the model's 8 x 8.
    let photograph = image::RgbImage::from_fn(21, 17, |x, y| {
        image::Rgb([12 * x, 15 * y, 255 - 5 * x].map(|level| u8::try_from(level).expect("a level")))
    });
    photograph.save(folder.join("photograph.jpg")).expect("a picture");
    let is_hole = |x: u32, y: u32| (4..16).contains(&x) && (3..14).contains(&y);
    let hole = image::GrayImage::from_fn(21, 17, |x, y| {
        image::Luma([if is_hole(x, y) { 255 } else { 0 }])
    });
    hole.save(folder.join("hole.png")).expect("a mask");
    let asked = ["--image", "photograph.jpg", "--mask", "hole.png"];
    let report = complete(&[&asked[..], &["--out", "tiles"]].concat());
    assert_eq!((&report["missing_pixels"], &report["known_pixels"]), (&132.into(), &225.into()));
    let notes = report["notes"].to_string();
    assert!(notes.contains("the picture has colours and the model knows greys"), "{notes}");
    let grey = image::open(folder.join("photograph.jpg")).expect("a picture").to_rgb8();
    let (first, second) = (opened("tiles/completion-1.png"), opened("tiles/completion-2.png"));
    assert_eq!(first.dimensions(), (21, 17));
    for (x, y, pixel) in first.enumerate_pixels().filter(|(x, y, _)| !is_hole(*x, *y)) {
        let weights = [0.299, 0.587, 0.114];
        let level: f64 =
            grey.get_pixel(x, y).0.iter().zip(weights).map(|(c, w)| w * f64::from(*c)).sum();
        assert!((f64::from(pixel.0[0]) - level).abs() < 1.0, "known pixels stay");
        assert_eq!(pixel, second.get_pixel(x, y));
    }
    // The same seed is the same picture, also on more threads.
    complete(&[&asked[..], &["--out", "again", "--threads", "2"]].concat());
    assert_eq!(opened("again/completion-2.png"), second);
    complete(&[&asked[..], &["--out", "rounds", "--rounds", "2"]].concat());

    // A mask in JPEG is grey around its edges; a mask with transparency paints what it covers.
    let mask = image::open(folder.join("hole.png")).expect("a mask").to_luma8();
    let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(
        fs::File::create(folder.join("hole.jpg")).expect("a file"),
        95,
    );
    mask.write_with_encoder(encoder).expect("a mask");
    let from_jpeg = complete(&["--image", "photograph.jpg", "--mask", "hole.jpg", "--out", "j"]);
    assert_eq!(from_jpeg["missing_pixels"], 132);
    let painted = image::GrayAlphaImage::from_fn(21, 17, |x, y| {
        image::LumaA([255, if is_hole(x, y) { 255 } else { 0 }])
    });
    painted.save(folder.join("painted.png")).expect("a mask");
    let from_paint =
        complete(&["--image", "photograph.jpg", "--mask", "painted.png", "--out", "p"]);
    assert_eq!(from_paint["missing_pixels"], 132);

    // A camera that was held upright says so in its file: what a viewer shows is what counts.
    let bytes = fs::read(folder.join("photograph.jpg")).expect("a file");
    let exif =
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    fs::write(folder.join("upright.jpg"), [&bytes[..2], exif, &bytes[2..]].concat())
        .expect("a file");
    let upright = image::imageops::rotate90(&mask);
    upright.save(folder.join("upright.png")).expect("a mask");
    let turned = complete(&["--image", "upright.jpg", "--mask", "upright.png", "--out", "upright"]);
    assert_eq!(turned["missing_pixels"], 132);
    assert_eq!(opened("upright/completion-1.png").dimensions(), (17, 21));

    // Resizing: two sizes are brought to one, and what is hidden leaves no trace in what is known.
    let half = |hidden: u8| {
        let picture = image::GrayImage::from_fn(16, 16, |x, _| {
            image::Luma([if x < 8 { 200 } else { hidden }])
        });
        picture.save(folder.join("half.png")).expect("a picture");
        complete(&["--image", "half.png", "--mask", "mask.png", "--resize", "--out", "half"]);
        opened("half/completion-1.png")
    };
    let resized = half(0);
    assert_eq!((resized.dimensions(), resized.get_pixel(3, 3).0[0]), ((8, 8), 200));
    assert_eq!(resized, half(90));

    let refuse = |extra: &[&str]| refusal(folder, &[&["complete", "run"], extra].concat());
    let small =
        image::GrayAlphaImage::from_fn(6, 9, |x, _| image::LumaA([0, if x < 3 { 255 } else { 0 }]));
    small.save(folder.join("small.png")).expect("a picture");
    let found = refuse(&["--image", "small.png"]);
    assert!(found.contains("must have at least 8 x 8 pixels"), "{found}");
    assert!(found.contains("found 6 x 9") && found.contains("`--resize` brings"), "{found}");
    let found = refuse(&[&asked[..], &["--tile", "16"]].concat());
    assert!(found.contains("its tiles have 8 x 8 pixels, `--tile 16` asks for"), "{found}");

    // Files that are no pictures any more.
    let failed = |extra: &[&str]| failure(folder, &[&["complete", "run"], extra].concat());
    for (name, flag) in [("photograph.jpg", "--image"), ("hole.png", "--mask")] {
        let whole = fs::read(folder.join(name)).expect("a file");
        fs::write(folder.join("cut"), &whole[..whole.len() / 3]).expect("a file");
        let other =
            if flag == "--image" { ["--mask", "hole.png"] } else { ["--image", "photograph.jpg"] };
        let found = failed(&[flag, "cut", other[0], other[1]]);
        assert!(
            found.contains(&format!("{flag}: cut, byte 0: expected a picture in PNG or JPEG")),
            "{found}"
        );
        assert!(found.contains("is the file whole?"), "{found}");
    }
    fs::write(folder.join("words.png"), "not a picture").expect("a file");
    assert!(failed(&["--image", "words.png"]).contains("expected a picture in PNG or JPEG"));
    assert!(failed(&["--image", "nowhere.png"]).contains("cannot read `nowhere.png`"));
}

/// The other energy-based processes, with the row-wise sampler of the paper: trained, and asked with
/// Langevin steps that leave the known pixels alone.
#[test]
fn models_over_values_and_places_complete_by_langevin_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write_pictures(folder);
    let published = [
        "element_model.sampler.kind=block",
        "element_model.sampler.uniform_share=0",
        "element_model.sampler.around_share=0",
        "element_model.sampler.negative_phase=plain",
    ];
    let runs: [(&str, &[&str]); 2] =
        [("importance", &["element_model.proposal.kind=around"]), ("ade", &published)];
    for (process, extra) in runs {
        let setting = format!("process={process}");
        let small = [
            "element_model.encoder_widths=[8]",
            "element_model.head_widths=[8]",
            "element_model.energy_widths=[8]",
            "element_model.latent_dim=2",
            "element_model.sampler.hyper_widths=[8]",
            "element_model.sampler.num_draws=2",
            "element_model.sampler.block_elements=8",
            "evaluation.parts=[\"10\"]",
            "train.num_steps=3",
            &setting,
        ];
        let settings = small.iter().chain(extra).flat_map(|setting| ["--set", setting]);
        let mut arguments = with_tiny(&["train", "digits", "-q", "--out", process]);
        arguments.extend(settings);
        good(folder, &arguments);
        for (name, how) in [("a", vec!["--langevin", "20"]), ("b", vec!["--grain"]), ("c", vec![])]
        {
            let mut arguments = vec!["complete", process, "--json", "-k", "2", "--out", name];
            arguments.extend(["--image", "torn.png"].into_iter().chain(how));
            let report: Value = serde_json::from_str(&good(folder, &arguments)).expect("JSON");
            assert!(report["energy"].as_f64().is_some_and(f64::is_finite));
            assert_eq!(report["missing_pixels"], 32);
            let path = folder.join(name).join("completion-2.png");
            let completed = image::open(path).expect("a picture").to_luma8();
            for (x, y, pixel) in completed.enumerate_pixels().filter(|(x, _, _)| *x < 4) {
                assert_eq!(pixel.0[0], if x == y { 255 } else { 0 }, "known pixels stay");
            }
        }
        let rounds = ["complete", process, "--image", "torn.png", "--rounds", "2"];
        assert!(refusal(folder, &rounds).contains("`--rounds` is for models with exact laws"));
    }
}

/// A model without parameters of single places: scored in rounds too, and told a wider picture.
#[test]
fn convolutions_read_pictures_of_any_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let settings = [
        "model.posterior=grid",
        "model.encoder_widths=[6, 6]",
        "model.grid_widths=[6, 6]",
        "model.window=0",
        "model.canvas_dim=0",
        "evaluation.rounds=3",
        "evaluation.round_pictures=2",
        "evaluation.round_draws=2",
        "train.num_steps=4",
    ];
    let mut arguments = with_tiny(&["train", "digits", "-q", "--json", "--out", "run"]);
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let report: Value = serde_json::from_str(&good(folder, &arguments)).expect("JSON");
    let rounds = &report["scores"][0][1]["rounds"];
    assert!(rounds["bits"]["mean"].as_f64().is_some_and(|bits| bits > 0.0 && bits < 10.0));
    let wide = image::GrayAlphaImage::from_fn(13, 9, |x, y| {
        image::LumaA([if x == y { 255 } else { 0 }, if x < 5 { 0 } else { 255 }])
    });
    wide.save(folder.join("wide.png")).expect("a picture");
    let complete = ["complete", "run", "--json", "-k", "2", "--image", "wide.png", "--rounds", "3"];
    let report: Value = serde_json::from_str(&good(folder, &complete)).expect("JSON");
    assert_eq!((&report["missing_pixels"], &report["known_pixels"]), (&45.into(), &72.into()));
    let path = folder.join("completions/completion-2.png");
    let completed = image::open(path).expect("a picture").to_luma8();
    assert_eq!(completed.dimensions(), (13, 9));
    assert_eq!(completed.get_pixel(6, 6).0[0], 255, "known pixels stay");
    // In tiles of a size that the model has never seen.
    let tiled = [&complete[..7], &["--tile", "6", "--out", "tiled"]].concat();
    let report: Value = serde_json::from_str(&good(folder, &tiled)).expect("JSON");
    assert_eq!(&report["missing_pixels"], &45);
    let tiled = image::open(folder.join("tiled/completion-1.png")).expect("a picture").to_luma8();
    for (x, y, pixel) in tiled.enumerate_pixels().filter(|(x, _, _)| *x >= 5) {
        assert_eq!(pixel.0[0], if x == y { 255 } else { 0 }, "known pixels stay");
    }
}

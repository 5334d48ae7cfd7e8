//! `ebp render` as a user meets it: every ending, every refusal.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ebp::data::npy::{Array, Precision, write_npy};
use serde_json::Value;

fn ebp(folder: &Path, arguments: &str) -> Output {
    let words = ["render"].into_iter().chain(arguments.split_whitespace());
    let output = Command::new(env!("CARGO_BIN_EXE_ebp")).args(words).current_dir(folder).output();
    output.expect("the binary starts")
}

/// The JSON of a picture that is drawn.
fn drawn(folder: &Path, arguments: &str) -> Value {
    let output = ebp(folder, &format!("{arguments} --json"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {stderr}");
    assert!(stderr.is_empty(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// What is said about arguments that cannot be drawn, on one line.
fn refused(folder: &Path, arguments: &str) -> String {
    let output = ebp(folder, arguments);
    let text = String::from_utf8_lossy(&output.stderr).replace('│', " ");
    assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn write(path: &Path, shape: &[usize], values: Vec<f32>) {
    let array = Array::new(shape.to_vec(), values).expect("a shape that fits");
    write_npy(path, &array, Precision::Single).expect("a writable folder");
}

/// Three spirals of forty points, `[3, 40, 3]`.
fn spirals(folder: &Path) {
    let points = (0..120_u16).flat_map(|index| {
        let angle = 0.3 * f32::from(index);
        [angle.cos(), angle.sin(), 0.02 * f32::from(index % 40)]
    });
    write(&folder.join("spirals.npy"), &[3, 40, 3], points.collect());
}

/// Width and height as a PNG says, and how many frames it has.
fn png(path: &Path) -> (u32, u32, Option<u32>) {
    let bytes = fs::read(path).expect("a file");
    assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let frames = bytes.windows(4).position(|word| word == b"acTL").map(|at| number(at + 4));
    (number(16), number(20), frames)
}

#[test]
fn every_ending_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    spirals(at);
    let report = drawn(at, "spirals.npy -o out/all.png --size 60x50 --columns 2");
    assert_eq!((&report["width"], &report["height"]), (&120.into(), &100.into()));
    assert_eq!((&report["clouds"], &report["points"]), (&3.into(), &120.into()));
    assert_eq!(png(&at.join("out/all.png")), (120, 100, None));
    assert_eq!(report["bytes"], fs::metadata(at.join("out/all.png")).unwrap().len());

    let report = drawn(at, "spirals.npy -o one.svg --count 1 --first 2 --size 80x80 --names");
    assert_eq!(report["clouds"], 1);
    let svg = fs::read_to_string(at.join("one.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("<circle ") && svg.contains("spirals/2"));

    let report = drawn(at, "spirals.npy -o turn.apng --count 1 --turntable 5 --size 40x30");
    assert_eq!(report["frames"], 5);
    assert_eq!(png(&at.join("turn.apng")), (40, 30, Some(5)));

    let report = drawn(at, "spirals.npy -o steps.apng --steps --size 40x30 --quality draft");
    assert_eq!((&report["frames"], &report["clouds"]), (&3.into(), &1.into()));
    assert_eq!(png(&at.join("steps.apng")), (40, 30, Some(3)));
    // A strip has the first and the last step, each with its label's row.
    drawn(at, "spirals.npy -o strip.png --steps --count 2 --size 40x30");
    let (width, height, _) = png(&at.join("strip.png"));
    assert!(width == 80 && height > 30);
}

#[test]
fn colours_come_from_coordinates_values_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    spirals(at);
    let values = (0..120_u16).map(|index| f32::from(index % 4)).collect();
    write(&at.join("values.npy"), &[3, 40], values);
    let base = "spirals.npy --count 1 --size 50x50";
    let mut pictures = Vec::new();
    for colour in ["height", "x", "place", "#ff8000", "blue"] {
        let file = format!("{}.png", colour.trim_start_matches('#'));
        drawn(at, &format!("{base} --colour {colour} -o {file}"));
        pictures.push(fs::read(at.join(file)).unwrap());
    }
    // Values have a scale beside them, labels words.
    for more in ["", "--colour label", "--map magma --range -1,5 --name log-p"] {
        let report = drawn(at, &format!("{base} --values values.npy {more} -o values.png"));
        assert!(report["width"].as_u64() > Some(50));
        pictures.push(fs::read(at.join("values.png")).unwrap());
    }
    for (index, picture) in pictures.iter().enumerate() {
        assert!(!pictures[..index].contains(picture), "picture {index}");
    }
    drawn(at, &format!("{base} --background transparent -o clear.png"));
    assert_eq!(fs::read(at.join("clear.png")).unwrap()[25], 6, "it has opacity");
}

/// Points that bring their colours along: those of a PLY file, as bytes and as shares, and those of an array.
#[test]
fn own_colours_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let head = |kind: &str| {
        let colours = ["red", "green", "blue"].map(|name| format!("property {kind} {name}\n"));
        let places = ["x", "y", "z"].map(|name| format!("property float {name}\n"));
        let (places, colours) = (places.concat(), colours.concat());
        format!("ply\nformat ascii 1.0\nelement vertex 2\n{places}{colours}end_header\n")
    };
    fs::write(at.join("bytes.ply"), head("uchar") + "0 0 0 255 0 0\n0 0 1 0 0 255\n").unwrap();
    fs::write(at.join("shares.ply"), head("float") + "0 0 0 1 0 0\n0 0 1 0 0 1\n").unwrap();
    fs::write(at.join("none.xyz"), "0 0 0\n0 0 1\n").unwrap();
    write(&at.join("colours.npy"), &[2, 3], vec![255.0, 0.0, 0.0, 0.0, 0.0, 255.0]);
    let mut pictures = Vec::new();
    for arguments in ["bytes.ply", "shares.ply", "none.xyz --values colours.npy"] {
        let more = "--colour own --size 60x90 --no-ground --radius 0.3 -o own.png";
        drawn(at, &format!("{arguments} {more}"));
        pictures.push(fs::read(at.join("own.png")).unwrap());
    }
    assert!(pictures[0] == pictures[1] && pictures[1] == pictures[2]);
    // The upper sphere is blue, the lower one red.
    let picture = image::load_from_memory(&pictures[0]).unwrap().into_rgb8();
    let sum = |rows: std::ops::Range<u32>, channel: usize| -> u64 {
        rows.flat_map(|y| (0..60).map(move |x| (x, y)))
            .map(|(x, y)| u64::from(picture.get_pixel(x, y)[channel]))
            .sum()
    };
    assert!(sum(0..45, 2) > sum(0..45, 0) && sum(45..90, 0) > sum(45..90, 2));
    write(&at.join("few.npy"), &[2], vec![0.0; 2]);
    for (arguments, words) in [
        ("none.xyz", "needs a colour for each point, found none in `none.xyz`"),
        ("none.xyz --values few.npy", "red, green and blue for each of 2 points, found shape [2]"),
    ] {
        let text = refused(at, &format!("{arguments} --colour own -o a.png"));
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

#[test]
fn threads_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    spirals(at);
    for ending in ["png", "svg"] {
        let file = |threads: u32| {
            drawn(
                at,
                &format!("spirals.npy --threads {threads} --size 70x70 -o t{threads}.{ending}"),
            );
            fs::read(at.join(format!("t{threads}.{ending}"))).unwrap()
        };
        assert!(file(1) == file(3), "{ending}");
    }
}

#[test]
fn one_point_and_equal_points_are_spheres_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write(&at.join("one.npy"), &[1, 3], vec![4.0, 5.0, 6.0]);
    write(&at.join("equal.npy"), &[9, 3], vec![1.5; 27]);
    write(&at.join("flat.npy"), &[3, 2], vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    for cloud in ["one", "equal", "flat"] {
        let report = drawn(at, &format!("{cloud}.npy -o {cloud}.png --size 40x40"));
        assert_eq!(report["clouds"], 1);
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    spirals(at);
    write(&at.join("few.npy"), &[7], vec![0.0; 7]);
    write(&at.join("hole.npy"), &[2, 3], vec![0.0, 1.0, 2.0, f32::NAN, 1.0, 2.0]);
    write(&at.join("wide.npy"), &[2, 5], vec![0.0; 10]);
    fs::write(at.join("empty.xyz"), "").unwrap();
    for (arguments, words) in [
        ("spirals.npy -o a.bmp", "expected an output ending in .png, .svg or .apng, found `a.bmp`"),
        ("spirals.npy -o a.apng", "expected `--turntable` or `--steps`, found neither"),
        ("spirals.npy -o a.svg --turntable 4", "a turn needs a picture that moves"),
        ("spirals.npy -o a.png --size 0x9", "from 1 to 16384 pixels"),
        ("spirals.npy -o a.png --size 16385x9", "from 1 to 16384 pixels"),
        ("spirals.npy -o a.png --size 9000x9 --columns 3", "at most 16384 pixels"),
        ("spirals.npy -o a.png --size big", "WIDTHxHEIGHT"),
        ("spirals.npy -o a.png --radius=-1", "a positive number"),
        ("spirals.npy -o a.png --elevation 100", "from -90 to 90"),
        ("spirals.npy -o a.png --first 3", "the number of clouds, 3, found 3"),
        ("spirals.npy -o a.png --colour values", "needs values, found none"),
        ("spirals.npy -o a.png --colour blau", "found `blau`"),
        (
            "spirals.npy -o a.png --values few.npy",
            "a number for each of 120 points, found shape [7]",
        ),
        ("spirals.npy -o a.png --turntable 4000", "at most 2000 frames, found 4000"),
        ("spirals.npy -o a.png --label a --label b --label c --label d", "at most 3 labels"),
        ("hole.npy -o a.png", "point 1 of cloud 0 is [NaN, 1.0, 2.0]"),
        ("wide.npy -o a.png", "2 or 3 coordinates, found 5"),
        ("empty.xyz -o a.png", "expected a point such as `0.5 1 -0.5`, found the end of the file"),
        ("missing.npy -o a.png", "missing.npy"),
    ] {
        let text = refused(at, arguments);
        assert!(text.contains(words), "{arguments}: {text}");
    }
    assert!(!at.join("a.png").exists() && !at.join("a.svg").exists());
}

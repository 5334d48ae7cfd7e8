//! Caches in shards: the collection of one file, whatever is killed, and files that are not what they were.

mod program;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use ebp::data::npy::{Array, Precision, write_npy};
use ebp::rng::Stream;

use program::{complaint, good, refusal};

/// Files of clouds of different sizes in the folders of two classes.
fn write_files(folder: &Path, count: usize) {
    for number in 0..count {
        let class = folder.join(["disc", "ball"][number % 2]);
        fs::create_dir_all(&class).expect("a folder");
        write_file(&class.join(format!("{number:03}.npy")), number as u64, 4, 20 + number % 5);
    }
}

fn write_file(path: &Path, seed: u64, sets: usize, points: usize) {
    let mut values = vec![0.0_f32; sets * points * 3];
    Stream::new(seed, "clouds").fill_normal(0, 0, &mut values);
    for value in &mut values {
        *value = 40.0 + 3.0 * *value;
    }
    let array = Array::new(vec![sets, points, 3], values).expect("a shape that fits");
    write_npy(path, &array, Precision::Single).expect("a writable folder");
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect(name)
}

/// The weights and everything else that a run has learned.
fn state(run: &Path) -> Vec<u8> {
    let checkpoints = run.join("checkpoints");
    let last = fs::read_to_string(checkpoints.join("last")).expect("a name");
    fs::read(checkpoints.join(last.trim()).join("state.safetensors")).expect("a state")
}

const TINY: [&str; 20] = [
    "--set",
    "data.held_out=6",
    "--set",
    "model.encoder_widths=[8, 12]",
    "--set",
    "model.energy_widths=[12]",
    "--set",
    "model.latent_dim=3",
    "--set",
    "model.num_proposals=40",
    "--set",
    "batch_size=3",
    "--set",
    "train.num_steps=12",
    "--set",
    "evaluation.every=6",
    "--set",
    "evaluation.num_sets=4",
    "--set",
    "evaluation.num_points=20",
];

#[test]
fn training_from_shards_gives_the_bytes_of_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write_files(&path.join("files"), 9);
    for (name, more) in [
        ("drawn", &["--normalise", "global", "--validation", "0.2", "--test", "0.1"][..]),
        ("sphere", &["--normalise", "sphere", "--seed", "2"]),
    ] {
        let (one, many) = (format!("{name}.ebp"), format!("{name}-shards"));
        good(path, &[&["data", "import", "files", &one], more].concat());
        let words = ["data", "import", "files", &many, "--shards", "4", "--threads", "2"];
        let said = good(path, &[&words[..], more].concat());
        assert!(said.starts_with("36 sets of ") && said.contains("4 shards in"), "{said}");
        let train = |data: &str, run: &str| {
            let words = ["train", "shapes", "--data", data, "--out", run, "--quiet"];
            good(path, &[&words[..], &TINY].concat());
            state(&path.join(run))
        };
        assert!(train(&one, "one") == train(&many, "many"), "{name}: weights");
        // Every other command takes them too, with the same names.
        let encode = |data: &str, out: &str| {
            let (array, labels) = (format!("{out}.npy"), format!("{out}.txt"));
            good(path, &["encode", "one", data, "-o", &array, "--labels", &labels, "-q"]);
            (bytes(path, &array), bytes(path, &labels))
        };
        assert!(encode(&one, "a") == encode(&many, "b"), "{name}: codes");
        for run in ["one", "many"] {
            fs::remove_dir_all(path.join(run)).expect("a run");
        }
    }
    let said = good(path, &["data", "inspect", "drawn-shards"]);
    assert!(said.contains("sets          36, of 20 to 24"), "{said}");
}

#[test]
fn a_killed_import_keeps_finished_shards_and_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    write_files(&path.join("files"), 24);
    let words = |out: &'static str| {
        let shards = ["--shards", "12", "--normalise", "global", "--threads", "1"];
        [&["data", "import", "files", out], &shards[..]].concat()
    };
    good(path, &words("whole"));
    // Whole or absent at every moment.
    for life in [1, 3, 5, 8, 12, 20] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ebp"))
            .current_dir(path)
            .args(words("killed"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary is built");
        std::thread::sleep(Duration::from_millis(life));
        child.kill().expect("SIGKILL"); // kill -9
        child.wait().expect("a dead child");
    }
    if !path.join("killed/index.json").exists() {
        good(path, &words("killed"));
    }
    let mut names: Vec<_> = fs::read_dir(path.join("whole"))
        .expect("shards")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names.len(), 25, "{names:?}");
    for name in &names {
        let read = |folder: &str| fs::read(path.join(folder).join(name)).expect("a file");
        assert!(read("whole") == read("killed"), "{} differs", name.display());
    }
    // Shards that are done are not written again, and an index that is lost is.
    let time = |shard: &str| -> SystemTime {
        let file = path.join("killed").join(shard).metadata().expect("a shard");
        file.modified().expect("a time")
    };
    let before = time("shard-00003.ebp");
    fs::remove_file(path.join("killed/index.json")).expect("an index");
    let unfinished = complaint(path, &["data", "inspect", "killed"]);
    assert!(unfinished.contains("no index.json yet"), "{unfinished}");
    fs::remove_file(path.join("killed/shard-00007.json")).expect("a record");
    let said = good(path, &words("killed"));
    assert!(said.contains("12 shards, 11 of them from before"), "{said}");
    assert_eq!(time("shard-00003.ebp"), before);
    assert!(bytes(path, "killed/index.json") == bytes(path, "whole/index.json"));
    // A source that has changed is read again, and only its shard is written.
    let refused = refusal(path, &words("killed"));
    assert!(refused.contains("exists already"), "{refused}");
    write_file(&path.join("files/ball/013.npy"), 99, 5, 30);
    let said = good(path, &[&words("killed")[..], &["--force"]].concat());
    assert!(said.starts_with("97 sets") && said.contains("11 of them from before"), "{said}");
    // So are all if they are to be something else, and fewer shards leave nothing behind.
    let few = ["data", "import", "files", "killed", "--shards", "2", "--force"];
    let said = good(path, &few);
    assert!(said.contains("2 shards in killed"), "{said}");
    assert_eq!(fs::read_dir(path.join("killed")).expect("shards").count(), 5);
}

#[test]
fn shards_that_are_not_what_the_index_says_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    good(path, &["data", "shapes", "s", "-n", "12", "--points", "30", "--shards", "3"]);
    let again = good(path, &["data", "shapes", "s", "-n", "12", "--points", "30", "--shards", "3"]);
    assert!(again.contains("3 shards, 3 of them from before"), "{again}");
    let said = |what: &str| {
        let said = complaint(path, &["data", "inspect", "s"]);
        assert!(said.contains(what), "{what} in {said}");
        said
    };
    let (first, second) = (bytes(path, "s/shard-00000.ebp"), bytes(path, "s/shard-00001.ebp"));
    let put = |bytes: &[u8]| fs::write(path.join("s/shard-00001.ebp"), bytes).expect("a shard");
    put(&second[..second.len() - 5]);
    said("shard-00001.ebp");
    put(&first);
    assert!(said("shard-00001.ebp").contains("not the shard that index.json describes"));
    fs::remove_file(path.join("s/shard-00001.ebp")).expect("a shard");
    said("shard-00001.ebp");
    put(&second);
    good(path, &["data", "inspect", "s"]);
    let index = bytes(path, "s/index.json");
    fs::write(path.join("s/index.json"), &index[..index.len() / 2]).expect("an index");
    said("index.json");
    fs::write(path.join("s/index.json"), &index).expect("an index");
    // A folder of somebody else is left alone.
    fs::create_dir(path.join("mine")).expect("a folder");
    fs::write(path.join("mine/letter.txt"), "dear").expect("a letter");
    let mine = refusal(path, &["data", "shapes", "mine", "--shards", "2"]);
    assert!(mine.contains("`letter.txt`"), "{mine}");
    let split = refusal(path, &["data", "split", "s"]);
    assert!(split.contains("when it is imported"), "{split}");
    fs::write(path.join("table.csv"), "t,x\n1,2\n").expect("a table");
    let table = refusal(path, &["data", "import", "table.csv", "t", "--shards", "2"]);
    assert!(table.contains("shards are of clouds"), "{table}");
}

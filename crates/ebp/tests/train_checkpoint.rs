//! Checkpoints against everything that can happen to files.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ebp::Error;
use ebp::checkpoint::{Best, Checkpoint, CheckpointMeta, CheckpointStore, META_FILE, STATE_FILE};
use ebp::tensor::{Tensor, TensorValues};
use proptest::prelude::*;

const MILESTONE: u64 = 100;

fn checkpoint(step: u64) -> Checkpoint {
    let values: Vec<f32> = (0..6).map(|k| (k as f32 + step as f32).sin()).collect();
    let double = TensorValues::F64(vec![0.1, f64::MIN_POSITIVE]);
    let state = BTreeMap::from([
        ("w".into(), Tensor::new(vec![2, 3], values).unwrap()),
        ("adam.num_steps".into(), Tensor::integer(i64::MAX)),
        ("double".into(), Tensor::from_values(vec![2], double).unwrap()),
        ("empty".into(), Tensor::new(vec![0, 3], Vec::new()).unwrap()),
    ]);
    let numbers = BTreeMap::from([("mean".into(), vec![0.1, -3.0])]);
    let meta = CheckpointMeta { step, seed: 3, numbers, ..CheckpointMeta::default() };
    Checkpoint { state, meta }
}

fn files(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    (fs::read(folder.join(STATE_FILE)).unwrap(), fs::read(folder.join(META_FILE)).unwrap())
}

fn names(store: &CheckpointStore) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(store.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn damage(error: &Error) -> String {
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn everything_comes_back_and_equal_states_have_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    checkpoint(7).save(&first).unwrap();
    checkpoint(7).save(&second).unwrap();
    assert_eq!(files(&first), files(&second));
    let loaded = Checkpoint::load(&first).unwrap();
    assert_eq!(loaded.meta, checkpoint(7).meta);
    assert_eq!(loaded.state, checkpoint(7).state);
    assert_eq!(loaded.state.len(), 4);
    loaded.save(&folder.path().join("third")).unwrap();
    assert_eq!(files(&first), files(&folder.path().join("third")));
    assert!(matches!(checkpoint(7).save(&first), Err(Error::Occupied { .. })));
}

#[test]
fn a_cut_at_any_place_of_either_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    checkpoint(7).save(&path).unwrap();
    for name in [STATE_FILE, META_FILE] {
        let whole = fs::read(path.join(name)).unwrap();
        for length in 0..whole.len() - 1 {
            fs::write(path.join(name), &whole[..length]).unwrap();
            let message = damage(&Checkpoint::load(&path).unwrap_err());
            assert!(message.contains(name), "{message}");
        }
        fs::write(path.join(name), [&whole[..], b"x"].concat()).unwrap();
        assert!(Checkpoint::load(&path).is_err(), "a byte too many in {name}");
        fs::remove_file(path.join(name)).unwrap();
        let message = damage(&Checkpoint::load(&path).unwrap_err());
        assert!(message.contains(name) && message.contains("missing"), "{message}");
        fs::write(path.join(name), &whole).unwrap();
    }
    assert!(Checkpoint::load(&path).is_ok());
}

#[test]
fn a_changed_bit_of_the_tensors_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    checkpoint(7).save(&path).unwrap();
    let whole = fs::read(path.join(STATE_FILE)).unwrap();
    for position in 0..whole.len() {
        let mut changed = whole.clone();
        changed[position] ^= 1 << (position % 8);
        fs::write(path.join(STATE_FILE), changed).unwrap();
        let message = damage(&Checkpoint::load(&path).unwrap_err());
        assert!(message.contains("checksum"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: proptest::test_runner::RngSeed::Fixed(2020), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the files hold, reading ends with an error and not with a panic.
    #[test]
    fn garbage_is_refused(
        state in proptest::collection::vec(any::<u8>(), 0..200),
        meta in proptest::collection::vec(any::<u8>(), 0..200),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        checkpoint(7).save(&path).unwrap();
        let whole = fs::read(path.join(META_FILE)).unwrap();
        let mut changed = whole.clone();
        let position = position.index(whole.len());
        changed[position] = byte;
        fs::write(path.join(META_FILE), &changed).unwrap();
        // A change that JSON or a person reads the same way is no damage.
        if let Ok(loaded) = Checkpoint::load(&path) {
            prop_assert_eq!(loaded.meta, checkpoint(7).meta);
        }
        fs::write(path.join(META_FILE), &meta).unwrap();
        prop_assert!(Checkpoint::load(&path).is_err());
        fs::write(path.join(META_FILE), &whole).unwrap();
        fs::write(path.join(STATE_FILE), &state).unwrap();
        prop_assert!(Checkpoint::load(&path).is_err());
    }
}

#[test]
fn the_newest_and_the_best_are_kept_and_pointed_at() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path().join("checkpoints"), 2).unwrap();
    assert!(store.load_newest().unwrap().is_none());
    for step in [0, 100, 130, 200, 210, 220, 230] {
        let mut saved = checkpoint(step);
        let best = Best { step: step.min(130), num_rollbacks: 0, value: 1.0 };
        saved.meta.best = Some(best);
        store.save(&saved, MILESTONE).unwrap();
    }
    let expected = ["best", "last", "step-000000000130", "step-000000000200"];
    assert_eq!(names(&store)[..4], expected);
    assert_eq!(names(&store)[4..], ["step-000000000220", "step-000000000230"]);
    assert_eq!(Checkpoint::load(&store.folder().join("best")).unwrap().meta.step, 130);
    assert_eq!(Checkpoint::load(&store.folder().join("last")).unwrap().meta.step, 230);
    let loaded = store.load_newest().unwrap().unwrap();
    assert_eq!(loaded.checkpoint.meta.step, 230);
    assert!(loaded.damaged.is_empty());
    let milestone = store.load_milestone(&loaded.checkpoint, MILESTONE).unwrap().unwrap();
    assert_eq!(milestone.meta.step, 200);
    assert!(CheckpointStore::open(folder.path(), 0).is_err());
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path(), 3).unwrap();
    let paths = [100, 200, 300].map(|step| store.save(&checkpoint(step), MILESTONE).unwrap());
    fs::write(paths[2].join(STATE_FILE), b"").unwrap();
    fs::remove_file(paths[1].join(META_FILE)).unwrap();
    let loaded = store.load_newest().unwrap().unwrap();
    assert_eq!(loaded.checkpoint.meta.step, 100);
    assert_eq!(loaded.damaged.len(), 2);
    assert!(damage(&loaded.damaged[0]).contains("000300"));
    assert_eq!(
        names(&store),
        ["damaged-step-000000000200", "damaged-step-000000000300", "last", "step-000000000100"]
    );
    // The pointer was repaired, and the next look finds nothing to complain about.
    assert_eq!(Checkpoint::load(&store.folder().join("last")).unwrap().meta.step, 100);
    assert!(store.load_newest().unwrap().unwrap().damaged.is_empty());

    fs::write(paths[0].join(META_FILE), b"{}").unwrap();
    damage(&store.load_newest().unwrap_err());
}

/// A model may be asked while it is trained: what the trainer is writing stays, and so does damage.
#[test]
fn reading_changes_nothing_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path(), 3).unwrap();
    let paths = [100, 200].map(|step| store.save(&checkpoint(step), MILESTONE).unwrap());
    fs::write(paths[1].join(STATE_FILE), b"").unwrap();
    fs::write(folder.path().join(".writing-last"), b"step-0000").unwrap();
    let before = names(&store);
    let read = CheckpointStore::read_newest(folder.path()).unwrap().unwrap();
    assert_eq!((read.checkpoint.meta.step, read.damaged.len()), (100, 1));
    assert_eq!(names(&store), before);
    assert!(CheckpointStore::read_newest(folder.path().join("none")).unwrap().is_none());
}

/// Every state that a kill can leave: a folder half written, a pointer half written, a folder half
/// removed, a checkpoint written but not pointed at.
#[test]
fn leftovers_of_a_killed_process_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path(), 2).unwrap();
    let first = store.save(&checkpoint(100), MILESTONE).unwrap();
    let second = store.save(&checkpoint(200), MILESTONE).unwrap();
    let half = folder.path().join(".writing-step-000000000300");
    fs::create_dir(&half).unwrap();
    fs::write(half.join(STATE_FILE), b"half").unwrap();
    fs::write(folder.path().join(".writing-last"), b"step-0000").unwrap();
    let removing = folder.path().join(".removing-step-000000000050");
    fs::create_dir(&removing).unwrap();
    fs::write(folder.path().join("last"), "step-000000000100\n").unwrap();

    let store = CheckpointStore::open(folder.path(), 2).unwrap();
    assert_eq!(names(&store), ["last", "step-000000000100", "step-000000000200"]);
    let loaded = store.load_newest().unwrap().unwrap();
    assert_eq!((loaded.checkpoint.meta.step, loaded.path), (200, second.clone()));
    assert_eq!(Checkpoint::load(&folder.path().join("last")).unwrap().meta.step, 200);

    // The same place with other content is replaced, with the same content left alone.
    let mut other = checkpoint(200);
    other.meta.config = "changed".into();
    store.save(&other, MILESTONE).unwrap();
    assert_eq!(Checkpoint::load(&second).unwrap().meta.config, "changed");
    assert!(Checkpoint::load(&first).is_ok());
}

#[test]
fn a_pointer_leads_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let store = CheckpointStore::open(folder.path().join("inner"), 2).unwrap();
    let pointer = store.folder().join("last");
    for text in ["../outside", "/etc", "", "step-000000000009x", "\u{0}"] {
        fs::write(&pointer, text).unwrap();
        let message = damage(&Checkpoint::load(&pointer).unwrap_err());
        assert!(message.contains("must name a checkpoint"), "{message}");
    }
    fs::write(&pointer, "step-000000000009").unwrap();
    assert!(damage(&Checkpoint::load(&pointer).unwrap_err()).contains("missing"));
}

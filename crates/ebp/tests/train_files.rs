//! The files of a run: TensorBoard's events decoded by an independent reader, the folder's rules.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod toy;

use std::fs;
use std::path::Path;

use ebp::Error;
use ebp::train::{
    Existing, Observer, RunDescription, RunDirectory, Session, Trainer, TrainerConfig,
};

use crate::toy::Toy;

/// CRC-32C by long division, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut remainder = u32::MAX;
    for byte in bytes {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            let is_odd = remainder % 2 == 1;
            remainder /= 2;
            if is_odd {
                remainder ^= 0x82f6_3b78;
            }
        }
    }
    remainder ^ u32::MAX
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(12);
        let length = usize::try_from(u64::from_le_bytes(head[..8].try_into().unwrap())).unwrap();
        assert_eq!(u32::from_le_bytes(head[8..].try_into().unwrap()), masked(&head[..8]));
        let (message, rest) = rest.split_at(length);
        let (check, rest) = rest.split_at(4);
        assert_eq!(u32::from_le_bytes(check.try_into().unwrap()), masked(message));
        out.push(message.to_vec());
        bytes = rest;
    }
    out
}

/// A field of a protocol-buffer message.
#[derive(Debug, PartialEq)]
enum Field<'a> {
    Varint(u64),
    Double(f64),
    Float(f32),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (digits, rest) = bytes.split_at(length);
    *bytes = rest;
    digits.iter().rev().fold(0, |value, digit| value << 7 | u64::from(digit & 0x7f))
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag % 8 {
            0 => {
                out.push((tag / 8, Field::Varint(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            wire_type => {
                assert_eq!(wire_type, 5);
                4
            }
        };
        let (content, rest) = bytes.split_at(length);
        bytes = rest;
        out.push((
            tag / 8,
            match tag % 8 {
                1 => Field::Double(f64::from_le_bytes(content.try_into().unwrap())),
                2 => Field::Bytes(content),
                _ => Field::Float(f32::from_le_bytes(content.try_into().unwrap())),
            },
        ));
    }
    out
}

fn scalars(summary: &[u8]) -> Vec<(String, f32)> {
    let mut out = Vec::new();
    for (number, value) in fields(summary) {
        assert_eq!(number, 1);
        let Field::Bytes(value) = value else { unreachable!("a message") };
        match &fields(value)[..] {
            [(1, Field::Bytes(tag)), (2, Field::Float(value))] => {
                out.push((String::from_utf8(tag.to_vec()).unwrap(), *value));
            }
            other => unreachable!("{other:?}"),
        }
    }
    out
}

fn train(directory: &RunDirectory, num_steps: u64) {
    let config = TrainerConfig { num_steps, checkpoint_every: 4, ..TrainerConfig::default() };
    let store = directory.checkpoints(2).unwrap();
    let mut metrics = directory.metrics(1).unwrap();
    let mut tensorboard = directory.tensorboard(1, 1e9).unwrap();
    let mut observers: Vec<&mut dyn Observer> = vec![&mut metrics, &mut tensorboard];
    let session = Session { store: Some(&store), ..Session::new(&mut observers) };
    Trainer::new(config, 1).unwrap().run(&mut Toy::new(1).unwrap(), session).unwrap();
}

fn open(path: &Path, existing: Existing) -> Result<RunDirectory, Error> {
    let directory = RunDirectory::open(path, existing)?;
    let description = RunDescription { seed: 1, ..RunDescription::default() };
    directory.describe("a = 1\n", &description)?;
    Ok(directory)
}

#[test]
fn event_files_decode_to_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    train(&open(&path, Existing::Refuse).unwrap(), 150);
    let bytes = fs::read(path.join("events.out.tfevents.0000000000.ebp")).unwrap();
    let messages = messages(&bytes);
    assert_eq!(messages.len(), 152);
    let version = fields(&messages[0]);
    assert!(version.contains(&(3, Field::Bytes(b"brain.Event:2"))), "{version:?}");
    // SessionLog { status: START } at step 0.
    assert!(fields(&messages[1]).contains(&(7, Field::Bytes(&[8, 1]))));
    let text = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    for (step, (line, message)) in text.lines().zip(&messages[2..]).enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let event = fields(message);
        let [(1, Field::Double(time)), (2, Field::Varint(number)), (5, Field::Bytes(summary))] =
            &event[..]
        else {
            unreachable!("{event:?}")
        };
        assert!((1e9..1e9 + 600.0).contains(time), "{time}");
        assert_eq!((*number, line["step"].as_u64()), (step as u64, Some(step as u64)));
        let scalars = scalars(summary);
        let names: Vec<_> = scalars.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["loss", "gradient_norm", "steps_per_second"]);
        for (name, value) in &scalars[..2] {
            let expected = line[name].as_f64().unwrap();
            assert!((f64::from(*value) - expected).abs() <= 1e-7 * expected.abs(), "{name}");
        }
    }
}

#[test]
fn a_resumed_run_begins_a_new_event_file_at_its_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    train(&open(&path, Existing::Refuse).unwrap(), 8);
    train(&open(&path, Existing::Resume).unwrap(), 12);
    let bytes = fs::read(path.join("events.out.tfevents.0000000001.ebp")).unwrap();
    let messages = messages(&bytes);
    assert_eq!(messages.len(), 2 + 4);
    let start = fields(&messages[1]);
    assert_eq!(start[1..], [(2, Field::Varint(8)), (7, Field::Bytes(&[8, 1]))]);
}

#[test]
fn a_folder_in_use_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let directory = open(&path, Existing::Refuse).unwrap();
    train(&directory, 4);
    let busy = open(&path, Existing::Resume).unwrap_err().to_string();
    assert!(busy.contains("found another process"), "{busy}");
    drop(directory);

    let occupied = open(&path, Existing::Refuse).unwrap_err().to_string();
    assert!(occupied.contains("must be empty or new, found a run; resume"), "{occupied}");
    let directory = open(&path, Existing::Resume).unwrap();
    assert_eq!(directory.config().unwrap().as_deref(), Some("a = 1\n"));
    assert!(path.join("checkpoints/last").exists());
    drop(directory);

    fs::write(path.join("mine.txt"), "mine").unwrap();
    let directory = RunDirectory::open(&path, Existing::Replace).unwrap();
    assert_eq!(directory.config().unwrap(), None);
    let mut left: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["mine.txt", "run.lock"]);
    drop(directory);

    for existing in [Existing::Refuse, Existing::Resume, Existing::Replace] {
        let error = RunDirectory::open(&path, existing).unwrap_err();
        assert!(matches!(error, Error::Occupied { .. }), "{error:?}");
    }
    assert_eq!(fs::read_to_string(path.join("mine.txt")).unwrap(), "mine");
}

//! Ten thousand broken files for every reader: an answer or an error, never a panic, and never more
//! memory than a file of that size can stand for.
#![allow(unsafe_code, reason = "memory is counted by an allocator of our own")]
#![allow(clippy::cast_possible_truncation, reason = "dice are cut to what is needed")]

mod readers;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ebp::Error;

use readers::readers;

/// Mutated inputs of each reader.
const NUM_INPUTS: u64 = 10_000;
/// The files have up to ten kilobytes; deflate unpacks a byte to at most 1032, and a picture of one
/// colour may be 2300 pixels wide (16 MiB) whatever its file's size, decoded, turned to RGB and
/// cropped.
const MOST_MEMORY: usize = 96 << 20;

/// Counts what the current thread holds, and the most it held.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are plain cells that
// need no memory of their own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's layout, as given.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's pointer and layout, as given.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn count(more: usize, less: usize) {
    let held = HELD.get().wrapping_add(more).wrapping_sub(less);
    HELD.set(held);
    // Below zero where memory of another thread is given back.
    if held < usize::MAX / 2 {
        MOST.set(MOST.get().max(held));
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// SplitMix64: where to break what, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize % sides.max(1)
    }
}

/// Cuts, flips, overwrites, inserts, repeats, or puts a huge number in place of a digit.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let place = dice.roll(bytes.len());
    match dice.roll(9) {
        0 => bytes.truncate(place),
        1 | 2 if !bytes.is_empty() => bytes[place] ^= 1 << dice.roll(8),
        3 if !bytes.is_empty() => bytes[place] = [0, 1, 0x7f, 0x80, 0xff, b' ', b'-'][dice.roll(7)],
        4 => bytes.insert(place, dice.roll(256) as u8),
        5 => {
            let end = (place + dice.roll(16)).min(bytes.len());
            let part = bytes[place..end].to_vec();
            bytes.splice(place..place, part);
        }
        6 => {
            let end = (place + dice.roll(16)).min(bytes.len());
            bytes.drain(place..end);
        }
        7 => {
            let huge = ["18446744073709551616", "4294967296", "99999999999", "-1", "1e400", "nan"];
            if let Some(digit) = bytes.iter().skip(place).position(u8::is_ascii_digit) {
                let text = huge[dice.roll(huge.len())].bytes();
                bytes.splice(place + digit..=place + digit, text);
            }
        }
        // The head of one file with the tail of another.
        _ => {
            bytes.truncate(place);
            bytes.extend_from_slice(&other[place.min(other.len())..]);
        }
    }
}

#[test]
fn broken_files_give_errors_and_bounded_memory() {
    let silent = |_: &std::panic::PanicHookInfo<'_>| {};
    for reader in readers() {
        for seed in &reader.seeds {
            (reader.parse)(seed).unwrap_or_else(|error| panic!("{}: {error}", reader.name));
        }
        let mut num_read = 0;
        for number in 0..NUM_INPUTS {
            let mut dice = Dice(number);
            let mut bytes = reader.seeds[dice.roll(reader.seeds.len())].clone();
            let other = &reader.seeds[dice.roll(reader.seeds.len())];
            for _ in 0..=dice.roll(4) {
                mutate(&mut bytes, other, &mut dice);
            }
            // A panic that the reader turns into an error need not be printed.
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(silent));
            MOST.set(HELD.get());
            let before = HELD.get();
            let result = std::panic::catch_unwind(|| (reader.parse)(&bytes));
            std::panic::set_hook(hook);
            let memory = MOST.get().saturating_sub(before);
            let name = reader.name;
            assert!(memory < MOST_MEMORY, "{name} {number}: {memory} bytes for {}", bytes.len());
            match result.unwrap_or_else(|_| panic!("{name} {number} panicked on {bytes:?}")) {
                Ok(()) => num_read += 1,
                Err(Error::Malformed { .. } | Error::Parse { .. } | Error::InvalidValue { .. }) => {
                }
                Err(other) => panic!("{name} {number}: {other}"),
            }
        }
        assert!(num_read < NUM_INPUTS, "{}: nothing was ever refused", reader.name);
    }
}

/// What fuzzing starts from: files that each reader reads, in a folder for each. With
/// `EBP_CORPUS=fuzz/corpus` they stay there, otherwise they go.
#[test]
fn the_corpus_is_written_and_read() {
    let scratch = tempfile::tempdir().unwrap();
    let corpus = std::env::var_os("EBP_CORPUS")
        .map_or_else(|| scratch.path().to_path_buf(), std::path::PathBuf::from);
    for reader in readers() {
        let folder = corpus.join(reader.name);
        std::fs::create_dir_all(&folder).unwrap();
        for (number, seed) in reader.seeds.iter().enumerate() {
            let path = folder.join(format!("seed{number}"));
            std::fs::write(&path, seed).unwrap();
            let found = (reader.parse)(&std::fs::read(&path).unwrap());
            assert!(found.is_ok(), "{} {number}: {found:?}", reader.name);
        }
    }
}

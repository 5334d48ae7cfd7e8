//! `metrics.jsonl` read by another process than the one that writes it: all of it, or what is new.
//!
//! The file grows by whole lines, and is cut back when a run goes back to a checkpoint. A reader gives the
//! place it has read up to and a mark, the hash (FNV-1a) of the bytes before it; where they are others now,
//! it begins again. A line that is not finished yet waits.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value, json};

/// Bytes that one answer reads at most; the rest follows with the next.
const MOST_BYTES: u64 = 512 * 1024;
/// Bytes before the place that the mark is of.
const MARKED: u64 = 256;

/// What is new since a place.
#[derive(Debug, PartialEq)]
pub(super) struct News {
    /// Whole lines, parsed.
    pub(super) lines: Vec<Value>,
    /// Where to go on.
    pub(super) next: u64,
    /// Of the bytes before it.
    pub(super) mark: String,
    /// Whether what was read before is no longer what the file says.
    pub(super) again: bool,
}

/// What `path` says since `from`; nothing if it is not there yet.
pub(super) fn since(path: &Path, from: u64, mark: &str) -> io::Result<News> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(News { lines: Vec::new(), next: 0, mark: String::new(), again: from > 0 });
        }
        file => file?,
    };
    let length = file.metadata()?.len();
    let is_known = from <= length && (from == 0 || mark_before(&mut file, from)? == mark);
    let start = if is_known { from } else { 0 };
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.by_ref().take(MOST_BYTES).read_to_end(&mut text)?;
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let lines = text[..whole].split(|&byte| byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let next = start + whole as u64;
    let mark = if next == 0 { String::new() } else { mark_before(&mut file, next)? };
    Ok(News { lines, next, mark, again: !is_known })
}

fn mark_before(file: &mut File, place: u64) -> io::Result<String> {
    let count = place.min(MARKED);
    file.seek(SeekFrom::Start(place - count))?;
    let mut bytes = Vec::new();
    file.by_ref().take(count).read_to_end(&mut bytes)?;
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(format!("{hash:016x}"))
}

/// The columns of a record, in the order in which they first appear.
#[derive(Debug, Default)]
pub(super) struct Columns {
    columns: Vec<(String, Vec<u64>, Vec<Value>)>,
    /// Steps that the run went back to.
    backs: Vec<u64>,
}

impl Columns {
    /// Takes a line; what is no line of a record is passed over.
    pub(super) fn take(&mut self, line: &[u8]) {
        let Ok(Value::Object(numbers)) = serde_json::from_slice::<Value>(line) else { return };
        let Some(step) = numbers.get("step").and_then(Value::as_u64) else { return };
        if numbers.contains_key("rollback") {
            self.backs.push(step);
            return;
        }
        for (name, value) in numbers {
            if name == "step" || !(value.is_number() || value.is_null()) {
                continue;
            }
            let place = self.columns.iter().position(|(known, ..)| *known == name);
            let place = place.unwrap_or_else(|| {
                self.columns.push((name, Vec::new(), Vec::new()));
                self.columns.len() - 1
            });
            self.columns[place].1.push(step);
            self.columns[place].2.push(value);
        }
    }

    /// At most `most` steps of each column, evenly, the last one among them.
    pub(super) fn thinned(&self, most: usize) -> Value {
        let mut columns = Map::new();
        for (name, steps, values) in &self.columns {
            let every = steps.len().div_ceil(most).max(1);
            let kept = |place: &usize| (steps.len() - 1 - place).is_multiple_of(every);
            let places: Vec<usize> = (0..steps.len()).filter(kept).collect();
            let steps: Vec<u64> = places.iter().map(|&place| steps[place]).collect();
            let values: Vec<Value> = places.iter().map(|&place| rounded(&values[place])).collect();
            columns.insert(name.clone(), json!([steps, values]));
        }
        json!({ "columns": columns, "backs": self.backs })
    }
}

/// Six digits are more than a chart shows.
fn rounded(value: &Value) -> Value {
    value.as_f64().map_or(Value::Null, |number| {
        format!("{number:.5e}").parse::<f64>().map_or(Value::Null, Value::from)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_is_read_bit_by_bit_and_again_after_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        assert_eq!(since(&path, 0, "").unwrap().lines.len(), 0);
        fs::write(&path, "{\"step\":0,\"loss\":2}\n{\"step\":1,\"loss\":1}\n{\"step\":2,").unwrap();
        let first = since(&path, 0, "").unwrap();
        assert_eq!((first.lines.len(), first.again, first.next), (2, false, 40));
        assert_eq!(since(&path, first.next, &first.mark).unwrap().lines.len(), 0);
        fs::write(
            &path,
            "{\"step\":0,\"loss\":2}\n{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":3}\n",
        )
        .unwrap();
        let second = since(&path, first.next, &first.mark).unwrap();
        assert_eq!((second.lines.len(), second.again), (1, false));
        assert_eq!(second.lines[0]["loss"], 3);
        // Cut back and grown beyond the place again, with other numbers.
        fs::write(&path, "{\"step\":0,\"loss\":2}\n{\"step\":1,\"loss\":7}\n{\"step\":2,\"loss\":8}\n{\"step\":3}\n").unwrap();
        let third = since(&path, second.next, &second.mark).unwrap();
        assert_eq!((third.lines.len(), third.again), (4, true));
        // A place beyond the end.
        assert!(since(&path, 1_000_000, "0").unwrap().again);
    }

    #[test]
    fn columns_are_thinned_and_keep_their_last_step() {
        let mut columns = Columns::default();
        for step in 0..10 {
            columns
                .take(format!("{{\"step\":{step},\"loss\":{}}}", 0.5 * f64::from(step)).as_bytes());
        }
        columns.take(b"{\"step\":4,\"rollback\":1,\"quantity\":\"loss\"}");
        columns.take(b"no line");
        let expected = json!({ "columns": { "loss": [[1, 5, 9], [0.5, 2.5, 4.5]] }, "backs": [4] });
        assert_eq!(columns.thinned(3), expected);
    }
}

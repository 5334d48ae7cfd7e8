//! `label id:count id:count …`, a document a line.
//!
//! Words are counted from 1, as svmlight does; a file that has a word 0 counts from 0, as
//! scikit-learn's `dump_svmlight_file` does unless told otherwise. (A file from 0 in which word 0
//! never occurs cannot be told apart: all its words are one too low, with no other harm.)

use std::fmt::Write;

use crate::data::file::Lines;
use crate::{Result, SetOffsets};

use super::Bags;

/// Reads documents with labels. Words are counted from 1 in the file, or from 0 if it has a word 0,
/// and always from 0 in the result.
///
/// ```
/// use ebp::data::words::parse_svmlight;
///
/// let bags = parse_svmlight(b"2 7:1 3:4\n0\n1 1:2 # a note\n", "news.feat")?;
/// assert_eq!((bags.words, bags.counts), (vec![6, 2, 0], vec![1, 4, 2]));
/// assert_eq!((bags.labels, bags.ids), (vec![2.0, 1.0], vec![0, 2]));
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Malformed`](crate::Error::Malformed) with the line.
pub fn parse_svmlight(bytes: &[u8], file: &str) -> Result<Bags> {
    let mut lines = Lines::new(file, bytes, Some("#"));
    let (mut words, mut counts, mut labels, mut ids) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut sizes = Vec::new();
    let (mut number, mut is_from_zero) = (0, false);
    while let Some(line) = lines.next_line()? {
        let mut parts = line.text.split_ascii_whitespace();
        let label = line.number(parts.next().unwrap_or_default())?;
        let before = words.len();
        for part in parts {
            let pair = part.split_once(':').and_then(|(word, count)| {
                Some((word.parse::<u32>().ok()?, count.parse::<u32>().ok()?))
            });
            let Some((word, count)) = pair else {
                let expected = "`word:count`, whole numbers";
                return Err(line.error(expected, format!("`{part}`")));
            };
            is_from_zero |= word == 0;
            if count > 0 {
                words.push(word);
                counts.push(count);
            }
        }
        if words.len() > before {
            sizes.push(words.len() - before);
            labels.push(label);
            ids.push(number);
        }
        number += 1;
    }
    if sizes.is_empty() {
        return Err(lines.at_end("a document such as `1 7:2 9:1`"));
    }
    if !is_from_zero {
        for word in &mut words {
            *word -= 1;
        }
    }
    Ok(Bags { offsets: SetOffsets::from_sizes(sizes)?, words, counts, ids, labels })
}

/// The documents as text. Documents without a label get 0.
pub fn svmlight_bytes(bags: &Bags) -> Vec<u8> {
    let mut text = String::new();
    for document in 0..bags.offsets.num_sets() {
        let label = bags.labels.get(document).copied().unwrap_or(0.0);
        // Writing to a string does not fail.
        let _ = write!(text, "{label}");
        for index in bags.offsets.range(document) {
            let _ = write!(text, " {}:{}", u64::from(bags.words[index]) + 1, bags.counts[index]);
        }
        text.push('\n');
    }
    text.into_bytes()
}

//! UCI's docword: the numbers of documents, words and entries, then `document word count` a line.

use std::fmt::Write;

use crate::data::file::{Line, Lines};
use crate::{Result, SetOffsets};

use super::Bags;

/// Reads documents. Documents and words are counted from 1 in the file and from 0 in the result;
/// the entries of a document must stand together, in the order of the documents.
///
/// # Errors
///
/// [`Error::Malformed`](crate::Error::Malformed) with the line.
pub fn parse_docword(bytes: &[u8], file: &str) -> Result<Bags> {
    let mut lines = Lines::new(file, bytes, None);
    let mut header = |what: &str| {
        let line = lines.expect(what)?;
        line.count(line.words().next(), what)
    };
    let num_documents = header("the number of documents")?;
    let num_words = header("the number of words")?;
    let num_entries = header("the number of entries")?;
    let (mut words, mut counts, mut ids, mut sizes) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::<usize>::new());
    for entry in 0..num_entries {
        let line = lines.expect(&format!("entry {entry} of {num_entries}"))?;
        let mut parts = line.words();
        let document = number(&line, parts.next(), "a document", num_documents)?;
        let word = number(&line, parts.next(), "a word", num_words)?;
        let count = line.count(parts.next(), "a count")?;
        let (Ok(word), Ok(count)) = (u32::try_from(word), u32::try_from(count)) else {
            return Err(line.error("numbers below 2^32", line.text));
        };
        if count == 0 {
            continue;
        }
        match (ids.last(), sizes.last_mut()) {
            (Some(&last), Some(size)) if last == document => *size += 1,
            (Some(&last), _) if last > document => {
                let expected = "documents in rising order";
                return Err(line.error(expected, format!("{} after {}", document + 1, last + 1)));
            }
            _ => {
                ids.push(document);
                sizes.push(1);
            }
        }
        words.push(word);
        counts.push(count);
    }
    if let Some(line) = lines.next_line()? {
        return Err(line.error(format!("the end after {num_entries} entries"), line.text));
    }
    if sizes.is_empty() {
        return Err(lines.at_end("an entry such as `1 7 2`"));
    }
    let offsets = SetOffsets::from_sizes(sizes)?;
    Ok(Bags { offsets, words, counts, ids, labels: Vec::new() })
}

/// A number from 1 to `count`, as one from 0.
fn number(line: &Line<'_>, word: Option<&str>, what: &str, count: usize) -> Result<usize> {
    let found = line.count(word, what)?;
    if (1..=count).contains(&found) {
        return Ok(found - 1);
    }
    Err(line.error(format!("{what} from 1 to {count}"), found.to_string()))
}

/// The documents as text.
pub fn docword_bytes(bags: &Bags) -> Vec<u8> {
    let num_documents = bags.ids.last().map_or(0, |&last| last + 1);
    let mut text = format!("{num_documents}\n{}\n{}\n", bags.num_words(), bags.words.len());
    for document in 0..bags.offsets.num_sets() {
        for index in bags.offsets.range(document) {
            let (word, count) = (u64::from(bags.words[index]) + 1, bags.counts[index]);
            // Writing to a string does not fail.
            let _ = writeln!(text, "{} {word} {count}", bags.ids[document] + 1);
        }
    }
    text.into_bytes()
}

//! Commands cut into shares for many jobs: what was typed, and the parts that shares leave behind.
//!
//! ```text
//! ebp COMMAND … --shard 1/4 -o part-1 ─┐
//! ebp COMMAND … --shard 2/4 -o part-2 ─┤
//!                …                     ├─ ebp merge part-* -o whole     the bytes of ebp COMMAND … -o whole
//! ebp COMMAND … --shard 4/4 -o part-4 ─┘
//! ```
//!
//! A part is a folder. `part.json` says what it is a part of, and once everything is there that it is
//! whole; beside it lie pieces, each a file that is there as a whole or not at all, so that a job that was
//! killed goes on with the piece that it was working on. Pieces are cut without regard to shares, and every
//! number in them is a function of the piece's own number: that is why parts of any number of shares have
//! the same bytes.

mod part;
mod parts;

use std::ops::Range;

use clap::Args;
use ebp::Share;

pub(crate) use self::part::{Part, Question, Report, inputs_of};
pub(crate) use self::parts::Parts;

/// `--shard` of commands that can be cut.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShardArgument {
    /// Do only share I of N, from 1, and keep it in the folder that `-o` names, for `ebp merge`
    #[arg(long = "shard", value_name = "I/N", requires = "out", help_heading = "Many jobs")]
    pub(crate) share: Option<Share>,
}

/// Neighbouring numbers as ranges.
pub(crate) fn runs(numbers: &[usize]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_numbers_go_together() {
        assert_eq!(runs(&[0, 1, 2, 5, 7, 8]), [0..3, 5..6, 7..9]);
        assert!(runs(&[]).is_empty());
    }
}

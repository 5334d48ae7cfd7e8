//! Batches in chunks of rows that fit into the GPU's memory.

use std::ops::Range;

use crate::SetOffsets;

/// A chunk of rows and the sets it touches.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) rows: Range<usize>,
    pub(super) first_set: usize,
    /// From the chunk's first row.
    pub(super) starts: Vec<u32>,
}

/// Cuts a batch into chunks of at most `most` rows; a set may lie in several.
pub(super) fn chunks(offsets: &SetOffsets, most: usize) -> Vec<Chunk> {
    let mut out = Vec::new();
    let total = offsets.num_elements();
    let (mut begin, mut set) = (0, 0);
    while begin < total {
        let end = total.min(begin + most.max(1));
        let first_set = set;
        let mut starts = vec![0];
        while set < offsets.num_sets() {
            let stop = offsets.range(set).end.min(end);
            starts.push((stop - begin) as u32);
            if offsets.range(set).end > end {
                break;
            }
            set += 1;
            if stop == end {
                break;
            }
        }
        out.push(Chunk { rows: begin..end, first_set, starts });
        begin = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_row_once_and_know_its_set() {
        let offsets = SetOffsets::from_sizes([3, 1, 7, 2]).unwrap();
        for most in 1..=14 {
            let mut next = 0;
            for chunk in chunks(&offsets, most) {
                assert_eq!(chunk.rows.start, next);
                assert!(chunk.rows.len() <= most && !chunk.rows.is_empty());
                assert_eq!(*chunk.starts.last().unwrap() as usize, chunk.rows.len());
                for (local, bounds) in chunk.starts.windows(2).enumerate() {
                    let set = offsets.range(chunk.first_set + local);
                    assert!(bounds[0] < bounds[1]);
                    assert!(set.contains(&(chunk.rows.start + bounds[0] as usize)));
                    assert!(set.contains(&(chunk.rows.start + bounds[1] as usize - 1)));
                }
                next = chunk.rows.end;
            }
            assert_eq!(next, 13);
        }
    }
}

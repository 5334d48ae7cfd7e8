//! The order in which numbers of shards are added, however shards are spread over processes:
//!
//! ```text
//! Σ [a, b) = Σ [a, m) + Σ [m, b),   m = a + the largest power of two below b − a
//! ```
//!
//! A process adds what lies within whole nodes of this tree ([`cover`]) and hands over one array per node,
//! so that what travels does not grow with the number of shards. Four shards in two processes:
//! (g₀ + g₁) here, (g₂ + g₃) there, then their sum, as one process would.

use std::collections::VecDeque;
use std::ops::{AddAssign, Range};

use rayon::prelude::*;

/// Entries that one thread adds at a time.
const PART: usize = 1 << 16;

/// A number that shards hand in.
pub(super) trait Number: Copy + AddAssign + Send + Sync {
    /// A share of it.
    fn over(self, count: usize) -> Self;

    /// Appends the bytes of numbers.
    fn write(numbers: &[Self], bytes: &mut Vec<u8>);

    /// The numbers of bytes.
    fn read(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! number {
    ($number:ty) => {
        impl Number for $number {
            fn over(self, count: usize) -> Self {
                self / count as Self
            }

            fn write(numbers: &[Self], bytes: &mut Vec<u8>) {
                let start = bytes.len();
                bytes.resize(start + size_of_val(numbers), 0);
                let places = bytes[start..].as_chunks_mut().0;
                for (place, number) in places.iter_mut().zip(numbers) {
                    *place = number.to_le_bytes();
                }
            }

            fn read(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|&bytes| Self::from_le_bytes(bytes)).collect()
            }
        }
    };
}

number!(f32);
number!(f64);

/// Sums of shards `.0`.
pub(super) type Node<N> = (Range<usize>, Vec<N>);

fn middle(node: &Range<usize>) -> usize {
    // The largest power of two below the length, which is at least 2.
    node.start + (1 << (node.len() - 1).ilog2())
}

/// The largest nodes of the tree over `0..count` that lie within `own`, in order.
pub(super) fn cover(own: &Range<usize>, count: usize) -> Vec<Range<usize>> {
    fn visit(node: Range<usize>, own: &Range<usize>, found: &mut Vec<Range<usize>>) {
        if node.end <= own.start || own.end <= node.start {
            return;
        }
        if own.start <= node.start && node.end <= own.end {
            found.push(node);
            return;
        }
        let middle = middle(&node);
        visit(node.start..middle, own, found);
        visit(middle..node.end, own, found);
    }
    let mut found = Vec::new();
    visit(0..count, own, &mut found);
    found
}

/// The sum over `node` of parts that are nodes below it, in order, and as long as each other.
pub(super) fn sum<N: Number>(node: Range<usize>, parts: &mut VecDeque<Node<N>>) -> Vec<N> {
    if parts.front().is_none_or(|(range, _)| *range == node) || node.len() < 2 {
        return parts.pop_front().map_or_else(Vec::new, |(_, values)| values);
    }
    let middle = middle(&node);
    let mut left = sum(node.start..middle, parts);
    let right = sum(middle..node.end, parts);
    add(&mut left, &right);
    left
}

fn add<N: Number>(sum: &mut [N], terms: &[N]) {
    let add_part = |(sum, terms): (&mut [N], &[N])| {
        for (sum, term) in sum.iter_mut().zip(terms) {
            *sum += *term;
        }
    };
    if sum.len() <= PART {
        add_part((sum, terms));
    } else {
        sum.par_chunks_mut(PART).zip(terms.par_chunks(PART)).for_each(add_part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singles(range: Range<usize>, values: &[f32]) -> VecDeque<Node<f32>> {
        range.map(|shard| (shard..shard + 1, vec![values[shard]; 2])).collect()
    }

    #[test]
    fn nodes_are_the_largest_within_a_range() {
        let one = |node: Range<usize>| std::iter::once(node).collect::<Vec<_>>();
        assert_eq!(cover(&(0..4), 4), one(0..4));
        assert_eq!(cover(&(2..4), 4), one(2..4));
        assert_eq!(cover(&(1..3), 4), [1..2, 2..3]);
        assert_eq!(cover(&(0..3), 6), [0..2, 2..3]);
        assert_eq!(cover(&(3..6), 6), [3..4, 4..6]);
        assert_eq!(cover(&(0..1), 1), one(0..1));
    }

    /// Numbers whose sum depends on the order: however they are spread over processes, it is the same.
    #[test]
    fn the_sum_does_not_know_where_shards_were() {
        let values: Vec<f32> =
            (0..7).map(|i| 1.0 / 3.0_f32.powi(i) + 1e7 * (i % 2) as f32).collect();
        for count in 1..=7 {
            let whole = sum(0..count, &mut singles(0..count, &values));
            for processes in 1..=count {
                let mut nodes = VecDeque::new();
                for process in 0..processes {
                    let own = process * count / processes..(process + 1) * count / processes;
                    for node in cover(&own, count) {
                        let part = sum(node.clone(), &mut singles(node.clone(), &values));
                        nodes.push_back((node, part));
                    }
                }
                let found = sum(0..count, &mut nodes);
                assert_eq!(found.len(), 2);
                assert_eq!(found[0].to_bits(), whole[0].to_bits(), "{count} in {processes}");
            }
        }
        let four = sum(0..4, &mut singles(0..4, &values));
        let expected = (values[0] + values[1]) + (values[2] + values[3]);
        assert_eq!(four[0].to_bits(), expected.to_bits());
    }

    #[test]
    fn long_sums_are_those_of_short_ones() {
        let long = |value: f64| (0..3 * PART).map(|i| value + i as f64).collect::<Vec<_>>();
        let mut parts = VecDeque::from([(0..1, long(0.25)), (1..2, long(0.5))]);
        let found = sum(0..2, &mut parts);
        let expected: Vec<f64> = (0..3 * PART).map(|i| 0.75 + 2.0 * i as f64).collect();
        assert_eq!(found, expected);
    }
}

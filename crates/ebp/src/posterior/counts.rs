//! A vector per word, by the logarithm of its count, summed over the distinct words of a set:
//!
//! ```text
//! h = silu( Σ_w r_w v[w] + b ),   r_w = ℓ_w √(LENGTH / Σ_v ℓ_v²),   ℓ_w = log(1 + c_w)
//! ```
//!
//! Rows r have one length, so that short and long sets are read alike; `sees_size` tells them apart.

use std::sync::Arc;

use super::PosteriorRows;
use crate::batch::{SetBatch, WordCounts};
use crate::nn::Initialiser;
use crate::recipe::EnergyBasedConfig;
use crate::tape::{Choice, Group, Parameter, Tape, Var};
use crate::{Result, SetOffsets};

/// Squared length of the rows.
const LENGTH: f32 = 9.0;

#[derive(Clone, Debug)]
pub(super) struct Counts {
    num_words: usize,
    /// v, `[words, width]`.
    vectors: Parameter,
    bias: Parameter,
    width: usize,
}

impl Counts {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        num_words: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let width = config.encoder_widths[0];
        let start = Initialiser::Normal { mean: 0.0, std_dev: FIRST_STD_DEV };
        Ok(Self {
            num_words,
            vectors: group.trained("words", &[num_words, width], start)?,
            bias: group.trained("bias", &[width], Initialiser::Zeros)?,
            width,
        })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        let counted = WordCounts::new(sets, self.num_words)?;
        let (mut rows, mut words, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for set in 0..counted.num_sets() {
            let start = rows.len();
            for (word, count) in counted.of_set(set) {
                rows.push((count as f32).ln_1p());
                words.push(word);
            }
            if rows.len() == start {
                // A word that nobody looks at.
                rows.push(0.0);
                words.push(0);
            }
            let squares: f32 = rows[start..].iter().map(|r| r * r).sum();
            let scale = if squares > 0.0 { (LENGTH / squares).sqrt() } else { 0.0 };
            rows[start..].iter_mut().for_each(|r| *r *= scale);
            sizes.push(rows.len() - start);
        }
        let found: Vec<usize> = (0..counted.num_sets()).map(|set| counted.size(set)).collect();
        Ok(PosteriorRows {
            offsets: SetOffsets::from_sizes(sizes)?,
            words: Some(Choice::new(self.num_words, words)?),
            ..PosteriorRows::new(rows, &found, 1)?
        })
    }

    /// The sum, and the same after the activation.
    pub(super) fn read(
        &self,
        tape: &mut Tape,
        rows: Var,
        (words, offsets): (&Arc<Choice>, &Arc<SetOffsets>),
    ) -> Result<(Var, Var)> {
        let vectors = tape.parameter(&self.vectors)?;
        let chosen = tape.gather(vectors, words)?;
        let weighted = tape.multiply(chosen, rows)?;
        let sum = tape.set_sums(weighted, offsets)?;
        let bias = tape.parameter(&self.bias)?;
        let sum = tape.add(sum, bias)?;
        Ok((sum, tape.silu(sum)?))
    }
}

/// Standard deviation of v at the start: sums are then of the order of 1/3.
const FIRST_STD_DEV: f32 = 0.1;

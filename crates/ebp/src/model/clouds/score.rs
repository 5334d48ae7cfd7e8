//! How likely clouds and their points are: [`SetScore`] in the units of the data.
//!
//! p(θ) is the law that clouds are drawn with; see `process/energy_based/score.rs` for the rest.
//!
//! ```text
//! rank = (1 + #{training sets j: log p₋ⱼ(μⱼ) ≤ log p(μ)}) / (1 + number of training sets)
//! ```
//!
//! p₋ⱼ is the law without what set j added to it. Of new sets of the kind trained on a share α has a rank
//! of at most α. It is a test for strange sets where the likelihood of their points is none: θ is found for
//! every set, and an energy gives compact sets more than large ones, whatever they are.

use std::ops::Range;
use std::sync::Arc;

use super::{CloudModel, PriorKind};
use crate::data::CloudSource;
use crate::latent::Prior;
use crate::process::{BoundedPartition, ENCODED_AT_ONCE, LatentCodes, ScoreSettings, SetScore};
use crate::rng::Stream;
use crate::{Error, Result};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ScoreOptions {
    /// The law of θ.
    pub prior: PriorKind,
    /// How it is integrated out.
    pub settings: ScoreSettings,
    /// All randomness.
    pub stream: Stream,
}

impl Default for ScoreOptions {
    fn default() -> Self {
        Self {
            prior: PriorKind::Kernel,
            settings: ScoreSettings::default(),
            stream: Stream::new(0, "score"),
        }
    }
}

/// What the encoder says of a cloud; as the fields of the same name in [`SetScore`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeScore {
    /// log p(μ) under the law of θ.
    pub log_law: f64,
    /// The share of sets trained on for which it is as small.
    pub rank: Option<f64>,
    /// KL(q(θ | set) ‖ N(0, I)) in nats.
    pub kl: f64,
}

/// log p₋ⱼ(μⱼ) of the sets trained on, ascending.
struct Ranks(Vec<f64>);

impl Ranks {
    fn of(&self, log_law: f64) -> Option<f64> {
        let below = self.0.partition_point(|of_training| *of_training <= log_law);
        (!self.0.is_empty()).then(|| (1 + below) as f64 / (1 + self.0.len()) as f64)
    }
}

impl CloudModel {
    /// Scores clouds in the units of the data, one after the other: `take` gets the number of each and
    /// what was found, so that neither the clouds nor all their points' numbers need be in memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the clouds do not fit; as
    /// [`prior`](Self::prior).
    pub fn score(
        &self,
        clouds: &CloudSource,
        options: &ScoreOptions,
        take: &mut dyn FnMut(usize, SetScore),
    ) -> Result<()> {
        self.score_range(clouds, 0..clouds.num_sets(), options, &mut |number, score| {
            take(number, score);
            Ok(())
        })
    }

    /// The same of the clouds `range`: what is found about a cloud does not depend on the range. It ends
    /// with the first error that `take` gives.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score), [`Error::InvalidValue`] if there are not so many clouds, and as `take`.
    pub fn score_range(
        &self,
        clouds: &CloudSource,
        range: Range<usize>,
        options: &ScoreOptions,
        take: &mut dyn FnMut(usize, SetScore) -> Result<()>,
    ) -> Result<()> {
        let ScoreOptions { prior, settings, stream } = options;
        let (prior, ranks) = self.ranks(*prior)?;
        let clouds = self.standardise(clouds)?;
        let codes = self.encode_range(&clouds, range.clone())?;
        let shift = self.log_scale();
        for number in range.clone() {
            let stream = stream.child(1 + number as u64);
            let (set, code) = (clouds.set(number), codes.of_set(number - range.start));
            let mut score = self.process.score_set(&set, code, &*prior, settings, stream)?;
            #[expect(clippy::cast_possible_truncation, reason = "log densities of points are f32")]
            score.log_densities.iter_mut().for_each(|density| *density -= shift as f32);
            score.log_partition.value += shift;
            if let Some(bounds) = &mut score.partition_bounds {
                bounds.lower.value += shift;
                bounds.upper.value += shift;
            }
            score.log_likelihood.value -= score.energies.len() as f64 * shift;
            let num_inside = score.energies.len() - score.outside;
            score.inside.value -= num_inside as f64 * shift;
            if let Some(allowed) = &mut score.neighbours {
                allowed.value -= shift;
            }
            score.rank = ranks.of(score.log_law);
            take(number, score)?;
        }
        Ok(())
    }

    /// Codes of some standardised clouds, each as if all were encoded.
    fn encode_range(&self, clouds: &CloudSource, range: Range<usize>) -> Result<LatentCodes> {
        let count = clouds.num_sets();
        if range.start > range.end || range.end > count {
            let expected = format!("within 0..{count}, the clouds");
            return Err(Error::invalid("range", expected, format!("{range:?}")));
        }
        self.process.encode_range(count, range, |set, part| part.push(&[], &clouds.set(set)))
    }

    /// What the encoder alone says of clouds: log p(μ), its rank and the KL from N(0, I) of each. Takes
    /// the time of encoding them, as no energy is looked at.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score).
    pub fn score_codes(&self, clouds: &CloudSource, prior: PriorKind) -> Result<Vec<CodeScore>> {
        self.score_codes_range(clouds, 0..clouds.num_sets(), prior)
    }

    /// The same of the clouds `range`: what is said of a cloud does not depend on the range.
    ///
    /// # Errors
    ///
    /// As [`score_range`](Self::score_range).
    pub fn score_codes_range(
        &self,
        clouds: &CloudSource,
        range: Range<usize>,
        prior: PriorKind,
    ) -> Result<Vec<CodeScore>> {
        let (prior, ranks) = self.ranks(prior)?;
        let count = clouds.num_sets();
        // In the company in which all are encoded: a law may round otherwise where rows are more or fewer.
        let start = range.start / ENCODED_AT_ONCE * ENCODED_AT_ONCE;
        let end = range.end.next_multiple_of(ENCODED_AT_ONCE).min(count.max(range.end));
        let codes = self.encode_range(&self.standardise(clouds)?, start..end)?;
        let mut laws = Vec::with_capacity(codes.num_sets());
        for means in codes.mean.chunks(ENCODED_AT_ONCE * self.latent_dim()) {
            laws.extend(prior.log_density(means)?);
        }
        let score = |set: usize| CodeScore {
            log_law: laws[set],
            rank: ranks.of(laws[set]),
            kl: codes.kl_of_set(set),
        };
        Ok((range.start - start..range.end - start).map(score).collect())
    }

    /// A law of θ, and what it says of the sets it was fitted to.
    fn ranks(&self, kind: PriorKind) -> Result<(Arc<dyn Prior>, Ranks)> {
        let prior = self.prior(kind).map_err(|error| {
            let message = format!("the law of θ needs the codes of the training sets: {error}");
            Error::refused(message).with_help("`--prior standard` needs none")
        })?;
        let Ok(codes) = self.codes() else { return Ok((prior, Ranks(Vec::new()))) };
        let mut laws = prior.log_density_left_out(&codes.mean)?;
        laws.sort_by(f64::total_cmp);
        Ok((prior, Ranks(laws)))
    }

    /// d log scale: densities of data are those of standardised points over scaleᵈ.
    fn log_scale(&self) -> f64 {
        self.dim() as f64 * f64::from(self.scale.affine.scale).ln()
    }

    /// log Z at the codes of standardised sets, from both sides, the mean over the sets in the units of the
    /// data; `None` without a learned sampler whose density is known anywhere.
    pub(crate) fn bounded_partition<S: AsRef<[f32]>>(
        &self,
        sets: &[S],
        stream: Stream,
    ) -> Result<Option<BoundedPartition>> {
        let codes = self.encode_sets(sets)?;
        let mut found = Vec::with_capacity(sets.len());
        for (number, set) in sets.iter().enumerate() {
            let (mean, _) = codes.of_set(number);
            let stream = stream.child(number as u64);
            match self.process.bounded_partition_of_set(set.as_ref(), mean, stream)? {
                Some(of_set) => found.push(of_set.shifted(self.log_scale())),
                None => return Ok(None),
            }
        }
        Ok(BoundedPartition::mean(&found))
    }
}

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

use std::sync::Arc;

use super::{CloudModel, PriorKind};
use crate::data::CloudSource;
use crate::latent::Prior;
use crate::process::{BoundedPartition, ScoreSettings, SetScore};
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
        let ScoreOptions { prior, settings, stream } = options;
        let (prior, ranks) = self.ranks(*prior)?;
        let clouds = self.standardise(clouds)?;
        let codes = self.encode_standardised(&clouds)?;
        let shift = self.log_scale();
        for number in 0..clouds.num_sets() {
            let stream = stream.child(1 + number as u64);
            let (set, code) = (clouds.set(number), codes.of_set(number));
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
            take(number, score);
        }
        Ok(())
    }

    /// What the encoder alone says of clouds: log p(μ), its rank and the KL from N(0, I) of each. Takes
    /// the time of encoding them, as no energy is looked at.
    ///
    /// # Errors
    ///
    /// As [`score`](Self::score).
    pub fn score_codes(&self, clouds: &CloudSource, prior: PriorKind) -> Result<Vec<CodeScore>> {
        let (prior, ranks) = self.ranks(prior)?;
        let codes = self.encode_standardised(&self.standardise(clouds)?)?;
        let laws = prior.log_density(&codes.mean)?;
        let score = |(set, log_law): (usize, f64)| CodeScore {
            log_law,
            rank: ranks.of(log_law),
            kl: codes.kl_of_set(set),
        };
        Ok(laws.into_iter().enumerate().map(score).collect())
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

//! Completions of pictures, judged pixel by pixel and as a whole.
//!
//! A part of a picture is given, θ is drawn a few times, and every unknown pixel is asked for:
//!
//! ```text
//! bits            −log₂ mean_θ p(x | t, θ), mean over unknown pixels and channels
//! joint           −log₂ of all unknown pixels together, per pixel and channel: a bound, by draws of
//!                 the latents given everything where there are such
//! in rounds       the same where later pixels see earlier ones: the law of a procedure
//! density         as bits, of the density at the dequantised value, times the width of a cell
//! best error      min_θ of the mean squared error of E[x | t, θ], on [−1, 1]
//! diversity       variance over θ of E[x | t, θ]
//! agreement       completions that a classifier takes for the digit that was there
//! ```
//!
//! Bits are exact probabilities of the 256 levels: a Gaussian gives a level the integral of its
//! density over the level's cell, so that models with and without atoms can be compared.

mod classifier;

pub use classifier::{Classifier, ClassifierConfig};

use crate::data::image::{Images, KnownPart};
use crate::linalg::log_sum_exp;
use crate::process::{
    Finish, Hypotheses, LEVEL_CELL, LatentProcess, Task, draw_in_rounds, log_mass_in_rounds,
    picture_task,
};
use crate::rng::Stream;
use crate::{Error, Result};

/// Above this confidence of a classifier that sees the known part only, the part decides.
const DECIDED: f32 = 0.95;

/// What to complete.
#[derive(Clone, Copy, Debug)]
pub struct CompletionTask<'a> {
    /// Pictures that were not learned from.
    pub images: &'a Images,
    /// How many of them.
    pub num_pictures: usize,
    /// What is given of each.
    pub part: KnownPart,
    /// Draws of θ per picture.
    pub num_draws: usize,
    /// Pictures that are also completed in rounds.
    pub rounds: Option<RoundsTask>,
    /// Chooses known pixels, values within their cells, and θ.
    pub stream: Stream,
}

/// How pictures are completed in rounds, later pixels given earlier ones.
#[derive(Clone, Copy, Debug)]
pub struct RoundsTask {
    /// Portions of the unknown pixels, which grow with what is known.
    pub rounds: usize,
    /// The first so many of the pictures.
    pub num_pictures: usize,
    /// Completions of each.
    pub num_completions: usize,
}

/// Who says what a completion shows.
#[derive(Clone, Copy, Debug)]
pub struct Judges<'a> {
    /// What the pictures show.
    pub labels: &'a [u32],
    /// Of whole pictures.
    pub whole: &'a Classifier,
    /// Of the known part alone, if there is one: it says which pictures the part decides.
    pub part: Option<&'a Classifier>,
}

/// A number with its standard error over pictures.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub stderr: f64,
}

/// How well pictures were completed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CompletionScore {
    /// Bits per unknown pixel and channel, by the mixture over θ.
    pub bits: Estimate,
    /// Bits of all unknown pixels together, per pixel and channel.
    pub joint_bits: Estimate,
    /// Bits by the density at the dequantised value.
    pub density_bits: Estimate,
    /// Squared error of the best of all draws.
    pub best_error: Estimate,
    /// Variance over draws.
    pub diversity: Estimate,
    /// Share of completions that show what the picture shows.
    pub agreement: Option<Estimate>,
    /// The same where the known part decides, and the share of pictures where it does.
    pub decided_agreement: Option<Estimate>,
    /// That share.
    pub decided: Option<f64>,
    /// How many different digits the draws of a picture show.
    pub num_kinds: Option<Estimate>,
    /// The same in rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<RoundsScore>,
}

/// How well pictures were completed in rounds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RoundsScore {
    /// Bits of all unknown pixels together, per pixel and channel.
    pub bits: Estimate,
    /// Squared error of the best of all completions.
    pub best_error: Estimate,
    /// Variance over completions.
    pub diversity: Estimate,
    /// Share of completions that show what the picture shows.
    pub agreement: Option<Estimate>,
    /// The same where the known part decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_agreement: Option<Estimate>,
}

/// Completes pictures and judges what comes out.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there are no pictures or draws, or too few labels; otherwise what the
/// process says.
pub fn judge_completions(
    process: &dyn LatentProcess,
    task: &CompletionTask<'_>,
    judges: Option<&Judges<'_>>,
) -> Result<CompletionScore> {
    let count = task.num_pictures.min(task.images.len());
    if count == 0 || task.num_draws == 0 {
        return Err(Error::invalid("num_pictures and num_draws", "at least 1", 0));
    }
    if let Some(judges) = judges
        && judges.labels.len() < count
    {
        let expected = format!("at least {count}");
        return Err(Error::invalid("labels", expected, judges.labels.len()));
    }
    let mut tally = Tally::default();
    for index in 0..count {
        let stream = task.stream.child(index as u64);
        let (width, height) = (task.images.width, task.images.height);
        let mask = task.part.mask(width, height, stream.child(0));
        let cut = picture_task(task.images, index, &mask, stream.child(1))?;
        let (context, target) = (&cut.context, &cut.target);
        let found =
            process.hypotheses(context, target, LEVEL_CELL, task.num_draws, stream.child(2))?;
        let joint_stream = stream.child(3);
        let (cell, draws) = (LEVEL_CELL, task.num_draws);
        let joint = process.log_joint_mass(context, target, cell, draws, joint_stream)?;
        tally.add(&cut, &found, (task.num_draws, joint));
        if let Some(judges) = judges {
            let pictures = Pictures { task, mask: &mask, index };
            tally.add_verdicts(judges, &pictures, &found)?;
        }
        if let Some(plan) = task.rounds.filter(|plan| index < plan.num_pictures) {
            let picture = Pictures { task, mask: &mask, index };
            tally.add_rounds(process, (&cut, &picture), (plan, judges), stream.child(4))?;
        }
    }
    Ok(tally.score(judges))
}

/// One picture and what is known of it.
struct Pictures<'a> {
    task: &'a CompletionTask<'a>,
    mask: &'a [bool],
    index: usize,
}

impl Pictures<'_> {
    /// Grey values on [0, 1] of every draw's completion, `[draws, pixels]`.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn completed(&self, means: &[f64]) -> Vec<f32> {
        let original = self.task.images.image(self.index);
        let channels = self.task.images.channels;
        let num_unknown = self.mask.iter().filter(|known| !**known).count();
        let mut pictures = Vec::new();
        for means in means.chunks_exact(num_unknown * channels) {
            let mut means = means.iter();
            for (pixel, &known) in original.chunks_exact(channels).zip(self.mask) {
                for level in pixel {
                    pictures.push(if known {
                        (f32::from(*level) + 0.5) / 256.0
                    } else {
                        means.next().map_or(0.0, |mean| 0.5 * (mean + 1.0) as f32)
                    });
                }
            }
        }
        pictures
    }

    /// The picture with nothing where it is not known.
    fn known(&self) -> Vec<f32> {
        let original = self.task.images.image(self.index);
        let channels = self.task.images.channels;
        let pixels = original.iter().enumerate();
        pixels
            .map(
                |(at, level)| {
                    if self.mask[at / channels] { (f32::from(*level) + 0.5) / 256.0 } else { 0.0 }
                },
            )
            .collect()
    }
}

/// Sums over pictures.
#[derive(Default)]
struct Tally {
    /// Per picture: unknown numbers, and the sums of nats by mixture, jointly and by density.
    sizes: Vec<f64>,
    mixture: Vec<f64>,
    joint: Vec<f64>,
    density: Vec<f64>,
    best: Vec<f64>,
    diversity: Vec<f64>,
    agreement: Vec<f64>,
    kinds: Vec<f64>,
    decided: Vec<bool>,
    /// In rounds: unknown numbers, and the same of each picture.
    round_sizes: Vec<f64>,
    in_rounds: Vec<f64>,
    round_best: Vec<f64>,
    round_diversity: Vec<f64>,
    round_agreement: Vec<f64>,
}

impl Tally {
    fn add(&mut self, cut: &Task, found: &Hypotheses, (draws, joint): (usize, f64)) {
        let (m, numbers) = (cut.target.len(), cut.target.values());
        let log_draws = (draws as f64).ln();
        let mixed = |terms: &[f64]| -> f64 {
            let column = |target: usize| -> Vec<f64> {
                terms.iter().skip(target).step_by(m).copied().collect()
            };
            (0..m).map(|target| log_sum_exp(&column(target)) - log_draws).sum()
        };
        self.sizes.push(numbers.len() as f64);
        self.mixture.push(-mixed(&found.log_mass));
        let log_cell = LEVEL_CELL.ln() * numbers.len() as f64;
        self.density.push(-mixed(&found.log_density) - log_cell);
        self.joint.push(-joint);
        self.best.push(best_error(&found.mean, numbers));
        self.diversity.push(diversity(&found.mean, numbers.len()));
    }

    fn add_rounds(
        &mut self,
        process: &dyn LatentProcess,
        (cut, picture): (&Task, &Pictures<'_>),
        (plan, judges): (RoundsTask, Option<&Judges<'_>>),
        stream: Stream,
    ) -> Result<()> {
        let sets = (&cut.context, &cut.target);
        let law = (LEVEL_CELL, picture.task.num_draws);
        let nats = log_mass_in_rounds(process, sets, law, plan.rounds, stream.child(0))?;
        let mut drawn = Vec::new();
        for number in 0..plan.num_completions as u64 {
            let stream = stream.child(1 + number);
            let how = (plan.rounds, Finish::Means);
            drawn.extend(draw_in_rounds(process, sets, LEVEL_CELL, how, stream)?);
        }
        let numbers = cut.target.values();
        self.round_sizes.push(numbers.len() as f64);
        self.in_rounds.push(-nats);
        self.round_best.push(best_error(&drawn, numbers));
        self.round_diversity.push(diversity(&drawn, numbers.len()));
        if let Some(judges) = judges {
            let label = judges.labels[picture.index];
            let verdicts = judges.whole.classify(&picture.completed(&drawn))?;
            self.round_agreement.push(agreement(&verdicts, label));
        }
        Ok(())
    }

    fn add_verdicts(
        &mut self,
        judges: &Judges<'_>,
        picture: &Pictures<'_>,
        found: &Hypotheses,
    ) -> Result<()> {
        let label = judges.labels[picture.index];
        let verdicts = judges.whole.classify(&picture.completed(&found.mean))?;
        self.agreement.push(agreement(&verdicts, label));
        let mut kinds: Vec<u32> = verdicts.iter().map(|(class, _)| *class).collect();
        kinds.sort_unstable();
        kinds.dedup();
        self.kinds.push(kinds.len() as f64);
        if let Some(part) = judges.part {
            let verdict = part.classify(&picture.known())?;
            self.decided.push(verdict.first().is_some_and(|(_, sure)| *sure >= DECIDED));
        }
        Ok(())
    }

    fn score(&self, judges: Option<&Judges<'_>>) -> CompletionScore {
        let bits = |nats: &[f64]| in_bits(ratio(nats, &self.sizes));
        let where_decided = |agreement: &[f64]| {
            let pairs = agreement.iter().zip(&self.decided).filter(|(_, decided)| **decided);
            let found: Vec<f64> = pairs.map(|(agreement, _)| *agreement).collect();
            (!found.is_empty()).then(|| plain(&found))
        };
        let has_part = judges.is_some_and(|judges| judges.part.is_some());
        CompletionScore {
            bits: bits(&self.mixture),
            joint_bits: bits(&self.joint),
            density_bits: bits(&self.density),
            best_error: plain(&self.best),
            diversity: plain(&self.diversity),
            agreement: judges.map(|_| plain(&self.agreement)),
            decided_agreement: where_decided(&self.agreement),
            decided: has_part.then(|| {
                let count = self.decided.iter().filter(|decided| **decided).count();
                count as f64 / self.decided.len() as f64
            }),
            num_kinds: judges.map(|_| plain(&self.kinds)),
            rounds: (!self.in_rounds.is_empty()).then(|| RoundsScore {
                bits: in_bits(ratio(&self.in_rounds, &self.round_sizes)),
                best_error: plain(&self.round_best),
                diversity: plain(&self.round_diversity),
                agreement: judges.map(|_| plain(&self.round_agreement)),
                decided_agreement: where_decided(&self.round_agreement),
            }),
        }
    }
}

fn in_bits(nats: Estimate) -> Estimate {
    let bit = std::f64::consts::LN_2;
    Estimate { mean: nats.mean / bit, stderr: nats.stderr / bit }
}

/// Squared error of the best of completions `[draws, numbers]`.
fn best_error(completions: &[f64], numbers: &[f64]) -> f64 {
    let error = |means: &[f64]| {
        let squares = means.iter().zip(numbers).map(|(mean, x)| (mean - x).powi(2));
        squares.sum::<f64>() / numbers.len() as f64
    };
    completions.chunks_exact(numbers.len()).map(error).fold(f64::INFINITY, f64::min)
}

/// Variance over completions `[draws, count]`, mean over numbers.
fn diversity(completions: &[f64], count: usize) -> f64 {
    let variance = |at: usize| {
        let draws: Vec<f64> = completions.iter().skip(at).step_by(count).copied().collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (draws.len() - 1).max(1) as f64
    };
    (0..count).map(variance).sum::<f64>() / count as f64
}

/// The share of verdicts that name the class.
fn agreement(verdicts: &[(u32, f32)], label: u32) -> f64 {
    let agreeing = verdicts.iter().filter(|(class, _)| *class == label).count();
    agreeing as f64 / verdicts.len().max(1) as f64
}

/// Σ a / Σ b, with its standard error over pictures by the delta method.
fn ratio(numerators: &[f64], denominators: &[f64]) -> Estimate {
    let total: f64 = denominators.iter().sum();
    let mean = numerators.iter().sum::<f64>() / total;
    let spread: f64 =
        numerators.iter().zip(denominators).map(|(a, b)| (a - mean * b).powi(2)).sum();
    let count = numerators.len() as f64;
    Estimate { mean, stderr: (spread * count / (count - 1.0).max(1.0)).sqrt() / total }
}

fn plain(numbers: &[f64]) -> Estimate {
    ratio(numbers, &vec![1.0; numbers.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_equal_parts_is_a_mean_with_its_usual_error() {
        // 1, 2, 3: mean 2, standard deviation 1, standard error 1/√3.
        let found = plain(&[1.0, 2.0, 3.0]);
        assert!((found.mean - 2.0).abs() < 1e-12);
        assert!((found.stderr - 1.0 / 3_f64.sqrt()).abs() < 1e-12);
        assert!((ratio(&[10.0, 2.0], &[5.0, 1.0]).stderr).abs() < 1e-12);
    }
}

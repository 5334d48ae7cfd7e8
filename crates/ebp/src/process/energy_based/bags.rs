//! Bags of words: the law of further words, given some, and how likely whole bags are.
//!
//! ```text
//! p(w | context) = E_q(θ | context) p(w | θ, context),   p(w | θ, context) = (c_w + s m_w(θ)) / (n + s)
//! log p(bag) = log E_q(θ | bag) [ p(bag | θ) p(θ)/q(θ | bag) ] ≥ E_q log [ … ]
//! ```
//!
//! Without an urn (s → ∞) words are independent given θ and p(w | θ, context) = m_w(θ). All sums over the
//! vocabulary are exact; what is estimated is the mean over θ.

use rayon::prelude::*;

use super::grid::effective;
use super::{Energy, EnergyBasedProcess, LOG_ROOT_TAU, LatentCodes};
use crate::batch::{SetBatch, WordCounts, word};
use crate::energy::{WordRows, WordsEnergy};
use crate::latent::{DirichletPrior, Prior, StandardPrior};
use crate::process::task::check_dimensions;
use crate::process::{LogDensity, Predictive};
use crate::recipe::LatentLaw;
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

/// Numbers of potentials that are computed at once.
const AT_ONCE: usize = 1 << 21;

/// How likely a bag is, its words taken in an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BagEvidence {
    /// The lower bound E_q log [p(bag | θ) p(θ)/q(θ)], by draws.
    pub bound: LogDensity,
    /// log p(bag), the logarithm of their mean.
    pub log_likelihood: LogDensity,
    /// Draws that count in it, (Σw)²/Σw².
    pub effective_draws: f64,
}

/// The law of further words, given some.
#[derive(Debug)]
pub struct BagPredictive<'a> {
    process: &'a EnergyBasedProcess,
    words: &'a WordsEnergy,
    context: WordCounts,
    /// Draws of θ, `[draws, k]`.
    thetas: Vec<f32>,
}

impl<'a> BagPredictive<'a> {
    pub(super) fn new(
        process: &'a EnergyBasedProcess,
        words: &'a WordsEnergy,
        context: &IndexedSet,
    ) -> Result<Self> {
        let batch = process.as_batch("context", context)?;
        let counted = WordCounts::new(&batch, words.num_words)?;
        let codes = process.encode(&batch)?;
        let draws = process.config.num_draws;
        let stream = Stream::new(0, "prediction");
        let is_told = !context.is_empty();
        let thetas = process.latent_draws(codes.of_set(0), is_told, draws, stream)?;
        Ok(Self { process, words, context: counted, thetas })
    }

    /// p(w | θ, context) of every word under every draw, `[draws, words]`.
    fn laws(&self) -> Result<Vec<f32>> {
        let mut laws = self.process.shares(self.words, &self.thetas)?;
        if let Some(size) = self.process.urn_size()? {
            for law in laws.chunks_exact_mut(self.words.num_words) {
                add_context(law, size, (&self.context, 0));
            }
        }
        Ok(laws)
    }
}

impl Predictive for BagPredictive<'_> {
    fn log_density(&self, targets: &IndexedSet) -> Result<Vec<LogDensity>> {
        check_dimensions("targets", targets, 0, 1)?;
        let num_words = self.words.num_words;
        let asked = targets.values().iter().map(|&value| word(value, num_words));
        let asked = asked.collect::<Result<Vec<u32>>>()?;
        let laws = self.laws()?;
        let density = |&word: &u32| {
            let terms = laws.iter().skip(word as usize).step_by(num_words);
            let terms = terms.map(|&p| f64::from(p.max(f32::MIN_POSITIVE)).ln());
            LogDensity::of_mean(&terms.collect::<Vec<f64>>())
        };
        Ok(asked.iter().map(density).collect())
    }

    /// `count` words of one θ, one after the other out of the urn; there are no locations.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times the number of draws is one of their numbers"
    )]
    fn sample(&self, _locations: &[f64], count: usize, stream: Stream) -> Result<Vec<f64>> {
        let mut uniforms = vec![0.0_f32; count + 1];
        stream.fill_uniform(0, 0, &mut uniforms);
        let (k, num_words) = (self.process.config.latent_dim, self.words.num_words);
        let draw = (uniforms[count] * self.process.config.num_draws as f32) as usize;
        let shares = self.process.shares(self.words, &self.thetas[draw * k..][..k])?;
        let size = self.process.urn_size()?;
        // Shares of the urn, of which there are `size` before any word is known.
        let mut urn: Vec<f64> =
            shares.iter().map(|&m| f64::from(m) * size.unwrap_or(1.0)).collect();
        if size.is_some() {
            self.context.of_set(0).for_each(|(word, count)| urn[word as usize] += f64::from(count));
        }
        let mut drawn = Vec::with_capacity(count);
        for &uniform in &uniforms[..count] {
            let mut left = f64::from(uniform) * urn.iter().sum::<f64>();
            let passed = urn.iter().position(|&share| {
                left -= share;
                left < 0.0
            });
            let word = passed.unwrap_or(num_words - 1);
            if size.is_some() {
                urn[word] += 1.0;
            }
            drawn.push(word as f64);
        }
        Ok(drawn)
    }
}

/// m ← (c + s m)/(n + s).
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn add_context(law: &mut [f32], size: f64, (context, set): (&WordCounts, usize)) {
    let below = 1.0 / (context.size(set) as f64 + size);
    let share = (size * below) as f32;
    for m in &mut *law {
        *m *= share;
    }
    for (word, count) in context.of_set(set) {
        law[word as usize] += (f64::from(count) * below) as f32;
    }
}

impl EnergyBasedProcess {
    /// Tells the frequencies of the words, the base measure p₀: half a count is added to each.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless elements are words and there is one count for each.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub fn tell_frequencies(&mut self, counts: &[u64]) -> Result<()> {
        let base = *self.words()?.base();
        if counts.len() != base.len() {
            let expected = format!("one for each of {} words", base.len());
            return Err(Error::invalid("counts", expected, counts.len()));
        }
        let total: f64 = counts.iter().map(|&count| count as f64 + 0.5).sum();
        let logs = counts.iter().map(|&count| ((count as f64 + 0.5) / total).ln() as f32).collect();
        let array = self.device.upload(logs)?;
        let mut tape = self.device.tape();
        tape.keep(&base, array);
        self.parameters.keep(&tape.finish())
    }

    /// p(w | context) of every word, the mean over draws of θ, for every set of `contexts`, which may be
    /// empty: `[sets, words]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless elements are words of the vocabulary.
    pub fn word_laws(
        &self,
        contexts: &SetBatch,
        num_draws: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let words = self.words()?;
        let counted = WordCounts::new(contexts, words.num_words)?;
        let codes = self.encode(contexts)?;
        let (size, draws) = (self.urn_size()?, num_draws.max(1));
        let mut laws = Vec::with_capacity(contexts.num_sets() * words.num_words);
        let at_once = (AT_ONCE / (draws * words.num_words)).max(1);
        for first in (0..contexts.num_sets()).step_by(at_once) {
            let sets = first..contexts.num_sets().min(first + at_once);
            let thetas = self.draws_of(&codes, contexts, (sets.clone(), draws), stream)?;
            let shares = self.shares(words, &thetas)?;
            let found: Vec<Vec<f32>> = shares
                .par_chunks_exact(draws * words.num_words)
                .zip(sets)
                .map(|(shares, set)| {
                    let mut law = mean_row(shares, words.num_words);
                    if let Some(size) = size {
                        add_context(&mut law, size, (&counted, set));
                    }
                    law
                })
                .collect();
            for law in found {
                laws.extend(law);
            }
        }
        Ok(laws)
    }

    /// How likely bags are, θ removed by draws from q(θ | bag); none may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless elements are words of the vocabulary, [`Error::EmptySet`].
    pub fn evidence(
        &self,
        bags: &SetBatch,
        num_draws: usize,
        stream: Stream,
    ) -> Result<Vec<BagEvidence>> {
        let words = self.words()?;
        let codes = self.encode(bags)?;
        let (prior, draws) = (self.latent_prior()?, num_draws.max(2));
        let mut found = Vec::with_capacity(bags.num_sets());
        for set in 0..bags.num_sets() {
            let (mean, log_std_dev) = codes.of_set(set);
            let thetas = self.draws_of(&codes, bags, (set..set + 1, draws), stream)?;
            let masses = self.log_masses(words, (bags, set), &thetas)?;
            let laws = prior.log_density(&thetas)?;
            let terms: Vec<f64> = thetas
                .chunks_exact(mean.len())
                .zip(masses.iter().zip(laws))
                .map(|(theta, (mass, law))| {
                    let parts = theta.iter().zip(mean.iter().zip(log_std_dev));
                    let q = parts.map(|(theta, (m, s))| {
                        let (s, gap) = (f64::from(*s), f64::from(theta - m));
                        -0.5 * (gap * (-s).exp()).powi(2) - s - LOG_ROOT_TAU
                    });
                    mass + law - q.sum::<f64>()
                })
                .collect();
            let count = terms.len() as f64;
            let value = terms.iter().sum::<f64>() / count;
            let squares: f64 = terms.iter().map(|term| (term - value).powi(2)).sum();
            let std_error = (squares / (count - 1.0) / count).sqrt();
            found.push(BagEvidence {
                bound: LogDensity { value, std_error },
                log_likelihood: LogDensity::of_mean(&terms),
                effective_draws: effective(&terms),
            });
        }
        Ok(found)
    }

    /// log p(bag | θ) under every row of `thetas` `[draws, k]`, its words taken in an order.
    ///
    /// # Errors
    ///
    /// As [`evidence`](Self::evidence).
    pub fn log_masses_given(&self, bag: &SetBatch, thetas: &[f32]) -> Result<Vec<f64>> {
        let k = self.config.latent_dim;
        if bag.num_sets() != 1 || !thetas.len().is_multiple_of(k) {
            let expected = format!("one bag and rows of {k} numbers");
            let found = format!("{} bags and {} numbers", bag.num_sets(), thetas.len());
            return Err(Error::invalid("bag, thetas", expected, found));
        }
        self.log_masses(self.words()?, (bag, 0), thetas)
    }

    fn log_masses(
        &self,
        words: &WordsEnergy,
        (bags, set): (&SetBatch, usize),
        thetas: &[f32],
    ) -> Result<Vec<f64>> {
        let k = self.config.latent_dim;
        let mut masses = Vec::with_capacity(thetas.len() / k);
        for thetas in thetas.chunks((AT_ONCE / words.num_words).max(1) * k) {
            let rows = thetas.len() / k;
            let mut copies = SetBatch::new(0, 1);
            (0..rows).try_for_each(|_| copies.push(&[], bags.values(set)))?;
            let counted = WordCounts::new(&copies, words.num_words)?;
            let copies = WordRows::new(&counted, None, (words, &self.device))?;
            let mut tape = self.device.tape();
            tape.read(&self.parameters);
            let theta = tape.upload(thetas.to_vec(), (rows, k))?;
            let found = words.log_mass(&mut tape, theta, &copies)?;
            masses.extend(tape.download(found)?.into_iter().map(f64::from));
        }
        Ok(masses)
    }

    /// m(w; θ) of every word under every row of `thetas`, `[rows, words]`.
    fn shares(&self, words: &WordsEnergy, thetas: &[f32]) -> Result<Vec<f32>> {
        let k = self.config.latent_dim;
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        let theta = tape.upload(thetas.to_vec(), (thetas.len() / k, k))?;
        let potentials = words.potentials(&mut tape, theta)?;
        let shares = tape.softmax(potentials)?;
        tape.download(shares)
    }

    /// m(w; θ) of every word under every row of `thetas` `[rows, k]`: `[rows, words]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless elements are words and the rows are whole.
    pub fn word_shares(&self, thetas: &[f32]) -> Result<Vec<f32>> {
        let k = self.config.latent_dim;
        if !thetas.len().is_multiple_of(k) {
            let found = format!("{} numbers", thetas.len());
            return Err(Error::invalid("thetas", format!("rows of {k} numbers"), found));
        }
        self.shares(self.words()?, thetas)
    }

    /// s, the size of the urn before a word is known; `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless elements are words.
    pub fn urn_size(&self) -> Result<Option<f64>> {
        let words = self.words()?;
        let mut tape = self.device.tape();
        tape.read(&self.parameters);
        match words.log_urn(&mut tape)? {
            Some(log_size) => Ok(Some(f64::from(tape.download(log_size)?[0]).exp())),
            None => Ok(None),
        }
    }

    /// p(θ).
    fn latent_prior(&self) -> Result<Box<dyn Prior>> {
        let dim = self.config.latent_dim;
        Ok(match self.config.latent_law {
            LatentLaw::Normal => Box::new(StandardPrior { dim }),
            LatentLaw::Dirichlet => Box::new(DirichletPrior::new(dim, self.config.concentration)?),
        })
    }

    /// θ ~ q(θ | set), `[count, k]`; θ ~ p(θ) where nothing is known.
    fn latent_draws(
        &self,
        (mean, log_std_dev): (&[f32], &[f32]),
        is_told: bool,
        count: usize,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        if !is_told {
            return self.latent_prior()?.sample(count, stream);
        }
        let mut thetas = vec![0.0; count * mean.len()];
        stream.fill_normal(0, 0, &mut thetas);
        for theta in thetas.chunks_exact_mut(mean.len()) {
            for ((theta, mean), log_std_dev) in theta.iter_mut().zip(mean).zip(log_std_dev) {
                *theta = mean + log_std_dev.exp() * *theta;
            }
        }
        Ok(thetas)
    }

    /// Draws for some sets, one after the other, each from a stream of its own.
    fn draws_of(
        &self,
        codes: &LatentCodes,
        bags: &SetBatch,
        (sets, draws): (std::ops::Range<usize>, usize),
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let mut thetas = Vec::with_capacity(sets.len() * draws * self.config.latent_dim);
        for set in sets {
            let (is_told, stream) = (bags.size(set) > 0, stream.child(set as u64));
            thetas.extend(self.latent_draws(codes.of_set(set), is_told, draws, stream)?);
        }
        Ok(thetas)
    }

    fn words(&self) -> Result<&WordsEnergy> {
        if let Energy::Words(words) = &self.parts.energy {
            Ok(words)
        } else {
            let found = self.config.energy.name();
            Err(Error::invalid("energy", "`words` or `topics`, of a vocabulary", found))
        }
    }
}

/// The mean of the rows.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn mean_row(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0_f64; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    let count = (rows.len() / width).max(1) as f64;
    sums.into_iter().map(|sum| (sum / count) as f32).collect()
}

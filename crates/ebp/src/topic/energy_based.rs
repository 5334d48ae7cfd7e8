//! The energy-based process on bags of words: f(w; θ) by a network, q(θ | words) amortised, exact sums.
//!
//! ```text
//! θ ~ p(θ),   m(w; θ) = exp f(w; θ) / Σ_v exp f(v; θ),   words ~ m, or out of Pólya's urn around m
//! ```
//!
//! The process, its step and its predictions are those of [`EnergyBasedProcess`]; here documents become
//! its batches. A step reads `documents` of them, every document once before any comes again. In the mode
//! `predictive` a random part of a document's words is its context.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::batch::{SetBatch, TaskBatch};
use crate::nn::{Record, Step};
use crate::process::{Batch, BatchMaker, EnergyBasedProcess, LogDensity, Prepared};
use crate::recipe::{EnergyBasedConfig, EnergyForm, Space, TrainingMode};
use crate::rng::Stream;
use crate::tape::Device;
use crate::tensor::Tensors;
use crate::{Error, Result};

use super::{Batches, Corpus, Document, TopicLearner, TopicModel};

/// The base measure in a state, which has a number per word.
const BASE: &str = "parameters/model.energy.base";

/// How far along an axis of θ a topic is looked at, in standard deviations of its law.
const FAR: f32 = 2.0;

/// Settings of an energy-based process on documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyBasedTopicsConfig {
    /// Documents a step.
    pub documents: usize,
    /// The process.
    pub model: EnergyBasedConfig,
}

impl Default for EnergyBasedTopicsConfig {
    fn default() -> Self {
        Self { documents: 64, model: EnergyBasedConfig::bags() }
    }
}

/// An energy-based process that learns from documents.
#[derive(Debug)]
pub struct EnergyBasedTopics {
    process: EnergyBasedProcess,
    reading: Arc<Reading>,
}

/// Where the batches of steps come from: no parameter of the process is in here.
#[derive(Debug)]
struct Reading {
    corpus: Arc<Corpus>,
    seed: u64,
    /// A step.
    documents: usize,
    is_predictive: bool,
    maker: BatchMaker,
}

impl EnergyBasedTopics {
    /// A process of random parameters, whose base measure is the frequencies of the corpus.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a setting that does not fit.
    pub fn new(
        config: EnergyBasedTopicsConfig,
        corpus: Arc<Corpus>,
        (seed, device): (u64, &Device),
    ) -> Result<Self> {
        let EnergyBasedTopicsConfig { documents, model } = config;
        if documents == 0 {
            return Err(Error::invalid("documents", "at least 1 a step", 0));
        }
        let space = Space::bag(corpus.num_words());
        let mut process = EnergyBasedProcess::new(model, space, seed, device)?;
        let mut counts = vec![0; corpus.num_words()];
        for document in corpus.documents() {
            for (&word, &count) in document.words.iter().zip(document.counts) {
                counts[word as usize] += u64::from(count);
            }
        }
        process.tell_frequencies(&counts)?;
        let is_predictive = process.config().mode == TrainingMode::Predictive;
        let maker = process.batch_maker();
        let reading = Reading { corpus, seed, documents, is_predictive, maker };
        Ok(Self { process, reading: Arc::new(reading) })
    }

    /// The process.
    pub fn process(&self) -> &EnergyBasedProcess {
        &self.process
    }
}

impl Reading {
    fn batch(&self, step: &Step) -> Result<Batch> {
        self.maker.prepare(&self.tasks(step)?, step)
    }

    /// The documents of a step, cut in two where the process predicts one part from the other.
    fn tasks(&self, step: &Step) -> Result<TaskBatch> {
        let total = self.corpus.len() as u64;
        let order = |round: u64| {
            Stream::new(self.seed, "documents").child(round).permutation(self.corpus.len())
        };
        let first = step.number * self.documents as u64;
        let (mut round, mut permutation) = (first / total, order(first / total));
        let (mut context, mut target) = (SetBatch::new(0, 1), SetBatch::new(0, 1));
        for number in first..first + self.documents as u64 {
            if number / total != round {
                round = number / total;
                permutation = order(round);
            }
            let place = usize::try_from(number % total).unwrap_or(0);
            let mut words = words_of(self.corpus.document(permutation[place]));
            let known =
                if self.is_predictive { part(&mut words, step.stream.child(number)) } else { 0 };
            context.push(&[], &words[..known])?;
            target.push(&[], &words[known..])?;
        }
        Ok(TaskBatch { context, target })
    }
}

/// Puts words in a random order and says how many of them are known: any number but all.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "u in [0, 1) times a count is rounded down"
)]
fn part(words: &mut [f32], stream: Stream) -> usize {
    let order = stream.permutation(words.len());
    let shuffled: Vec<f32> = order.iter().map(|&place| words[place]).collect();
    words.copy_from_slice(&shuffled);
    let mut uniform = [0.0];
    stream.child(0).fill_uniform(0, 0, &mut uniform);
    ((f64::from(uniform[0]) * words.len() as f64) as usize).min(words.len().saturating_sub(1))
}

fn words_of(document: Document<'_>) -> Vec<f32> {
    document.tokens().into_iter().map(|word| word as f32).collect()
}

impl TopicLearner for EnergyBasedTopics {
    fn step(&mut self, step: &Step) -> Result<Record> {
        self.process.learn(&self.reading.batch(step)?, step)
    }

    fn batches(&self) -> Option<Batches> {
        let reading = Arc::clone(&self.reading);
        Some(Arc::new(move |step| Ok(Prepared::new(reading.batch(step)?))))
    }

    fn step_on(&mut self, batch: Prepared, step: &Step) -> Result<Record> {
        self.process.learn(&batch.take::<Batch>()?, step)
    }

    fn learns_on_gpu(&self) -> bool {
        self.process.device().is_gpu()
    }

    fn state(&self) -> Result<Tensors> {
        self.process.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.process.restore(state)
    }

    fn model(&self) -> Result<Box<dyn TopicModel>> {
        model(self.process.config(), &self.process.state()?, self.process.device())
    }
}

/// What a process had learned when it gave `state`, with the averages of its parameters.
///
/// # Errors
///
/// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
pub fn model(
    config: &EnergyBasedConfig,
    state: &Tensors,
    device: &Device,
) -> Result<Box<dyn TopicModel>> {
    let Some(base) = state.get(BASE) else {
        return Err(Error::invalid(BASE, "in the state", "nothing"));
    };
    let space = Space::bag(base.dims().iter().product());
    let mut process = EnergyBasedProcess::new(config.clone(), space, 0, device)?;
    process.restore(state)?;
    process.use_average();
    Ok(Box::new(LearnedTopics::new(process)?))
}

/// What was learned.
#[derive(Debug)]
struct LearnedTopics {
    process: EnergyBasedProcess,
    num_words: usize,
    topics: Vec<Vec<f64>>,
}

impl LearnedTopics {
    fn new(process: EnergyBasedProcess) -> Result<Self> {
        let missing = || Error::invalid("space", "a bag of words", "another");
        let num_words = process.space().num_words.ok_or_else(missing)?;
        let topics = topics(&process, num_words)?;
        Ok(Self { process, num_words, topics })
    }

    fn bag(&self, document: Document<'_>) -> Result<SetBatch> {
        let mut bag = SetBatch::new(0, 1);
        document.check(self.num_words)?;
        bag.push(&[], &words_of(document))?;
        Ok(bag)
    }
}

/// Mixed topics themselves; otherwise both ends of every axis of θ, whose words are weighed by what they
/// add to KL(m(θ) ‖ m(0)).
fn topics(process: &EnergyBasedProcess, num_words: usize) -> Result<Vec<Vec<f64>>> {
    let k = process.config().latent_dim;
    let is_mixed = process.config().energy == EnergyForm::Topics;
    // softmax(θ) is one topic where that one is far above the others.
    let ends: &[f32] = if is_mixed { &[40.0] } else { &[FAR, -FAR] };
    let mut thetas = vec![0.0; k];
    for axis in 0..k {
        for &end in ends {
            let start = thetas.len();
            thetas.resize(start + k, 0.0);
            thetas[start + axis] = end;
        }
    }
    let shares = process.word_shares(&thetas)?;
    let (middle, rows) = shares.split_at(num_words);
    let weigh = |(&share, &before): (&f32, &f32)| {
        let (share, before) = (f64::from(share), f64::from(before.max(f32::MIN_POSITIVE)));
        if is_mixed || share <= 0.0 { share } else { share * (share / before).ln() }
    };
    let row = |row: &[f32]| row.iter().zip(middle).map(weigh).collect();
    Ok(rows.chunks_exact(num_words).map(row).collect())
}

impl TopicModel for LearnedTopics {
    fn name(&self) -> &'static str {
        "energy-based"
    }

    fn num_words(&self) -> usize {
        self.num_words
    }

    fn completion(&self, observed: Document<'_>, stream: Stream) -> Result<Vec<f64>> {
        let draws = self.process.config().num_draws;
        let law = self.process.word_laws(&self.bag(observed)?, draws, stream)?;
        let total: f64 = law.iter().map(|&p| f64::from(p)).sum();
        Ok(law.into_iter().map(|p| f64::from(p) / total).collect())
    }

    fn bound(&self, document: Document<'_>, stream: Stream) -> Result<LogDensity> {
        if document.words.is_empty() {
            return Ok(LogDensity { value: 0.0, std_error: 0.0 });
        }
        let draws = self.process.config().num_draws;
        let found = self.process.evidence(&self.bag(document)?, draws, stream)?;
        Ok(found[0].bound)
    }

    fn topics(&self) -> Vec<Vec<f64>> {
        self.topics.clone()
    }

    /// softmax(μ) of mixed topics, and how far μ is to both ends of every axis otherwise.
    fn shares(&self, document: Document<'_>, _stream: Stream) -> Result<Vec<f64>> {
        let mean = self.process.encode(&self.bag(document)?)?.mean;
        let mean = mean.iter().map(|&m| f64::from(m));
        if self.process.config().energy == EnergyForm::Topics {
            let weights: Vec<f64> = mean.map(f64::exp).collect();
            let total: f64 = weights.iter().sum();
            return Ok(weights.into_iter().map(|weight| weight / total).collect());
        }
        Ok(mean.flat_map(|m| [m.max(0.0), (-m).max(0.0)]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::held_out::{bound_perplexity, completion_perplexity};
    use super::*;

    /// Documents of one of two kinds of words, with a favourite word each.
    fn corpus() -> Corpus {
        let document = |number: u32| {
            let first = 6 * (number % 2);
            let words = (0..5).map(|i| (first + (number / 2 + i) % 6, 1 + (i * number) % 3));
            words.chain([(first + number % 5, 6)]).collect()
        };
        Corpus::new(12, (0..40).map(document)).unwrap()
    }

    fn learner(seed: u64, change: impl Fn(&mut EnergyBasedConfig)) -> EnergyBasedTopics {
        let mut config = EnergyBasedConfig {
            latent_dim: 2,
            encoder_widths: vec![16],
            learning_rate: 2e-2,
            kl_warm_up: 20,
            urn: 10.0,
            hidden_share: 0.8,
            average_decay: 0.9,
            num_draws: 16,
            ..EnergyBasedConfig::bags()
        };
        change(&mut config);
        let config = EnergyBasedTopicsConfig { documents: 16, model: config };
        EnergyBasedTopics::new(config, Arc::new(corpus()), (seed, &Device::default())).unwrap()
    }

    fn train(learner: &mut EnergyBasedTopics, steps: std::ops::Range<u64>) {
        for number in steps {
            let stream = Stream::new(3, "train").child(number);
            let step = Step { number, num_steps: 120, stream, learning_rate_factor: 1.0 };
            learner.step(&step).unwrap();
        }
    }

    /// Each form learns the kinds: a perplexity nearer to the 6 words of a kind than to the 12 of all,
    /// below √72; a network with an urn also learns favourites and falls below 6. Answers are laws, for empty documents too.
    #[test]
    fn documents_teach_their_kinds() {
        let changes: [fn(&mut EnergyBasedConfig); 4] = [
            |_| (),
            |config| config.urn = 0.0,
            |config| {
                config.energy = EnergyForm::Topics;
                config.latent_law = crate::recipe::LatentLaw::Dirichlet;
                config.concentration = 0.5;
            },
            |config| config.mode = TrainingMode::Predictive,
        ];
        for change in changes {
            let mut learner = learner(1, change);
            train(&mut learner, 0..120);
            let model = learner.model().unwrap();
            let completed = completion_perplexity(model.as_ref(), &corpus(), 5).unwrap();
            let config = learner.process.config();
            let is_quick = config.urn > 0.0 && config.energy == EnergyForm::Words;
            let most = if is_quick { 6.0 } else { 72_f64.sqrt() };
            assert!(completed.value < most, "{most}: {completed:?}");
            let bound = bound_perplexity(model.as_ref(), &corpus(), 5).unwrap();
            assert!(bound.value < 72_f64.sqrt() && bound.estimate_error > 0.0, "{bound:?}");
            let empty = Document { words: &[], counts: &[] };
            let law = model.completion(empty, Stream::new(1, "empty")).unwrap();
            assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let outside = Document { words: &[12], counts: &[1] };
            assert!(model.completion(outside, Stream::new(1, "outside")).is_err());
            let shares = model.shares(corpus().document(0), Stream::new(1, "shares")).unwrap();
            assert_eq!(shares.len(), model.topics().len());
        }
    }

    #[test]
    fn learning_goes_on_bit_for_bit() {
        let changes: [fn(&mut EnergyBasedConfig); 2] =
            [|_| (), |config| config.mode = TrainingMode::Predictive];
        for change in changes {
            let mut whole = learner(1, change);
            train(&mut whole, 0..7);
            let mut first = learner(1, change);
            train(&mut first, 0..4);
            let mut second = learner(1, change);
            train(&mut second, 9..11);
            second.restore(&first.state().unwrap()).unwrap();
            // Batches made before, in any order, are those that steps make.
            let make = second.batches().unwrap();
            let step = |number: u64| {
                let stream = Stream::new(3, "train").child(number);
                Step { number, num_steps: 120, stream, learning_rate_factor: 1.0 }
            };
            let mut made: Vec<_> = [6, 5, 4].map(|number| (number, make(&step(number)))).into();
            while let Some((number, batch)) = made.pop() {
                second.step_on(batch.unwrap(), &step(number)).unwrap();
            }
            assert_eq!(whole.state().unwrap(), second.state().unwrap());
        }
    }
}

//! f(w; θ) of every word of a vocabulary, once per set, and its exact normalisation:
//!
//! ```text
//! words    f(w; θ) = log p₀(w) + b_w + ⟨e_w, h(θ)⟩
//! topics   f(w; θ) = log Σ_k softmax(θ)_k Φ_kw,   Φ_kw = softmax_w(log p₀(w) + β_kw)
//! log p(set | θ) = Σ_w c_w [ f(w; θ) − log Σ_v exp f(v; θ) ]
//! ```
//!
//! p₀ is a base measure, the frequencies of the words. Sets have no locations, so one row of potentials
//! serves all words of a set: a product of matrices. A set may have a second level of the latent, a weight
//! γ_w for every word, whose potentials are log γ_w and whose Z is Σ_w γ_w:
//!
//! ```text
//! γ_w ~ Gamma(s m_w),   m = softmax f(·; θ),   p(w | γ) = γ_w / Σ_v γ_v
//! p(set | θ) = Π_w (s m_w)(s m_w + 1) ⋯ (s m_w + c_w − 1) / [ s (s + 1) ⋯ (s + n − 1) ]
//! ```
//!
//! γ/Σγ is Dirichlet(s m), and summed out it is Pólya's urn: a word that occurred is likelier to occur
//! again, as words of a text are. s → ∞ is the law without it. The dense work is one row of the vocabulary
//! per set; everything else costs what the distinct words of a set cost, but for the urn, which adds one
//! number per word.

use std::sync::Arc;

use crate::batch::WordCounts;
use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape};
use crate::recipe::{EnergyBasedConfig, EnergyForm};
use crate::tape::{Array, Choice, Device, Group, Parameter, Tape, Var};
use crate::{Error, Result, SetOffsets};

#[derive(Clone, Debug)]
pub(crate) struct WordsEnergy {
    pub(crate) num_words: usize,
    potentials: Potentials,
    /// log p₀, `[1, words]`; saved, not trained.
    base: Parameter,
    urn: Option<Urn>,
}

#[derive(Clone, Debug)]
enum Potentials {
    /// θ to b_w + ⟨e_w, h(θ)⟩.
    Words(Dense),
    /// β, `[words, k]`, and the shape of the product with Φ.
    Topics(Parameter, Arc<MlpShape>),
}

/// s = s₀ eᵟ: weight decay draws it to where it started.
#[derive(Clone, Copy, Debug)]
struct Urn {
    first_log_size: f64,
    change: Parameter,
}

/// The words of sets whose likelihood is taken, on a device.
#[derive(Clone, Debug)]
pub(crate) struct WordRows {
    /// set · words + word of every distinct word of every set.
    places: Arc<Choice>,
    /// Which of them belong to which set.
    pub(crate) offsets: Arc<SetOffsets>,
    /// How often they occur, `[distinct]`.
    counts: Array,
    /// The first word of every set, and its number among the distinct ones.
    first_words: Arc<Vec<u32>>,
    firsts: Arc<Choice>,
    urn: Option<UrnRows>,
}

/// Every single word of every set, in turn.
#[derive(Clone, Debug)]
struct UrnRows {
    /// Its number among the distinct ones.
    distinct: Arc<Choice>,
    /// How often it came before, and how many words came before, `[words of all sets]`.
    same: Array,
    any: Array,
    offsets: Arc<SetOffsets>,
}

impl WordRows {
    /// Sets of at least one word; `given` are words that came before them.
    pub(crate) fn new(
        counted: &WordCounts,
        given: Option<&WordCounts>,
        (energy, device): (&WordsEnergy, &Device),
    ) -> Result<Self> {
        let (sets, num_words) = (counted.num_sets(), energy.num_words);
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let places = (0..sets).flat_map(|set| {
            counted.of_set(set).map(move |(word, _)| number(set * num_words + word as usize))
        });
        let offsets = device.bring(SetOffsets::from_starts(counted.starts.clone())?)?;
        let first = |set: usize| counted.starts[set];
        let firsts = Choice::new(counted.words.len(), (0..sets).map(first).map(number).collect())?;
        Ok(Self {
            places: device.bring(Choice::new(sets * num_words, places.collect())?)?,
            counts: device.upload(counted.counts.iter().map(|&count| count as f32).collect())?,
            first_words: device.bring((0..sets).map(|set| counted.words[first(set)]).collect())?,
            firsts: device.bring(firsts)?,
            offsets,
            urn: match energy.urn {
                Some(_) => Some(UrnRows::new(counted, given, device)?),
                None => None,
            },
        })
    }
}

impl UrnRows {
    fn new(counted: &WordCounts, given: Option<&WordCounts>, device: &Device) -> Result<Self> {
        let (mut distinct, mut same, mut any) = (Vec::new(), Vec::new(), Vec::new());
        let mut sizes = Vec::new();
        for set in 0..counted.num_sets() {
            let start = any.len();
            let mut before = given.map_or(0, |given| given.size(set));
            for (index, (word, count)) in counted.of_set(set).enumerate() {
                let known = given.map_or(0, |given| given.count(set, word));
                let row = u32::try_from(counted.starts[set] + index).unwrap_or(u32::MAX);
                for time in 0..count {
                    distinct.push(row);
                    same.push((known + time) as f32);
                    any.push(before as f32);
                    before += 1;
                }
            }
            sizes.push(any.len() - start);
        }
        Ok(Self {
            distinct: device.bring(Choice::new(counted.words.len(), distinct)?)?,
            same: device.upload(same)?,
            any: device.upload(any)?,
            offsets: device.bring(SetOffsets::from_sizes(sizes)?)?,
        })
    }
}

impl WordsEnergy {
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        num_words: usize,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let k = config.latent_dim;
        let potentials = if config.energy == EnergyForm::Topics {
            let start = Initialiser::Normal { mean: 0.0, std_dev: config.input_scale };
            let shape = MlpShape::new(MlpConfig {
                value_dim: k,
                location_dim: 0,
                context_dim: 0,
                hidden_widths: Vec::new(),
                output_dim: num_words,
                activation: Activation::Silu,
                context_at: ContextAt::FirstLayer,
                activate_output: false,
            })?;
            let beta = group.trained("topics", &[num_words, k], start)?;
            Potentials::Topics(beta, Arc::new(shape))
        } else {
            let network = DenseConfig {
                inputs: k,
                hidden: &config.energy_widths,
                outputs: num_words,
                activation: config.activation,
                weights: Initialiser::FanIn,
                output_scale: config.input_scale,
            };
            Potentials::Words(Dense::new(group, "words", &network)?)
        };
        // Uniform until frequencies are told.
        let base = group.buffer("base", &[num_words], Initialiser::Zeros)?;
        let urn = if config.urn > 0.0 {
            let change = group.trained("urn", &[1], Initialiser::Zeros)?;
            Some(Urn { first_log_size: config.urn.ln(), change })
        } else {
            None
        };
        Ok(Self { num_words, potentials, base, urn })
    }

    /// Where log p₀ is kept.
    pub(crate) fn base(&self) -> &Parameter {
        &self.base
    }

    /// f of every word, `[rows, words]` for θ `[rows, k]`.
    pub(crate) fn potentials(&self, tape: &mut Tape, theta: Var) -> Result<Var> {
        match &self.potentials {
            Potentials::Words(network) => {
                let base = tape.parameter(&self.base)?;
                let values = network.forward(tape, theta)?;
                tape.add(values, base)
            }
            Potentials::Topics(_, shape) => {
                let topics = self.topics(tape)?.ok_or_else(no_topics)?;
                let topics = tape.reshape(topics, (1, shape.num_parameters() - self.num_words))?;
                let zeros = tape.device().zeros(self.num_words)?;
                let zeros = tape.constant(zeros, (1, self.num_words))?;
                let weights = tape.concat(&[topics, zeros])?;
                let shares = tape.exp(theta)?;
                let total = tape.row_sums(shares)?;
                let mixed = tape.dense(shape, weights, shares)?;
                let (mixed, total) = (tape.log(mixed)?, tape.log(total)?);
                tape.subtract(mixed, total)
            }
        }
    }

    /// Φ transposed, `[words, k]`; `None` where there are none.
    pub(crate) fn topics(&self, tape: &mut Tape) -> Result<Option<Var>> {
        let Potentials::Topics(beta, _) = &self.potentials else { return Ok(None) };
        let beta = tape.parameter(beta)?;
        let base = tape.parameter(&self.base)?;
        let base = tape.reshape(base, (self.num_words, 1))?;
        let logits = tape.add(beta, base)?;
        let weights = tape.exp(logits)?;
        let totals = tape.column_sums(weights)?;
        let totals = tape.log(totals)?;
        let logs = tape.subtract(logits, totals)?;
        tape.exp(logs).map(Some)
    }

    /// log s, `[1, 1]`; `None` where there is no urn.
    pub(crate) fn log_urn(&self, tape: &mut Tape) -> Result<Option<Var>> {
        let Some(urn) = &self.urn else { return Ok(None) };
        let change = tape.parameter(&urn.change)?;
        tape.affine(change, 1.0, urn.first_log_size).map(Some)
    }

    /// log p(set | θ) of every set, given what came before, `[sets, 1]`; of the words in an order.
    pub(crate) fn log_mass(&self, tape: &mut Tape, theta: Var, rows: &WordRows) -> Result<Var> {
        let potentials = self.potentials(tape, theta)?;
        let (sets, num_words) = tape.shape(potentials);
        let flat = tape.reshape(potentials, (sets * num_words, 1))?;
        let own = tape.gather(flat, &rows.places)?;
        // log Z = f(w) − log p(w) of any word w of the set.
        let first = tape.gather(own, &rows.firsts)?;
        let first_mass = tape.log_mass(potentials, &rows.first_words)?;
        let log_partition = tape.subtract(first, first_mass)?;
        let log_partition = tape.spread(log_partition, &rows.offsets)?;
        let log_masses = tape.subtract(own, log_partition)?;
        if let (Some(log_urn), Some(urn)) = (self.log_urn(tape)?, &rows.urn) {
            return urn.log_mass(tape, log_masses, log_urn);
        }
        let counts = tape.constant(rows.counts.clone(), (rows.counts.len(), 1))?;
        let terms = tape.multiply(log_masses, counts)?;
        tape.set_sums(terms, &rows.offsets)
    }
}

fn no_topics() -> Error {
    Error::invalid("energy", "`topics`", "words")
}

impl UrnRows {
    /// Σ log (s m_w + how often before) − log (s + how many before).
    fn log_mass(&self, tape: &mut Tape, log_masses: Var, log_urn: Var) -> Result<Var> {
        let total = self.same.len();
        let logs = tape.add(log_masses, log_urn)?;
        let shares = tape.exp(logs)?;
        let shares = tape.gather(shares, &self.distinct)?;
        let same = tape.constant(self.same.clone(), (total, 1))?;
        let above = tape.add(shares, same)?;
        let size = tape.exp(log_urn)?;
        let any = tape.constant(self.any.clone(), (total, 1))?;
        let below = tape.add(any, size)?;
        let (above, below) = (tape.log(above)?, tape.log(below)?);
        let terms = tape.subtract(above, below)?;
        tape.set_sums(terms, &self.offsets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::SetBatch;
    use crate::nn::differences::check;
    use crate::rng::Stream;
    use crate::tape::ParameterBuilder;

    /// Gradients of whole sets' masses reach every part, with and without words that came before.
    #[test]
    fn gradients_reach_every_part() {
        let (num_words, k) = (5, 3);
        for (energy, urn, is_given) in [
            (EnergyForm::Words, 0.0, false),
            (EnergyForm::Words, 2.5, true),
            (EnergyForm::Topics, 0.0, false),
            (EnergyForm::Topics, 1.5, false),
        ] {
            let config =
                EnergyBasedConfig { latent_dim: k, energy, urn, ..EnergyBasedConfig::bags() };
            let mut builder = ParameterBuilder::new(2);
            let words = WordsEnergy::new(&config, num_words, &mut builder.group("model")).unwrap();
            let mut parameters = vec![match &words.potentials {
                Potentials::Words(network) => ("words", *network.parameters()),
                Potentials::Topics(beta, _) => ("topics", *beta),
            }];
            parameters.extend(words.urn.map(|urn| ("urn", urn.change)));
            let counted = |sets: &[&[f32]]| {
                let mut batch = SetBatch::new(0, 1);
                for set in sets {
                    batch.push(&[], set).unwrap();
                }
                WordCounts::new(&batch, num_words).unwrap()
            };
            let own = counted(&[&[1.0, 4.0, 1.0, 1.0], &[0.0, 2.0]]);
            let before = is_given.then(|| counted(&[&[4.0, 4.0, 3.0], &[]]));
            let rows = WordRows::new(&own, before.as_ref(), (&words, &Device::default())).unwrap();
            check(builder, &parameters, |tape| {
                let theta = tape.normals((2, k), Stream::new(3, "theta"))?;
                words.log_mass(tape, theta, &rows)
            });
        }
    }
}

//! The neural processes: paths from the context to a Gaussian decoder, and the bound they are
//! trained by.

use std::sync::Arc;

use super::batch::{Batch, BatchMaker, RaggedVars};
use super::config::{Deterministic, NetworkConfig, NeuralProcessConfig};
use super::gaussian::decoder_law;
use super::network::network;
use super::paths::{AttentionPath, DeterministicPath, LatentPath, MeanPath};
use super::predictive::NeuralPredictive;
use crate::nn::{Network, Sets};
use crate::nn::{Record, Step};
use crate::point::MlpConfig;
use crate::process::{Learner, Predictive, Preparation, Prepared, Process};
use crate::rng::Stream;
use crate::tape::{
    Choice, Device, Gaussian, ParameterBuilder, ParameterSet, Tape, Var, check_taken,
};
use crate::tensor::Tensors;
use crate::{IndexedSet, Result, SetOffsets};

/// A conditional, latent or attentive neural process, with its optimiser.
///
/// ```
/// use ebp::IndexedSet;
/// use ebp::process::Process;
/// use ebp::process::neural::{NeuralProcess, NeuralProcessConfig};
/// use ebp::tape::Device;
///
/// let process = NeuralProcess::new(NeuralProcessConfig::attentive(), 7, &Device::default())?;
/// let context = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.5, -0.5])?;
/// let target = IndexedSet::new(1, 1, vec![2.0], vec![0.1])?;
/// let density = process.condition(&context)?.log_density(&target)?;
/// assert!(density[0].value.is_finite());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct NeuralProcess {
    name: &'static str,
    pub(super) network: NetworkConfig,
    pub(super) latent: Option<LatentPath>,
    pub(super) num_draws: usize,
    pub(super) deterministic: DeterministicPath,
    decoder: Network,
    pub(super) parameters: ParameterSet,
    /// Where the z of predictive densities come from.
    pub(super) predictive_stream: Stream,
}

impl NeuralProcess {
    /// An untrained process on a device: equal seeds give equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a setting outside its range.
    pub fn new(config: NeuralProcessConfig, seed: u64, device: &Device) -> Result<Self> {
        let name = config.name();
        let NeuralProcessConfig { network: sizes, latent, deterministic } = config;
        sizes.check()?;
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("model");
        let num_self_heads = match &deterministic {
            Deterministic::Attention(attention) => attention.num_self_heads(),
            Deterministic::Absent | Deterministic::Mean => None,
        };
        let (mut value_dim, mut context_dim) = (sizes.location_dim, 0);
        let deterministic = {
            let mut group = group.group("deterministic");
            match deterministic {
                Deterministic::Absent => DeterministicPath::Absent,
                Deterministic::Mean => {
                    context_dim += sizes.representation_dim;
                    DeterministicPath::Mean(Box::new(MeanPath::new(&mut group, &sizes)?))
                }
                Deterministic::Attention(attention) => {
                    value_dim += sizes.representation_dim;
                    let path = AttentionPath::new(&mut group, &sizes, &attention)?;
                    DeterministicPath::Attention(Box::new(path))
                }
            }
        };
        let num_draws = latent.as_ref().map_or(1, |latent| latent.num_draws);
        let latent = match latent {
            Some(latent) => {
                latent.check()?;
                context_dim += latent.latent_dim;
                let mut group = group.group("latent");
                Some(LatentPath::new(&mut group, &sizes, latent.latent_dim, num_self_heads)?)
            }
            None => None,
        };
        let decoder = MlpConfig {
            value_dim,
            location_dim: 0,
            context_dim,
            hidden_widths: sizes.decoder_widths.clone(),
            output_dim: 2 * sizes.value_dim,
            activation: sizes.activation,
            ..MlpConfig::default()
        };
        let decoder = network(&mut group, "decoder", decoder, sizes.location_dim)?;
        let parameters = ParameterSet::new(builder, device, sizes.adam, None)?;
        let predictive_stream = Stream::new(seed, "predictive");
        Ok(Self {
            name,
            network: sizes,
            latent,
            num_draws,
            deterministic,
            decoder,
            parameters,
            predictive_stream,
        })
    }

    /// The output law at each of `locations` `[total, d_t]`, given one z per set and what the
    /// deterministic path says.
    pub(super) fn decode(
        &self,
        tape: &mut Tape,
        (locations, offsets): (Var, &Arc<SetOffsets>),
        latents: Option<Var>,
        representation: Representation,
    ) -> Result<Gaussian> {
        let (mut elements, mut told) = (vec![locations], Vec::from_iter(latents));
        match representation {
            Representation::Absent => {}
            Representation::PerSet(rows) => told.push(rows),
            Representation::PerTarget(rows) => elements.push(rows),
        }
        let context = if told.is_empty() { None } else { Some(tape.concat(&told)?) };
        let elements = tape.concat(&elements)?;
        let raw = self.decoder.values(tape, Sets { elements, context, offsets })?;
        decoder_law(tape, raw, self.network.min_std_dev)
    }

    /// What the deterministic path says about targets at `locations` `[total, d_t]`.
    pub(super) fn represent(
        &self,
        tape: &mut Tape,
        contexts: &RaggedVars,
        (locations, offsets): (Var, &Arc<SetOffsets>),
    ) -> Result<Representation> {
        Ok(match &self.deterministic {
            DeterministicPath::Absent => Representation::Absent,
            DeterministicPath::Mean(path) => {
                Representation::PerSet(path.represent(tape, contexts)?)
            }
            DeterministicPath::Attention(path) => {
                Representation::PerTarget(path.represent(tape, contexts, locations, offsets)?)
            }
        })
    }

    fn preparer(&self) -> BatchMaker {
        BatchMaker::new(&self.network, self.latent.is_some())
    }

    /// One step of maximum likelihood, or of its evidence bound where there is a latent:
    ///
    /// ```text
    /// log p(x_T | t_T, C) ≥ E_{q(z | C ∪ T)} log p(x_T | t_T, z, r) − KL(q(z | C ∪ T) ‖ q(z | C))
    /// ```
    fn learn_from(&mut self, batch: Batch, step: &Step) -> Result<Record> {
        let Batch { contexts, unions, targets } = batch;
        let offsets = &targets.offsets;
        let (total, num_sets) = (offsets.num_elements(), offsets.num_sets());
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let contexts = contexts.upload(&mut tape)?;
        let locations = tape.upload(targets.locations, (total, self.network.location_dim))?;
        let values = tape.upload(targets.values, (total, self.network.value_dim))?;
        let representation = self.represent(&mut tape, &contexts, (locations, offsets))?;
        let (latents, kl) = match (&self.latent, unions) {
            (Some(path), Some(unions)) => {
                let unions = unions.upload(&mut tape)?;
                let posterior = path.law(&mut tape, &unions)?;
                let prior = path.law(&mut tape, &contexts)?;
                let terms = tape.kl(posterior, prior)?;
                let kl = tape.sum(terms)?;
                (Some(tape.draw(posterior, step.stream)?), Some(kl))
            }
            _ => (None, None),
        };
        let law = self.decode(&mut tape, (locations, offsets), latents, representation)?;
        let terms = tape.log_density(values, law)?;
        let log_density = tape.sum(terms)?;
        let bound = match kl {
            Some(kl) => tape.subtract(log_density, kl)?,
            None => log_density,
        };
        let loss = tape.affine(bound, -1.0 / total as f64, 0.0)?;
        let mut said = vec![loss, log_density];
        said.extend(kl);
        let said = tape.concat(&said)?;
        let said = tape.array(said).clone();
        let rate = step.learning_rate(self.network.learning_rate);
        let update = self.parameters.step(&tape.backward(loss)?, rate)?;
        let said = self.parameters.device().download(&said)?;
        let number = |at: usize| said.get(at).copied().map_or(0.0, f64::from);
        Ok(vec![
            ("loss", number(0)),
            ("nats", -number(1) / total as f64),
            ("kl", number(2) / num_sets as f64),
            ("gradient_norm", update.gradient_norm),
        ])
    }
}

impl Process for NeuralProcess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(NeuralPredictive::new(self, context)?))
    }
}

impl Learner for NeuralProcess {
    fn preparation(&self) -> Option<Preparation> {
        Some(Preparation::new(self.preparer()))
    }

    fn learn_prepared(&mut self, batch: Prepared, step: &Step) -> Result<Record> {
        self.learn_from(batch.take()?, step)
    }

    fn learns_on_gpu(&self) -> bool {
        self.parameters.device().is_gpu()
    }

    fn set_num_draws(&mut self, count: usize) {
        if self.latent.is_some() {
            self.num_draws = count.max(1);
        }
    }

    fn state(&self) -> Result<Tensors> {
        self.parameters.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut state = state.clone();
        self.parameters.import(&mut state)?;
        check_taken(&state)
    }
}

/// What a deterministic path says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Representation {
    /// There is no such path.
    Absent,
    /// `[sets, representation_dim]`.
    PerSet(Var),
    /// `[total, representation_dim]`.
    PerTarget(Var),
}

impl Representation {
    /// The same for `count` copies of one set, one after the other.
    pub(super) fn repeated(self, tape: &mut Tape, count: usize) -> Result<Self> {
        Ok(match self {
            Self::Absent => Self::Absent,
            Self::PerSet(rows) => Self::PerSet(tiled(tape, rows, count)?),
            Self::PerTarget(rows) => Self::PerTarget(tiled(tape, rows, count)?),
        })
    }
}

/// All rows, `count` times one after the other.
pub(super) fn tiled(tape: &mut Tape, rows: Var, count: usize) -> Result<Var> {
    let height = tape.shape(rows).0;
    let narrow = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
    let choice = (0..count).flat_map(|_| (0..height).map(narrow)).collect();
    tape.gather(rows, &Arc::new(Choice::new(height, choice)?))
}

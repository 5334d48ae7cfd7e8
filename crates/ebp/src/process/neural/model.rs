//! The neural processes: paths from the context to a Gaussian decoder, and the bound they are
//! trained by.

use std::sync::Arc;

use super::batch::{Batch, BatchMaker, OnGrid, Ragged, RaggedVars, Targets};
use super::config::{Deterministic, NetworkConfig, NeuralProcessConfig};
use super::grid::GridPath;
use super::law::Law;
use super::network::network;
use super::paths::{AttentionPath, DeterministicPath, LatentPath, MeanPath};
use super::predictive::NeuralPredictive;
use crate::exchange::Seat;
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

/// A conditional, latent, attentive or convolutional neural process, with its optimiser.
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
    training_draws: usize,
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
            Deterministic::Absent | Deterministic::Mean | Deterministic::Grid(_) => None,
        };
        let num_draws = latent.as_ref().map_or(1, |latent| latent.num_draws);
        let training_draws = latent.as_ref().map_or(1, |latent| latent.training_draws);
        if let Some(latent) = &latent {
            latent.check()?;
        }
        let of_places = latent.as_ref().map_or(0, |latent| latent.latent_dim);
        let (mut value_dim, mut context_dim, mut latent) = (sizes.location_features(), 0, latent);
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
                Deterministic::Grid(config) => {
                    // Its latents are those of places, and it alone knows where a target stands.
                    latent = None;
                    let path = GridPath::new(&mut group, &sizes, config, of_places)?;
                    value_dim = path.width();
                    DeterministicPath::Grid(Box::new(path))
                }
            }
        };
        let latent = match latent {
            Some(latent) => {
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
            output_dim: sizes.num_outputs(),
            activation: sizes.activation,
            ..MlpConfig::default()
        };
        let decoder = match &deterministic {
            DeterministicPath::Grid(_) => Network::new(&mut group, "decoder", decoder)?,
            _ => network(&mut group, "decoder", decoder, sizes.location_features())?,
        };
        let parameters = ParameterSet::new(builder, device, sizes.adam, Some(sizes.average_decay))?;
        let predictive_stream = Stream::new(seed, "predictive");
        Ok(Self {
            name,
            network: sizes,
            latent,
            num_draws,
            training_draws,
            deterministic,
            decoder,
            parameters,
            predictive_stream,
        })
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        self.parameters.device()
    }

    /// The output law at each of `locations` `[total, location_features]`, given one z per set and what the
    /// deterministic path says.
    pub(super) fn decode(
        &self,
        tape: &mut Tape,
        (locations, offsets): (Var, &Arc<SetOffsets>),
        latents: Option<Var>,
        representation: Representation,
    ) -> Result<Law> {
        let (mut elements, mut told) = (vec![locations], Vec::from_iter(latents));
        match representation {
            Representation::Alone(rows) => elements = vec![rows],
            Representation::Absent => {}
            Representation::PerSet(rows) => told.push(rows),
            Representation::PerTarget(rows) => elements.push(rows),
        }
        let context = if told.is_empty() { None } else { Some(tape.concat(&told)?) };
        let elements = tape.concat(&elements)?;
        let raw = self.decoder.values(tape, Sets { elements, context, offsets })?;
        Law::new(tape, raw, &self.network)
    }

    /// What the deterministic path says about targets at `locations` `[total, location_features]`.
    pub(super) fn represent(
        &self,
        tape: &mut Tape,
        contexts: &RaggedVars,
        (locations, offsets): (Var, &Arc<SetOffsets>),
    ) -> Result<Representation> {
        Ok(match &self.deterministic {
            DeterministicPath::Absent | DeterministicPath::Grid(_) => Representation::Absent,
            DeterministicPath::Mean(path) => {
                Representation::PerSet(path.represent(tape, contexts)?)
            }
            DeterministicPath::Attention(path) => {
                Representation::PerTarget(path.represent(tape, contexts, locations, offsets)?)
            }
        })
    }

    fn preparer(&self) -> BatchMaker {
        BatchMaker::new(&self.network, self.latent.is_some(), self.path().cloned())
    }

    /// The path over a grid, if there is one.
    pub(super) fn path(&self) -> Option<&GridPath> {
        match &self.deterministic {
            DeterministicPath::Grid(path) => Some(path),
            _ => None,
        }
    }

    /// log p of every target given what convolutions make of its context, `[total · draws, 1]`, a set's
    /// draws side by side; the draws, and their targets by set and draw.
    fn on_grid(
        &self,
        tape: &mut Tape,
        (path, on_grid): (&GridPath, OnGrid),
        (targets, values): (&Targets, Var),
        step: &Step,
    ) -> Result<(Var, usize, Arc<SetOffsets>)> {
        let sets = targets.offsets.num_sets();
        let (found, law) = path.read(tape, on_grid.grids)?;
        let count = if law.is_some() { self.training_draws } else { 1 };
        let z = match law {
            Some(law) => {
                let places = path.repeated(sets, count)?;
                let law = Gaussian {
                    mean: tape.gather(law.mean, &places)?,
                    log_std_dev: tape.gather(law.log_std_dev, &places)?,
                };
                Some(tape.draw(law, step.stream)?)
            }
            None => None,
        };
        let all = path.represent(tape, found, z)?;
        // Targets of every set, once for each of its draws.
        let (mut rows, mut own, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
        for set in 0..sets {
            let range = targets.offsets.range(set);
            for draw in 0..count {
                let shift = (set * (count - 1) + draw) * path.num_places();
                let places = on_grid.rows[range.clone()].iter();
                rows.extend(places.map(|&p| p + u32::try_from(shift).unwrap_or(u32::MAX)));
                own.extend(range.clone().map(|row| u32::try_from(row).unwrap_or(u32::MAX)));
                sizes.push(range.len());
            }
        }
        let offsets = Arc::new(SetOffsets::from_sizes(sizes)?);
        let symbols: Vec<Arc<Vec<u32>>> = if count == 1 {
            targets.symbols.clone()
        } else {
            let again = |all: &Arc<Vec<u32>>| own.iter().map(|&row| all[row as usize]).collect();
            targets.symbols.iter().map(|symbols| Arc::new(again(symbols))).collect()
        };
        let places = tape.shape(all).0;
        let features = tape.gather(all, &Arc::new(Choice::new(places, rows)?))?;
        let total = targets.offsets.num_elements();
        let values = tape.gather(values, &Arc::new(Choice::new(total, own)?))?;
        let representation = Representation::Alone(features);
        let law = self.decode(tape, (values, &offsets), None, representation)?;
        Ok((law.log_density(tape, values, &symbols)?, count, offsets))
    }

    /// log p of all targets, and the divergence of the latents' laws where there is a latent.
    fn by_elements(
        &self,
        tape: &mut Tape,
        (contexts, unions): (Ragged, Option<Ragged>),
        (targets, values): (&Targets, Var),
        step: &Step,
    ) -> Result<(Var, Option<Var>)> {
        let offsets = &targets.offsets;
        let contexts = contexts.upload(tape)?;
        let shape = (offsets.num_elements(), self.network.location_features());
        let locations = tape.upload(targets.locations.clone(), shape)?;
        let representation = self.represent(tape, &contexts, (locations, offsets))?;
        let (latents, kl) = match (&self.latent, unions) {
            (Some(path), Some(unions)) => {
                let unions = unions.upload(tape)?;
                let posterior = path.law(tape, &unions)?;
                let prior = path.law(tape, &contexts)?;
                let terms = tape.kl(posterior, prior)?;
                let kl = tape.sum(terms)?;
                (Some(tape.draw(posterior, step.stream)?), Some(kl))
            }
            _ => (None, None),
        };
        let law = self.decode(tape, (locations, offsets), latents, representation)?;
        let terms = law.log_density(tape, values, &targets.symbols)?;
        Ok((tape.sum(terms)?, kl))
    }

    /// One step of maximum likelihood, or of its evidence bound where there is a latent of a set:
    ///
    /// ```text
    /// log p(x_T | t_T, C) ≥ E_{q(z | C ∪ T)} log p(x_T | t_T, z, r) − KL(q(z | C ∪ T) ‖ q(z | C))
    /// ```
    fn learn_from(&mut self, batch: Batch, step: &Step) -> Result<Record> {
        let Batch { contexts, unions, targets, on_grid } = batch;
        let (total, num_sets) = (targets.offsets.num_elements(), targets.offsets.num_sets());
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let values = tape.upload(targets.values.clone(), (total, self.network.value_dim))?;
        let (log_density, kl) = match (self.path(), on_grid) {
            (Some(path), Some(on_grid)) => {
                let parts = (path, on_grid);
                let (terms, count, offsets) =
                    self.on_grid(&mut tape, parts, (&targets, values), step)?;
                let joint = tape.set_sums(terms, &offsets)?;
                // log mean over draws of p of all targets of a set
                let by_set = tape.reshape(joint, (num_sets, count))?;
                let sums = tape.log_sum_exp(by_set)?;
                let means = tape.affine(sums, 1.0, -(count as f64).ln())?;
                (tape.sum(means)?, None)
            }
            _ => self.by_elements(&mut tape, (contexts, unions), (&targets, values), step)?,
        };
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
        let update = self.parameters.descend(tape, loss, rate)?;
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

    fn join(&mut self, seat: &Arc<Seat>) -> Result<()> {
        self.parameters.join(seat);
        Ok(())
    }

    fn learns_on_gpu(&self) -> bool {
        self.parameters.device().is_gpu()
    }

    fn set_num_draws(&mut self, count: usize) {
        let has_field = self.path().is_some_and(GridPath::has_latents);
        if self.latent.is_some() || has_field {
            self.num_draws = count.max(1);
        }
    }

    fn use_average(&mut self) -> Result<()> {
        self.parameters.use_average(true);
        Ok(())
    }

    fn use_parameters(&mut self) -> Result<()> {
        self.parameters.use_average(false);
        Ok(())
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
    /// The same, and nothing else.
    Alone(Var),
}

impl Representation {
    /// The same for `count` copies of one set, one after the other.
    pub(super) fn repeated(self, tape: &mut Tape, count: usize) -> Result<Self> {
        Ok(match self {
            Self::Absent => Self::Absent,
            Self::PerSet(rows) => Self::PerSet(tape.tile(rows, count)?),
            Self::PerTarget(rows) => Self::PerTarget(tape.tile(rows, count)?),
            Self::Alone(rows) => Self::Alone(tape.tile(rows, count)?),
        })
    }
}

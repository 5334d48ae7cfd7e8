//! The neural processes: paths from the context to a Gaussian decoder, and the bound they are
//! trained by.

use std::sync::Arc;

use candle_core::Tensor;

use super::config::{Deterministic, NetworkConfig, NeuralProcessConfig};
use super::gaussian::Gaussian;
use super::network::{Builder, Network};
use super::paths::{AttentionPath, DeterministicPath, LatentPath, MeanPath};
use super::predictive::NeuralPredictive;
use super::ragged::{Ragged, host_tensor};
use super::trained::Trained;
use crate::nn::{Record, Step, normals};
use crate::point::{MlpConfig, PointBackend};
use crate::process::task::check_tasks;
use crate::process::{Learner, Predictive, Process, Task};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{IndexedSet, Result, SetOffsets};

/// A conditional, latent or attentive neural process, with its optimiser.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::Process;
/// use ebp::process::neural::{NeuralProcess, NeuralProcessConfig};
///
/// let config = NeuralProcessConfig::attentive();
/// let process = NeuralProcess::new(config, 7, Arc::new(CpuBackend::new()))?;
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
    trained: Trained,
    /// Where the z of predictive densities come from.
    pub(super) predictive_stream: Stream,
}

impl NeuralProcess {
    /// An untrained process: equal seeds give equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a setting outside its range.
    pub fn new(
        config: NeuralProcessConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let name = config.name();
        let NeuralProcessConfig { network, latent, deterministic } = config;
        network.check()?;
        let builder = Builder::new(seed, backend);
        let num_self_heads = match &deterministic {
            Deterministic::Attention(attention) => attention.num_self_heads(),
            Deterministic::Absent | Deterministic::Mean => None,
        };
        let (mut value_dim, mut context_dim) = (network.location_dim, 0);
        let deterministic = match deterministic {
            Deterministic::Absent => DeterministicPath::Absent,
            Deterministic::Mean => {
                context_dim += network.representation_dim;
                DeterministicPath::Mean(MeanPath::new(&builder, &network)?)
            }
            Deterministic::Attention(attention) => {
                value_dim += network.representation_dim;
                let path = AttentionPath::new(&builder, &network, &attention)?;
                DeterministicPath::Attention(Box::new(path))
            }
        };
        let num_draws = latent.as_ref().map_or(1, |latent| latent.num_draws);
        let latent = match latent {
            Some(latent) => {
                latent.check()?;
                context_dim += latent.latent_dim;
                Some(LatentPath::new(&builder, &network, latent.latent_dim, num_self_heads)?)
            }
            None => None,
        };
        let decoder = builder.network(
            "decoder",
            MlpConfig {
                value_dim,
                location_dim: 0,
                context_dim,
                hidden_widths: network.decoder_widths.clone(),
                output_dim: 2 * network.value_dim,
                activation: network.activation,
                ..MlpConfig::default()
            },
            network.location_dim,
        )?;
        let trained = Trained::new(builder.parameters, network.adam)?;
        let predictive_stream = Stream::new(seed, "predictive");
        Ok(Self {
            name,
            network,
            latent,
            num_draws,
            deterministic,
            decoder,
            trained,
            predictive_stream,
        })
    }

    /// The output law at each of `locations` `[total, d_t]`, given one z per set and what the
    /// deterministic path says.
    pub(super) fn decode(
        &self,
        locations: &Tensor,
        offsets: &SetOffsets,
        latents: Option<&Tensor>,
        representation: &Representation,
    ) -> Result<Gaussian> {
        let (mut elements, mut told) = (vec![locations], Vec::from_iter(latents));
        match representation {
            Representation::Absent => {}
            Representation::PerSet(rows) => told.push(rows),
            Representation::PerTarget(rows) => elements.push(rows),
        }
        let context = if told.is_empty() { None } else { Some(Tensor::cat(&told, 1)?) };
        let elements = Tensor::cat(&elements, 1)?;
        let raw = self.decoder.values(&elements, context.as_ref(), offsets)?;
        Gaussian::from_decoder(&raw, self.network.min_std_dev)
    }

    /// What the deterministic path says about targets at `locations` `[total, d_t]`.
    pub(super) fn represent(
        &self,
        contexts: &Ragged,
        locations: &Tensor,
        offsets: &SetOffsets,
    ) -> Result<Representation> {
        Ok(match &self.deterministic {
            DeterministicPath::Absent => Representation::Absent,
            DeterministicPath::Mean(path) => Representation::PerSet(path.represent(contexts)?),
            DeterministicPath::Attention(path) => {
                Representation::PerTarget(path.represent(contexts, locations, offsets)?)
            }
        })
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
    /// One step of maximum likelihood, or of its evidence bound where there is a latent:
    ///
    /// ```text
    /// log p(x_T | t_T, C) ≥ E_{q(z | C ∪ T)} log p(x_T | t_T, z, r) − KL(q(z | C ∪ T) ‖ q(z | C))
    /// ```
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        check_tasks(tasks, self.network.location_dim, self.network.value_dim)?;
        let offsets = SetOffsets::from_sizes(tasks.iter().map(|task| task.target.len()))?;
        let gather = |part: fn(&IndexedSet) -> &[f64], width| {
            let numbers: Vec<f64> =
                tasks.iter().flat_map(|task| part(&task.target)).copied().collect();
            host_tensor(&numbers, width)
        };
        let locations = gather(IndexedSet::locations, self.network.location_dim)?;
        let values = gather(IndexedSet::values, self.network.value_dim)?;
        let contexts = Ragged::new(tasks.iter().map(|task| &task.context))?;
        let representation = self.represent(&contexts, &locations, &offsets)?;
        let (latents, kl) = match &self.latent {
            Some(path) => {
                let all = tasks.iter().map(Task::union).collect::<Result<Vec<_>>>()?;
                let posterior = path.law(&Ragged::new(&all)?)?;
                let kl = posterior.kl_sum(&path.law(&contexts)?)?;
                let noise = normals((offsets.num_sets(), path.latent_dim), step.stream)?;
                (Some(posterior.reparameterised(&noise)?), Some(kl))
            }
            None => (None, None),
        };
        let law = self.decode(&locations, &offsets, latents.as_ref(), &representation)?;
        let log_density = law.log_density_sum(&values)?;
        let bound = match &kl {
            Some(kl) => (&log_density - kl)?,
            None => log_density.clone(),
        };
        let num_targets = offsets.num_elements() as f64;
        let loss = (bound * (-1.0 / num_targets))?;
        let scalar = |tensor: &Tensor| Ok::<_, crate::Error>(f64::from(tensor.to_scalar::<f32>()?));
        let kl = kl.as_ref().map_or(Ok(0.0), scalar)?;
        let rate = step.learning_rate(self.network.learning_rate);
        Ok(vec![
            ("loss", scalar(&loss)?),
            ("nats", -scalar(&log_density)? / num_targets),
            ("kl", kl / offsets.num_sets() as f64),
            ("gradient_norm", self.trained.descend(&loss, rate)?),
        ])
    }

    fn state(&self) -> Result<Tensors> {
        self.trained.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.trained.restore(state)
    }
}

/// What a deterministic path says.
#[derive(Clone, Debug)]
pub(super) enum Representation {
    /// There is no such path.
    Absent,
    /// `[sets, representation_dim]`.
    PerSet(Tensor),
    /// `[total, representation_dim]`.
    PerTarget(Tensor),
}

impl Representation {
    /// The same for `count` copies of one set, one after the other.
    pub(super) fn repeated(&self, count: usize) -> Result<Self> {
        Ok(match self {
            Self::Absent => Self::Absent,
            Self::PerSet(rows) => Self::PerSet(rows.repeat((count, 1))?),
            Self::PerTarget(rows) => Self::PerTarget(rows.repeat((count, 1))?),
        })
    }
}

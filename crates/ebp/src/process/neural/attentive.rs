//! The attentive neural process (Kim et al., 2019): every target looks at the context itself.
//!
//! ```text
//! r(t) = attention(query t, keys t_i, values encoder([x_i, t_i])),    z ~ q(z | C),
//! p(x | t, C) = E_{q(z | C)} N(x; μ(t, r(t), z), σ(t, r(t), z)²)
//! ```
//!
//! The mean of a neural process smooths the context away; attention finds the elements near a
//! target again. The latent path and the evidence bound are those of
//! [`NeuralProcess`](super::NeuralProcess), and so is the limit: given z, values are Gaussian.
//! A context without elements has r = 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use super::config::{AttentionConfig, LatentConfig, NetworkConfig};
use super::model::{Architecture, Deterministic, Losses, Model};
use super::predictive::NeuralPredictive;
use super::tasks::TaskBatch;
use crate::point::PointBackend;
use crate::process::{Predictive, Process};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Settings of [`AttentiveNeuralProcess`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AttentiveNeuralProcessConfig {
    /// Sizes of the networks.
    pub network: NetworkConfig,
    /// The latent of a set.
    pub latent: LatentConfig,
    /// How targets look at the context.
    pub attention: AttentionConfig,
}

/// A neural process whose decoder also sees what attention finds in the context.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::Process;
/// use ebp::process::neural::{AttentiveNeuralProcess, AttentiveNeuralProcessConfig};
///
/// let backend = Arc::new(CpuBackend::new());
/// let process = AttentiveNeuralProcess::new(AttentiveNeuralProcessConfig::default(), 7, backend)?;
/// let context = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.5, -0.5])?;
/// let target = IndexedSet::new(1, 1, vec![2.0], vec![0.1])?;
/// let density = process.condition(&context)?.log_density(&target)?;
/// assert!(density[0].value.is_finite());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct AttentiveNeuralProcess {
    model: Model,
}

impl AttentiveNeuralProcess {
    /// An untrained process: equal seeds give equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a setting outside its range.
    pub fn new(
        config: AttentiveNeuralProcessConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let architecture = Architecture {
            network: config.network,
            latent: Some(config.latent),
            deterministic: Deterministic::Attention(config.attention),
        };
        Ok(Self { model: Model::new(architecture, seed, backend)? })
    }

    /// One step along the evidence bound of the targets given their contexts; z comes from
    /// `stream`.
    ///
    /// On curves of order 1, 500 to 1000 steps of 16 sets suffice, with a learning rate that falls
    /// from 3e-3 to 0 along a cosine.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the tasks do not fit the process,
    /// [`Error::EmptySet`](crate::Error::EmptySet) if there is nothing to predict,
    /// [`Error::NonFinite`](crate::Error::NonFinite) or
    /// [`Error::NonFiniteGradient`](crate::Error::NonFiniteGradient) if training diverged; the
    /// parameters are then as they were.
    pub fn train_step(
        &mut self,
        batch: &TaskBatch<'_>,
        stream: Stream,
        learning_rate: f64,
    ) -> Result<Losses> {
        self.model.train_step(batch, stream, learning_rate)
    }

    /// Everything that a later step depends on: `parameters.…` and `optimiser.…`.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`](crate::Error::Tensor) if a tensor cannot be read.
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        self.model.state()
    }

    /// Takes back what [`state`](Self::state) gave: training goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does
    /// not fit or is not known; nothing changes then.
    pub fn restore(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        self.model.restore(state)
    }
}

impl Process for AttentiveNeuralProcess {
    fn name(&self) -> &'static str {
        "anp"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(NeuralPredictive::new(&self.model, context)?))
    }
}

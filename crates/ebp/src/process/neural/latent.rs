//! The neural process (Garnelo et al., 2018b): one latent z per set, Gaussian values given z.
//!
//! ```text
//! q(z | C) = N(μ_z, σ_z²) of mean_i encoder([x_i, t_i]),
//! p(x | t, C) = E_{q(z | C)} N(x; μ(t, z), σ(t, z)²)
//! ```
//!
//! Trained by the evidence bound of the targets, in which q(z | context) takes the place of the
//! prior of q(z | context and target). The predictive density averages over draws of z and comes
//! with its standard error. It is a mixture over whole curves; given z each value is Gaussian, so
//! two branches between which every element chooses for itself are out of reach.
//!
//! Published code adds a deterministic path r beside z; here it is off by default, since it lets
//! the decoder ignore z and draws then share one curve.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use super::config::{LatentConfig, NetworkConfig};
use super::model::{Architecture, Deterministic, Losses, Model};
use super::predictive::NeuralPredictive;
use super::tasks::TaskBatch;
use crate::point::PointBackend;
use crate::process::{Predictive, Process};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Settings of [`NeuralProcess`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NeuralProcessConfig {
    /// Sizes of the networks.
    pub network: NetworkConfig,
    /// The latent of a set.
    pub latent: LatentConfig,
    /// Whether the decoder is also told the mean of the encoded context, with an encoder of its
    /// own.
    pub has_deterministic_path: bool,
}

/// A mixture of Gaussian curves over the latent of a set.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::Process;
/// use ebp::process::neural::{NeuralProcess, NeuralProcessConfig};
///
/// let backend = Arc::new(CpuBackend::new());
/// let process = NeuralProcess::new(NeuralProcessConfig::default(), 7, backend)?;
/// let context = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.5, -0.5])?;
/// let target = IndexedSet::new(1, 1, vec![2.0], vec![0.1])?;
/// let density = process.condition(&context)?.log_density(&target)?;
/// assert!(density[0].value.is_finite());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct NeuralProcess {
    model: Model,
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
        let architecture = Architecture {
            network: config.network,
            latent: Some(config.latent),
            deterministic: if config.has_deterministic_path {
                Deterministic::Mean
            } else {
                Deterministic::Absent
            },
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

impl Process for NeuralProcess {
    fn name(&self) -> &'static str {
        "np"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(NeuralPredictive::new(&self.model, context)?))
    }
}

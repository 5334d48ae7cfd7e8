//! The conditional neural process (Garnelo et al., 2018a): a regression from sets to Gaussians.
//!
//! ```text
//! r = mean_i encoder([x_i, t_i]),    p(x | t, C) = N(x; μ(t, r), σ(t, r)²)
//! ```
//!
//! Trained by maximum likelihood of targets given random contexts. There is no latent: given the
//! context targets are independent, so joint draws are noise around one curve, and a density with
//! two modes is out of reach. A context without elements has r = 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use super::config::NetworkConfig;
use super::model::{Architecture, Deterministic, Losses, Model};
use super::predictive::NeuralPredictive;
use super::tasks::TaskBatch;
use crate::point::PointBackend;
use crate::process::{Predictive, Process};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Settings of [`ConditionalNeuralProcess`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ConditionalNeuralProcessConfig {
    /// Sizes of the networks.
    pub network: NetworkConfig,
}

/// A Gaussian at every location, read off the mean of the encoded context.
///
/// ```
/// use std::sync::Arc;
///
/// use ebp::IndexedSet;
/// use ebp::point::CpuBackend;
/// use ebp::process::Process;
/// use ebp::process::neural::{ConditionalNeuralProcess, ConditionalNeuralProcessConfig};
///
/// let backend = Arc::new(CpuBackend::new());
/// let process = ConditionalNeuralProcess::new(ConditionalNeuralProcessConfig::default(), 7, backend)?;
/// let context = IndexedSet::new(1, 1, vec![0.0, 1.0], vec![0.5, -0.5])?;
/// let target = IndexedSet::new(1, 1, vec![2.0], vec![0.1])?;
/// let density = process.condition(&context)?.log_density(&target)?;
/// assert!(density[0].value.is_finite());
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Debug)]
pub struct ConditionalNeuralProcess {
    model: Model,
}

impl ConditionalNeuralProcess {
    /// An untrained process: equal seeds give equal bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a setting outside its range.
    pub fn new(
        config: ConditionalNeuralProcessConfig,
        seed: u64,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let architecture = Architecture {
            network: config.network,
            latent: None,
            deterministic: Deterministic::Mean,
        };
        Ok(Self { model: Model::new(architecture, seed, backend)? })
    }

    /// One step of maximum likelihood of the targets given their contexts. It draws nothing from
    /// `stream`, which is there so that all processes are trained alike.
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

impl Process for ConditionalNeuralProcess {
    fn name(&self) -> &'static str {
        "cnp"
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        Ok(Box::new(NeuralPredictive::new(&self.model, context)?))
    }
}

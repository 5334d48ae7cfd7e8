//! The energy-based process:
//!
//! ```text
//! θ ~ p(θ),   p(x | t, θ) = exp u(x, t; θ) / Z(t; θ),   u = f(x, t; θ)/τ − ‖x‖²/(2 s₀²)
//! ```
//!
//! Given θ elements are independent, so the process is exchangeable and consistent for every n.
//! Without locations (d_t = 0) it is a law of sets of points; with values of a finite alphabet Z is
//! a sum. It is put together from a posterior q(θ | set) (`posterior`), an energy (`energy`), an
//! estimator of log Z (`partition`, `sampler`) and a law of θ (`latent`):
//!
//! ```text
//! config    what it is made of        batch, points   what a step reads, made ahead
//! learn     one step                  codes           q(θ | set) of many sets
//! ```

mod around;
mod bags;
mod batch;
mod bounds;
mod climb;
mod codes;
mod denoise;
mod fill;
mod from_noise;
mod grid;
mod hypotheses;
mod laplace;
mod learn;
mod levels;
mod mala;
mod nodes;
mod points;
mod predict;
mod sampled;
mod score;
mod simulate;
mod step_points;
mod step_views;
mod tempered;
mod walk;
mod whole;

use std::sync::Arc;

use crate::Result;
use crate::energy::WordsEnergy;
use crate::energy::{
    Canvas, CrossAttention, ElementEnergy, Energy, LevelsEnergy, Surroundings, View,
};
use crate::exchange::Seat;
use crate::partition::{LearnedSampler, Partition, partition};
use crate::posterior::{LocalPosterior, Posterior};
use crate::recipe::{EnergyBasedConfig, Estimator, Space};
use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet, check_taken};
use crate::tensor::Tensors;

pub use self::bags::{BagEvidence, BagPredictive};
pub use self::batch::{Batch, BatchMaker};
pub use self::bounds::{BoundedPartition, PartitionBounds};
pub(crate) use self::codes::ENCODED_AT_ONCE;
pub use self::codes::LatentCodes;
pub use self::denoise::DenoiseSettings;
pub use self::fill::FillSettings;
pub use self::levels::{LevelsPredictive, Rendered, Rendering};
pub(crate) use self::points::num_draw_groups;
pub use self::points::{DrawReport, DrawSettings, DrawTally, PointMethod, PointStart};
pub use self::predict::{EnergyBasedPredictive, PredictionRule};
pub use self::score::{ScoreSettings, SetScore};
pub use self::whole::PointsPredictive;

/// ½ log 2π.
const LOG_ROOT_TAU: f64 = 0.918_938_533_204_672_7;

/// An energy-based process.
#[derive(Debug)]
pub struct EnergyBasedProcess {
    config: EnergyBasedConfig,
    space: Space,
    device: Device,
    parts: Parts,
    parameters: ParameterSet,
    partition: Box<dyn Partition>,
}

/// Everything with parameters of the model. Clones share the handles, not the numbers.
#[derive(Clone, Debug)]
struct Parts {
    posterior: Posterior,
    energy: Energy,
    picture: Option<PictureParts>,
    num_features: usize,
}

/// What targets of a picture see beside θ and their location.
#[derive(Clone, Debug)]
struct PictureParts {
    surroundings: Surroundings,
    canvas: Canvas,
    attention: Option<CrossAttention>,
    view: Option<View>,
    local: Option<LocalPosterior>,
}

impl PictureParts {
    /// Numbers that are computed on the tape, beside those of the surroundings.
    fn num_computed(&self) -> usize {
        let attended = self.attention.as_ref().map_or(0, CrossAttention::width);
        let viewed = self.view.as_ref().map_or(0, View::width);
        self.canvas.num_painted() + attended + viewed
    }
}

impl Parts {
    fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        device: &Device,
        builder: &mut ParameterBuilder,
    ) -> Result<Self> {
        let mut model = builder.group("model");
        let posterior = Posterior::new(config, space, &mut model.group("posterior"))?;
        let picture = match space.grid {
            Some(grid) => {
                let surroundings = Surroundings::new(config, space, grid);
                let num_pooled = posterior.num_pooled();
                let mut group = model.group("attention");
                let attention = CrossAttention::new(config, &surroundings, device, &mut group)?;
                let (cells, _) = posterior.cells(config);
                let mut group = model.group("canvas");
                let canvas = Canvas::new(config, (grid, cells), num_pooled, &mut group)?;
                let of_places = (grid, space.value_dim);
                let view = View::new(config, of_places, cells, &mut model.group("view"))?;
                let local = LocalPosterior::new(config, &posterior, &mut model.group("local"))?;
                Some(PictureParts { surroundings, canvas, attention, view, local })
            }
            None => None,
        };
        let mut num_features = match &picture {
            Some(picture) => picture.surroundings.num_features() + picture.num_computed(),
            None => config.location_features(space),
        };
        let mut group = model.group("energy");
        let energy = if let Some(num_words) = space.num_words {
            Energy::Words(WordsEnergy::new(config, num_words, &mut group)?)
        } else if config.estimator == Estimator::Exact {
            // A network must read something.
            num_features = num_features.max(1);
            let energy = LevelsEnergy::new(config, space, num_features, device, &mut group)?;
            Energy::Levels(energy)
        } else {
            let dims = (space.value_dim, num_features);
            Energy::Element(ElementEnergy::new(config, dims, &mut group)?)
        };
        Ok(Self { posterior, energy, picture, num_features })
    }
}

impl EnergyBasedProcess {
    /// A process with random parameters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming a setting that is outside its
    /// range or does not go with the others.
    pub fn new(
        config: EnergyBasedConfig,
        space: Space,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        config.check(&space)?;
        let mut builder = ParameterBuilder::new(seed);
        let parts = Parts::new(&config, &space, device, &mut builder)?;
        let adam = AdamConfig {
            beta1: config.beta1,
            max_gradient_norm: Some(config.max_gradient_norm),
            weight_decay: config.weight_decay,
            ..AdamConfig::default()
        };
        let parameters = ParameterSet::new(builder, device, adam, Some(config.average_decay))?;
        let partition = partition(&config, &space, parts.num_features, (seed, device))?;
        let device = device.clone();
        Ok(Self { config, space, device, parts, parameters, partition })
    }

    /// The settings.
    pub fn config(&self) -> &EnergyBasedConfig {
        &self.config
    }

    /// Where its elements live.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The learned sampler, where there is one.
    fn sampler(&self) -> Option<&LearnedSampler> {
        self.partition.sampler()
    }

    /// Lets every later step be one of all shards of a circle, the sampler's own steps among them.
    pub fn join(&mut self, seat: &Arc<Seat>) {
        self.parameters.join(seat);
        if let Some(sampler) = self.partition.sampler_mut() {
            sampler.parameters.join(seat);
        }
    }

    /// How many numbers are trained, without the sampler's.
    pub fn num_parameters(&self) -> usize {
        self.parameters.num_trained()
    }

    /// Lets predictions use the moving average of the parameters.
    pub fn use_average(&mut self) {
        self.parameters.use_average(true);
    }

    /// Lets predictions use the parameters themselves.
    pub fn use_parameters(&mut self) {
        self.parameters.use_average(false);
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    pub fn state(&self) -> Result<Tensors> {
        let mut state = self.parameters.export()?;
        if let Some(sampler) = self.sampler() {
            state.extend(sampler.parameters.export()?);
        }
        Ok(state)
    }

    /// Takes back what [`state`](Self::state) gave: learning goes on bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) naming an entry that is missing, does
    /// not fit or is not known.
    pub fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut left = state.clone();
        self.parameters.import(&mut left)?;
        if let Some(sampler) = self.partition.sampler_mut() {
            sampler.parameters.import(&mut left)?;
        }
        check_taken(&left)
    }
}

//! q(θ | x₁, …, xₙ): Deep Sets to a diagonal Gaussian.
//!
//! ```text
//! h = max_i φ(xᵢ),   (μ, log σ) = ρ(relu h),   θ = μ + σ ξ
//! ```
//!
//! Nothing here knows the order of the points or their number.

use std::sync::Arc;

use candle_core::{Device, Tensor, Var};
use candle_nn::Module;

use super::config::UnconditionalConfig;
use crate::nn::{Initialiser, Linear, Parameters, PointModule, TensorBatch, linear};
use crate::point::{MlpShape, PointBackend, Pooling};
use crate::process::energy_based::latent::Gaussians;
use crate::{Result, SetOffsets};

/// log σ of an untrained encoder, about.
pub(super) const FIRST_LOG_STD_DEV: f64 = -2.0;
/// σ lies between e⁻⁴ and e²: a spike or a plain would stop all learning.
pub(super) const LOG_STD_DEV_RANGE: (f32, f32) = (-4.0, 2.0);

#[derive(Clone, Debug)]
pub(super) struct Encoder {
    latent_dim: usize,
    module: PointModule,
    parameters: Var,
    /// ρ: linear layers with ReLU before each.
    head: Vec<Linear>,
}

/// What the encoder says about sets.
pub(super) struct Encoded {
    /// h before ρ, `[sets, width]`: features for other uses.
    pub(super) pooled: Tensor,
    /// q(θ | set).
    pub(super) posterior: Gaussians,
}

impl Encoder {
    pub(super) fn new(
        config: &UnconditionalConfig,
        group: &Parameters,
        backend: Arc<dyn PointBackend>,
    ) -> Result<Self> {
        let shape = MlpShape::new(config.encoder())?;
        let parameters = group.point_mlp("elements", &shape)?;
        let widths: Vec<usize> = std::iter::once(shape.config().output_dim)
            .chain(config.head_widths.iter().copied())
            .chain([2 * config.latent_dim])
            .collect();
        let group = group.group("head");
        let head = widths
            .windows(2)
            .enumerate()
            .map(|(layer, widths)| {
                linear(&group.group(&layer.to_string()), widths[0], widths[1], Initialiser::FanIn)
            })
            .collect::<Result<_>>()?;
        let module = PointModule::new(shape, backend);
        Ok(Self { latent_dim: config.latent_dim, module, parameters, head })
    }

    /// Sets of points `[total, d]`.
    pub(super) fn encode(&self, points: Vec<f32>, offsets: &SetOffsets) -> Result<Encoded> {
        let shape = (offsets.num_elements(), self.module.shape().element_dim());
        let elements = Tensor::from_vec(points, shape, &Device::Cpu)?;
        let batch = TensorBatch {
            elements: &elements,
            context: None,
            parameters: self.parameters.as_tensor(),
            offsets,
        };
        let pooled = self.module.pool(&batch, Pooling::Max)?;
        let mut out = pooled.clone();
        for layer in &self.head {
            out = layer.forward(&out.relu()?)?;
        }
        let k = self.latent_dim;
        let mean = out.narrow(1, 0, k)?;
        // σ starts small, so that θ says something before the KL term asks whether it pays.
        let (low, high) = LOG_STD_DEV_RANGE;
        let log_std_dev = (out.narrow(1, k, k)? + FIRST_LOG_STD_DEV)?.clamp(low, high)?;
        Ok(Encoded { pooled, posterior: Gaussians { mean, log_std_dev } })
    }
}

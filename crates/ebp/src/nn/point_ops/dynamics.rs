//! Langevin and leapfrog steps, differentiable through the whole run.
//!
//! The network's parameters are constants here: a sampler is trained against a fixed energy.
//! A run has two results, and one op has one; both are packed into one flat tensor and viewed
//! apart, so that the backward pass through all steps runs once for both.

use candle_core::Tensor;

use super::{Call, PointModule, TensorBatch};
use crate::nn::host::{HostView, Reversal, Reverse, checked, record};
use crate::point::{
    Bounds, Clip, DynamicsCotangent, Langevin, LangevinRun, Leapfrog, LeapfrogRun, Motion,
};
use crate::rng::Stream;
use crate::{Error, Result};

/// The settings of [`Langevin`] other than its step sizes, which are a tensor here.
#[derive(Clone, Copy, Debug)]
pub struct LangevinSettings<'a> {
    /// sₜ, the standard deviation of the noise, one per step; 0 switches it off.
    pub noise_scales: &'a [f32],
    /// Where the noise comes from.
    pub noise: Stream,
    /// Clip, base measure, walls, fixed elements.
    pub motion: Motion<'a>,
}

/// What [`PointModule::langevin`] gives back.
#[derive(Clone, Debug)]
pub struct LangevinTensors {
    /// The elements after all steps, `[total, d_x + d_t]`, in the graph.
    pub elements: Tensor,
    /// Σₜ Σᵢ ‖vₜ‖² of each set, `[sets]`, in the graph.
    pub kinetic: Tensor,
    /// Everything else the run found, as constants.
    pub run: LangevinRun,
}

/// What [`PointModule::leapfrog`] gives back.
#[derive(Clone, Debug)]
pub struct LeapfrogTensors {
    /// The elements after all steps, `[total, d_x + d_t]`, in the graph.
    pub elements: Tensor,
    /// The momenta after all steps, `[total, d_x]`, in the graph.
    pub momentum: Tensor,
    /// Everything else the run found, as constants.
    pub run: LeapfrogRun,
}

impl PointModule {
    /// T Langevin steps of every element, differentiable with respect to the elements' values,
    /// the context and the step sizes.
    ///
    /// `batch.parameters` and the elements' locations are constants: their gradients are zero.
    ///
    /// # Shapes
    ///
    /// `step_sizes`: `[T]`; the results as in [`LangevinTensors`].
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values), and if the settings do not fit the batch.
    pub fn langevin(
        &self,
        batch: &TensorBatch<'_>,
        step_sizes: &Tensor,
        settings: &LangevinSettings<'_>,
    ) -> Result<LangevinTensors> {
        let prepared = self.prepare(batch)?;
        let step_sizes = checked_steps(step_sizes)?;
        let LangevinSettings { noise_scales, noise, motion } = *settings;
        let run = {
            let step_sizes = HostView::new("step_sizes", &step_sizes)?;
            let langevin = Langevin { step_sizes: &step_sizes, noise_scales, noise, motion };
            prepared.run(|call, batch| call.backend.langevin(&call.mlp, batch, &langevin))?
        };
        let (num_sets, num_steps) = (batch.offsets.num_sets(), step_sizes.elem_count());
        let kinetic = (0..num_sets)
            .map(|set| run.kinetic[set * num_steps..(set + 1) * num_steps].iter().sum::<f32>());
        let packed: Vec<f32> = run.elements.iter().copied().chain(kinetic).collect();
        let arguments = [&prepared.elements, &prepared.context, &step_sizes];
        let reverse = ReverseLangevin {
            call: prepared.call,
            noise_scales: noise_scales.to_vec(),
            noise,
            motion: OwnedMotion::new(&motion),
        };
        let dims = prepared.elements.dims2()?;
        let split = dims.0 * dims.1;
        let packed = record(packed, split + num_sets, arguments, reverse)?;
        Ok(LangevinTensors {
            elements: packed.narrow(0, 0, split)?.reshape(dims)?,
            kinetic: packed.narrow(0, split, num_sets)?,
            run,
        })
    }

    /// T leapfrog steps of every element from `momentum`, differentiable with respect to the
    /// elements' values, the momenta, the context and the step sizes.
    ///
    /// `batch.parameters` and the elements' locations are constants: their gradients are zero.
    ///
    /// # Shapes
    ///
    /// `momentum`: `[total, d_x]`, `step_sizes`: `[T]`; the results as in [`LeapfrogTensors`].
    ///
    /// # Errors
    ///
    /// As [`langevin`](Self::langevin).
    pub fn leapfrog(
        &self,
        batch: &TensorBatch<'_>,
        momentum: &Tensor,
        step_sizes: &Tensor,
        motion: &Motion<'_>,
    ) -> Result<LeapfrogTensors> {
        let prepared = self.prepare(batch)?;
        let dims = prepared.elements.dims2()?;
        let momentum_dims = (dims.0, self.shape().config().value_dim);
        let momentum = checked("momentum", momentum, &[momentum_dims.0, momentum_dims.1])?;
        let step_sizes = checked_steps(step_sizes)?;
        let run = {
            let momentum = HostView::new("momentum", &momentum)?;
            let step_sizes = HostView::new("step_sizes", &step_sizes)?;
            let leapfrog = Leapfrog { step_sizes: &step_sizes, motion: *motion };
            prepared
                .run(|call, batch| call.backend.leapfrog(&call.mlp, batch, &momentum, &leapfrog))?
        };
        // The state (x, v) is one argument and one result: an op takes three arguments.
        let state = Tensor::cat(&[prepared.elements.flatten_all()?, momentum.flatten_all()?], 0)?;
        let packed: Vec<f32> = run.elements.iter().chain(&run.momentum).copied().collect();
        let arguments = [&state, &prepared.context, &step_sizes];
        let reverse = ReverseLeapfrog { call: prepared.call, motion: OwnedMotion::new(motion) };
        let packed = record(packed, state.elem_count(), arguments, reverse)?;
        let split = dims.0 * dims.1;
        Ok(LeapfrogTensors {
            elements: packed.narrow(0, 0, split)?.reshape(dims)?,
            momentum: packed.narrow(0, split, momentum.elem_count())?.reshape(momentum_dims)?,
            run,
        })
    }
}

fn checked_steps(step_sizes: &Tensor) -> Result<Tensor> {
    match *step_sizes.dims() {
        [num_steps] => checked("step_sizes", step_sizes, &[num_steps]),
        ref dims => Err(Error::invalid("step_sizes", "of shape [T]", format!("{dims:?}"))),
    }
}

/// [`Motion`] without borrows, to outlive the forward pass.
struct OwnedMotion {
    clip: Clip,
    base_std_dev: Option<f32>,
    bounds: Option<Bounds>,
    is_fixed: Option<Vec<bool>>,
}

impl OwnedMotion {
    fn new(motion: &Motion<'_>) -> Self {
        let Motion { clip, base_std_dev, bounds, is_fixed } = *motion;
        Self { clip, base_std_dev, bounds, is_fixed: is_fixed.map(<[bool]>::to_vec) }
    }

    fn borrow(&self) -> Motion<'_> {
        let Self { clip, base_std_dev, bounds, is_fixed } = self;
        Motion {
            clip: *clip,
            base_std_dev: *base_std_dev,
            bounds: *bounds,
            is_fixed: is_fixed.as_deref(),
        }
    }
}

/// The columns of an element that are its value.
fn value_columns(elements: &[f32], call: &Call) -> Vec<f32> {
    let shape = call.mlp.shape();
    let value_dim = shape.config().value_dim;
    elements.chunks_exact(shape.element_dim()).flat_map(|row| &row[..value_dim]).copied().collect()
}

/// The inverse of [`value_columns`], with zeros at the locations.
fn element_rows<'a>(values: &'a [f32], call: &Call) -> impl Iterator<Item = f32> + use<'a> {
    let config = call.mlp.shape().config();
    let location_dim = config.location_dim;
    values
        .chunks_exact(config.value_dim)
        .flat_map(move |row| row.iter().copied().chain(std::iter::repeat_n(0.0, location_dim)))
}

struct ReverseLangevin {
    call: Call,
    noise_scales: Vec<f32>,
    noise: Stream,
    motion: OwnedMotion,
}

impl Reverse for ReverseLangevin {
    fn name(&self) -> &'static str {
        "point-langevin"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let Call { backend, mlp, offsets } = &self.call;
        let [elements, context, step_sizes] = reversal.arguments;
        let (moved, kinetic) = reversal.cotangent.split_at(elements.len());
        let values = value_columns(moved, &self.call);
        // Every element of a set adds to its kinetic energy. Without the term, one pass is saved.
        let kinetic: Option<Vec<f32>> = kinetic.iter().any(|&k| k != 0.0).then(|| {
            let sets = kinetic.iter().enumerate();
            sets.flat_map(|(set, &k)| std::iter::repeat_n(k, offsets.size(set))).collect()
        });
        let langevin = Langevin {
            step_sizes,
            noise_scales: &self.noise_scales,
            noise: self.noise,
            motion: self.motion.borrow(),
        };
        let cotangent =
            DynamicsCotangent { values: &values, momentum: None, kinetic: kinetic.as_deref() };
        let batch = self.call.batch(elements, context);
        let gradients = backend.langevin_backward(mlp, &batch, &langevin, cotangent)?;
        let elements = element_rows(&gradients.values, &self.call).collect();
        Ok([Some(elements), Some(gradients.context), Some(gradients.step_sizes)])
    }
}

struct ReverseLeapfrog {
    call: Call,
    motion: OwnedMotion,
}

impl Reverse for ReverseLeapfrog {
    fn name(&self) -> &'static str {
        "point-leapfrog"
    }

    fn reverse(&self, reversal: &Reversal<'_>) -> Result<[Option<Vec<f32>>; 3]> {
        let Call { backend, mlp, offsets } = &self.call;
        let [state, context, step_sizes] = reversal.arguments;
        let split = offsets.num_elements() * mlp.shape().element_dim();
        let (elements, momentum) = state.split_at(split);
        let (moved, turned) = reversal.cotangent.split_at(split);
        let values = value_columns(moved, &self.call);
        let leapfrog = Leapfrog { step_sizes, motion: self.motion.borrow() };
        let cotangent =
            DynamicsCotangent { values: &values, momentum: Some(turned), kinetic: None };
        let batch = self.call.batch(elements, context);
        let gradients = backend.leapfrog_backward(mlp, &batch, momentum, &leapfrog, cotangent)?;
        let state = element_rows(&gradients.values, &self.call).chain(gradients.momentum).collect();
        Ok([Some(state), Some(gradients.context), Some(gradients.step_sizes)])
    }
}

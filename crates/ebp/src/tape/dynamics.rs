//! Langevin and leapfrog steps along a network's score, differentiable through the whole run.
//!
//! The network's parameters are constants here: a sampler is trained against a fixed energy.

use std::sync::Arc;

use super::point::{Arguments, Points};
use super::{Array, Device, Tape, Var, cuda};
use crate::Result;
use crate::point::{Bounds, Clip, DynamicsCotangent, Langevin, Leapfrog, Motion, PointBackend};
use crate::rng::Stream;

/// The rules of a run; see [`Motion`].
#[derive(Clone, Debug, Default)]
pub struct MotionRules {
    /// How gradients are limited.
    pub clip: Clip,
    /// s₀ of a Gaussian base measure.
    pub base_std_dev: Option<f32>,
    /// Walls.
    pub bounds: Option<Bounds>,
    /// Elements that stay.
    pub is_fixed: Option<Arc<Vec<bool>>>,
}

impl MotionRules {
    pub(super) fn motion(&self) -> Motion<'_> {
        Motion {
            clip: self.clip,
            base_std_dev: self.base_std_dev,
            bounds: self.bounds,
            is_fixed: self.is_fixed.as_ref().map(|mask| mask.as_slice()),
        }
    }
}

/// Where elements are after Langevin steps.
#[derive(Clone, Copy, Debug)]
pub struct LangevinVars {
    /// x, `[total, d_x]`.
    pub values: Var,
    /// Σ_t ‖v_t‖² of every element, `[total, 1]`.
    pub kinetic: Var,
    /// Σ_t s_t² ‖ξ_t‖² of every element, `[total, 1]`, a constant.
    pub noise: Var,
}

/// Where elements are after leapfrog steps.
#[derive(Clone, Copy, Debug)]
pub struct LeapfrogVars {
    /// x, `[total, d_x]`.
    pub values: Var,
    /// v, `[total, d_x]`.
    pub momentum: Var,
}

impl Tape {
    /// T Langevin steps: v = s ξ + (η/2) g(x), x ← x + v, with T step sizes η, `[1, T]`.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn langevin(
        &mut self,
        points: &Points,
        step_sizes: Var,
        noise_scales: &[f32],
        noise: Stream,
        rules: &MotionRules,
    ) -> Result<LangevinVars> {
        self.check("step_sizes", step_sizes, (1, noise_scales.len()))?;
        let (inputs, arguments) = self.arguments(points)?;
        let steps = Steps {
            step_sizes: self.array(step_sizes).clone(),
            noise_scales: noise_scales.to_vec(),
            noise,
            rules: rules.clone(),
        };
        let [values, kinetic, moved_by_noise] = match self.device() {
            Device::Cpu(cpu) => {
                let run = cpu.langevin(&arguments.mlp()?, &arguments.batch()?, &steps.host()?)?;
                let values = value_columns(&arguments, &run.elements);
                [values.into(), run.element_kinetic.into(), run.element_noise.into()]
            }
            Device::Cuda(gpu) => cuda::langevin(gpu, &arguments, &steps)?,
        };
        let (total, dims) = (points.offsets.num_elements(), points.shape.config().value_dim);
        let inputs: Vec<Var> = inputs.into_iter().skip(1).chain([step_sizes]).collect();
        let noise = self.constant(moved_by_noise, (total, 1))?;
        let outputs = vec![(values, (total, dims)), (kinetic, (total, 1))];
        let values = self.record_all(&inputs, outputs, move |reversal| {
            let zeros = || reversal.device.zeros(total * dims);
            let of_values = reversal.cotangents[0].clone().map_or_else(zeros, Ok)?;
            let of_kinetic = reversal.cotangents[1].as_ref();
            let found = match reversal.device {
                Device::Cpu(cpu) => {
                    let kinetic = of_kinetic.map(Array::host).transpose()?;
                    let cotangent = DynamicsCotangent {
                        values: of_values.host()?,
                        momentum: None,
                        kinetic: kinetic.map(|kinetic| &kinetic[..]),
                    };
                    let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
                    let found = cpu.langevin_backward(&mlp, &batch, &steps.host()?, cotangent)?;
                    let elements = element_rows(&arguments, &found.values);
                    [elements.into(), found.context.into(), found.step_sizes.into()]
                }
                Device::Cuda(gpu) => {
                    let kinetic = of_kinetic.map(Array::cuda).transpose()?;
                    cuda::langevin_backward(gpu, &arguments, &steps, of_values.cuda()?, kinetic)?
                }
            };
            Ok(by_input(found, reversal.wanted.len()))
        });
        Ok(LangevinVars { values, kinetic: Var(values.0 + 1), noise })
    }

    /// T leapfrog steps from `momentum` `[total, d_x]`, with T step sizes, `[1, T]`.
    ///
    /// # Errors
    ///
    /// As [`point_values`](Self::point_values).
    pub fn leapfrog(
        &mut self,
        points: &Points,
        momentum: Var,
        step_sizes: Var,
        rules: &MotionRules,
    ) -> Result<LeapfrogVars> {
        let (inputs, arguments) = self.arguments(points)?;
        let (total, dims) = (points.offsets.num_elements(), points.shape.config().value_dim);
        self.check("momentum", momentum, (total, dims))?;
        let start = self.array(momentum).clone();
        let steps = Steps {
            step_sizes: self.array(step_sizes).clone(),
            noise_scales: Vec::new(),
            noise: Stream::new(0, "none"),
            rules: rules.clone(),
        };
        let (values, moved) = match self.device() {
            Device::Cpu(cpu) => {
                let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
                let run = cpu.leapfrog(&mlp, &batch, start.host()?, &steps.leapfrog()?)?;
                (value_columns(&arguments, &run.elements).into(), run.momentum.into())
            }
            Device::Cuda(gpu) => cuda::leapfrog(gpu, &arguments, &steps, start.cuda()?)?,
        };
        let inputs: Vec<Var> = inputs.into_iter().skip(1).chain([step_sizes, momentum]).collect();
        let outputs = vec![(values, (total, dims)), (moved, (total, dims))];
        let values = self.record_all(&inputs, outputs, move |reversal| {
            let given = |output: usize| match &reversal.cotangents[output] {
                Some(cotangent) => Ok(cotangent.clone()),
                None => reversal.device.zeros(total * dims),
            };
            let (of_values, of_momentum) = (given(0)?, given(1)?);
            let (found, of_start) = match reversal.device {
                Device::Cpu(cpu) => {
                    let cotangent = DynamicsCotangent {
                        values: of_values.host()?,
                        momentum: Some(of_momentum.host()?),
                        kinetic: None,
                    };
                    let (mlp, batch) = (arguments.mlp()?, arguments.batch()?);
                    let leapfrog = steps.leapfrog()?;
                    let found =
                        cpu.leapfrog_backward(&mlp, &batch, start.host()?, &leapfrog, cotangent)?;
                    let elements = element_rows(&arguments, &found.values);
                    let of_start = Array::from(found.momentum);
                    ([elements.into(), found.context.into(), found.step_sizes.into()], of_start)
                }
                Device::Cuda(gpu) => {
                    let cotangents = [of_values.cuda()?, of_momentum.cuda()?];
                    cuda::leapfrog_backward(gpu, &arguments, &steps, start.cuda()?, cotangents)?
                }
            };
            let mut found = by_input(found, reversal.wanted.len() - 1);
            found.push(Some(of_start));
            Ok(found)
        });
        Ok(LeapfrogVars { values, momentum: Var(values.0 + 1) })
    }
}

/// What a run of steps is made of, kept for the way back.
pub(super) struct Steps {
    pub(super) step_sizes: Array,
    pub(super) noise_scales: Vec<f32>,
    pub(super) noise: Stream,
    pub(super) rules: MotionRules,
}

impl Steps {
    fn host(&self) -> Result<Langevin<'_>> {
        Ok(Langevin {
            step_sizes: self.step_sizes.host()?,
            noise_scales: &self.noise_scales,
            noise: self.noise,
            motion: self.rules.motion(),
        })
    }

    fn leapfrog(&self) -> Result<Leapfrog<'_>> {
        Ok(Leapfrog { step_sizes: self.step_sizes.host()?, motion: self.rules.motion() })
    }
}

/// Gradients of elements, context (where it is an input) and step sizes.
fn by_input([elements, context, step_sizes]: [Array; 3], inputs: usize) -> Vec<Option<Array>> {
    if inputs == 2 {
        return vec![Some(elements), Some(step_sizes)];
    }
    vec![Some(elements), Some(context), Some(step_sizes)]
}

/// The value columns of elements.
fn value_columns(arguments: &Arguments, elements: &[f32]) -> Vec<f32> {
    let dims = arguments.shape.config().value_dim;
    let rows = elements.chunks_exact(arguments.shape.element_dim());
    rows.flat_map(|row| &row[..dims]).copied().collect()
}

/// Rows of elements with zeros at the locations, which never move.
fn element_rows(arguments: &Arguments, values: &[f32]) -> Vec<f32> {
    let config = arguments.shape.config();
    let zeros = || std::iter::repeat_n(0.0, config.location_dim);
    let rows = values.chunks_exact(config.value_dim);
    rows.flat_map(|row| row.iter().copied().chain(zeros())).collect()
}

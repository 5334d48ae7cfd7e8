//! Langevin and leapfrog steps; elements stay on the GPU from the first to the last.

use std::sync::Arc;

use super::chunk::Chunk;
use super::device::{Buffer, Device, flat, launch};
use super::fused;
use super::network::{Elements, Keep, Network, Rows};
use super::values::{append, prepare};
use crate::Result;
use crate::point::{
    Bounds, Clip, Langevin, LangevinRun, Leapfrog, LeapfrogRun, Motion, PointBatch, PointMlp,
};
use cudarc::driver::{DeviceRepr, LaunchConfig};

/// [`Motion`] as kernels know it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct MotionCode {
    clip: i32,
    limit: f32,
    precision: f32,
    is_bounded: i32,
    low: f32,
    high: f32,
}

// SAFETY: plain numbers in C's layout, the same as `struct Motion` of kernels.cu.
unsafe impl DeviceRepr for MotionCode {}

impl MotionCode {
    pub(super) fn new(motion: &Motion<'_>) -> Self {
        let (clip, limit) = match motion.clip {
            Clip::Off => (0, 0.0),
            Clip::Elementwise(limit) => (1, limit),
            Clip::Norm(limit) => (2, limit),
        };
        let precision = motion.base_std_dev.map_or(0.0, |std_dev| (std_dev * std_dev).recip());
        let (is_bounded, Bounds { low, high }) = match motion.bounds {
            None => (0, Bounds { low: 0.0, high: 0.0 }),
            Some(bounds) => (1, bounds),
        };
        Self { clip, limit, precision, is_bounded, low, high }
    }
}

/// A chunk on the move.
pub(super) struct Moving<'a, 'n> {
    network: &'a Network<'n>,
    pub(super) rows: Rows,
    pub(super) motion: MotionCode,
    pub(super) fixed: Buffer<u8>,
    pub(super) d: usize,
    pub(super) dx: usize,
}

/// Where a step writes ∇u, g = clip(∇u) and the velocity that leaves the place. 0 in the place of ∇u,
/// and of leapfrog's velocity, keeps none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub(super) gradient: u64,
    pub(super) drift: u64,
    pub(super) velocity: u64,
}

/// What a fused run needs beside the chunk.
struct Fused<'a> {
    step_sizes: &'a [f32],
    noise_scales: &'a [f32],
    key: [u32; 2],
}

/// Where a chunk ended.
struct End {
    elements: Vec<f32>,
    values: Vec<f32>,
    score: Buffer,
}

impl<'a, 'n> Moving<'a, 'n> {
    pub(super) fn new(
        network: &'a Network<'n>,
        batch: &PointBatch<'_>,
        motion: &Motion<'_>,
        chunk: &Chunk,
    ) -> Result<Self> {
        let config = network.shape.config();
        let fixed = match motion.is_fixed {
            None => Buffer::none(),
            Some(mask) => {
                let bytes: Vec<u8> =
                    mask[chunk.rows.clone()].iter().map(|&b| u8::from(b)).collect();
                network.device.upload(&bytes)?
            }
        };
        Ok(Self {
            network,
            rows: network.rows(Elements::Host(batch.elements), chunk)?,
            motion: MotionCode::new(motion),
            fixed,
            d: network.shape.element_dim(),
            dx: config.value_dim,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.rows.count * self.dx
    }

    /// ∇ₓ f of every row, `[count, d]`, and f.
    pub(super) fn gradient(&self) -> Result<(Buffer, Buffer)> {
        let trace = self.network.forward(&self.rows, Keep::Slopes)?;
        let gradient = self.network.backward(&self.rows, &trace, None, None, true)?;
        Ok((gradient, trace.output))
    }

    /// Takes a Langevin step; the chunk's first row is row `first_row` of the batch.
    pub(super) fn langevin_step(
        &self,
        settings: &Langevin<'_>,
        step: usize,
        first_row: usize,
        kept: Kept,
    ) -> Result<()> {
        let key = settings.noise.key();
        let (gradient, _) = self.gradient()?;
        launch!(
            self.network.device,
            langevin_step,
            flat(self.rows.count),
            self.rows.elements.at(0),
            gradient.at(0),
            self.fixed.at(0),
            self.motion,
            kept.gradient,
            kept.drift,
            kept.velocity,
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32,
            first_row as u64,
            settings.step_sizes[step],
            settings.noise_scales[step],
            step as u32,
            key[0],
            key[1]
        )
    }

    /// The kicks at place `number` of leapfrog's path, and the step from there. The drift at a place
    /// ends one step and begins the next.
    pub(super) fn leapfrog_step(
        &self,
        steps: &[f32],
        number: usize,
        momentum: &Buffer,
        kept: Kept,
    ) -> Result<()> {
        let (gradient, _) = self.gradient()?;
        launch!(
            self.network.device,
            leapfrog_step,
            flat(self.rows.count),
            self.rows.elements.at(0),
            momentum.at(0),
            gradient.at(0),
            self.fixed.at(0),
            self.motion,
            kept.gradient,
            kept.drift,
            kept.velocity,
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32,
            number.checked_sub(1).map_or(0.0, |ended| steps[ended]),
            steps.get(number).copied().unwrap_or(0.0),
            i32::from(number < steps.len())
        )
    }

    fn end(&self) -> Result<End> {
        let device = self.network.device;
        let (gradient, values) = self.gradient()?;
        let (score, g) = (device.buffer::<f32>(self.len())?, device.buffer::<f32>(self.len())?);
        launch!(
            device,
            drift_only,
            flat(self.rows.count),
            self.rows.elements.at(0),
            gradient.at(0),
            self.fixed.at(0),
            self.motion,
            score.at(0),
            g.at(0),
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32
        )?;
        let elements = device.download(&self.rows.elements)?;
        Ok(End { elements, values: device.download(&values)?, score })
    }

    /// All steps in one kernel.
    fn fused(
        &self,
        kernel: &(fused::Key, Arc<fused::Compiled>),
        chunk: &Chunk,
        part: &Fused<'_>,
        [momentum, drifts, velocities]: [&Buffer; 3],
    ) -> Result<End> {
        let device = self.network.device;
        let values = device.buffer::<f32>(self.rows.count)?;
        let score = device.buffer::<f32>(self.len())?;
        let steps = fused::Steps {
            chunk,
            elements: &self.rows.elements,
            momentum,
            fixed: &self.fixed,
            motion: self.motion,
            step_sizes: part.step_sizes,
            noise_scales: part.noise_scales,
            key: part.key,
            drifts,
            velocities,
            values: &values,
            score: &score,
        };
        fused::run(self.network, kernel, &steps)?;
        let elements = device.download(&self.rows.elements)?;
        Ok(End { elements, values: device.download(&values)?, score })
    }

    /// Adds ⟨v, v⟩, ⟨score, g⟩ and ⟨v, g⟩ of every set and step to `sums`, `[3, sets, steps]`.
    fn langevin_dots(
        &self,
        [velocities, drifts, score]: [&Buffer; 3],
        sums: &Buffer,
        steps: usize,
    ) -> Result<()> {
        if steps == 0 {
            return Ok(());
        }
        launch!(
            self.network.device,
            langevin_dots,
            blocks(self.rows.num_sets, steps),
            velocities.at(0),
            drifts.at(0),
            score.at(0),
            self.len() as u64,
            self.rows.starts.at(0),
            sums.at(0),
            (sums.len() / 3) as u64,
            self.rows.first_set as u32,
            steps as u32,
            self.dx as u32
        )
    }

    /// Adds ‖v‖² of every set to `sums`, `[sets]`.
    fn squares(&self, velocities: &Buffer, sums: &Buffer) -> Result<()> {
        launch!(
            self.network.device,
            set_squares,
            blocks(self.rows.num_sets, 1),
            velocities.at(0),
            self.rows.starts.at(0),
            sums.at(0),
            self.rows.first_set as u32,
            self.dx as u32
        )
    }
}

/// A block for each set and step.
fn blocks(sets: usize, steps: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (sets as u32, steps as u32, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    }
}

pub(super) fn langevin(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    settings: &Langevin<'_>,
) -> Result<LangevinRun> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Slopes)?;
    let (steps, num_sets) = (settings.step_sizes.len(), batch.offsets.num_sets());
    // Kinetic, final alignment, kinetic alignment.
    let sums = device.zeros::<f32>(3 * num_sets * steps)?;
    let key = settings.noise.key();
    let kernel = fused::find(device, mlp.shape(), false)?;
    let (mut elements, mut values, mut score) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in &parts {
        let moving = Moving::new(&network, batch, &settings.motion, chunk)?;
        let length = moving.len();
        let drifts = device.buffer::<f32>(length * steps)?;
        let velocities = device.buffer::<f32>(length * steps)?;
        let end = if let Some(kernel) = &kernel {
            let part =
                Fused { step_sizes: settings.step_sizes, noise_scales: settings.noise_scales, key };
            moving.fused(kernel, chunk, &part, [&Buffer::none(), &drifts, &velocities])?
        } else {
            for step in 0..steps {
                let kept = Kept {
                    gradient: 0,
                    drift: drifts.at(step * length),
                    velocity: velocities.at(step * length),
                };
                moving.langevin_step(settings, step, chunk.rows.start, kept)?;
            }
            moving.end()?
        };
        moving.langevin_dots([&velocities, &drifts, &end.score], &sums, steps)?;
        append(&mut elements, end.elements);
        append(&mut values, end.values);
        append(&mut score, device.download(&end.score)?);
    }
    let mut kinetic = device.download(&sums)?;
    let kinetic_alignment = kinetic.split_off(2 * num_sets * steps);
    let final_alignment = kinetic.split_off(num_sets * steps);
    let (element_kinetic, element_noise) = (Vec::new(), Vec::new());
    Ok(LangevinRun {
        elements,
        values,
        score,
        kinetic,
        element_kinetic,
        element_noise,
        final_alignment,
        kinetic_alignment,
    })
}

pub(super) fn leapfrog(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    momentum: &[f32],
    settings: &Leapfrog<'_>,
) -> Result<LeapfrogRun> {
    let (network, parts) = prepare(device, mlp, batch, Keep::Slopes)?;
    let kinetic = device.zeros::<f32>(batch.offsets.num_sets())?;
    let kernel = fused::find(device, mlp.shape(), true)?;
    let (mut elements, mut momenta) = (Vec::new(), Vec::new());
    let (mut values, mut score) = (Vec::new(), Vec::new());
    for chunk in &parts {
        let moving = Moving::new(&network, batch, &settings.motion, chunk)?;
        let (length, dx) = (moving.len(), moving.dx);
        let v = device.upload(&momentum[chunk.rows.start * dx..chunk.rows.end * dx])?;
        let g = device.buffer::<f32>(length)?;
        let end = if let Some(kernel) = &kernel {
            let none = vec![0.0; settings.step_sizes.len()];
            let part = Fused { step_sizes: settings.step_sizes, noise_scales: &none, key: [0; 2] };
            moving.fused(kernel, chunk, &part, [&v, &Buffer::none(), &Buffer::none()])?
        } else {
            for number in 0..=settings.step_sizes.len() {
                let kept = Kept { gradient: 0, drift: g.at(0), velocity: 0 };
                moving.leapfrog_step(settings.step_sizes, number, &v, kept)?;
            }
            moving.end()?
        };
        let counted = device.buffer::<f32>(length)?;
        launch!(
            device,
            moving,
            flat(length),
            v.at(0),
            moving.fixed.at(0),
            counted.at(0),
            moving.rows.count as u64,
            dx as u32
        )?;
        moving.squares(&counted, &kinetic)?;
        append(&mut elements, end.elements);
        append(&mut momenta, device.download(&v)?);
        append(&mut values, end.values);
        append(&mut score, device.download(&end.score)?);
    }
    let kinetic = device.download(&kinetic)?;
    Ok(LeapfrogRun { elements, momentum: momenta, values, score, kinetic })
}

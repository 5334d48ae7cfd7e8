//! Langevin and leapfrog steps; elements stay on the GPU from the first to the last.

use std::sync::Arc;

use super::buffer::Buffer;
use super::device::Device;
use super::fused;
use super::inputs::{DeviceBatch, DeviceLangevin, DeviceLeapfrog, DeviceMlp};
use super::launch::{Grid, blocks, flat};
use super::motion::{DeviceMotion, MotionCode};
use super::network::{Keep, Network};
use super::rows::Rows;
use super::sets::Chunk;
use super::values::prepare;
use super::whole::Whole;
use crate::Result;
use crate::point::{LangevinRun, LeapfrogRun};

/// A chunk on the move.
pub(super) struct Moving<'a, 'n> {
    network: &'a Network<'n>,
    /// Its elements are a copy, which moves.
    pub(super) rows: Rows,
    pub(super) motion: MotionCode,
    /// Where an element must not move; empty if all move.
    pub(super) fixed: Buffer<u8>,
    pub(super) d: usize,
    pub(super) dx: usize,
}

/// f and ∇u where a chunk ended, `[rows]` and `[rows, d_x]`.
pub(super) struct End {
    values: Buffer,
    score: Buffer,
}

impl<'a, 'n> Moving<'a, 'n> {
    pub(super) fn new(
        network: &'a Network<'n>,
        batch: &DeviceBatch<'_>,
        motion: &DeviceMotion,
        chunk: &Chunk,
    ) -> Result<Self> {
        let mut rows = network.rows(batch.elements, batch.sets, chunk)?;
        rows.elements = network.device.duplicate(&rows.elements)?;
        let fixed = match motion.fixed.some() {
            Some(fixed) => fixed.view(chunk.rows.start, rows.count),
            None => Buffer::none(),
        };
        Ok(Self {
            network,
            rows,
            motion: motion.code,
            fixed,
            d: network.shape.element_dim(),
            dx: network.shape.config().value_dim,
        })
    }

    /// Numbers that may move.
    pub(super) fn len(&self) -> usize {
        self.rows.count * self.dx
    }

    /// ∇ₓ f of every row, `[count, d]`, and f.
    fn gradient(&self) -> Result<(Buffer, Buffer)> {
        let trace = self.network.forward(&self.rows, Keep::Slopes)?;
        let gradient = self.network.backward(&self.rows, &trace, None, None, true)?;
        Ok((gradient, trace.output))
    }

    /// Takes a Langevin step; the chunk's first row is row `first_row` of the batch. Writes ∇u where
    /// asked, g = clip(∇u) and the velocity v.
    pub(super) fn langevin_step(
        &self,
        settings: &DeviceLangevin<'_>,
        (step, first_row): (usize, usize),
        (score, g, v): (Option<&Buffer>, &Buffer, &Buffer),
    ) -> Result<()> {
        let [k0, k1] = settings.noise.key();
        let (gradient, _) = self.gradient()?;
        let device = self.network.device;
        device.kernels.langevin_step(
            device,
            flat(self.rows.count),
            &self.rows.elements,
            &gradient,
            self.fixed.some(),
            self.motion,
            score,
            g,
            v,
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32,
            first_row as u64,
            &settings.step_sizes.view(step, 1),
            settings.noise_scales[step],
            step as u32,
            k0,
            k1,
        )
    }

    /// The kicks at place `number` of leapfrog's path, and the step from there. The drift at a place
    /// ends one step and begins the next. Writes ∇u where asked, g = clip(∇u), and where asked the
    /// velocity that leaves the place.
    pub(super) fn leapfrog_step(
        &self,
        sizes: &StepSizes<'_>,
        momentum: &Buffer,
        (score, g, halfway): (Option<&Buffer>, &Buffer, Option<&Buffer>),
    ) -> Result<()> {
        let (gradient, _) = self.gradient()?;
        let device = self.network.device;
        device.kernels.leapfrog_step(
            device,
            flat(self.rows.count),
            &self.rows.elements,
            momentum,
            &gradient,
            self.fixed.some(),
            self.motion,
            score,
            g,
            halfway,
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32,
            sizes.ended().as_ref(),
            sizes.begun().as_ref(),
        )
    }

    fn end(&self) -> Result<End> {
        let device = self.network.device;
        let (gradient, values) = self.gradient()?;
        let (score, g) = (device.buffer::<f32>(self.len())?, device.buffer::<f32>(self.len())?);
        device.kernels.drift_only(
            device,
            flat(self.rows.count),
            &self.rows.elements,
            &gradient,
            self.fixed.some(),
            self.motion,
            &score,
            &g,
            self.rows.count as u64,
            self.d as u32,
            self.dx as u32,
        )?;
        Ok(End { values, score })
    }

    /// Room for [`End`].
    fn room(&self) -> Result<End> {
        let device = self.network.device;
        let (values, score) = (device.buffer(self.rows.count)?, device.buffer(self.len())?);
        Ok(End { values, score })
    }

    /// Takes all Langevin steps by the kernel compiled for the network: f and ∇u where they end, g and v of
    /// every step, `[steps, rows, d_x]`.
    pub(super) fn run_fused(
        &self,
        kernel: &(fused::Key, Arc<fused::Compiled>),
        chunk: &Chunk,
        settings: &DeviceLangevin<'_>,
    ) -> Result<(End, [Buffer; 2])> {
        let device = self.network.device;
        let length = self.len() * settings.step_sizes.len();
        let (drifts, velocities) = (device.buffer(length)?, device.buffer(length)?);
        let end = self.room()?;
        let steps = fused::Steps {
            chunk,
            elements: &self.rows.elements,
            momentum: None,
            fixed: &self.fixed,
            motion: self.motion,
            step_sizes: settings.step_sizes,
            noise_scales: Some(&device.constant(settings.noise_scales)?),
            key: settings.noise.key(),
            drifts: Some(&drifts),
            velocities: Some(&velocities),
            values: &end.values,
            score: &end.score,
        };
        fused::run(self.network, kernel, &steps)?;
        Ok((end, [drifts, velocities]))
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
        let device = self.network.device;
        let grid = Grid {
            grid_dim: (self.rows.num_sets as u32, steps as u32, 1),
            ..blocks(self.rows.num_sets, 256)
        };
        device.kernels.langevin_dots(
            device,
            grid,
            velocities,
            drifts,
            score,
            self.len() as u64,
            &self.rows.starts,
            sums,
            (sums.len() / 3) as u64,
            self.rows.first_set as u32,
            steps as u32,
            self.dx as u32,
        )
    }

    /// Adds ‖v‖² over the moving elements of every set to `sums`, `[sets]`.
    fn add_squares(&self, velocities: &Buffer, sums: &Buffer) -> Result<()> {
        let (device, rows, dx) = (self.network.device, &self.rows, self.dx as u32);
        let counted = device.buffer::<f32>(self.len())?;
        let (grid, fixed) = (flat(self.len()), self.fixed.some());
        device.kernels.moving(device, grid, velocities, fixed, &counted, rows.count as u64, dx)?;
        let (grid, first_set) = (blocks(rows.num_sets, 256), rows.first_set as u32);
        device.kernels.set_squares(device, grid, &counted, &rows.starts, sums, first_set, dx)
    }
}

/// The sizes of the steps that meet at a place of leapfrog's path, place 0 being its start.
pub(super) struct StepSizes<'a> {
    pub(super) all: &'a Buffer,
    pub(super) place: usize,
}

impl StepSizes<'_> {
    /// Of the step that begins there; `None` at the end.
    pub(super) fn begun(&self) -> Option<Buffer> {
        (self.place < self.all.len()).then(|| self.all.view(self.place, 1))
    }

    /// Of the step that ended there; `None` at the start.
    pub(super) fn ended(&self) -> Option<Buffer> {
        self.place.checked_sub(1).map(|step| self.all.view(step, 1))
    }
}

impl Device {
    /// T Langevin steps of every element.
    pub(crate) fn langevin(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        settings: &DeviceLangevin<'_>,
    ) -> Result<LangevinRun<Buffer>> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Slopes)?;
        let (steps, num_sets) = (settings.step_sizes.len(), batch.sets.num_sets());
        let total = batch.sets.num_elements();
        let (d, dx) = (mlp.shape.element_dim(), mlp.shape.config().value_dim);
        // Kinetic, final alignment, kinetic alignment.
        let sums = self.zeros::<f32>(3 * num_sets * steps)?;
        let kernel = fused::find(self, mlp.shape, false)?;
        let (mut elements, mut values) = (Whole::new(self, total * d), Whole::new(self, total));
        let (mut score, mut kinetic) = (Whole::new(self, total * dx), Whole::new(self, total));
        for chunk in &chunks {
            let moving = Moving::new(&network, batch, settings.motion, chunk)?;
            let (length, first) = (moving.len(), chunk.rows.start);
            let (end, [drifts, velocities]) = if let Some(kernel) = &kernel {
                moving.run_fused(kernel, chunk, settings)?
            } else {
                let drifts = self.buffer::<f32>(length * steps)?;
                let velocities = self.buffer::<f32>(length * steps)?;
                for step in 0..steps {
                    let g = drifts.view(step * length, length);
                    let v = velocities.view(step * length, length);
                    moving.langevin_step(settings, (step, first), (None, &g, &v))?;
                }
                (moving.end()?, [drifts, velocities])
            };
            moving.langevin_dots([&velocities, &drifts, &end.score], &sums, steps)?;
            let rows = moving.rows.count;
            let squares = self.buffer::<f32>(rows)?;
            self.kernels.element_squares(
                self,
                flat(rows),
                &velocities,
                &squares,
                rows as u64,
                dx as u32,
                steps as u32,
            )?;
            elements.put(first * d, moving.rows.elements)?;
            values.put(first, end.values)?;
            score.put(first * dx, end.score)?;
            kinetic.put(first, squares)?;
        }
        let sum = |number: usize| sums.view(number * num_sets * steps, num_sets * steps);
        Ok(LangevinRun {
            elements: elements.done(),
            values: values.done(),
            score: score.done(),
            kinetic: sum(0),
            element_kinetic: kinetic.done(),
            element_noise: self.noise_squares(settings, (total, dx))?,
            final_alignment: sum(1),
            kinetic_alignment: sum(2),
        })
    }

    /// Σ_t s_t² ‖ξ_t‖² of every element, 0 where it is fixed: the noise is drawn again.
    fn noise_squares(
        &self,
        settings: &DeviceLangevin<'_>,
        (total, dx): (usize, usize),
    ) -> Result<Buffer> {
        let (out, scales) = (self.buffer::<f32>(total)?, self.constant(settings.noise_scales)?);
        let ([k0, k1], steps) = (settings.noise.key(), settings.noise_scales.len());
        self.kernels.noise_squares(
            self,
            flat(total),
            &out,
            settings.motion.fixed.some(),
            &scales,
            total as u64,
            dx as u32,
            steps as u32,
            k0,
            k1,
        )?;
        Ok(out)
    }

    /// T leapfrog steps of every element from `momentum` `[total, d_x]`.
    pub(crate) fn leapfrog(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        momentum: &Buffer,
        settings: &DeviceLeapfrog<'_>,
    ) -> Result<LeapfrogRun<Buffer>> {
        let (network, chunks) = prepare(self, mlp, batch, Keep::Slopes)?;
        let (total, step_sizes) = (batch.sets.num_elements(), settings.step_sizes);
        let (d, dx) = (mlp.shape.element_dim(), mlp.shape.config().value_dim);
        let kinetic = self.zeros::<f32>(batch.sets.num_sets())?;
        let kernel = fused::find(self, mlp.shape, true)?;
        let (mut elements, mut momenta) =
            (Whole::new(self, total * d), Whole::new(self, total * dx));
        let (mut values, mut score) = (Whole::new(self, total), Whole::new(self, total * dx));
        for chunk in &chunks {
            let moving = Moving::new(&network, batch, settings.motion, chunk)?;
            let (length, first) = (moving.len(), chunk.rows.start);
            let v = self.duplicate(&momentum.view(first * dx, length))?;
            let end = if let Some(kernel) = &kernel {
                let end = moving.room()?;
                let part = fused::Steps {
                    chunk,
                    elements: &moving.rows.elements,
                    momentum: Some(&v),
                    fixed: &moving.fixed,
                    motion: moving.motion,
                    step_sizes,
                    noise_scales: None,
                    key: [0; 2],
                    drifts: None,
                    velocities: None,
                    values: &end.values,
                    score: &end.score,
                };
                fused::run(&network, kernel, &part)?;
                end
            } else {
                let g = self.buffer::<f32>(length)?;
                for place in 0..=step_sizes.len() {
                    let sizes = StepSizes { all: step_sizes, place };
                    moving.leapfrog_step(&sizes, &v, (None, &g, None))?;
                }
                moving.end()?
            };
            moving.add_squares(&v, &kinetic)?;
            elements.put(first * d, moving.rows.elements)?;
            momenta.put(first * dx, v)?;
            values.put(first, end.values)?;
            score.put(first * dx, end.score)?;
        }
        Ok(LeapfrogRun {
            elements: elements.done(),
            momentum: momenta.done(),
            values: values.done(),
            score: score.done(),
            kinetic,
        })
    }
}

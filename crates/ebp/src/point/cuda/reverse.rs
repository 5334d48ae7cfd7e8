//! Gradients through Langevin and leapfrog steps: the path is run again and kept on the GPU, then
//! walked back.
//!
//! ```text
//! kick   v ← v + c g(x),  g = clip(∇u)       ∂L/∂x += H w,  w = J_clipᵀ c ∂L/∂v
//! move   x' = R(x + v) or R(x + η v)         ∂L/∂x = R′ ∂L/∂x'
//! ```
//!
//! H w of the network is one backward pass of its score; it vanishes for piecewise linear σ. The two
//! half kicks of leapfrog that meet at a place have the same ∂L/∂v, and are one. What of ∂L/∂η a place
//! adds is kept in parts, one per block of threads, until all places are passed.

use std::sync::Arc;

use super::backward::Sums;
use super::buffer::Buffer;
use super::device::Device;
use super::dynamics::{Moving, StepSizes};
use super::fused;
use super::inputs::{DeviceBatch, DeviceLangevin, DeviceLeapfrog, DeviceMlp};
use super::launch::{blocks, flat};
use super::motion::DeviceMotion;
use super::network::{Keep, Network};
use super::rows::Rows;
use super::sets::Chunk;
use super::whole::Whole;
use crate::Result;
use crate::point::{DynamicsGradients, Wanted};

/// One place of the path.
struct Place {
    /// x `[rows, d]`.
    elements: Buffer,
    /// ∇u, g = clip(∇u) and the v that leaves the place, `[rows, d_x]`.
    gradient: Buffer,
    drift: Buffer,
    velocity: Buffer,
}

/// A chunk on its way back.
struct Reverse<'a, 'n> {
    network: &'a Network<'n>,
    sums: Option<&'a Sums>,
    moving: Moving<'a, 'n>,
    /// ∂L/∂x `[rows, d_x]`.
    adjoint: Buffer,
    /// w `[rows, d]`.
    direction: Buffer,
    /// ⟨g, ∂L/∂v⟩ of every place, in parts, `[places, parts]`.
    kicks: Buffer<f64>,
    /// Leapfrog: ⟨v, ∂L/∂x⟩ of every step, `[steps, parts]`.
    moves: Buffer<f64>,
}

impl<'a, 'n> Reverse<'a, 'n> {
    fn new(
        (network, sums): (&'a Network<'n>, Option<&'a Sums>),
        (batch, motion): (&DeviceBatch<'_>, &DeviceMotion),
        chunk: &Chunk,
        cotangent: &Buffer,
        (places, moves): (usize, usize),
    ) -> Result<Self> {
        let (device, moving) = (network.device, Moving::new(network, batch, motion, chunk)?);
        let given = cotangent.view(chunk.rows.start * moving.dx, moving.len());
        let parts = num_parts(&moving.rows);
        Ok(Self {
            network,
            sums,
            adjoint: device.duplicate(&given)?,
            direction: device.buffer(moving.rows.count * moving.d)?,
            kicks: device.buffer(places * parts)?,
            moves: device.buffer(moves * parts)?,
            moving,
        })
    }

    /// Keeps the elements as they stand, with room for what the step from there fills in.
    fn place(&self) -> Result<Place> {
        let (device, length) = (self.network.device, self.moving.len());
        Ok(Place {
            elements: device.duplicate(&self.moving.rows.elements)?,
            gradient: device.buffer(length)?,
            drift: device.buffer(length)?,
            velocity: device.buffer(length)?,
        })
    }

    /// The path of Langevin steps whose way back asks of a place no more than g and v: where H vanishes,
    /// no wall turns a step and gradients are limited coordinate by coordinate, so that |g| says which were.
    fn straight_path(
        &self,
        kernel: &(fused::Key, Arc<fused::Compiled>),
        chunk: &Chunk,
        settings: &DeviceLangevin<'_>,
    ) -> Result<Vec<Place>> {
        let (_, [drifts, velocities]) = self.moving.run_fused(kernel, chunk, settings)?;
        let length = self.moving.len();
        let place = |step| {
            let drift = drifts.view(step * length, length);
            Place {
                elements: self.moving.rows.elements.clone(),
                gradient: drift.clone(),
                drift,
                velocity: velocities.view(step * length, length),
            }
        };
        Ok((0..settings.step_sizes.len()).map(place).collect())
    }

    /// The parts of place `number`.
    fn parts(&self, all: &Buffer<f64>, number: usize) -> Buffer<f64> {
        let parts = num_parts(&self.moving.rows);
        all.view(number * parts, parts)
    }

    /// Back through a Langevin step's move; ∂L/∂v comes back. `kinetic` is ∂L/∂‖v‖² of every row.
    fn langevin_move_back(&self, place: &Place, kinetic: Option<&Buffer>) -> Result<Buffer> {
        let (device, moving) = (self.network.device, &self.moving);
        let push = device.buffer::<f32>(moving.len())?;
        device.kernels.langevin_back(
            device,
            flat(moving.rows.count),
            &place.elements,
            &place.velocity,
            moving.fixed.some(),
            moving.motion,
            kinetic,
            &self.adjoint,
            &push,
            moving.rows.count as u64,
            moving.d as u32,
            moving.dx as u32,
        )?;
        Ok(push)
    }

    /// Back through a leapfrog step's move, with `pull` = ∂L/∂v.
    fn leapfrog_move_back(
        &self,
        (number, place): (usize, &Place),
        pull: &Buffer,
        step_size: &Buffer,
    ) -> Result<()> {
        let (device, moving) = (self.network.device, &self.moving);
        device.kernels.leapfrog_back(
            device,
            flat(moving.rows.count),
            &place.elements,
            &place.velocity,
            moving.fixed.some(),
            moving.motion,
            &self.adjoint,
            pull,
            &self.parts(&self.moves, number),
            moving.rows.count as u64,
            moving.d as u32,
            moving.dx as u32,
            step_size,
        )
    }

    /// Back through the kick v ← v + c g of a place, `push` = ∂L/∂v; c is half of the step that begins
    /// there and half of the one that ended.
    fn kick_back(
        &self,
        (number, place): (usize, &Place),
        push: &Buffer,
        (begun, ended): (Option<&Buffer>, Option<&Buffer>),
    ) -> Result<()> {
        let (device, moving) = (self.network.device, &self.moving);
        device.kernels.kick_back(
            device,
            flat(moving.rows.count),
            &place.gradient,
            &place.drift,
            moving.fixed.some(),
            moving.motion,
            push,
            &self.adjoint,
            &self.direction,
            &self.parts(&self.kicks, number),
            moving.rows.count as u64,
            moving.d as u32,
            moving.dx as u32,
            begun,
            ended,
        )?;
        if self.sums.is_none() {
            return Ok(());
        }
        let rows = Rows { elements: place.elements.clone(), ..moving.rows.clone() };
        let term = self.network.score_backward(&rows, &self.direction, None, self.sums, true)?;
        device.kernels.add_values(
            device,
            flat(moving.len()),
            &term,
            &self.adjoint,
            rows.count as u64,
            moving.d as u32,
            moving.dx as u32,
        )
    }

    /// Adds this chunk's share to the gradients of the step sizes.
    fn add_step_sizes(&self, gradients: &Buffer<f64>) -> Result<()> {
        if gradients.is_empty() {
            return Ok(());
        }
        let (device, grid) = (self.network.device, blocks(gradients.len(), 256));
        let (moves, parts) = (self.moves.some(), num_parts(&self.moving.rows) as u32);
        device.kernels.step_size_sums(device, grid, &self.kicks, moves, gradients, parts)
    }
}

/// Blocks of threads that rows are shared out among.
fn num_parts(rows: &Rows) -> usize {
    flat(rows.count).grid_dim.0 as usize
}

impl Device {
    /// Gradients through [`langevin`](Self::langevin), given ∂L/∂x_T `[total, d_x]` and ∂L/∂(Σ_t
    /// ‖v_t‖²) of every element, `[total]` or none.
    pub(crate) fn langevin_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        settings: &DeviceLangevin<'_>,
        (cotangent, kinetic): (&Buffer, Option<&Buffer>),
    ) -> Result<DynamicsGradients<Buffer>> {
        let network = Network::new(self, mlp, batch.context, batch.sets.num_sets())?;
        let steps = settings.step_sizes.len();
        let (sums, chunks) = prepare(&network, batch, steps)?;
        let (dx, total) = (mlp.shape.config().value_dim, batch.sets.num_elements());
        let mut values = Whole::new(self, total * dx);
        let step_sizes = self.zeros::<f64>(steps)?;
        let is_straight = sums.is_none() && settings.motion.code.forgets_places();
        let kernel = if is_straight { fused::find(self, mlp.shape, false)? } else { None };
        for chunk in &chunks {
            let first = chunk.rows.start;
            let with = ((&network, sums.as_ref()), (batch, settings.motion));
            let reverse = Reverse::new(with.0, with.1, chunk, cotangent, (steps, 0))?;
            let path = match &kernel {
                Some(kernel) => reverse.straight_path(kernel, chunk, settings)?,
                None => (0..steps)
                    .map(|step| {
                        let place = reverse.place()?;
                        let kept = (Some(&place.gradient), &place.drift, &place.velocity);
                        reverse.moving.langevin_step(settings, (step, first), kept)?;
                        Ok(place)
                    })
                    .collect::<Result<Vec<_>>>()?,
            };
            let kinetic = kinetic.map(|kinetic| kinetic.view(first, chunk.rows.len()));
            for (step, place) in path.iter().enumerate().rev() {
                let push = reverse.langevin_move_back(place, kinetic.as_ref())?;
                let step_size = settings.step_sizes.view(step, 1);
                reverse.kick_back((step, place), &push, (Some(&step_size), None))?;
            }
            reverse.add_step_sizes(&step_sizes)?;
            values.put(first * dx, reverse.adjoint)?;
        }
        finish(&network, sums, (values.done(), Buffer::none()), &step_sizes)
    }

    /// Gradients through [`leapfrog`](Self::leapfrog), given ∂L/∂x_T and ∂L/∂v_T, `[total, d_x]`, the
    /// latter zero if missing.
    pub(crate) fn leapfrog_backward(
        &self,
        mlp: &DeviceMlp<'_>,
        batch: &DeviceBatch<'_>,
        momentum: &Buffer,
        settings: &DeviceLeapfrog<'_>,
        (cotangent, of_momentum): (&Buffer, Option<&Buffer>),
    ) -> Result<DynamicsGradients<Buffer>> {
        let network = Network::new(self, mlp, batch.context, batch.sets.num_sets())?;
        let steps = settings.step_sizes.len();
        let (sums, chunks) = prepare(&network, batch, steps + 1)?;
        let (dx, total) = (mlp.shape.config().value_dim, batch.sets.num_elements());
        let (mut values, mut momenta) =
            (Whole::new(self, total * dx), Whole::new(self, total * dx));
        let step_sizes = self.zeros::<f64>(steps)?;
        let sizes = |place| StepSizes { all: settings.step_sizes, place };
        for chunk in &chunks {
            let first = chunk.rows.start;
            let with = ((&network, sums.as_ref()), (batch, settings.motion));
            let reverse = Reverse::new(with.0, with.1, chunk, cotangent, (steps + 1, steps))?;
            let length = reverse.moving.len();
            let velocity = self.duplicate(&momentum.view(first * dx, length))?;
            let path = (0..=steps)
                .map(|number| {
                    let place = reverse.place()?;
                    let kept = (Some(&place.gradient), &place.drift, Some(&place.velocity));
                    reverse.moving.leapfrog_step(&sizes(number), &velocity, kept)?;
                    Ok(place)
                })
                .collect::<Result<Vec<_>>>()?;
            let pull = match of_momentum {
                Some(given) => self.duplicate(&given.view(first * dx, length))?,
                None => self.zeros(length)?,
            };
            for (number, place) in path.iter().enumerate().rev() {
                let (begun, ended) = (sizes(number).begun(), sizes(number).ended());
                if let Some(step_size) = &begun {
                    reverse.leapfrog_move_back((number, place), &pull, step_size)?;
                }
                reverse.kick_back((number, place), &pull, (begun.as_ref(), ended.as_ref()))?;
            }
            reverse.add_step_sizes(&step_sizes)?;
            values.put(first * dx, reverse.adjoint)?;
            momenta.put(first * dx, pull)?;
        }
        finish(&network, sums, (values.done(), momenta.done()), &step_sizes)
    }
}

/// Where the context's gradient is added up, none where H vanishes; and chunks whose paths of
/// `places` fit in memory.
fn prepare(
    network: &Network<'_>,
    batch: &DeviceBatch<'_>,
    places: usize,
) -> Result<(Option<Sums>, Vec<Chunk>)> {
    let config = network.shape.config();
    let is_linear = config.activation.is_piecewise_linear();
    let wanted = Wanted { context: !is_linear, ..Wanted::NOTHING };
    let keep = if is_linear { Keep::Slopes } else { Keep::Curvatures };
    let path = size_of::<f32>() * places * (network.shape.element_dim() + 3 * config.value_dim);
    let rows = network.device.budget / (network.bytes_per_row(keep) + path);
    Ok((network.sums(wanted)?, batch.sets.chunks(rows.clamp(1, 1 << 24))))
}

fn finish(
    network: &Network<'_>,
    sums: Option<Sums>,
    (values, momentum): (Buffer, Buffer),
    step_sizes: &Buffer<f64>,
) -> Result<DynamicsGradients<Buffer>> {
    let device = network.device;
    let context = match network.finish(sums)?.context {
        Some(context) => context,
        None => device.zeros(network.context.len())?,
    };
    let rounded = device.buffer::<f32>(step_sizes.len())?;
    if !step_sizes.is_empty() {
        let count = step_sizes.len();
        device.kernels.to_float(device, flat(count), step_sizes, &rounded, count as u64)?;
    }
    Ok(DynamicsGradients { values, momentum, step_sizes: rounded, context })
}

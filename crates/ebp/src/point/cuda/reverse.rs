//! Gradients through Langevin and leapfrog steps: the path is run again and kept on the GPU, then
//! walked back.
//!
//! ```text
//! kick   v ← v + c g(x),  g = clip(∇u)       ∂L/∂x += H w,  w = J_clipᵀ c ∂L/∂v
//! move   x' = R(x + v) or R(x + η v)         ∂L/∂x = R′ ∂L/∂x'
//! ```
//!
//! H w of the network is one backward pass of its score; it vanishes for piecewise linear σ. The two
//! half kicks of leapfrog that meet at a place have the same ∂L/∂v, and are one.

use super::backward::Sums;
use super::chunk::{Chunk, chunks};
use super::device::{Buffer, Device, flat, launch};
use super::dynamics::{Kept, Moving};
use super::network::{Keep, Network, Rows};
use super::values::append;
use crate::Result;
use crate::point::{
    DynamicsCotangent, DynamicsGradients, Langevin, Leapfrog, Motion, PointBatch, PointMlp, Wanted,
};

/// One place of the path.
struct Place {
    /// x `[rows, d]`.
    elements: Buffer,
    /// ∇u, g = clip(∇u) and the v that leaves the place, `[rows, d_x]`.
    gradient: Buffer,
    drift: Buffer,
    velocity: Buffer,
}

impl Place {
    /// Where a step writes what it keeps.
    fn kept(&self) -> Kept {
        Kept {
            gradient: self.gradient.at(0),
            drift: self.drift.at(0),
            velocity: self.velocity.at(0),
        }
    }
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
    /// Which steps' sizes have half of a sum, or all of it, in their gradient.
    shares: Vec<Share>,
}

/// A sum that belongs to the gradient of a step's size.
struct Share {
    parts: Buffer<f64>,
    of: Vec<(usize, f64)>,
}

impl<'a, 'n> Reverse<'a, 'n> {
    fn new(
        network: &'a Network<'n>,
        sums: Option<&'a Sums>,
        batch: &PointBatch<'_>,
        motion: &Motion<'_>,
        chunk: &Chunk,
        cotangent: &[f32],
    ) -> Result<Self> {
        let moving = Moving::new(network, batch, motion, chunk)?;
        let dx = moving.dx;
        let adjoint =
            network.device.upload(&cotangent[chunk.rows.start * dx..chunk.rows.end * dx])?;
        let direction = network.device.buffer(moving.rows.count * moving.d)?;
        Ok(Self { network, sums, moving, adjoint, direction, shares: Vec::new() })
    }

    /// Keeps the elements as they stand, with room for what the step from there fills in.
    fn place(&self) -> Result<Place> {
        let (device, length) = (self.network.device, self.moving.len());
        let elements = device.buffer(self.moving.rows.elements.len())?;
        device.copy(&self.moving.rows.elements, &elements)?;
        Ok(Place {
            elements,
            gradient: device.buffer(length)?,
            drift: device.buffer(length)?,
            velocity: device.buffer(length)?,
        })
    }

    /// Room for one part of a sum per block of threads.
    fn parts(&self) -> Result<Buffer<f64>> {
        self.network.device.buffer(flat(self.moving.rows.count).grid_dim.0 as usize)
    }

    /// Back through the kick v ← v + `scale` g of a place, `push` = ∂L/∂v; half of ⟨g, push⟩ goes to
    /// the steps `of`.
    fn kick_back(&mut self, place: &Place, push: &Buffer, scale: f32, of: &[usize]) -> Result<()> {
        let (device, moving) = (self.network.device, &self.moving);
        let parts = self.parts()?;
        launch!(
            device,
            kick_back,
            flat(moving.rows.count),
            place.gradient.at(0),
            place.drift.at(0),
            moving.fixed.at(0),
            moving.motion,
            push.at(0),
            self.adjoint.at(0),
            self.direction.at(0),
            parts.at(0),
            moving.rows.count as u64,
            moving.d as u32,
            moving.dx as u32,
            scale
        )?;
        self.shares.push(Share { parts, of: of.iter().map(|&step| (step, 0.5)).collect() });
        if self.sums.is_none() {
            return Ok(());
        }
        let rows = rows_at(&self.moving.rows, &place.elements);
        let values = device.zeros::<f32>(rows.count)?;
        let term = self.network.score_backward(&rows, &self.direction, values, self.sums, true)?;
        launch!(
            device,
            add_values,
            flat(self.moving.len()),
            term.at(0),
            self.adjoint.at(0),
            rows.count as u64,
            self.moving.d as u32,
            self.moving.dx as u32
        )
    }

    /// Adds this chunk's share to the gradients of the step sizes.
    fn add_step_sizes(&self, gradients: &mut [f64]) -> Result<()> {
        for share in &self.shares {
            let sum: f64 = self.network.device.download(&share.parts)?.iter().sum();
            share.of.iter().for_each(|&(step, factor)| gradients[step] += factor * sum);
        }
        Ok(())
    }
}

pub(super) fn langevin_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    settings: &Langevin<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> Result<DynamicsGradients> {
    let network = Network::new(device, mlp, batch.context, batch.offsets.num_sets())?;
    let (sums, parts) = prepare(&network, batch, settings.step_sizes.len())?;
    let (mut values, mut step_sizes) = (Vec::new(), vec![0.0; settings.step_sizes.len()]);
    for chunk in &parts {
        let mut reverse = Reverse::new(
            &network,
            sums.as_ref(),
            batch,
            &settings.motion,
            chunk,
            cotangent.values,
        )?;
        let path = (0..settings.step_sizes.len())
            .map(|step| {
                let place = reverse.place()?;
                reverse.moving.langevin_step(settings, step, chunk.rows.start, place.kept())?;
                Ok(place)
            })
            .collect::<Result<Vec<_>>>()?;
        let kinetic = match cotangent.kinetic {
            Some(kinetic) => device.upload(&kinetic[chunk.rows.clone()])?,
            None => Buffer::none(),
        };
        let push = device.buffer::<f32>(reverse.moving.len())?;
        for (step, place) in path.iter().enumerate().rev() {
            let moving = &reverse.moving;
            launch!(
                device,
                langevin_back,
                flat(moving.rows.count),
                place.elements.at(0),
                place.velocity.at(0),
                moving.fixed.at(0),
                moving.motion,
                kinetic.at(0),
                reverse.adjoint.at(0),
                push.at(0),
                moving.rows.count as u64,
                moving.d as u32,
                moving.dx as u32
            )?;
            reverse.kick_back(place, &push, 0.5 * settings.step_sizes[step], &[step])?;
        }
        append(&mut values, device.download(&reverse.adjoint)?);
        reverse.add_step_sizes(&mut step_sizes)?;
    }
    finish(&network, batch, sums, values, Vec::new(), &step_sizes)
}

pub(super) fn leapfrog_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    momentum: &[f32],
    settings: &Leapfrog<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> Result<DynamicsGradients> {
    let network = Network::new(device, mlp, batch.context, batch.offsets.num_sets())?;
    let steps = settings.step_sizes;
    let (sums, parts) = prepare(&network, batch, steps.len() + 1)?;
    let (mut values, mut momenta, mut step_sizes) =
        (Vec::new(), Vec::new(), vec![0.0; steps.len()]);
    for chunk in &parts {
        let mut reverse = Reverse::new(
            &network,
            sums.as_ref(),
            batch,
            &settings.motion,
            chunk,
            cotangent.values,
        )?;
        let range = chunk.rows.start * reverse.moving.dx..chunk.rows.end * reverse.moving.dx;
        let velocity = device.upload(&momentum[range.clone()])?;
        let path = (0..=steps.len())
            .map(|number| {
                let place = reverse.place()?;
                reverse.moving.leapfrog_step(steps, number, &velocity, place.kept())?;
                Ok(place)
            })
            .collect::<Result<Vec<_>>>()?;
        let pull = match cotangent.momentum {
            Some(momentum) => device.upload(&momentum[range])?,
            None => device.zeros(reverse.moving.len())?,
        };
        for (number, place) in path.iter().enumerate().rev() {
            let moving = &reverse.moving;
            let (mut of, mut scale) = (Vec::new(), 0.0);
            if let Some(&eta) = steps.get(number) {
                let parts = reverse.parts()?;
                launch!(
                    device,
                    leapfrog_back,
                    flat(moving.rows.count),
                    place.elements.at(0),
                    place.velocity.at(0),
                    moving.fixed.at(0),
                    moving.motion,
                    reverse.adjoint.at(0),
                    pull.at(0),
                    parts.at(0),
                    moving.rows.count as u64,
                    moving.d as u32,
                    moving.dx as u32,
                    eta
                )?;
                reverse.shares.push(Share { parts, of: vec![(number, 1.0)] });
                of.push(number);
                scale += 0.5 * eta;
            }
            if let Some(ended) = number.checked_sub(1) {
                of.push(ended);
                scale += 0.5 * steps[ended];
            }
            reverse.kick_back(place, &pull, scale, &of)?;
        }
        append(&mut values, device.download(&reverse.adjoint)?);
        append(&mut momenta, device.download(&pull)?);
        reverse.add_step_sizes(&mut step_sizes)?;
    }
    finish(&network, batch, sums, values, momenta, &step_sizes)
}

/// Where the context's gradient is added up, none where H vanishes; and chunks whose paths of
/// `places` fit in memory.
fn prepare(
    network: &Network<'_>,
    batch: &PointBatch<'_>,
    places: usize,
) -> Result<(Option<Sums>, Vec<Chunk>)> {
    let config = network.shape.config();
    let is_linear = config.activation.is_piecewise_linear();
    let wanted = Wanted { parameters: false, context: !is_linear, elements: false };
    let keep = if is_linear { Keep::Slopes } else { Keep::Curvatures };
    let path = size_of::<f32>() * places * (network.shape.element_dim() + 3 * config.value_dim);
    let rows = network.device.budget / (network.bytes_per_row(keep) + path);
    Ok((network.sums(wanted)?, chunks(batch.offsets, rows.clamp(1, 1 << 24))))
}

fn finish(
    network: &Network<'_>,
    batch: &PointBatch<'_>,
    sums: Option<Sums>,
    values: Vec<f32>,
    momentum: Vec<f32>,
    step_sizes: &[f64],
) -> Result<DynamicsGradients> {
    let context = match sums {
        Some(sums) => network.device.download(&network.gather(sums)?.context)?,
        None => vec![0.0; batch.context.len()],
    };
    let step_sizes = step_sizes.iter().map(|&gradient| gradient as f32).collect();
    Ok(DynamicsGradients { values, momentum, step_sizes, context })
}

/// The same rows at another place.
fn rows_at(rows: &Rows, elements: &Buffer) -> Rows {
    Rows {
        elements: elements.view(0, elements.len()),
        set: rows.set.view(0, rows.set.len()),
        starts: rows.starts.view(0, rows.starts.len()),
        first_set: rows.first_set,
        num_sets: rows.num_sets,
        count: rows.count,
    }
}

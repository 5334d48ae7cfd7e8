//! Gradients through Langevin steps: the path is run again and kept on the GPU, then walked back.
//!
//! ```text
//! x' = R(x + v),  v = s ξ + (η/2) g(x)
//! μ = ∂L/∂v,  ∂L/∂η = ½ ⟨μ, g⟩,  ∂L/∂x = R′ ∂L/∂x' + H w,  w = J_clipᵀ (η/2) μ
//! ```
//!
//! H w of the network is one backward pass of its score; it vanishes for piecewise linear σ.

use super::chunk::chunks;
use super::device::{Buffer, Device, flat, launch};
use super::dynamics::Moving;
use super::network::{Keep, Network, Rows};
use super::values::append;
use crate::Result;
use crate::point::{DynamicsCotangent, DynamicsGradients, Langevin, PointBatch, PointMlp, Wanted};

/// One step of the path.
struct Place {
    /// x `[rows, d]` before the step.
    elements: Buffer,
    /// ∇u, g = clip(∇u) and v, `[rows, d_x]`.
    gradient: Buffer,
    drift: Buffer,
    velocity: Buffer,
}

pub(super) fn langevin_backward(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    settings: &Langevin<'_>,
    cotangent: DynamicsCotangent<'_>,
) -> Result<DynamicsGradients> {
    let network = Network::new(device, mlp, batch.context, batch.offsets.num_sets())?;
    let is_linear = mlp.shape().config().activation.is_piecewise_linear();
    let wanted = Wanted { parameters: false, context: !is_linear, elements: false };
    let sums = network.sums(wanted)?;
    let steps = settings.step_sizes.len();
    let (d, dx) = (mlp.shape().element_dim(), mlp.shape().config().value_dim);
    let keep = if is_linear { Keep::Slopes } else { Keep::Curvatures };
    let bytes = network.bytes_per_row(keep) + 4 * steps * (d + 3 * dx);
    let most = (device.budget / bytes).clamp(1, 1 << 24);
    let (mut values, mut step_sizes) = (Vec::new(), vec![0.0_f64; steps]);
    for chunk in chunks(batch.offsets, most) {
        let moving = Moving::new(&network, batch, &settings.motion, &chunk)?;
        let path = path(device, &moving, chunk.rows.start, settings)?;
        let range = chunk.rows.start * dx..chunk.rows.end * dx;
        let adjoint = device.upload(&cotangent.values[range])?;
        let kinetic = match cotangent.kinetic {
            Some(kinetic) => device.upload(&kinetic[chunk.rows.clone()])?,
            None => Buffer::none(),
        };
        let direction = device.buffer::<f32>(moving.rows.count * d)?;
        let grid = flat(moving.rows.count);
        let parts = device.buffer::<f64>(steps * grid.grid_dim.0 as usize)?;
        for (step, place) in path.iter().enumerate().rev() {
            launch!(
                device,
                langevin_reverse,
                grid,
                place.elements.at(0),
                place.velocity.at(0),
                place.gradient.at(0),
                place.drift.at(0),
                moving.fixed.at(0),
                moving.motion,
                kinetic.at(0),
                adjoint.at(0),
                direction.at(0),
                parts.at(step * grid.grid_dim.0 as usize),
                moving.rows.count as u64,
                d as u32,
                dx as u32,
                settings.step_sizes[step]
            )?;
            if is_linear {
                continue;
            }
            let rows = rows_at(&moving.rows, &place.elements);
            let u = device.zeros::<f32>(rows.count)?;
            let term = network.score_backward(&rows, &direction, u, sums.as_ref(), true)?;
            launch!(
                device,
                add_values,
                flat(moving.len()),
                term.at(0),
                adjoint.at(0),
                rows.count as u64,
                d as u32,
                dx as u32
            )?;
        }
        append(&mut values, device.download(&adjoint)?);
        let parts = device.download(&parts)?;
        let per_step = parts.chunks_exact(grid.grid_dim.0 as usize);
        for (sum, parts) in step_sizes.iter_mut().zip(per_step) {
            *sum += 0.5 * parts.iter().sum::<f64>();
        }
    }
    let context = match sums {
        Some(sums) => device.download(&network.gather(sums)?.context)?,
        None => vec![0.0; batch.context.len()],
    };
    Ok(DynamicsGradients {
        values,
        momentum: Vec::new(),
        step_sizes: step_sizes.into_iter().map(|sum| sum as f32).collect(),
        context,
    })
}

/// Runs the steps of a chunk, whose rows are moved, and keeps where they went.
fn path(
    device: &Device,
    moving: &Moving<'_, '_>,
    first_row: usize,
    settings: &Langevin<'_>,
) -> Result<Vec<Place>> {
    let (length, key) = (moving.len(), settings.noise.key());
    let steps = settings.step_sizes.iter().zip(settings.noise_scales).enumerate();
    steps
        .map(|(step, (&eta, &noise))| {
            let place = Place {
                elements: device.buffer(moving.rows.elements.len())?,
                gradient: device.buffer(length)?,
                drift: device.buffer(length)?,
                velocity: device.buffer(length)?,
            };
            device.copy(&moving.rows.elements, &place.elements)?;
            let (gradient, _) = moving.gradient()?;
            launch!(
                device,
                langevin_step,
                flat(moving.rows.count),
                moving.rows.elements.at(0),
                gradient.at(0),
                moving.fixed.at(0),
                moving.motion,
                place.gradient.at(0),
                place.drift.at(0),
                place.velocity.at(0),
                moving.rows.count as u64,
                moving.d as u32,
                moving.dx as u32,
                first_row as u64,
                eta,
                noise,
                step as u32,
                key[0],
                key[1]
            )?;
            Ok(place)
        })
        .collect()
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

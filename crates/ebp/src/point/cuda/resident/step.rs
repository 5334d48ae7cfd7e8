//! One step: encode, draw θ, log-likelihood, and back again; then Adam.

use cudarc::driver::{DeviceRepr, LaunchConfig};

use super::super::backward::Sums;
use super::super::candidates::{Part, cotangents, log_sums};
use super::super::chunk::{Chunk, chunks};
use super::super::device::{Buffer, Device, flat, launch, sums_per_set};
use super::super::network::{Elements, Keep, Network};
use super::Sent;
use super::head::Head;
use super::maxima::Maxima;
use super::memory::{MOST_SETS, Memory};
use crate::point::likelihood::shares;
use crate::point::{PlacedMlp, ResidentModel, ResidentReport, ResidentStep, Wanted};
use crate::{Error, Result};

/// Blocks that share the sum of the gradient's squares.
const SQUARE_PARTS: usize = 256;

/// What is the same for all parameters, as the kernel `adam` knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct AdamNumbers {
    beta1: f32,
    gain1: f32,
    beta2: f32,
    gain2: f32,
    keep: f32,
    rate: f32,
    root: f32,
    floor: f32,
    average_gain: f32,
    limit: f32,
}

// SAFETY: plain numbers in C's layout, the same as `struct AdamNumbers` of resident.cu.
unsafe impl DeviceRepr for AdamNumbers {}

impl AdamNumbers {
    /// Of the step after `num_steps` others, as `nn::Adam` has them.
    fn new(model: &ResidentModel, learning_rate: f64, num_steps: u32) -> Self {
        let steps = f64::from(num_steps) + 1.0;
        let (beta1, beta2) = model.betas;
        Self {
            beta1: beta1 as f32,
            gain1: (1.0 - beta1) as f32,
            beta2: beta2 as f32,
            gain2: (1.0 - beta2) as f32,
            keep: (1.0 - learning_rate * model.weight_decay) as f32,
            rate: (learning_rate / (1.0 - beta1.powf(steps))) as f32,
            root: (1.0 / (1.0 - beta2.powf(steps)).sqrt()) as f32,
            floor: model.denominator_floor as f32,
            average_gain: 1.0 - model.average_decay,
            limit: model.max_gradient_norm as f32,
        }
    }
}

/// What comes back, in one array: Σ g² as a double, log Z, Σ f, four figures and the KL by coordinate.
struct Report {
    all: Buffer,
    sets: usize,
    latent_dim: usize,
}

impl Report {
    fn new(device: &Device, sets: usize, latent_dim: usize) -> Result<Self> {
        Ok(Self { all: device.zeros(2 + 6 * sets + latent_dim)?, sets, latent_dim })
    }

    fn log_partition(&self) -> Buffer {
        self.all.view(2, self.sets)
    }

    fn sums(&self) -> Buffer {
        self.all.view(2 + self.sets, self.sets)
    }

    fn figures(&self) -> Buffer {
        self.all.view(2 + 2 * self.sets, 4 * self.sets)
    }

    fn unit_kl(&self) -> Buffer {
        self.all.view(2 + 6 * self.sets, self.latent_dim)
    }

    /// Waits for all of it.
    fn read(&self, device: &Device, sent: &Sent) -> Result<ResidentReport> {
        let all = device.download(&self.all)?;
        let square = u64::from(all[0].to_bits()) | u64::from(all[1].to_bits()) << 32;
        let (log_partition, rest) = all[2..].split_at(self.sets);
        let (sums, rest) = rest.split_at(self.sets);
        let (figures, unit_kl) = rest.split_at(4 * self.sets);
        let size = |set: usize| sent.offsets.size(set) as f32;
        let sets = self.sets as f32;
        Ok(ResidentReport {
            log_partition: log_partition.to_vec(),
            means: sums.iter().enumerate().map(|(set, sum)| sum / size(set)).collect(),
            kl: figures.chunks_exact(4).map(|row| row[3]).collect(),
            unit_kl: unit_kl.iter().map(|kl| kl / sets).collect(),
            shares: figures.chunks_exact(4).map(|row| [row[0], row[1], row[2]]).collect(),
            gradient_norm: f64::from_bits(square).sqrt(),
            non_finite: None,
        })
    }
}

/// Takes a step from the state in `memory`, which is the next state afterwards.
pub(super) fn run(
    device: &Device,
    model: &ResidentModel,
    memory: &mut Memory,
    sent: &Sent,
    step: &ResidentStep,
) -> Result<ResidentReport> {
    let sets = sent.offsets.num_sets();
    if sets > MOST_SETS {
        return Err(Error::invalid("batch", format!("at most {MOST_SETS} sets"), sets));
    }
    device.clear(&memory.gradient)?;
    let k = model.energy.shape.config().context_dim;
    let encoder_points = sent.encoder_offsets.num_elements() * model.encoder.shape.element_dim();
    let encoder_points = sent.parts.part::<f32>(0, encoder_points);
    let encoder = network(device, &model.encoder, &memory.parameters, Buffer::none(), sets)?;
    let maxima =
        Maxima::find(&encoder, &encoder_points, &sent.encoder_offsets, &mut memory.landing)?;
    let head = Head {
        device,
        layers: &model.head,
        parameters: &memory.parameters,
        gradient: &memory.gradient,
        sets,
    };
    let trace = head.forward(&maxima.pooled)?;

    let (theta, kl) = (device.buffer::<f32>(sets * k)?, device.buffer::<f32>(sets * k)?);
    let (first, low, high) = model.log_std_dev;
    let [k0, k1] = step.noise.key();
    launch!(
        device,
        draw_theta,
        flat(sets * k),
        trace.output.at(0),
        theta.at(0),
        kl.at(0),
        sets as u32,
        k as u32,
        first,
        low,
        high,
        k0,
        k1
    )?;
    let report = Report::new(device, sets, k)?;
    launch!(device, column_sums, flat(k), kl.at(0), report.unit_kl().at(0), sets as u32, k as u32)?;
    let g_theta = likelihood(device, model, memory, sent, (&theta, &kl), &report)?;

    let g = device.buffer::<f32>(2 * sets * k)?;
    let kl_weights = device.upload(&step.kl_weights)?;
    launch!(
        device,
        theta_backward,
        flat(sets * k),
        trace.output.at(0),
        g_theta.at(0),
        kl_weights.at(0),
        g.at(0),
        sets as u32,
        k as u32,
        first,
        low,
        high,
        k0,
        k1
    )?;
    let g_pooled = head.backward(&trace, g)?;
    let gradient = memory.gradient.view(model.encoder.start, model.encoder.shape.num_parameters());
    maxima.backward(&encoder, &g_pooled, gradient, &mut memory.landing)?;
    adam(device, model, memory, step.learning_rate, &report)?;
    let mut report = report.read(device, sent)?;
    if report.gradient_norm.is_finite() {
        memory.num_steps = memory.num_steps.saturating_add(1);
    } else {
        let gradient = device.download(&memory.gradient)?;
        let index = gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
        report.non_finite = Some((index, gradient[index]));
    }
    Ok(report)
}

fn network<'a>(
    device: &'a Device,
    placed: &'a PlacedMlp,
    parameters: &Buffer,
    context: Buffer,
    sets: usize,
) -> Result<Network<'a>> {
    let parameters = parameters.view(placed.start, placed.shape.num_parameters());
    Network::resident(device, &placed.shape, (parameters, context), sets)
}

/// log Z and the sums of f of every set; the energy's gradient goes to its place, ∂L/∂θ comes back.
fn likelihood(
    device: &Device,
    model: &ResidentModel,
    memory: &Memory,
    sent: &Sent,
    (theta, kl): (&Buffer, &Buffer),
    report: &Report,
) -> Result<Buffer> {
    let (sets, shape) = (sent.offsets.num_sets(), &model.energy.shape);
    let length = shape.num_parameters();
    let gradient = memory.gradient.view(model.energy.start, length);
    // f/τ: the last layer is divided by τ.
    let own = memory.parameters.view(model.energy.start, length);
    let is_scaled = (model.temperature - 1.0).abs() > f32::EPSILON;
    let last = shape.layers()[shape.layers().len() - 1].weight.start as u64;
    let calibrated = if is_scaled { device.buffer::<f32>(length)? } else { own.view(0, length) };
    let scale = |from: &Buffer, to: &Buffer| {
        let (count, factor) = (length as u64, 1.0 / model.temperature);
        launch!(device, scale_from, flat(length), from.at(0), to.at(0), count, last, factor)
    };
    if is_scaled {
        scale(&own, &calibrated)?;
    }
    let context = theta.view(0, theta.len());
    let energy = Network::resident(device, shape, (calibrated, context), sets)?;
    let sums = energy.sums_into(gradient.view(0, length), Wanted::WEIGHTS)?;
    of_candidates(&energy, sent, kl, &sums, report)?;
    of_points(&energy, sent, &sums, report)?;
    let found = energy.gather(sums)?;
    if is_scaled {
        scale(&gradient, &gradient)?;
    }
    Ok(found.context)
}

fn of_candidates(
    energy: &Network<'_>,
    sent: &Sent,
    kl: &Buffer,
    sums: &Sums,
    report: &Report,
) -> Result<()> {
    let device = energy.device;
    let (sets, count) = (sent.offsets.num_sets(), sent.num_candidates);
    let k = energy.shape.config().context_dim;
    let values = sent.parts.part::<f32>(2, sets * count * energy.shape.element_dim());
    let log_weights = sent.parts.part::<f32>(3, sets * count);
    let is_near = sent.parts.part::<u8>(4, sets * count);
    let most = (energy.rows_at_once(Keep::Slopes) / count).max(1);
    let upward = vec![1.0 / sets as f32; sets];
    for first in (0..sets).step_by(most) {
        let last = sets.min(first + most);
        let chunk = Chunk {
            rows: first * count..last * count,
            first_set: first,
            starts: (0..=last - first).map(|set| (set * count) as u32).collect(),
        };
        let part = Part {
            rows: energy.rows(Elements::There(&values), &chunk)?,
            log_weights: log_weights.view(chunk.rows.start, chunk.rows.len()),
            mode: 1,
        };
        let trace = energy.forward(&part.rows, Keep::Slopes)?;
        let log_z = report.log_partition().view(first, last - first);
        log_sums(device, &part, &trace.output, count, &log_z)?;
        let given = &upward[first..last];
        let g = cotangents(device, &part, &trace.output, (&log_z, given), count)?;
        energy.backward(&part.rows, &trace, Some(g), Some(sums), false)?;
        let grid = LaunchConfig {
            grid_dim: ((last - first) as u32, 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        launch!(
            device,
            set_figures,
            grid,
            trace.output.at(0),
            part.log_weights.at(0),
            is_near.at(chunk.rows.start),
            log_z.at(0),
            kl.at(first * k),
            report.figures().at(4 * first),
            count as u32,
            k as u32
        )?;
    }
    Ok(())
}

fn of_points(energy: &Network<'_>, sent: &Sent, sums: &Sums, report: &Report) -> Result<()> {
    let device = energy.device;
    let total = sent.offsets.num_elements();
    let points = sent.parts.part::<f32>(1, total * energy.shape.element_dim());
    let downward: Vec<f32> = shares(&sent.offsets).into_iter().map(|share| -share).collect();
    let downward = device.upload(&downward)?;
    for chunk in chunks(&sent.offsets, energy.rows_at_once(Keep::Slopes)) {
        let rows = energy.rows(Elements::There(&points), &chunk)?;
        let trace = energy.forward(&rows, Keep::Slopes)?;
        launch!(
            device,
            set_sums,
            sums_per_set(rows.num_sets, 1),
            trace.output.at(0),
            rows.starts.at(0),
            report.sums().at(0),
            rows.first_set as u32,
            1_u32
        )?;
        let g = device.buffer::<f32>(rows.count)?;
        launch!(
            device,
            spread,
            flat(rows.count),
            downward.at(0),
            rows.set.at(0),
            g.at(0),
            rows.count as u64,
            1_u32
        )?;
        energy.backward(&rows, &trace, Some(g), Some(sums), false)?;
    }
    Ok(())
}

fn adam(
    device: &Device,
    model: &ResidentModel,
    memory: &Memory,
    learning_rate: f64,
    report: &Report,
) -> Result<()> {
    let parts = device.buffer::<f64>(SQUARE_PARTS)?;
    let grid = LaunchConfig {
        grid_dim: (SQUARE_PARTS as u32, 1, 1),
        block_dim: (256, 1, 1),
        shared_mem_bytes: 0,
    };
    let count = model.length as u64;
    launch!(device, square_sums, grid, memory.gradient.at(0), parts.at(0), count)?;
    let numbers = AdamNumbers::new(model, learning_rate, memory.num_steps);
    launch!(
        device,
        adam,
        grid,
        memory.parameters.at(0),
        memory.first.at(0),
        memory.second.at(0),
        memory.average.at(0),
        memory.gradient.at(0),
        parts.at(0),
        SQUARE_PARTS as u32,
        numbers,
        count,
        report.all.at(0)
    )
}

//! One step: encode, draw θ, log-likelihood, and back again; then Adam.

use super::super::launch::{blocks, flat};
use super::super::{
    AdamNumbers, AdamState, Buffer, Device, DeviceBatch, DeviceCandidateValues, DeviceCandidates,
    DeviceLogWeights, DeviceMlp, Sets,
};
use super::Sent;
use super::head::Head;
use super::memory::Memory;
use crate::point::{Pooling, ResidentModel, ResidentReport, ResidentStep, Wanted};
use crate::{Result, SetOffsets};

/// Adam's numbers of the step after `num_steps` others, as `nn::Adam` has them.
fn adam_numbers(model: &ResidentModel, learning_rate: f64, num_steps: u32) -> AdamNumbers {
    let steps = f64::from(num_steps) + 1.0;
    let (beta1, beta2) = model.betas;
    AdamNumbers {
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

/// What comes back, in one array: Σ g² as a double, log Z, means of f, four figures and the KL by coordinate.
struct Report {
    all: Buffer,
    sets: usize,
    latent_dim: usize,
}

impl Report {
    fn new(device: &Device, sets: usize, latent_dim: usize) -> Result<Self> {
        Ok(Self { all: device.zeros(2 + 6 * sets + latent_dim)?, sets, latent_dim })
    }

    fn square(&self) -> Buffer<f64> {
        self.all.view(0, 2).cast()
    }

    fn log_partition(&self) -> Buffer {
        self.all.view(2, self.sets)
    }

    fn means(&self) -> Buffer {
        self.all.view(2 + self.sets, self.sets)
    }

    fn figures(&self) -> Buffer {
        self.all.view(2 + 2 * self.sets, 4 * self.sets)
    }

    fn unit_kl(&self) -> Buffer {
        self.all.view(2 + 6 * self.sets, self.latent_dim)
    }

    /// Waits for all of it.
    fn read(&self, device: &Device) -> Result<ResidentReport> {
        let all = device.download(&self.all)?;
        let square = u64::from(all[0].to_bits()) | u64::from(all[1].to_bits()) << 32;
        let (log_partition, rest) = all[2..].split_at(self.sets);
        let (means, rest) = rest.split_at(self.sets);
        let (figures, unit_kl) = rest.split_at(4 * self.sets);
        let sets = self.sets as f32;
        Ok(ResidentReport {
            log_partition: log_partition.to_vec(),
            means: means.to_vec(),
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
    device.clear(&memory.gradient)?;
    let k = model.energy.shape.config().context_dim;
    let placed = &model.encoder;
    let length = placed.shape.num_parameters();
    let encoder = DeviceMlp {
        shape: &placed.shape,
        parameters: &memory.parameters.view(placed.start, length),
        gradient: Some(&memory.gradient.view(placed.start, length)),
    };
    let encoded = DeviceBatch {
        elements: &sent.parts.part(0),
        sets: &Sets::new(device, &sent.encoder_offsets)?,
        context: &Buffer::none(),
    };
    let maxima = device.pool(&encoder, &encoded, Pooling::Max, true)?;
    let head = Head {
        device,
        layers: &model.head,
        parameters: &memory.parameters,
        gradient: &memory.gradient,
        sets,
    };
    let trace = head.forward(&maxima.values)?;

    let (theta, kl) = (device.buffer::<f32>(sets * k)?, device.buffer::<f32>(sets * k)?);
    let (first, low, high) = model.log_std_dev;
    let [k0, k1] = step.noise.key();
    let (grid, rows, width) = (flat(sets * k), sets as u32, k as u32);
    device.kernels.draw_theta(
        device,
        grid,
        &trace.output,
        &theta,
        &kl,
        rows,
        width,
        first,
        low,
        high,
        k0,
        k1,
    )?;
    let report = Report::new(device, sets, k)?;
    device.kernels.column_sums(device, flat(k), &kl, &report.unit_kl(), rows, width)?;
    let g_theta = likelihood(device, model, memory, sent, (&theta, &kl), &report)?;

    let g = device.buffer::<f32>(2 * sets * k)?;
    let kl_weights = device.upload(&step.kl_weights)?;
    device.kernels.theta_backward(
        device,
        grid,
        &trace.output,
        &g_theta,
        &kl_weights,
        &g,
        rows,
        width,
        first,
        low,
        high,
        k0,
        k1,
    )?;
    let g_pooled = head.backward(&trace, g)?;
    let wanted = Wanted { parameters: true, ..Wanted::NOTHING };
    device.pool_backward(&encoder, &encoded, &maxima, &g_pooled, wanted)?;
    let state = AdamState {
        parameters: &memory.parameters,
        first: &memory.first,
        second: &memory.second,
        average: Some(&memory.average),
    };
    let parts = device.square_parts(&memory.gradient)?;
    let numbers = adam_numbers(model, step.learning_rate, memory.num_steps);
    device.adam(&state, (&memory.gradient, &parts), numbers, &report.square())?;
    let mut report = report.read(device)?;
    if report.gradient_norm.is_finite() {
        memory.num_steps = memory.num_steps.saturating_add(1);
    } else {
        let gradient = device.download(&memory.gradient)?;
        let index = gradient.iter().position(|g| !g.is_finite()).unwrap_or(0);
        report.non_finite = Some((index, gradient[index]));
    }
    Ok(report)
}

/// log Z and the means of f of every set; the energy's gradient goes to its place, ∂L/∂θ comes back.
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
    let scale = |from: &Buffer, to: &Buffer| {
        let (grid, count, factor) = (flat(length), length as u64, 1.0 / model.temperature);
        device.kernels.scale_from(device, grid, from, to, count, last, factor)
    };
    let calibrated = if is_scaled { device.buffer::<f32>(length)? } else { own.clone() };
    if is_scaled {
        scale(&own, &calibrated)?;
    }
    let energy = DeviceMlp { shape, parameters: &calibrated, gradient: Some(&gradient) };
    let points = DeviceBatch {
        elements: &sent.parts.part(1),
        sets: &Sets::new(device, &sent.offsets)?,
        context: theta,
    };
    let log_weights = sent.parts.part::<f32>(3);
    let candidates = DeviceCandidates {
        values: DeviceCandidateValues::PerAnchor(&sent.parts.part(2)),
        num_candidates: sent.num_candidates,
        locations: &Buffer::none(),
        sets: &Sets::new(device, &SetOffsets::uniform(sets, 1)?)?,
        context: theta,
        log_weights: DeviceLogWeights::PerAnchor(&log_weights),
    };
    let found = device.likelihood(&energy, &points, &candidates, Wanted::WEIGHTS)?;
    if is_scaled {
        scale(&gradient, &gradient)?;
    }
    device.copy(&found.log_partition, &report.log_partition())?;
    device.copy(&found.means, &report.means())?;
    device.kernels.set_figures(
        device,
        blocks(sets, 256),
        &found.candidate_values,
        &log_weights,
        &sent.parts.part(4),
        &found.log_partition,
        kl,
        &report.figures(),
        sent.num_candidates as u32,
        (kl.len() / sets) as u32,
    )?;
    Ok(found.gradients.context.unwrap_or_default())
}

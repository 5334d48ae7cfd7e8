//! The negative log-likelihood of sets with its gradient: the network goes to the GPU once, every
//! row runs forward once, and numbers come back at the end.

use super::candidates::{cotangents, log_sums, parts, upload};
use super::chunk::chunks;
use super::device::{Buffer, Device, launch, sums_per_set};
use super::network::{Elements, Keep, Network};
use super::values::{append, upload_cotangent};
use crate::Result;
use crate::point::likelihood::{anchor_shares, shares};
use crate::point::{Candidates, Cotangent, Likelihood, PointBatch, PointMlp, Wanted};

pub(super) fn likelihood(
    device: &Device,
    mlp: &PointMlp,
    batch: &PointBatch<'_>,
    candidates: &Candidates<'_>,
    wanted: Wanted,
) -> Result<Likelihood> {
    let num_sets = batch.offsets.num_sets();
    let network = Network::new(device, mlp, batch.context, num_sets)?;
    let wanted = Wanted { elements: false, ..wanted };
    let sums = network.sums(wanted)?;
    let keep = if sums.is_some() { Keep::Slopes } else { Keep::Output };
    let k = candidates.num_candidates;
    let upward = anchor_shares(candidates.offsets);
    let mut of_candidates: Vec<(Buffer, Buffer)> = Vec::new();
    for anchors in parts(&network, candidates, keep) {
        let part = upload(&network, candidates, &anchors)?;
        let trace = network.forward(&part.rows, keep)?;
        let log_z = device.buffer::<f32>(anchors.len())?;
        log_sums(device, &part, &trace.output, k, &log_z)?;
        if sums.is_some() {
            let given = &upward[anchors.clone()];
            let g = cotangents(device, &part, &trace.output, (&log_z, given), k)?;
            network.backward(&part.rows, &trace, Some(g), sums.as_ref(), false)?;
        }
        of_candidates.push((log_z, trace.output));
    }
    let of_sets = device.zeros::<f32>(num_sets)?;
    let downward: Vec<f32> = shares(batch.offsets).into_iter().map(|share| -share).collect();
    for chunk in chunks(batch.offsets, network.rows_at_once(keep)) {
        let rows = network.rows(Elements::Host(batch.elements), &chunk)?;
        let trace = network.forward(&rows, keep)?;
        launch!(
            device,
            set_sums,
            sums_per_set(rows.num_sets, 1),
            trace.output.at(0),
            rows.starts.at(0),
            of_sets.at(0),
            rows.first_set as u32,
            1_u32
        )?;
        if sums.is_some() {
            let g = upload_cotangent(device, (&chunk, &rows), 1, Cotangent::PerSet(&downward))?;
            network.backward(&rows, &trace, Some(g), sums.as_ref(), false)?;
        }
    }
    let gradients = network.finish(sums)?;
    let mut means = device.download(&of_sets)?;
    for (set, mean) in means.iter_mut().enumerate() {
        *mean /= batch.offsets.size(set) as f32;
    }
    let (mut log_partition, mut candidate_values) = (Vec::new(), Vec::new());
    for (log_z, f) in of_candidates {
        append(&mut log_partition, device.download(&log_z)?);
        append(&mut candidate_values, device.download(&f)?);
    }
    Ok(Likelihood { log_partition, candidate_values, means, gradients })
}

//! Checks that every backend makes of what it is given and of what it gives back.

use super::{DynamicsCotangent, DynamicsGradients, Gradients, PointBatch, PointMlp};
use crate::error::{check_finite, check_length};
use crate::{Error, Result};

pub(crate) const OVERFLOW: &str =
    "the network's numbers overflow: use smaller weights, inputs or steps";

pub(crate) fn check_scalar(mlp: &PointMlp) -> Result<()> {
    match mlp.shape().config().output_dim {
        1 => Ok(()),
        found => Err(Error::invalid("output_dim", "1 for a log potential", found)),
    }
}

pub(crate) fn check_gradients(gradients: Gradients) -> Result<Gradients> {
    let all = [
        ("parameter gradient", &gradients.parameters),
        ("context gradient", &gradients.context),
        ("element gradient", &gradients.elements),
        ("location gradient", &gradients.locations),
    ];
    for (field, gradient) in all {
        check_finite(field, gradient.as_deref().unwrap_or_default(), OVERFLOW)?;
    }
    Ok(gradients)
}

/// Checks an input that has `per_element` numbers for each of `num_elements`.
pub(crate) fn check_rows(
    field: &'static str,
    values: &[f32],
    num_elements: usize,
    per_element: usize,
) -> Result<()> {
    check_length(field, values.len(), num_elements * per_element, || {
        format!("elements {num_elements} x {per_element}")
    })?;
    check_finite(field, values, "the loss that made this gradient is not finite")
}

pub(crate) fn check_dynamics_cotangent(
    cotangent: &DynamicsCotangent<'_>,
    num_elements: usize,
    value_dim: usize,
) -> Result<()> {
    check_rows("cotangent.values", cotangent.values, num_elements, value_dim)?;
    if let Some(momentum) = cotangent.momentum {
        check_rows("cotangent.momentum", momentum, num_elements, value_dim)?;
    }
    if let Some(kinetic) = cotangent.kinetic {
        check_rows("cotangent.kinetic", kinetic, num_elements, 1)?;
    }
    Ok(())
}

pub(crate) fn check_dynamics_gradients(gradients: DynamicsGradients) -> Result<DynamicsGradients> {
    check_finite("gradient of values", &gradients.values, OVERFLOW)?;
    check_finite("gradient of momentum", &gradients.momentum, OVERFLOW)?;
    check_finite("gradient of step_sizes", &gradients.step_sizes, OVERFLOW)?;
    check_finite("gradient of context", &gradients.context, OVERFLOW)?;
    Ok(gradients)
}

/// Critical rows must be rows of their own sets.
pub(crate) fn check_critical(
    critical: &[u32],
    batch: &PointBatch<'_>,
    outputs: usize,
) -> Result<()> {
    let num_sets = batch.offsets.num_sets();
    check_length("pooled.critical", critical.len(), num_sets * outputs, || {
        format!("sets {num_sets} x output_dim {outputs}")
    })?;
    for (set, rows) in critical.chunks_exact(outputs).enumerate() {
        let range = batch.offsets.range(set);
        if let Some(row) = rows.iter().find(|&&row| !range.contains(&(row as usize))) {
            return Err(Error::invalid(
                format!("pooled.critical of set {set}"),
                format!("rows {} to {}", range.start, range.end - 1),
                row,
            ));
        }
    }
    Ok(())
}

//! A network over every element, pooled over the set: h = pool_i φ(xᵢ, tᵢ).

use std::sync::Arc;

use super::PosteriorRows;
use crate::batch::SetBatch;
use crate::energy::push_features;
use crate::point::{Activation, ContextAt, MlpConfig, MlpShape, Pooling};
use crate::recipe::{EnergyBasedConfig, Space};
use crate::tape::{Group, Parameter, Points, Tape, Var};
use crate::{Result, SetOffsets};

#[derive(Clone, Debug)]
pub(super) struct DeepSets {
    shape: Arc<MlpShape>,
    parameters: Parameter,
    poolings: &'static [Pooling],
    value_frequencies: usize,
    location_frequencies: usize,
}

impl DeepSets {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let (hidden, pooled) = config.encoder_widths.split_at(config.encoder_widths.len() - 1);
        let poolings = config.pooling.poolings();
        let shape = MlpShape::new(MlpConfig {
            value_dim: space.value_dim * (1 + 2 * config.value_frequencies),
            location_dim: config.location_features(space),
            context_dim: 0,
            hidden_widths: hidden.to_vec(),
            output_dim: pooled[0],
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
            // A rectifier and a maximum may change places: what is pooled is kept whole then.
            activate_output: poolings != [Pooling::Max],
        })?;
        let parameters = group.point_mlp("elements", &shape)?;
        Ok(Self {
            shape: Arc::new(shape),
            parameters,
            poolings,
            value_frequencies: config.value_frequencies,
            location_frequencies: config.location_frequencies,
        })
    }

    pub(super) fn width(&self) -> usize {
        self.poolings.len() * self.shape.config().output_dim
    }

    pub(super) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        let columns = self.shape.element_dim();
        let (dx, dt) = (sets.value_dim(), sets.location_dim());
        let mut rows = Vec::with_capacity(sets.num_elements() * columns);
        let mut sizes = Vec::with_capacity(sets.num_sets());
        for set in 0..sets.num_sets() {
            let (values, locations) = (sets.values(set), sets.locations(set));
            sizes.push(sets.size(set));
            if dt == 0 && self.value_frequencies == 0 {
                rows.extend_from_slice(values);
            } else {
                for i in 0..sets.size(set) {
                    push_features(&values[i * dx..][..dx], self.value_frequencies, &mut rows);
                    let location = &locations[i * dt..][..dt];
                    push_features(location, self.location_frequencies, &mut rows);
                }
            }
            if sets.size(set) == 0 {
                rows.resize(rows.len() + columns, 0.0);
            }
        }
        PosteriorRows::new(rows, &sizes, columns)
    }

    /// Pooled features, and the same after the activation.
    pub(super) fn read(
        &self,
        tape: &mut Tape,
        rows: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<(Var, Var)> {
        let points = Points {
            shape: Arc::clone(&self.shape),
            parameters: tape.parameter(&self.parameters)?,
            elements: rows,
            context: None,
            offsets: Arc::clone(offsets),
        };
        let mut parts = Vec::with_capacity(self.poolings.len());
        for &pooling in self.poolings {
            parts.push(tape.point_pool(&points, pooling)?);
        }
        let pooled = tape.concat(&parts)?;
        let active = if self.shape.config().activate_output { pooled } else { tape.relu(pooled)? };
        Ok((pooled, active))
    }
}

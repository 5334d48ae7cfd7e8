//! A network over every element, pooled over the set, once or several times:
//!
//! ```text
//! h₁ = pool_i φ₁(xᵢ, tᵢ),   h_r = pool_i φ_r(xᵢ, tᵢ; h_{r−1})
//! ```
//!
//! A single round sees elements one by one. From the second on an element is seen against its set, and
//! what is pooled can be about elements that stand together.

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
    /// φ of every round, with its parameters.
    rounds: Vec<(Arc<MlpShape>, Parameter)>,
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
        let mut rounds = Vec::with_capacity(config.encoder_rounds);
        for round in 0..config.encoder_rounds {
            let shape = MlpShape::new(MlpConfig {
                value_dim: space.value_dim * (1 + 2 * config.value_frequencies),
                location_dim: config.location_features(space),
                context_dim: if round == 0 { 0 } else { poolings.len() * pooled[0] },
                hidden_widths: hidden.to_vec(),
                output_dim: pooled[0],
                activation: Activation::Relu,
                context_at: ContextAt::EveryLayer,
                // A rectifier and a maximum may change places: what is pooled is kept whole then.
                activate_output: poolings != [Pooling::Max],
            })?;
            let name = if round == 0 { "elements" } else { &format!("elements_{}", round + 1) };
            let parameters = group.point_mlp(name, &shape)?;
            rounds.push((Arc::new(shape), parameters));
        }
        Ok(Self {
            rounds,
            poolings,
            value_frequencies: config.value_frequencies,
            location_frequencies: config.location_frequencies,
        })
    }

    fn shape(&self) -> &MlpShape {
        &self.rounds[0].0
    }

    pub(super) fn width(&self) -> usize {
        self.poolings.len() * self.shape().config().output_dim
    }

    pub(super) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        let columns = self.shape().element_dim();
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

    /// Pooled features of the last round, and the same after the activation.
    pub(super) fn read(
        &self,
        tape: &mut Tape,
        rows: Var,
        offsets: &Arc<SetOffsets>,
    ) -> Result<(Var, Var)> {
        let mut found = None;
        for (shape, parameters) in &self.rounds {
            let points = Points {
                shape: Arc::clone(shape),
                parameters: tape.parameter(parameters)?,
                elements: rows,
                context: found.map(|(_, active)| active),
                offsets: Arc::clone(offsets),
            };
            let mut parts = Vec::with_capacity(self.poolings.len());
            for &pooling in self.poolings {
                parts.push(tape.point_pool(&points, pooling)?);
            }
            let pooled = tape.concat(&parts)?;
            let is_active = shape.config().activate_output;
            found = Some((pooled, if is_active { pooled } else { tape.relu(pooled)? }));
        }
        found.ok_or_else(|| crate::Error::invalid("encoder_rounds", "at least 1", 0))
    }
}

//! The elements to predict in one training step, as tensors.

use candle_core::{Device, Tensor};

use super::features::{Rows, push_features};
use crate::{IndexedSet, Result, SetOffsets};

pub(super) struct Targets {
    /// Rows `[value, location features]`, `[n, …]`.
    pub(super) elements: Tensor,
    /// Location features, `[n, features]`.
    pub(super) locations: Tensor,
    pub(super) offsets: SetOffsets,
}

impl Targets {
    pub(super) fn new(sets: &[&IndexedSet], location_frequencies: usize) -> Result<Self> {
        let rows = Rows::new(sets.iter().copied(), 0, location_frequencies)?;
        let n = rows.offsets.num_elements();
        let width = rows.elements.len() / n;
        let mut features = Vec::new();
        for set in sets {
            for i in 0..set.len() {
                push_features(set.location(i), location_frequencies, &mut features);
            }
        }
        let num_features = features.len() / n;
        Ok(Self {
            elements: Tensor::from_vec(rows.elements, (n, width), &Device::Cpu)?,
            locations: Tensor::from_vec(features, (n, num_features), &Device::Cpu)?,
            offsets: rows.offsets,
        })
    }

    /// Targets per set, on average.
    pub(super) fn per_set(&self) -> f64 {
        self.offsets.num_elements() as f64 / self.offsets.num_sets() as f64
    }

    /// The location features of `count` draws per target, `[n · count, features]`.
    pub(super) fn repeated_locations(&self, count: usize) -> Result<Tensor> {
        let (n, features) = self.locations.dims2()?;
        let rows = self.locations.unsqueeze(1)?.expand((n, count, features))?;
        Ok(rows.contiguous()?.reshape((n * count, features))?)
    }

    /// Which set `count` draws per target belong to.
    pub(super) fn repeated_offsets(&self, count: usize) -> Result<SetOffsets> {
        SetOffsets::from_sizes((0..self.offsets.num_sets()).map(|s| self.offsets.size(s) * count))
    }
}

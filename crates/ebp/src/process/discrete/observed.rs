//! A part of a picture: which places are known, and their symbols.

use super::{DiscreteConfig, Grid};
use crate::{Error, IndexedSet, Result};

/// Known elements by place. The order of a set's elements is gone.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Whether each place is known, `[places]`.
    pub(super) is_known: Vec<bool>,
    /// The symbols of each place, `[places, channels]`; 0 where it is not known.
    pub(super) symbols: Vec<u32>,
    /// How many are known.
    pub(super) count: usize,
}

impl Observed {
    pub(super) fn nothing(config: &DiscreteConfig) -> Self {
        let places = config.grid.num_places();
        Self { is_known: vec![false; places], symbols: vec![0; places * config.channels], count: 0 }
    }

    /// Puts every element of `set` in its place.
    pub(super) fn new(config: &DiscreteConfig, set: &IndexedSet) -> Result<Self> {
        let mut observed = Self::nothing(config);
        observed.add(config, set)?;
        Ok(observed)
    }

    pub(super) fn add(&mut self, config: &DiscreteConfig, set: &IndexedSet) -> Result<()> {
        for index in 0..set.len() {
            let place = config.grid.place(set.location(index))?;
            if self.is_known[place] {
                let found = format!("{:?} twice", config.grid.location(place));
                return Err(Error::invalid("set", "one element per place", found));
            }
            self.is_known[place] = true;
            self.count += 1;
            let symbols = &mut self.symbols[place * config.channels..][..config.channels];
            for (symbol, &value) in symbols.iter_mut().zip(set.value(index)) {
                *symbol = config.symbol(value)?;
            }
        }
        Ok(())
    }

    /// Values on [0, 1] of all channels, 0 where nothing is known, `[places, channels]`.
    pub(super) fn brightness(&self, config: &DiscreteConfig) -> Vec<f32> {
        let channels = config.channels;
        self.symbols
            .iter()
            .enumerate()
            .map(|(index, &symbol)| {
                if self.is_known[index / channels] {
                    0.5 * (config.value(symbol) + 1.0)
                } else {
                    0.0
                }
            })
            .collect()
    }
}

/// The places and symbols of a set's elements, in their order.
pub(super) struct Elements {
    pub(super) places: Vec<usize>,
    /// `[n, channels]`.
    pub(super) symbols: Vec<u32>,
}

impl Elements {
    pub(super) fn new(config: &DiscreteConfig, set: &IndexedSet) -> Result<Self> {
        let places = places(config.grid, set.locations())?;
        let symbols = set.values().iter().map(|&value| config.symbol(value));
        Ok(Self { places, symbols: symbols.collect::<Result<_>>()? })
    }
}

/// The places at locations `[m, 2]`.
pub(super) fn places(grid: Grid, locations: &[f64]) -> Result<Vec<usize>> {
    locations.chunks(2).map(|location| grid.place(location)).collect()
}

//! Whether q(θ | set) is the posterior of the model's own law, by simulation from it.

use std::fmt::{self, Display};

use rayon::prelude::*;
use serde::Serialize;

use crate::data::Standardiser;
use crate::metric::uniformity::Uniformity;
use crate::process::EnergyBasedProcess;
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Elements that a simulation adds to its context.
const ADDED: usize = 8;
/// Cells of histograms.
const CELLS: usize = 20;

/// Positions of θ* in q(θ | context and simulated elements).
#[derive(Clone, Debug, Serialize)]
pub struct LatentReport {
    /// How many simulations.
    pub count: usize,
    /// Elements added in each.
    pub num_added: usize,
    /// One for each coordinate of θ.
    pub coordinates: Vec<Uniformity>,
    /// The smallest p of a coordinate times their number: Bonferroni's for all at once.
    pub p_value: f64,
    /// Coordinates that leave their 95 % band.
    pub num_outside: usize,
}

impl LatentReport {
    /// `count` simulations; contexts, in the units of the data, are taken in turn and cut so that no set
    /// has more elements than `max_context`.
    pub(super) fn new<'a>(
        process: &EnergyBasedProcess,
        standardiser: &Standardiser,
        contexts: impl Iterator<Item = &'a IndexedSet>,
        (count, max_context): (usize, usize),
        stream: Stream,
    ) -> Result<Self> {
        let contexts: Vec<IndexedSet> = contexts
            .take(count)
            .map(|context| {
                let most = context.len().min(max_context.saturating_sub(ADDED).max(1));
                standardiser.apply(&context.select(&(0..most).collect::<Vec<_>>()))
            })
            .collect::<Result<_>>()?;
        let simulate = |number: usize| {
            let context = &contexts[number % contexts.len()];
            let stream = stream.child(number as u64);
            // Locations are those of other contexts.
            let donor = &contexts[(number + 1) % contexts.len()];
            let other = (0..ADDED).flat_map(|i| donor.location(i % donor.len()).to_vec());
            process.latent_positions(context, &other.collect::<Vec<f64>>(), stream)
        };
        let found: Vec<Vec<f64>> =
            (0..count).into_par_iter().map(simulate).collect::<Result<_>>()?;
        let dims = found.first().map_or(0, Vec::len);
        let coordinates = (0..dims)
            .map(|d| Uniformity::of(&found.iter().map(|u| u[d]).collect::<Vec<_>>(), CELLS))
            .collect::<Result<Vec<_>>>()?;
        let smallest = coordinates.iter().map(|c| c.p_value).fold(1.0, f64::min);
        Ok(Self {
            count,
            num_added: ADDED,
            p_value: (smallest * dims as f64).min(1.0),
            num_outside: coordinates.iter().filter(|c| !c.is_within).count(),
            coordinates,
        })
    }
}

impl Display for LatentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, num_added, p_value, num_outside, coordinates } = self;
        let gap = coordinates.iter().map(|c| c.largest_gap).fold(0.0, f64::max);
        write!(
            f,
            "q(theta | set) against simulations of the model itself ({count}, {num_added} elements \
             each): {num_outside} of {} coordinates outside their band, largest distance {gap:.3}, \
             chi2 p = {p_value:.4} for all at once",
            coordinates.len()
        )
    }
}

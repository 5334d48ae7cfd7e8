//! The album of a model of curves: heat maps of p(x | t, context).
//!
//! A map is one byte a cell, 255 √(p/p_max), rows from the highest value down: the root keeps visible what
//! is a hundredth of the peak.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares between 0 and 1 become bytes"
)]

use serde::Serialize;

use crate::figure::density::points;
use crate::model::{CurveData, CurveModel, CurveSource};
use crate::process::{PredictionRule, Task};
use crate::rng::Stream;
use crate::{IndexedSet, Result};

/// Cells of a map.
const NUM_COLUMNS: usize = 64;
const NUM_ROWS: usize = 48;
/// Places of the lattice for a single point, along each axis.
const NUM_PLACES: usize = 9;
/// Curves, and how many of their points are given.
const NUM_CURVES: u64 = 3;
const SIZES: [usize; 8] = [1, 2, 3, 5, 8, 12, 20, 30];

/// Heat maps of densities, and which context each belongs to.
#[derive(Clone, Debug, Serialize)]
pub struct DensityAlbum {
    /// Locations from left to right.
    pub t: (f64, f64),
    /// Values from bottom to top.
    pub x: (f64, f64),
    /// What location and value are called.
    pub names: (String, String),
    /// Cells in a row of a map.
    pub columns: usize,
    /// Rows of a map.
    pub rows: usize,
    /// One point anywhere.
    pub one: Lattice,
    /// More and more points of a curve.
    pub curves: Vec<CurveContexts>,
    /// All maps, one after the other, `[maps, rows, columns]`.
    #[serde(skip)]
    pub maps: Vec<u8>,
}

/// A single point at every place of a lattice: the map of place (i, j) is `first + i · places of x + j`.
#[derive(Clone, Debug, Serialize)]
pub struct Lattice {
    /// Locations.
    pub t: Vec<f64>,
    /// Values.
    pub x: Vec<f64>,
    /// The map of the first place.
    pub first: usize,
}

/// A curve of which more and more points are given.
#[derive(Clone, Debug, Serialize)]
pub struct CurveContexts {
    /// What it is called.
    pub name: String,
    /// The fewest points first.
    pub contexts: Vec<GivenPoints>,
}

/// A context.
#[derive(Clone, Debug, Serialize)]
pub struct GivenPoints {
    /// (t, x) of what is given.
    pub points: Vec<[f64; 2]>,
    /// The number of its map.
    pub map: usize,
}

/// The maps of a model whose locations and values are single numbers; `None` of any other.
pub(super) fn make(
    model: &CurveModel,
    data: &CurveData,
    stream: Stream,
) -> Result<Option<DensityAlbum>> {
    if model.location_dim() != 1 || model.value_dim() != 1 {
        return Ok(None);
    }
    let ((low, high), names, sets) = match &data.source {
        CurveSource::Curves(family) => {
            let most = SIZES[SIZES.len() - 1];
            let sets = (0..NUM_CURVES)
                .map(|number| Ok(family.draw(stream.child(1), number, most)?.set))
                .collect::<Result<Vec<_>>>()?;
            (family.location_range(), ("t".to_owned(), "x".to_owned()), sets)
        }
        CurveSource::Table(table) => {
            let all = table.sets.iter().flat_map(|named| named.set.locations());
            let range = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &t| {
                (low.min(t), high.max(t))
            });
            let tasks = table.held_out.iter().take(NUM_CURVES as usize);
            let sets = tasks.map(Task::union).collect::<Result<Vec<_>>>()?;
            (range, table.labels.clone(), sets)
        }
    };
    let (bottom, top) = model.value_range()?;
    let mut album = DensityAlbum {
        t: (low, high),
        x: (bottom, top),
        names,
        columns: NUM_COLUMNS,
        rows: NUM_ROWS,
        one: Lattice {
            t: middles(low, high, NUM_PLACES).collect(),
            x: middles(bottom, top, NUM_PLACES).collect(),
            first: 0,
        },
        curves: Vec::new(),
        maps: Vec::new(),
    };
    for &t in &album.one.t {
        for &x in &album.one.x {
            let context = IndexedSet::new(1, 1, vec![t], vec![x])?;
            let map = album.map(model, &context)?;
            album.maps.extend(map);
        }
    }
    let mut next = NUM_PLACES * NUM_PLACES;
    for (number, set) in sets.iter().enumerate() {
        let mut contexts = Vec::new();
        for size in SIZES.into_iter().filter(|&size| size <= set.len()) {
            let context = set.select(&(0..size).collect::<Vec<_>>());
            let map = album.map(model, &context)?;
            album.maps.extend(map);
            contexts.push(GivenPoints { points: points(&context), map: next });
            next += 1;
        }
        if !contexts.is_empty() {
            album.curves.push(CurveContexts { name: format!("Curve {}", number + 1), contexts });
        }
    }
    Ok(Some(album))
}

/// The middles of equal parts.
fn middles(low: f64, high: f64, count: usize) -> impl DoubleEndedIterator<Item = f64> {
    (0..count).map(move |part| low + (high - low) * (part as f64 + 0.5) / count as f64)
}

impl DensityAlbum {
    fn map(&self, model: &CurveModel, context: &IndexedSet) -> Result<Vec<u8>> {
        let predictive = model.condition_by(context, PredictionRule::Mixture)?;
        let columns = || middles(self.t.0, self.t.1, NUM_COLUMNS);
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        for x in middles(self.x.0, self.x.1, NUM_ROWS).rev() {
            locations.extend(columns());
            values.extend([x; NUM_COLUMNS]);
        }
        let answers = predictive.log_density(&IndexedSet::new(1, 1, locations, values)?)?;
        let peak = answers.iter().map(|answer| answer.value).fold(f64::NEG_INFINITY, f64::max);
        let byte = |value: f64| (255.0 * (0.5 * (value - peak)).exp()).round() as u8;
        Ok(answers.iter().map(|answer| byte(answer.value)).collect())
    }
}

//! Where the integral of the conditional intensity is read: data points and a grid of dummy points.
//!
//! ```text
//! ∫_W λ(u | X) du ≈ Σ_j w_j λ(u_j | X),   w_j = area of the tile of u_j / quadrature points in it
//! ```
//!
//! These are spatstat's defaults for a rectangle (Berman and Turner, 1992): d × d tiles with a dummy point
//! in the middle of each, d = max(32, 10 ⌈2 √n / 10⌉), and the four corners. The border correction leaves
//! out what lies nearer to the edge than the interaction reaches, data and dummy points alike.

use super::gibbs::Family;
use super::window::{Pattern, Window};
use crate::{Error, Result};

/// Rows of a regression: statistics at quadrature points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Design {
    /// Numbers of a row.
    pub(crate) dim: usize,
    /// (z, t) of every row where λ is not 0, `[rows, dim]`.
    pub(crate) rows: Vec<f64>,
    /// w.
    pub(crate) weights: Vec<f64>,
    /// Whether the row is of a data point.
    pub(crate) is_data: Vec<bool>,
    /// Number of the pattern of the row.
    pub(crate) patterns: Vec<usize>,
    /// Which of 3 x 3 blocks of the window the row lies in.
    pub(crate) blocks: Vec<usize>,
}

impl Design {
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&[f64], f64, bool)> {
        let rows = self.rows.chunks_exact(self.dim);
        rows.zip(&self.weights).zip(&self.is_data).map(|((row, &weight), &is)| (row, weight, is))
    }

    pub(crate) fn num_data(&self) -> usize {
        self.is_data.iter().filter(|&&is| is).count()
    }

    fn push(&mut self, row: &[f64], weight: f64, is_data: bool, block: usize) {
        self.rows.extend_from_slice(row);
        self.weights.push(weight);
        self.is_data.push(is_data);
        self.patterns.push(0);
        self.blocks.push(block);
    }

    /// Rows of several patterns one after the other.
    pub(crate) fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for (number, part) in parts.into_iter().enumerate() {
            all.dim = part.dim;
            all.rows.extend(part.rows);
            all.weights.extend(part.weights);
            all.is_data.extend(part.is_data);
            all.patterns.extend(vec![number; part.blocks.len()]);
            all.blocks.extend(part.blocks);
        }
        all
    }
}

/// Tiles along a side, as spatstat chooses them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
pub(crate) fn default_tiles(num_points: usize) -> usize {
    let wanted = 10.0 * (2.0 * (num_points as f64).sqrt() / 10.0).ceil();
    (wanted as usize).max(32)
}

/// Dummy points in the middles of d × d tiles, and the corners.
fn dummy_points(window: Window, num_tiles: usize) -> Vec<[f64; 2]> {
    let corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]].map(|shares| window.at(shares));
    let mut places = window.grid(num_tiles, num_tiles);
    places.extend(corners);
    places
}

/// Number of the tile of a place; tiles are open on the left, as in spatstat.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn tile_of(window: Window, num_tiles: usize, place: [f64; 2]) -> usize {
    let (sides, lengths) = (window.sides(), window.lengths());
    let along = |axis: usize| {
        let share = (place[axis] - sides[axis][0]) / lengths[axis] * num_tiles as f64;
        (share.ceil() - 1.0).clamp(0.0, (num_tiles - 1) as f64) as usize
    };
    along(1) * num_tiles + along(0)
}

/// w of places.
fn counting_weights(window: Window, num_tiles: usize, places: &[[f64; 2]]) -> Vec<f64> {
    let tiles: Vec<usize> = places.iter().map(|&place| tile_of(window, num_tiles, place)).collect();
    let mut counts = vec![0_usize; num_tiles * num_tiles];
    for &tile in &tiles {
        counts[tile] += 1;
    }
    let area = window.area() / (num_tiles * num_tiles) as f64;
    tiles.into_iter().map(|tile| area / counts[tile] as f64).collect()
}

/// Quadrature points of a pattern, the data first.
pub(crate) struct Nodes {
    pub(crate) places: Vec<[f64; 2]>,
    /// w.
    pub(crate) weights: Vec<f64>,
    /// Which of 3 x 3 blocks of the window each lies in.
    pub(crate) blocks: Vec<usize>,
}

/// Berman and Turner's quadrature of a pattern.
pub(crate) fn quadrature_places(pattern: &Pattern) -> Nodes {
    let window = pattern.window();
    let num_tiles = default_tiles(pattern.points().len());
    let mut places = pattern.points().to_vec();
    places.extend(dummy_points(window, num_tiles));
    let weights = counting_weights(window, num_tiles, &places);
    let blocks = places.iter().map(|&place| tile_of(window, 3, place)).collect();
    Nodes { places, weights, blocks }
}

/// The rows of Berman and Turner's device.
///
/// # Errors
///
/// [`Error::Refused`] if no data point is left inside the border; [`Error::InvalidValue`] if data break a
/// hard core.
pub(crate) fn berman_turner(family: &Family, pattern: &Pattern) -> Result<Design> {
    let Nodes { places, weights, .. } = quadrature_places(pattern);
    design(family, pattern, &places, &weights)
}

/// The rows of a logistic regression: data against dummy points in the middles of d × d tiles, whose
/// density ρ stands in the place of 1/w.
pub(crate) fn logistic(family: &Family, pattern: &Pattern, num_tiles: usize) -> Result<Design> {
    let window = pattern.window();
    let mut places = pattern.points().to_vec();
    places.extend(window.grid(num_tiles, num_tiles));
    let weight = window.area() / (num_tiles * num_tiles) as f64;
    design(family, pattern, &places, &vec![weight; places.len()])
}

/// Rows at `places`, of which the first are the data.
fn design(
    family: &Family,
    pattern: &Pattern,
    places: &[[f64; 2]],
    weights: &[f64],
) -> Result<Design> {
    family.interaction.check()?;
    let (window, border) = (pattern.window(), family.interaction.reach());
    let near = family.interaction.near(window, pattern.points(), 0.0);
    let num_points = pattern.points().len();
    let mut design = Design { dim: family.num_coefficients(), ..Design::default() };
    let mut row = vec![0.0; design.dim];
    for (number, (&place, &weight)) in places.iter().zip(weights).enumerate() {
        let is_data = number < num_points;
        let skip = is_data.then_some(number);
        let is_possible = family.statistics(place, &near, skip, &mut row);
        if is_data && !is_possible {
            let least = pattern.least_distance();
            let found = if least > 0.0 {
                format!("two points {least} apart; lower the hard core")
            } else {
                format!("{} duplicate points; remove them", pattern.num_duplicates())
            };
            return Err(Error::invalid("the hard core", "kept by the data", found));
        }
        // λ = 0 where a hard core forbids: such a row adds nothing.
        if is_possible && window.edge_distance(place) >= border {
            let tiles = tile_of(window, 3, place);
            design.push(&row, weight, is_data, tiles);
        }
    }
    Ok(design)
}

/// That there are data to fit, so many of them farther than `border` from the edge.
pub(crate) fn check_points(num_points: usize, border: f64) -> Result<()> {
    if num_points > 0 {
        return Ok(());
    }
    let message = if border > 0.0 {
        format!("no point is at least {border} from the edge of its window")
    } else {
        "the pattern has no points".to_owned()
    };
    Err(Error::refused(message).with_help("give a pattern with points, or a shorter interaction"))
}

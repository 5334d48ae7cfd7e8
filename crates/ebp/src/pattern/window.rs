//! Rectangular windows, and patterns of points in them.

use std::ops::RangeInclusive;

use super::draws::Draws;
use crate::{Error, Result};

/// A rectangle of the plane, with its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    sides: [[f64; 2]; 2],
}

impl Window {
    /// From and to, of x and of y.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] unless both rise and are finite.
    ///
    /// ```
    /// use ebp::pattern::Window;
    ///
    /// let window = Window::new([[0.0, 2.0], [-1.0, 0.0]])?;
    /// assert_eq!(window.area(), 2.0);
    /// assert_eq!(window.edge_distance([0.25, -0.5]), 0.25);
    /// assert!(Window::new([[0.0, 0.0], [0.0, 1.0]]).is_err());
    /// # Ok::<(), ebp::Error>(())
    /// ```
    pub fn new(sides: [[f64; 2]; 2]) -> Result<Self> {
        let is_whole = |[from, to]: &[f64; 2]| from < to && (to - from).is_finite();
        if sides.iter().all(is_whole) {
            return Ok(Self { sides });
        }
        Err(Error::invalid("window", "two rising, finite sides", format!("{sides:?}")))
    }

    /// 0 to 1, twice.
    pub fn unit() -> Self {
        Self { sides: [[0.0, 1.0]; 2] }
    }

    /// From and to, of x and of y.
    pub fn sides(&self) -> [[f64; 2]; 2] {
        self.sides
    }

    /// Width and height.
    pub fn lengths(&self) -> [f64; 2] {
        self.sides.map(|[from, to]| to - from)
    }

    /// |W|.
    pub fn area(&self) -> f64 {
        let [width, height] = self.lengths();
        width * height
    }

    /// Whether a place lies inside or on the edge.
    pub fn contains(&self, place: [f64; 2]) -> bool {
        let range = |[from, to]: [f64; 2]| -> RangeInclusive<f64> { from..=to };
        self.sides.iter().zip(place).all(|(&side, x)| range(side).contains(&x))
    }

    /// From a place inside to the nearest edge.
    pub fn edge_distance(&self, [x, y]: [f64; 2]) -> f64 {
        let [[left, right], [bottom, top]] = self.sides;
        (x - left).min(right - x).min(y - bottom).min(top - y)
    }

    /// |W ∩ (W + shift)|.
    pub fn overlap(&self, shift: [f64; 2]) -> f64 {
        let [width, height] = self.lengths();
        (width - shift[0].abs()).max(0.0) * (height - shift[1].abs()).max(0.0)
    }

    /// The place at shares of both sides.
    pub(crate) fn at(&self, shares: [f64; 2]) -> [f64; 2] {
        let side = |axis: usize| {
            let [from, to] = self.sides[axis];
            (from + shares[axis] * (to - from)).clamp(from, to)
        };
        [side(0), side(1)]
    }

    /// A place drawn uniformly.
    pub(crate) fn draw(&self, draws: &mut Draws) -> [f64; 2] {
        self.at([draws.uniform(), draws.uniform()])
    }

    /// Middles of a grid of cells, x running fastest.
    pub fn grid(&self, num_columns: usize, num_rows: usize) -> Vec<[f64; 2]> {
        let middle = |cell: usize, count: usize| (cell as f64 + 0.5) / count as f64;
        (0..num_rows * num_columns)
            .map(|cell| {
                let (row, column) = (cell / num_columns, cell % num_columns);
                self.at([middle(column, num_columns), middle(row, num_rows)])
            })
            .collect()
    }
}

/// Points in a window, in no order; there may be none.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    window: Window,
    points: Vec<[f64; 2]>,
}

impl Pattern {
    /// Checks that all points lie in the window.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the first point that does not, or is not a number.
    ///
    /// ```
    /// use ebp::pattern::{Pattern, Window};
    ///
    /// let error = Pattern::new(Window::unit(), vec![[0.5, 0.5], [0.5, 1.5]]).unwrap_err();
    /// assert!(error.to_string().contains("point 1"));
    /// ```
    pub fn new(window: Window, points: Vec<[f64; 2]>) -> Result<Self> {
        match points.iter().position(|&point| !window.contains(point)) {
            None => Ok(Self { window, points }),
            Some(number) => {
                let [[left, right], [bottom, top]] = window.sides();
                let expected = format!("inside {left} to {right} and {bottom} to {top}");
                let found = format!("{:?}; remove it or widen the window", points[number]);
                Err(Error::invalid(format!("point {number}"), expected, found))
            }
        }
    }

    /// Where it was observed.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The points.
    pub fn points(&self) -> &[[f64; 2]] {
        &self.points
    }

    /// Points per area.
    pub fn intensity(&self) -> f64 {
        self.points.len() as f64 / self.window.area()
    }

    /// How many points repeat an earlier one exactly.
    pub fn num_duplicates(&self) -> usize {
        let mut sorted = self.points.clone();
        sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
        sorted.windows(2).filter(|pair| distance(pair[0], pair[1]) == 0.0).count()
    }

    /// The least distance of two points; infinite for fewer than two.
    pub fn least_distance(&self) -> f64 {
        let points = self.points.iter().enumerate();
        points
            .flat_map(|(i, &a)| self.points[..i].iter().map(move |&b| distance(a, b)))
            .fold(f64::INFINITY, f64::min)
    }
}

/// Between two places.
pub(crate) fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    square(a, b).sqrt()
}

/// Squared distance of two places.
pub(crate) fn square(a: [f64; 2], b: [f64; 2]) -> f64 {
    let [dx, dy] = [a[0] - b[0], a[1] - b[1]];
    dx * dx + dy * dy
}

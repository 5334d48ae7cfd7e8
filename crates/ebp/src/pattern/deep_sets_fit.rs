//! The pseudolikelihood of a Deep Sets potential on Berman and Turner's quadrature, with its gradient.
//!
//! ```text
//! dummy point u   log λ = α + e(s_u) + Σ_{x ~ u} [e(s_x + h_ux) − e(s_x)]
//! data point xᵢ   log λ = α + e(sᵢ) + Σ_{x ~ xᵢ} [e(s_x) − e(s_x − h_ix)]
//! ```
//!
//! Neighbours do not depend on the weights and are found once. Points nearer to the edge than 2 R have
//! neighbours, or neighbours of neighbours, that nobody saw: they do not count, but are neighbours.

use rayon::prelude::*;

use super::deep_sets::{DeepSets, DeepSetsShape, Link};
use super::gibbs::{Family, Gibbs, Trend};
use super::interaction::Interaction;
use super::likelihood::Likelihood;
use super::near::Near;
use super::network_fit::{NetworkLaw, check_decay, first_parameters, group};
use super::quadrature::{Nodes, check_points, quadrature_places};
use super::tanh_network::Backward;
use super::window::{Pattern, Window};
use crate::Result;
use crate::rng::Stream;

/// The networks, and the data that they are fitted to.
#[derive(Clone, Debug)]
pub struct DeepSetsLaw {
    shape: DeepSetsShape,
    window: Window,
    decay: f64,
    parts: Vec<Part>,
    num_groups: usize,
}

/// A pattern: who is near whom.
#[derive(Clone, Debug)]
struct Part {
    num_points: usize,
    /// Pairs of points, the first before the second.
    pairs: Vec<(usize, usize, Link)>,
    rows: Vec<Row>,
    /// Neighbours of all rows, one row after the other.
    neighbours: Vec<(usize, Link)>,
}

/// A quadrature point.
#[derive(Clone, Copy, Debug)]
struct Row {
    weight: f64,
    is_data: bool,
    group: usize,
    num_neighbours: usize,
}

/// Gradients by weights, by the table of φ, and the sum of all slopes of e.
struct Sums {
    value: f64,
    intercept: f64,
    weights: Vec<f64>,
    table: Vec<f64>,
    total: f64,
}

impl DeepSetsLaw {
    /// Networks whose squared weights cost ½ `decay` each, for `patterns`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) for settings that mean nothing,
    /// [`Error::Refused`](crate::Error::Refused) if no point is at least 2 R from the edge.
    pub fn new(shape: DeepSetsShape, decay: f64, patterns: &[Pattern]) -> Result<Self> {
        check_decay(decay)?;
        // Checks the shape.
        DeepSets::new(shape, vec![0.0; shape.num_weights()])?;
        let parts: Vec<Part> = patterns
            .par_iter()
            .enumerate()
            .map(|(number, pattern)| Part::new(&shape, pattern, (number, patterns.len())))
            .collect();
        let num_data = parts.iter().flat_map(|part| &part.rows).filter(|row| row.is_data).count();
        check_points(num_data, 2.0 * shape.reach)?;
        let groups = parts.iter().flat_map(|part| &part.rows).map(|row| row.group + 1);
        Ok(Self {
            window: patterns.first().map_or_else(Window::unit, Pattern::window),
            num_groups: groups.max().unwrap_or(0),
            shape,
            decay,
            parts,
        })
    }

    fn deep(&self, at: &[f64]) -> Result<DeepSets> {
        DeepSets::new(self.shape, at[1..].to_vec())
    }
}

impl Part {
    fn new(shape: &DeepSetsShape, pattern: &Pattern, (number, count): (usize, usize)) -> Self {
        let (window, points) = (pattern.window(), pattern.points());
        let near = Near::new(window, shape.reach, points);
        let mut part = Self {
            num_points: points.len(),
            pairs: Vec::new(),
            rows: Vec::new(),
            neighbours: Vec::new(),
        };
        for (i, &place) in points.iter().enumerate() {
            near.visit(place, shape.reach, Some(i), |j, square| {
                if i < j {
                    part.pairs.push((i, j, shape.link(square.sqrt())));
                }
            });
        }
        let Nodes { places, weights, blocks } = quadrature_places(pattern);
        for (index, ((&place, &weight), &block)) in
            places.iter().zip(&weights).zip(&blocks).enumerate()
        {
            if window.edge_distance(place) < 2.0 * shape.reach {
                continue;
            }
            let is_data = index < points.len();
            let before = part.neighbours.len();
            near.visit(place, shape.reach, is_data.then_some(index), |other, square| {
                part.neighbours.push((other, shape.link(square.sqrt())));
            });
            let num_neighbours = part.neighbours.len() - before;
            let group = group(count, number, block);
            part.rows.push(Row { weight, is_data, group, num_neighbours });
        }
        part
    }

    /// log PL over rows that are not left out, with slopes.
    fn sums(&self, deep: &DeepSets, intercept: f64, left_out: Option<usize>) -> Sums {
        let k = deep.shape().num_features;
        let mut sums = Sums {
            value: 0.0,
            intercept: 0.0,
            weights: vec![0.0; deep.weights().len()],
            table: vec![0.0; deep.shape().num_knots * k],
            total: 0.0,
        };
        let mut of_points = vec![0.0; self.num_points * k];
        for &(i, j, link) in &self.pairs {
            deep.add(link, 1.0, &mut of_points[i * k..][..k]);
            deep.add(link, 1.0, &mut of_points[j * k..][..k]);
        }
        let units = deep.trace_len();
        let mut whole = vec![0.0; self.num_points * units];
        for (trace, sum) in whole.chunks_exact_mut(units).zip(of_points.chunks_exact(k)) {
            trace[..k].copy_from_slice(sum);
            deep.run(trace);
        }
        let value = |traces: &[f64], number: usize| traces[number * units + units - 1];
        // Slopes by e(sᵢ) of points, and by sᵢ through e at other places.
        let mut by_whole = vec![0.0; self.num_points];
        let mut by_sums = vec![0.0; self.num_points * k];
        let (mut own, mut others) = (vec![0.0; units], Vec::new());
        let (mut back, mut pull) = (Backward::default(), vec![0.0; k]);
        let mut begin = 0;
        for row in &self.rows {
            let neighbours = &self.neighbours[begin..begin + row.num_neighbours];
            begin += row.num_neighbours;
            if Some(row.group) == left_out {
                continue;
            }
            // e with u less e without it: what differs from s_x is s_x + h of dummy points, s_x − h of data.
            let sign = if row.is_data { -1.0 } else { 1.0 };
            own[..k].fill(0.0);
            others.clear();
            others.resize(neighbours.len() * units, 0.0);
            let mut log_intensity = intercept;
            for (&(other, link), trace) in neighbours.iter().zip(others.chunks_exact_mut(units)) {
                deep.add(link, 1.0, &mut own[..k]);
                trace[..k].copy_from_slice(&of_points[other * k..][..k]);
                deep.add(link, sign, &mut trace[..k]);
                deep.run(trace);
                log_intensity += sign * (trace[units - 1] - value(&whole, other));
            }
            deep.run(&mut own);
            log_intensity += own[units - 1] - deep.at_zero();
            let mass = row.weight * log_intensity.exp();
            sums.value += if row.is_data { log_intensity - mass } else { -mass };
            let slope = f64::from(u8::from(row.is_data)) - mass;
            sums.intercept += slope;
            sums.total += slope;
            deep.element_slopes(&own, slope, &mut back, &mut sums.weights);
            pull.copy_from_slice(back.slopes());
            for (&(other, link), trace) in neighbours.iter().zip(others.chunks_exact(units)) {
                deep.add_to_table(link, 1.0, &pull, &mut sums.table);
                by_whole[other] -= sign * slope;
                deep.element_slopes(trace, sign * slope, &mut back, &mut sums.weights);
                for (sum, pull) in by_sums[other * k..].iter_mut().zip(back.slopes()) {
                    *sum += pull;
                }
                deep.add_to_table(link, sign, back.slopes(), &mut sums.table);
            }
        }
        for ((trace, &slope), by_sum) in
            whole.chunks_exact(units).zip(&by_whole).zip(by_sums.chunks_exact_mut(k))
        {
            deep.element_slopes(trace, slope, &mut back, &mut sums.weights);
            by_sum.iter_mut().zip(back.slopes()).for_each(|(sum, pull)| *sum += pull);
        }
        for &(i, j, link) in &self.pairs {
            deep.add_to_table(link, 1.0, &by_sums[i * k..][..k], &mut sums.table);
            deep.add_to_table(link, 1.0, &by_sums[j * k..][..k], &mut sums.table);
        }
        sums
    }
}

impl Likelihood for DeepSetsLaw {
    fn model(&self, at: &[f64]) -> Result<Gibbs> {
        let family = Family { trend: Trend::Constant, interaction: Interaction::None };
        Ok(Gibbs::new(family, self.window, vec![at[0]])?.with_deep_sets(self.deep(at)?))
    }

    fn slopes(&self, at: &[f64], pattern: &Pattern) -> Result<Vec<f64>> {
        let slopes = self.deep(at)?.slopes(pattern.window(), pattern.points());
        Ok([&[pattern.points().len() as f64][..], &slopes.weights].concat())
    }

    fn decay(&self) -> f64 {
        self.decay
    }
}

impl NetworkLaw for DeepSetsLaw {
    fn pseudolikelihood(&self, at: &[f64], left_out: Option<usize>) -> (f64, Vec<f64>) {
        let Ok(deep) = self.deep(at) else { return (f64::NEG_INFINITY, vec![0.0; at.len()]) };
        let parts: Vec<Sums> =
            self.parts.par_iter().map(|part| part.sums(&deep, at[0], left_out)).collect();
        let (mut value, mut total) = (0.0, 0.0);
        let (mut gradient, mut table) =
            (vec![0.0; at.len()], vec![0.0; self.shape.num_knots * self.shape.num_features]);
        for part in parts {
            value += part.value;
            total += part.total;
            gradient[0] += part.intercept;
            gradient[1..].iter_mut().zip(&part.weights).for_each(|(sum, slope)| *sum += slope);
            table.iter_mut().zip(&part.table).for_each(|(sum, slope)| *sum += slope);
        }
        deep.finish(total, &table, &mut gradient[1..]);
        (value, gradient)
    }

    fn num_groups(&self) -> usize {
        self.num_groups
    }

    fn num_points(&self) -> usize {
        self.parts.iter().flat_map(|part| &part.rows).filter(|row| row.is_data).count()
    }

    fn start(&self, stream: Stream) -> Vec<f64> {
        let total = self.parts.iter().flat_map(|part| &part.rows).map(|row| row.weight).sum();
        first_parameters((self.num_points(), total), stream, |draws| self.shape.start(draws))
    }
}

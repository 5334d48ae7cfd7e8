//! A Deep Sets potential: every point is worth what a network says about the set of its neighbours.
//!
//! ```text
//! f(X) = α n + Σᵢ e(sᵢ),   sᵢ = Σ_{x ≠ xᵢ} h(‖x − xᵢ‖),   h(d) = (1 − (d/R)²) φ(d) for d below the reach R
//! log λ(u | X) = α + e(s_u) + Σ_{x ~ u} [e(s_x + h(‖x − u‖)) − e(s_x)]
//! ```
//!
//! φ has K numbers and is linear between knots, where a network is read; e is a network of K numbers less
//! its value at 0, so that a point without neighbours is worth α. With K = 1 it holds the processes of Strauss
//! (e linear) and of Geyer (e = min(s, ·)), and unlike a sum over pairs it can say that a third neighbour
//! matters less. e is bounded, f ≤ C n: there is a density whatever the weights, also where points attract
//! each other. A change at u is felt up to 2 R away.

use super::interaction::between_knots;
use super::near::Near;
use super::tanh_network::{Backward, TanhNetwork};
use super::window::Window;
use crate::error::check_length;
use crate::{Error, Result};

/// What the networks look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeepSetsShape {
    /// R.
    pub reach: f64,
    /// Where φ is read.
    pub num_knots: usize,
    /// K.
    pub num_features: usize,
    /// Units of the hidden layer of either network.
    pub width: usize,
}

/// The potential with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct DeepSets {
    shape: DeepSetsShape,
    features: TanhNetwork,
    element: TanhNetwork,
    /// Of φ, then of e.
    weights: Vec<f64>,
    /// φ at the knots, `[knots, K]`.
    table: Vec<f64>,
    /// The second network at 0.
    at_zero: f64,
}

/// A distance below the reach: knots around it, and 1 − (d/R)².
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    knot: usize,
    share: f64,
    cut: f64,
}

/// Gradients of f, by the weights and by the points.
pub(super) struct Slopes {
    pub(super) weights: Vec<f64>,
    pub(super) points: Vec<[f64; 2]>,
}

impl DeepSetsShape {
    /// The networks φ and e.
    fn networks(&self) -> [TanhNetwork; 2] {
        let Self { num_features, width, .. } = *self;
        [TanhNetwork::new(&[1, width, num_features]), TanhNetwork::new(&[num_features, width, 1])]
    }

    /// Weights of both networks.
    pub fn num_weights(&self) -> usize {
        self.networks().iter().map(TanhNetwork::num_weights).sum()
    }

    /// Weights to begin with: features of order 1, and a potential near 0.
    pub(super) fn start(&self, draws: &mut super::draws::Draws) -> Vec<f64> {
        let [features, element] = self.networks();
        // A feature that is nothing would stay so: its last weights are as large as those of a middle layer.
        let mut weights = TanhNetwork::start(&features, draws);
        let last = self.width * self.num_features + self.num_features;
        let from = weights.len() - last;
        for weight in &mut weights[from..] {
            *weight *= 100.0 / (self.width as f64).sqrt();
        }
        weights.extend(element.start(draws));
        weights
    }

    fn check(&self) -> Result<()> {
        if !(self.reach > 0.0 && self.reach.is_finite()) {
            return Err(Error::invalid("reach", "positive and finite", self.reach));
        }
        for (name, count) in
            [("knots", self.num_knots), ("features", self.num_features), ("width", self.width)]
        {
            if !(1..=1000).contains(&count) {
                return Err(Error::invalid(name, "1 to 1000", count));
            }
        }
        Ok(())
    }

    pub(super) fn link(&self, distance: f64) -> Link {
        let (knot, share) = between_knots(distance, self.reach, self.num_knots);
        Link { knot, share, cut: 1.0 - (distance / self.reach).powi(2) }
    }
}

impl DeepSets {
    /// With weights of φ and then of e.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for a shape that means nothing or weights that are not finite,
    /// [`Error::WrongLength`] if there are more or fewer than
    /// [`num_weights`](DeepSetsShape::num_weights).
    pub fn new(shape: DeepSetsShape, weights: Vec<f64>) -> Result<Self> {
        shape.check()?;
        check_length("weights", weights.len(), shape.num_weights(), || "of both networks".into())?;
        if let Some(found) = weights.iter().find(|weight| !weight.is_finite()) {
            return Err(Error::invalid("weights", "finite", found));
        }
        let [features, element] = shape.networks();
        let mut deep = Self { shape, features, element, weights, table: Vec::new(), at_zero: 0.0 };
        for knot in 0..shape.num_knots {
            let trace = deep.trace_of_knot(knot);
            deep.table.extend_from_slice(&trace[1 + shape.width..]);
        }
        deep.at_zero = deep.element(&vec![0.0; shape.num_features]);
        Ok(deep)
    }

    /// The shape of the networks.
    pub fn shape(&self) -> &DeepSetsShape {
        &self.shape
    }

    /// Of φ, then of e.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// (those of φ, those of e).
    fn split(&self) -> (&[f64], &[f64]) {
        self.weights.split_at(self.features.num_weights())
    }

    fn trace_of_knot(&self, knot: usize) -> Vec<f64> {
        let mut trace = vec![0.0; self.features.num_units()];
        trace[0] = 3.0 * (2.0 * (knot as f64 + 0.5) / self.shape.num_knots as f64 - 1.0);
        self.features.run(self.split().0, &mut trace);
        trace
    }

    /// φ at the two knots of a link.
    fn knots(&self, link: Link) -> (&[f64], &[f64]) {
        let k = self.shape.num_features;
        let next = (link.knot + 1).min(self.shape.num_knots - 1);
        (&self.table[link.knot * k..][..k], &self.table[next * k..][..k])
    }

    /// s ← s + sign · h.
    pub(super) fn add(&self, link: Link, sign: f64, sum: &mut [f64]) {
        let (before, after) = self.knots(link);
        for (sum, (a, b)) in sum.iter_mut().zip(before.iter().zip(after)) {
            *sum += sign * link.cut * (a + link.share * (b - a));
        }
    }

    /// Numbers of a trace of the second network.
    pub(super) fn trace_len(&self) -> usize {
        self.element.num_units()
    }

    /// Fills a trace that begins with s with all further units of the second network, the last of which is its
    /// value.
    pub(super) fn run(&self, trace: &mut [f64]) {
        self.element.run(self.split().1, trace);
    }

    /// The same of s.
    fn trace(&self, sum: &[f64]) -> Vec<f64> {
        let mut trace = vec![0.0; self.trace_len()];
        trace[..sum.len()].copy_from_slice(sum);
        self.run(&mut trace);
        trace
    }

    /// The second network at 0.
    pub(super) fn at_zero(&self) -> f64 {
        self.at_zero
    }

    /// e(s).
    pub(super) fn element(&self, sum: &[f64]) -> f64 {
        self.trace(sum).last().copied().unwrap_or(0.0) - self.at_zero
    }

    /// Adds slope · ∂e/∂w to the weights' gradient, but for the part of e at 0, and leaves slope · ∂e/∂s in
    /// `back`.
    pub(super) fn element_slopes(
        &self,
        trace: &[f64],
        slope: f64,
        back: &mut Backward,
        gradient: &mut [f64],
    ) {
        let used = self.features.num_weights();
        let gradient = &mut gradient[used..];
        self.element.backward(self.split().1, trace, back.begin(&[slope]), gradient);
    }

    /// What is left of the gradient by the weights: of e at 0, `total` being the sum of all slopes of e, and
    /// of φ, given the slopes by its table.
    pub(super) fn finish(&self, total: f64, table: &[f64], gradient: &mut [f64]) {
        let k = self.shape.num_features;
        let (trace, mut back) = (self.trace(&vec![0.0; k]), Backward::default());
        self.element_slopes(&trace, -total, &mut back, gradient);
        for (knot, slopes) in table.chunks_exact(k).enumerate() {
            let trace = self.trace_of_knot(knot);
            self.features.backward(self.split().0, &trace, back.begin(slopes), gradient);
        }
    }

    /// Adds sign · slopes by h at a link to those by the table.
    pub(super) fn add_to_table(&self, link: Link, sign: f64, slopes: &[f64], table: &mut [f64]) {
        let k = self.shape.num_features;
        let next = (link.knot + 1).min(self.shape.num_knots - 1);
        let cut = sign * link.cut;
        for (j, slope) in slopes.iter().enumerate() {
            table[link.knot * k + j] += cut * (1.0 - link.share) * slope;
            table[next * k + j] += cut * link.share * slope;
        }
    }

    /// log λ(u | X without `skip`) − α.
    pub(super) fn log_ratio(&self, place: [f64; 2], near: &Near, skip: Option<usize>) -> f64 {
        let (k, reach) = (self.shape.num_features, self.shape.reach);
        let (mut own, mut base) = (vec![0.0; k], vec![0.0; k]);
        let mut value = 0.0;
        near.visit(place, reach, skip, |number, square| {
            let link = self.shape.link(square.sqrt());
            self.add(link, 1.0, &mut own);
            base.fill(0.0);
            near.visit(near.points()[number], reach, Some(number), |other, square| {
                if Some(other) != skip {
                    self.add(self.shape.link(square.sqrt()), 1.0, &mut base);
                }
            });
            let before = self.element(&base);
            self.add(link, 1.0, &mut base);
            value += self.element(&base) - before;
        });
        value + self.element(&own)
    }

    /// sᵢ of all points, `[n, K]`.
    fn sums(&self, near: &Near) -> Vec<f64> {
        let k = self.shape.num_features;
        let mut sums = vec![0.0; near.points().len() * k];
        for (number, sum) in sums.chunks_exact_mut(k).enumerate() {
            near.visit(near.points()[number], self.shape.reach, Some(number), |_, square| {
                self.add(self.shape.link(square.sqrt()), 1.0, sum);
            });
        }
        sums
    }

    fn near(&self, window: Window, points: &[[f64; 2]]) -> Near {
        Near::new(window, self.shape.reach, points)
    }

    /// f − α n.
    pub(super) fn value(&self, window: Window, points: &[[f64; 2]]) -> f64 {
        let sums = self.sums(&self.near(window, points));
        sums.chunks_exact(self.shape.num_features).map(|sum| self.element(sum)).sum()
    }

    /// Gradients of f by the weights and by the points.
    pub(super) fn slopes(&self, window: Window, points: &[[f64; 2]]) -> Slopes {
        let DeepSetsShape { num_features: k, reach, num_knots, .. } = self.shape;
        let near = self.near(window, points);
        let mut slopes =
            Slopes { weights: vec![0.0; self.weights.len()], points: vec![[0.0; 2]; points.len()] };
        let (mut pulls, mut back) = (Vec::with_capacity(points.len() * k), Backward::default());
        for sum in self.sums(&near).chunks_exact(k) {
            self.element_slopes(&self.trace(sum), 1.0, &mut back, &mut slopes.weights);
            pulls.extend_from_slice(back.slopes());
        }
        let pull = |i: usize| &pulls[i * k..][..k];
        let mut table = vec![0.0; self.table.len()];
        for (i, &place) in points.iter().enumerate() {
            near.visit(place, reach, Some(i), |j, square| {
                let distance = square.sqrt();
                let link = self.shape.link(distance);
                self.add_to_table(link, 1.0, pull(i), &mut table);
                let (before, after) = self.knots(link);
                let is_between = link.share > 0.0 && link.knot + 1 < num_knots;
                let along: f64 = (0..k)
                    .map(|f| {
                        // h′ = cut′ φ + cut φ′, felt by both ends
                        let rise = after[f] - before[f];
                        let phi = before[f] + link.share * rise;
                        let steep = if is_between { rise * num_knots as f64 / reach } else { 0.0 };
                        let by_distance =
                            -2.0 * distance / (reach * reach) * phi + link.cut * steep;
                        (pull(i)[f] + pull(j)[f]) * by_distance
                    })
                    .sum();
                if distance > 0.0 {
                    let other = near.points()[j];
                    for ((slope, to), from) in slopes.points[i].iter_mut().zip(place).zip(other) {
                        *slope += along * (to - from) / distance;
                    }
                }
            });
        }
        self.finish(points.len() as f64, &table, &mut slopes.weights);
        slopes
    }

    /// log λ − α of a point beside `count` others, all of them as close to each other as pairs within `radius`
    /// are on average (of h, without interaction).
    pub fn clique(&self, count: usize, radius: f64) -> f64 {
        const NODES: u32 = 200;
        let k = self.shape.num_features;
        // The mean of h over pairs closer than the radius, as they are spread without interaction.
        let (mut mean, mut total) = (vec![0.0; k], 0.0);
        for node in 0..NODES {
            let distance = radius * (f64::from(node) + 0.5) / f64::from(NODES);
            if distance < self.shape.reach {
                self.add(self.shape.link(distance), distance, &mut mean);
            }
            total += distance;
        }
        let times = |count: usize| -> Vec<f64> {
            mean.iter().map(|sum| sum / total * count as f64).collect()
        };
        let others = self.element(&times(count)) - self.element(&times(count.saturating_sub(1)));
        self.element(&times(count)) + count as f64 * others
    }
}

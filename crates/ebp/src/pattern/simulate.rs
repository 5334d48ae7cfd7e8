//! Simulation of Gibbs processes by birth, death and move (Geyer and Møller, 1994), and exactly where
//! there is no interaction.
//!
//! ```text
//! birth of u, uniform     accepted with min(1, λ(u | X) |W| / (n + 1))
//! death of xᵢ, uniform    accepted with min(1, n / (λ(xᵢ | X∖xᵢ) |W|))
//! move of xᵢ to uniform v accepted with min(1, λ(v | X∖xᵢ) / λ(xᵢ | X∖xᵢ))
//! ```
//!
//! In the place of single moves all points may move at once by Langevin steps (`langevin.rs`), after every
//! `WHOLE_EVERY` births and deaths that were proposed. A chain starts without points, keeps detailed balance with p(X), and is read after its burn-in. Patterns
//! of [`simulate`] come from chains of their own, so they are independent and the same for any number of
//! threads.

use std::ops::Range;

use rayon::prelude::*;

use super::draws::Draws;
use super::gibbs::Gibbs;
use super::interaction::Interaction;
use super::langevin::Langevin;
use super::near::Near;
use super::window::Pattern;
use crate::rng::Stream;
use crate::{Error, Result};

/// The share of moves among proposals; births and deaths have one half of the rest each.
const MOVES: f64 = 0.3;

/// Proposed births and deaths between two Langevin steps, whose cost is about as large.
const WHOLE_EVERY: usize = 32;

/// How points move between births and deaths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Moves {
    /// One at a time, to a place that is drawn uniformly.
    #[default]
    Points,
    /// All at once, along the gradient of the potential.
    Langevin,
}

/// How long a chain runs, and when it has gone wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// Proposals before a pattern is read.
    pub num_steps: usize,
    /// A chain with more points is refused: its process has no density.
    pub most_points: usize,
    /// How points move.
    pub moves: Moves,
}

impl ChainSettings {
    /// 500 proposals per point that is expected, and 50 times as many points at most.
    pub fn for_points(num_points: usize) -> Self {
        let count = num_points.max(20);
        Self { num_steps: 500 * count, most_points: 50 * count, moves: Moves::Points }
    }
}

/// A chain of patterns.
#[derive(Clone, Debug)]
pub(crate) struct Chain<'a> {
    model: &'a Gibbs,
    near: Near,
    draws: Draws,
    settings: ChainSettings,
    langevin: Langevin,
    /// Steps until all points move.
    until_whole: usize,
}

impl<'a> Chain<'a> {
    /// Without points.
    pub(crate) fn new(model: &'a Gibbs, settings: &ChainSettings, stream: Stream) -> Self {
        let (near, draws) = (model.near(&[]), Draws::new(stream));
        let langevin = Langevin::new();
        Self { model, near, draws, settings: *settings, langevin, until_whole: WHOLE_EVERY }
    }

    /// Takes the proposals of the burn-in; over its first half the size of Langevin steps is tuned.
    pub(crate) fn settle(&mut self) -> Result<()> {
        for number in 0..self.settings.num_steps {
            self.step(2 * number < self.settings.num_steps)?;
        }
        Ok(())
    }

    /// Takes `count` proposals.
    pub(crate) fn run(&mut self, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.step(false))
    }

    fn step(&mut self, is_tuned: bool) -> Result<()> {
        let moves = match self.settings.moves {
            Moves::Points => MOVES,
            Moves::Langevin => {
                self.until_whole -= 1;
                if self.until_whole == 0 {
                    self.until_whole = WHOLE_EVERY;
                    let (points, draws) = (self.near.points(), &mut self.draws);
                    let moved = self.langevin.step(self.model, points, is_tuned, draws)?;
                    self.near = self.model.near(&moved);
                }
                0.0
            }
        };
        let (model, area) = (self.model, self.model.window().area());
        let (kind, coin) = (self.draws.uniform(), self.draws.uniform());
        let count = self.near.points().len();
        if kind < 0.5 * (1.0 - moves) {
            let place = model.window().draw(&mut self.draws);
            let intensity = model.intensity_near(place, &self.near, None);
            if coin * (count + 1) as f64 <= intensity * area {
                if count >= self.settings.most_points {
                    return Err(self.too_many());
                }
                self.near.insert(place);
            }
        } else if count == 0 {
            // Nothing to remove or to move.
        } else if kind < 1.0 - moves {
            let number = self.draws.below(count);
            let intensity =
                model.intensity_near(self.near.points()[number], &self.near, Some(number));
            if coin * intensity * area <= count as f64 {
                self.near.remove(number);
            }
        } else {
            let number = self.draws.below(count);
            let place = model.window().draw(&mut self.draws);
            let before = model.intensity_near(self.near.points()[number], &self.near, Some(number));
            let after = model.intensity_near(place, &self.near, Some(number));
            if coin * before <= after {
                self.near.remove(number);
                self.near.insert(place);
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Error {
        let message =
            format!("a simulated pattern grew beyond {} points", self.settings.most_points);
        Error::failed(message).with_help(
            "points attract each other without end: use a saturated interaction (geyer, area), or a \
             smaller intensity",
        )
    }

    pub(crate) fn pattern(&self) -> Result<Pattern> {
        Pattern::new(self.model.window(), self.near.points().to_vec())
    }
}

/// That the process has a density: pairs of a Strauss process must not attract each other.
fn check_density(model: &Gibbs) -> Result<()> {
    let theta = model.coefficients().last().copied().unwrap_or(0.0);
    if matches!(model.family().interaction, Interaction::Strauss { .. }) && theta > 0.0 {
        let message = format!("a Strauss process with γ = {:.3} > 1 has no density", theta.exp());
        return Err(Error::refused(message).with_help(
            "points attract each other: fit a saturated interaction, such as geyer or area",
        ));
    }
    Ok(())
}

/// `count` independent patterns.
///
/// # Errors
///
/// [`Error::Refused`] for a Strauss process with γ > 1, [`Error::Failed`] if a chain grows without end.
pub fn simulate(
    model: &Gibbs,
    count: usize,
    settings: &ChainSettings,
    stream: Stream,
) -> Result<Vec<Pattern>> {
    simulate_watched(model, 0..count, settings, stream, &|| {})
}

/// Those of the numbers that are asked for, each by itself; `watch` is called once for every pattern that is done,
/// by any thread.
///
/// # Errors
///
/// As [`simulate`].
pub fn simulate_watched(
    model: &Gibbs,
    numbers: Range<usize>,
    settings: &ChainSettings,
    stream: Stream,
    watch: &(dyn Fn() + Sync),
) -> Result<Vec<Pattern>> {
    check_density(model)?;
    let draw = |number: usize| {
        let stream = stream.child(number as u64);
        if model.is_poisson() {
            return poisson(model, &mut Draws::new(stream));
        }
        let mut chain = Chain::new(model, settings, stream);
        chain.settle()?;
        chain.pattern()
    };
    let told = |number: usize| draw(number).inspect(|_| watch());
    numbers.into_par_iter().map(told).collect()
}

/// `count` patterns along `num_chains` chains, read every `thin` proposals after the burn-in.
pub(crate) fn simulate_thinned(
    model: &Gibbs,
    (num_chains, count): (usize, usize),
    (settings, thin): (&ChainSettings, usize),
    stream: Stream,
) -> Result<Vec<Pattern>> {
    check_density(model)?;
    let per_chain = count.div_ceil(num_chains);
    let run = |number: usize| -> Result<Vec<Pattern>> {
        let mut chain = Chain::new(model, settings, stream.child(number as u64));
        chain.settle()?;
        (0..per_chain)
            .map(|_| {
                chain.run(thin)?;
                chain.pattern()
            })
            .collect()
    };
    let chains = (0..num_chains).into_par_iter().map(run).collect::<Result<Vec<_>>>()?;
    Ok(chains.into_iter().flatten().take(count).collect())
}

/// A Poisson process: as many points as the greatest intensity makes, each kept by its own.
fn poisson(model: &Gibbs, draws: &mut Draws) -> Result<Pattern> {
    let window = model.window();
    let near = model.near(&[]);
    let at = |place| model.intensity_near(place, &near, None);
    // log λ is linear, so that it is greatest in a corner.
    let corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let greatest = corners.map(|corner| at(window.at(corner))).into_iter().fold(0.0, f64::max);
    let count = draws.poisson(greatest * window.area());
    let mut points = Vec::new();
    for _ in 0..count {
        let place = window.draw(draws);
        if draws.uniform() * greatest <= at(place) {
            points.push(place);
        }
    }
    Pattern::new(window, points)
}

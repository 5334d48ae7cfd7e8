//! Whether a model's predictions hold what they promise.
//!
//! If x comes from the density q, the position u = ∫_{−∞}^x q(y) dy is uniform on (0, 1), and the
//! central interval of level c holds x when |u − ½| ≤ c/2. A model that is too sure of itself
//! covers less than c, one that is too wary covers more.
//!
//! Elements of one set share what their context leaves open, so their positions depend on each other.
//! Asked one by one, each given all before it ([`one_by_one`]), they do not: under the right law
//! u₁ = F(x₁), u₂ = F(x₂ | x₁), … are independent (Rosenblatt, 1952), which is what bands and χ² of
//! [`uniformity`](crate::metric::uniformity) need.

use rayon::prelude::*;

use crate::data::CurveFamily;
use crate::linalg::log_sum_exp;
use crate::process::{LEVEL_CELL, LatentProcess, LogDensity, Process, Task};
use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

use super::{Evaluation, log_densities, mean_and_error, none_is_nan};

/// Cells over the family's range of values: about a tenth of σ each for most families.
const NUM_CELLS: usize = 401;

/// How often central intervals of one level hold the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// The level c.
    pub nominal: f64,
    /// The share of fresh elements inside.
    pub actual: f64,
    /// Its standard error over sets.
    pub std_error: f64,
}

/// The coverage of the model's central intervals at each of `levels`, over `num_locations` fresh
/// elements of each set. The model's density is integrated over the family's range of values and
/// what lies outside is left out.
///
/// # Errors
///
/// As [`held_out`](super::held_out).
pub fn coverage(
    process: &dyn Process,
    evaluation: &Evaluation,
    levels: &[f64],
) -> Result<Vec<Coverage>> {
    evaluation.check()?;
    let mut positions = Vec::with_capacity(evaluation.num_sets);
    for number in 0..evaluation.num_sets {
        let (_, context, fresh) = evaluation.set(number)?;
        positions.push(set_positions(process, evaluation, &context, &fresh)?);
    }
    let share = |level: f64| {
        let inside: Vec<f64> = positions
            .iter()
            .map(|set| {
                let count = set.iter().filter(|&u| (u - 0.5).abs() <= 0.5 * level).count();
                count as f64 / set.len() as f64
            })
            .collect();
        let (actual, std_error) = mean_and_error(&inside);
        Coverage { nominal: level, actual, std_error }
    };
    Ok(levels.iter().map(|&level| share(level)).collect())
}

/// u of every fresh element.
fn set_positions(
    process: &dyn Process,
    evaluation: &Evaluation,
    context: &IndexedSet,
    fresh: &IndexedSet,
) -> Result<Vec<f64>> {
    let cells = Cells::new(evaluation.family.value_range(), NUM_CELLS);
    let locations =
        fresh.locations().iter().flat_map(|&t| std::iter::repeat_n(t, NUM_CELLS)).collect();
    let values = fresh.locations().iter().flat_map(|_| cells.centres()).collect();
    let answers = log_densities(process, context, &IndexedSet::new(1, 1, locations, values)?)?;
    let standings = fresh.values().iter().zip(answers.chunks_exact(NUM_CELLS));
    Ok(standings.map(|(&x, answers)| cells.integrate(x, answers).0).collect())
}

/// Equal cells over a range of values.
#[derive(Clone, Copy)]
struct Cells {
    low: f64,
    width: f64,
    count: usize,
}

impl Cells {
    fn new((low, high): (f64, f64), count: usize) -> Self {
        Self { low, width: (high - low) / count as f64, count }
    }

    fn centres(self) -> impl Iterator<Item = f64> {
        (0..self.count).map(move |k| self.low + self.width * (k as f64 + 0.5))
    }

    /// ∫_{−∞}^x q / ∫ q, with the cell that holds x counted in part, and ∫ q.
    fn integrate(self, x: f64, answers: &[LogDensity]) -> (f64, f64) {
        let (mut below, mut total) = (0.0, 0.0);
        for (centre, q) in self.centres().zip(answers) {
            let mass = q.value.exp();
            below += mass * ((x - centre) / self.width + 0.5).clamp(0.0, 1.0);
            total += mass;
        }
        let position = if total > 0.0 { below / total } else { f64::from(u8::from(x > self.low)) };
        (position.clamp(0.0, 1.0), total * self.width)
    }
}

/// The elements of a set from number `first` to number `last`, each asked for given all before it.
///
/// # Errors
///
/// [`Error::InvalidValue`] if there are not so many elements, or none is asked for.
pub fn one_by_one(set: &IndexedSet, first: usize, last: usize) -> Result<Vec<Task>> {
    if first >= last || last > set.len() {
        let expected = format!("first < last ≤ {}", set.len());
        return Err(Error::invalid("elements asked for", expected, format!("{first}..{last}")));
    }
    let task = |number: usize| Task {
        context: set.select(&(0..number).collect::<Vec<_>>()),
        target: set.select(&[number]),
    };
    Ok((first..last).map(task).collect())
}

/// Where a value stands in the law that was predicted for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// u = ∫_{−∞}^x q, or for values of a finite alphabet P(k < x) + v P(x) with v uniform.
    pub position: f64,
    /// ∫ q over the values that were integrated over: 1, if q is a density and the cells resolve it.
    pub mass: f64,
    /// log q(x).
    pub log_density: f64,
}

/// How often the range of values is doubled where mass is missing.
const WIDENINGS: u32 = 4;
/// The mass that may be missing.
const LACK: f64 = 1e-3;

/// Where the one target of every task stands; values have one dimension. q is integrated over cells on
/// `range`, which is widened where q has mass outside.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a task has not one target of one number, [`Error::NonFinite`] if a
/// density is NaN.
pub fn standings(
    process: &dyn Process,
    tasks: &[Task],
    range: (f64, f64),
) -> Result<Vec<Standing>> {
    let of_task = |task: &Task| {
        let predictive = process.condition(&task.context)?;
        standing(&|targets| predictive.log_density(targets), task, range)
    };
    tasks.par_iter().map(of_task).collect()
}

/// The same for the true law of further elements, which knows the family but not the latent.
///
/// # Errors
///
/// As [`standings`].
pub fn true_standings(family: CurveFamily, tasks: &[Task]) -> Result<Vec<Standing>> {
    let of_task = |task: &Task| {
        let law = family.bayes(&task.context)?;
        let density =
            |(&t, &x): (&f64, &f64)| LogDensity { value: law.log_density(t, x), std_error: 0.0 };
        let answer = |targets: &IndexedSet| {
            Ok(targets.locations().iter().zip(targets.values()).map(density).collect())
        };
        standing(&answer, task, family.value_range())
    };
    tasks.par_iter().map(of_task).collect()
}

/// Where the one target of a task stands in the law whose log densities `answer` gives.
fn standing(
    answer: &dyn Fn(&IndexedSet) -> Result<Vec<LogDensity>>,
    task: &Task,
    range: (f64, f64),
) -> Result<Standing> {
    let &[x] = task.target.values() else {
        let found = format!("{} numbers", task.target.values().len());
        return Err(Error::invalid("target", "one element of one number", found));
    };
    let log_density = none_is_nan(answer(&task.target)?)?[0].value;
    let (middle, half) = (0.5 * (range.0 + range.1), 0.5 * (range.1 - range.0));
    let mut widening = 0;
    loop {
        let half = half * f64::from(2_u32.pow(widening));
        let cells = Cells::new((middle - half, middle + half), NUM_CELLS * 2_usize.pow(widening));
        let locations = task.target.locations().repeat(cells.count);
        let line = (task.target.location_dim(), cells.centres().collect());
        let answers = none_is_nan(answer(&IndexedSet::new(line.0, 1, locations, line.1)?)?)?;
        let (position, mass) = cells.integrate(x, &answers);
        if (mass - 1.0).abs() < LACK || widening == WIDENINGS {
            return Ok(Standing { position, mass, log_density });
        }
        widening += 1;
    }
}

/// The rank of the target of every task among `num_draws` draws of its law, 0 to `num_draws`, for every
/// number of the value: `[d_x][tasks]`.
///
/// # Errors
///
/// As [`Predictive::sample`](crate::process::Predictive::sample), and if a task has not one target.
pub fn ranks(
    process: &dyn Process,
    tasks: &[Task],
    num_draws: usize,
    stream: Stream,
) -> Result<Vec<Vec<usize>>> {
    let rank = |(number, task): (usize, &Task)| {
        if task.target.len() != 1 {
            return Err(Error::invalid("target", "one element", task.target.len()));
        }
        let predictive = process.condition(&task.context)?;
        let stream = stream.child(number as u64);
        let draws = predictive.sample(task.target.locations(), num_draws, stream)?;
        let dims = task.target.value_dim();
        let below = |(d, x): (usize, &f64)| {
            draws.iter().skip(d).step_by(dims).filter(|draw| *draw < x).count()
        };
        Ok(task.target.values().iter().enumerate().map(below).collect())
    };
    let found: Vec<Vec<usize>> = tasks.par_iter().enumerate().map(rank).collect::<Result<_>>()?;
    let dims = found.first().map_or(0, Vec::len);
    Ok((0..dims).map(|d| found.iter().map(|ranks| ranks[d]).collect()).collect())
}

/// What draws of a latent say about one pixel: the mass of each of its levels.
#[derive(Clone, Debug)]
pub struct LevelLaw {
    /// log P(level | θ), `[draws][levels]`.
    log_masses: Vec<Vec<f64>>,
    symbol: usize,
    /// v of the randomised position.
    share: f64,
}

/// Levels of a pixel on [−1, 1].
const NUM_LEVELS: usize = 256;

/// The laws of the one target of every task, a pixel of one channel.
///
/// # Errors
///
/// [`Error::InvalidValue`] if a task has not one target of one channel; otherwise what the process says.
pub fn level_laws(
    process: &dyn LatentProcess,
    tasks: &[Task],
    num_draws: usize,
    stream: Stream,
) -> Result<Vec<LevelLaw>> {
    let mut shares = vec![0.0_f32; tasks.len()];
    stream.child(0).fill_uniform(0, 0, &mut shares);
    let law = |(number, (task, share)): (usize, (&Task, &f32))| {
        let &[x] = task.target.values() else {
            let found = format!("{} numbers", task.target.values().len());
            return Err(Error::invalid("target", "one pixel of one channel", found));
        };
        let middle = |level: usize| LEVEL_CELL * (level as f64 + 0.5) - 1.0;
        let all = IndexedSet::new(
            task.target.location_dim(),
            1,
            task.target.locations().repeat(NUM_LEVELS),
            (0..NUM_LEVELS).map(middle).collect(),
        )?;
        let stream = stream.child(1 + number as u64);
        let found = process.hypotheses(&task.context, &all, LEVEL_CELL, num_draws, stream)?;
        let log_masses = found.log_mass.chunks_exact(NUM_LEVELS).map(<[f64]>::to_vec).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a level below 256"
        )]
        let symbol = (((x + 1.0) / LEVEL_CELL).max(0.0) as usize).min(NUM_LEVELS - 1);
        Ok(LevelLaw { log_masses, symbol, share: f64::from(*share) })
    };
    tasks.par_iter().zip(&shares).enumerate().map(law).collect()
}

impl LevelLaw {
    /// Where the pixel stands, with P(level | θ) ∝ exp(f/T); `log_density` is the log of its mass.
    pub fn standing(&self, temperature: f64) -> Standing {
        let (mut below, mut mass, mut total) = (0.0, 0.0, 0.0);
        for log_masses in &self.log_masses {
            let tempered: Vec<f64> = log_masses.iter().map(|m| m / temperature).collect();
            let log_total = log_sum_exp(&tempered);
            let share = |m: &f64| (m - log_total).exp();
            below += tempered[..self.symbol].iter().map(share).sum::<f64>();
            mass += share(&tempered[self.symbol]);
            total += log_masses.iter().map(|m| m.exp()).sum::<f64>();
        }
        let count = self.log_masses.len() as f64;
        Standing {
            position: ((below + self.share * mass) / count).clamp(0.0, 1.0),
            mass: total / count,
            log_density: (mass / count).ln(),
        }
    }
}

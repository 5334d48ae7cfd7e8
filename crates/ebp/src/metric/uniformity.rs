//! Whether numbers that should be independent and uniform on [0, 1] are.
//!
//! ```text
//! χ² = Σ_b (n_b − n/B)² / (n/B)                    B equal cells, B − 1 degrees of freedom
//! N(z) = #{u ≤ z} ~ Binomial(n, z)                 at every level z of a grid
//! ```
//!
//! The band of N holds *simultaneously*: with probability 95 % (or more, as counts are whole numbers)
//! all levels lie inside at once. Its limits are the γ/2 and 1 − γ/2 quantiles of each binomial, where γ
//! is found from the exact probability that the Markov chain N(z₁), N(z₂), … stays inside (Säilynoja,
//! Bürkner and Vehtari, 2022, by recursion, without simulation). A band of single levels would be
//! crossed somewhere by most samples that are perfectly uniform.
//!
//! Everything here is for independent numbers: positions of elements that share what is not in their
//! context are not.

use serde::Serialize;

use crate::rng::Stream;
use crate::{Error, Result};

/// The probability with which bands hold.
pub const CONFIDENCE: f64 = 0.95;
/// Levels 0.01, …, 0.99.
const NUM_LEVELS: usize = 99;
/// Halvings of γ: to 10⁻⁵ of itself, far below what whole counts can show.
const HALVINGS: usize = 20;
/// A cell of a histogram should hold so many numbers, or χ² has no χ² law.
const LEAST_EXPECTED: usize = 10;

/// How uniform a sample is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Uniformity {
    /// How many numbers.
    pub count: usize,
    /// How many fell into each of equal cells.
    pub histogram: Vec<usize>,
    /// What a cell of a uniform sample holds: all cells at once with 95 % (Bonferroni).
    pub histogram_band: (usize, usize),
    /// Σ (n_b − n/B)²/(n/B).
    pub chi_square: f64,
    /// The probability of a χ² as large, if the numbers are uniform.
    pub p_value: f64,
    /// The share of numbers up to 0.01, 0.02, …, 0.99.
    pub shares: Vec<f64>,
    /// The simultaneous 95 % band of `shares`.
    pub band: Vec<(f64, f64)>,
    /// Whether all shares lie in their band.
    pub is_within: bool,
    /// The largest distance of a share from its level.
    pub largest_gap: f64,
}

impl Uniformity {
    /// Of positions in [0, 1], with at most `most_cells` cells of the histogram.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are fewer than 20 numbers or one is outside [0, 1].
    pub fn of(positions: &[f64], most_cells: usize) -> Result<Self> {
        let count = positions.len();
        if count < 2 * LEAST_EXPECTED {
            let expected = format!("at least {}", 2 * LEAST_EXPECTED);
            return Err(Error::invalid("positions", expected, count));
        }
        if let Some(wrong) = positions.iter().find(|u| !(0.0..=1.0).contains(*u)) {
            return Err(Error::invalid("position", "in [0, 1]", wrong));
        }
        let num_cells = (count / LEAST_EXPECTED).min(most_cells).max(2);
        let mut histogram = vec![0; num_cells];
        for &u in positions {
            histogram[cell(u, num_cells)] += 1;
        }
        let expected = count as f64 / num_cells as f64;
        let squares = histogram.iter().map(|&n| (n as f64 - expected).powi(2));
        let chi_square = squares.sum::<f64>() / expected;
        let p_value = chi_square_tail(chi_square, (num_cells - 1) as f64);
        let single = Binomial::new(count, 1.0 / num_cells as f64);
        let histogram_band = single.limits((1.0 - CONFIDENCE) / num_cells as f64);
        let shares: Vec<f64> = levels()
            .map(|z| positions.iter().filter(|&&u| u <= z).count() as f64 / count as f64)
            .collect();
        let share = |n: usize| n as f64 / count as f64;
        let band: Vec<(f64, f64)> = simultaneous_band(count)
            .into_iter()
            .map(|(low, high)| (share(low), share(high)))
            .collect();
        let is_within = shares.iter().zip(&band).all(|(s, (low, high))| low <= s && s <= high);
        let largest_gap = levels().zip(&shares).map(|(z, s)| (s - z).abs()).fold(0.0, f64::max);
        Ok(Self {
            count,
            histogram,
            histogram_band,
            chi_square,
            p_value,
            shares,
            band,
            is_within,
            largest_gap,
        })
    }

    /// The levels of `shares` and `band`.
    pub fn levels() -> impl Iterator<Item = f64> {
        levels()
    }
}

/// Ranks among `num_draws` draws, 0 to `num_draws`, as positions: (rank + v)/(draws + 1) with v uniform,
/// which is uniform where the ranks are.
pub fn positions_of_ranks(ranks: &[usize], num_draws: usize, stream: Stream) -> Vec<f64> {
    let mut uniforms = vec![0.0_f32; ranks.len()];
    stream.fill_uniform(0, 0, &mut uniforms);
    let ranks = ranks.iter().zip(uniforms);
    ranks.map(|(&rank, v)| (rank as f64 + f64::from(v)) / (num_draws + 1) as f64).collect()
}

fn levels() -> impl Iterator<Item = f64> {
    (1..=NUM_LEVELS).map(|j| j as f64 / (NUM_LEVELS + 1) as f64)
}

/// The cell of a position; 1 belongs to the last.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, count)")]
fn cell(position: f64, count: usize) -> usize {
    ((position * count as f64) as usize).min(count - 1)
}

/// P(χ² with `degrees` > `statistic`): the regularised upper incomplete gamma function Q(k/2, x/2), by
/// its series below and its continued fraction above k/2 + 1.
pub fn chi_square_tail(statistic: f64, degrees: f64) -> f64 {
    let (a, x) = (0.5 * degrees, 0.5 * statistic);
    if x <= 0.0 {
        return 1.0;
    }
    let log_front = a * x.ln() - x - libm::lgamma(a);
    if x < a + 1.0 {
        // P = e^front Σ_k x^k / (a (a + 1) … (a + k))
        let (mut term, mut sum, mut k) = (1.0 / a, 1.0 / a, a);
        while term > sum * f64::EPSILON {
            k += 1.0;
            term *= x / k;
            sum += term;
        }
        return (1.0 - log_front.exp() * sum).clamp(0.0, 1.0);
    }
    // Lentz: 1/(x + 1 − a − 1(1 − a)/(x + 3 − a − …))
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut fraction = d;
    for i in 1..500_i32 {
        let i = f64::from(i);
        let term = -i * (i - a);
        b += 2.0;
        let step = |value: f64| if value.abs() < tiny { tiny } else { value };
        d = 1.0 / step(term * d + b);
        c = step(b + term / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (log_front.exp() * fraction).clamp(0.0, 1.0)
}

/// P(N ≤ k) of a binomial, for all k.
struct Binomial {
    cumulative: Vec<f64>,
}

impl Binomial {
    fn new(n: usize, share: f64) -> Self {
        let logs = LogFactorials::new(n);
        let mut sum = 0.0;
        let cumulative = (0..=n).map(|k| {
            sum += logs.mass(n, k, share);
            sum
        });
        Self { cumulative: cumulative.collect() }
    }

    /// The γ/2 and 1 − γ/2 quantiles: the smallest k with P(N ≤ k) at least that.
    fn limits(&self, gamma: f64) -> (usize, usize) {
        let quantile = |q: f64| self.cumulative.partition_point(|&p| p < q);
        let last = self.cumulative.len() - 1;
        (quantile(0.5 * gamma).min(last), quantile(1.0 - 0.5 * gamma).min(last))
    }
}

/// log k!
struct LogFactorials(Vec<f64>);

impl LogFactorials {
    fn new(n: usize) -> Self {
        let mut sum = 0.0;
        let logs = (0..=n).map(|k| {
            sum += (k.max(1) as f64).ln();
            sum
        });
        Self(logs.collect())
    }

    /// P(k of n), each with probability `share` in (0, 1].
    fn mass(&self, n: usize, k: usize, share: f64) -> f64 {
        if share >= 1.0 {
            return f64::from(u8::from(k == n));
        }
        let choose = self.0[n] - self.0[k] - self.0[n - k];
        (choose + k as f64 * share.ln() + (n - k) as f64 * (-share).ln_1p()).exp()
    }
}

/// Limits of #{u ≤ z} at every level, inclusive, that hold at once with [`CONFIDENCE`].
fn simultaneous_band(n: usize) -> Vec<(usize, usize)> {
    let laws: Vec<Binomial> = levels().map(|z| Binomial::new(n, z)).collect();
    let logs = LogFactorials::new(n);
    let limits = |gamma: f64| laws.iter().map(|law| law.limits(gamma)).collect::<Vec<_>>();
    // The larger γ, the narrower the band: γ = 0.05 is that of a single level, a share of it Bonferroni's.
    let mut wide = (1.0 - CONFIDENCE) / NUM_LEVELS as f64;
    let mut narrow = 1.0 - CONFIDENCE;
    for _ in 0..HALVINGS {
        let middle = (wide * narrow).sqrt();
        if stays_inside(n, &limits(middle), &logs) >= CONFIDENCE {
            wide = middle;
        } else {
            narrow = middle;
        }
    }
    limits(wide)
}

/// P(low_j ≤ N(z_j) ≤ high_j for all j): N(z′) − N(z) ~ Binomial(n − N(z), (z′ − z)/(1 − z)).
fn stays_inside(n: usize, limits: &[(usize, usize)], logs: &LogFactorials) -> f64 {
    let (mut start, mut masses, mut level) = (0, vec![1.0], 0.0);
    for (z, &(low, high)) in levels().zip(limits) {
        let share = (z - level) / (1.0 - level);
        let mut next = vec![0.0; high - low + 1];
        for (offset, mass) in masses.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
            let at = start + offset;
            for (to, next) in next.iter_mut().enumerate().skip(at.saturating_sub(low)) {
                *next += mass * logs.mass(n - at, low + to - at, share);
            }
        }
        (start, masses, level) = (low, next, z);
    }
    masses.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_chi_square_are_those_of_scipy() {
        // tools/reference/uniformity.py: scipy.stats.chi2.sf of SciPy 1.17.1.
        for (x, k, expected) in GOLDEN_TAILS {
            let found = chi_square_tail(x, k);
            assert!((found - expected).abs() <= 1e-10 * expected, "{x} {k}: {found}");
        }
    }

    const GOLDEN_TAILS: [(f64, f64, f64); 8] = [
        (0.5, 1.0, 0.479_500_122_186_953_37),
        (3.84, 1.0, 0.050_043_521_248_705_19),
        (10.0, 9.0, 0.350_485_212_323_361_3),
        (19.0, 19.0, 0.456_836_125_591_962_24),
        (45.3, 19.0, 0.000_622_116_430_232_696_7),
        (150.0, 99.0, 0.000_720_445_395_716_928_2),
        (300.0, 19.0, 2.000_523_244_294_776_7e-52),
        (2.0, 19.0, 0.999_999_641_548_522_2),
    ];

    fn uniforms(count: usize, number: u64) -> Vec<f64> {
        let mut drawn = vec![0.0_f32; count];
        Stream::new(number, "uniform").fill_uniform(0, 0, &mut drawn);
        drawn.into_iter().map(f64::from).collect()
    }

    /// 400 uniform samples: 380 stay in the band on average, a little more as counts are whole; the
    /// standard deviation is √(400 · 0.95 · 0.05) = 4.4.
    #[test]
    fn the_band_holds_as_often_as_it_says() {
        let band = simultaneous_band(60);
        let is_within = |positions: &[f64]| {
            levels().zip(&band).all(|(z, (low, high))| {
                (low..=high).contains(&&positions.iter().filter(|&&u| u <= z).count())
            })
        };
        let count = (0..400).filter(|&number| is_within(&uniforms(60, number))).count();
        assert!((380.0 - 4.0 * 4.4..=398.0).contains(&(count as f64)), "{count}");
        // Positions of a model that is 30 % too sure leave it nearly always, with 300 of them.
        let crowded = |u: f64| if u < 0.5 { 2.0 * u * u } else { 1.0 - 2.0 * (1.0 - u).powi(2) };
        let found = (0..5).map(|number| {
            let bent: Vec<f64> = uniforms(300, number).into_iter().map(crowded).collect();
            Uniformity::of(&bent, 20).unwrap()
        });
        assert!(found.filter(|found| !found.is_within && found.p_value < 0.01).count() == 5);
    }

    /// P(stays inside) of two levels by hand would need another grid; with limits that exclude nothing
    /// it is 1, and with one number it is the probability that u lies in the allowed cells.
    #[test]
    fn the_recursion_is_a_probability() {
        let logs = LogFactorials::new(7);
        assert!((stays_inside(7, &[(0, 7); NUM_LEVELS], &logs) - 1.0).abs() < 1e-12);
        // One number: N(z) = 0 below level 30 and 1 from level 60 on, so u in (0.29, 0.6].
        let limits: Vec<(usize, usize)> = (1..=NUM_LEVELS)
            .map(|j| {
                if j < 30 {
                    (0, 0)
                } else if j < 60 {
                    (0, 1)
                } else {
                    (1, 1)
                }
            })
            .collect();
        let found = stays_inside(1, &limits, &LogFactorials::new(1));
        assert!((found - 0.31).abs() < 1e-12, "{found}");
    }

    #[test]
    fn ranks_become_positions_and_bad_numbers_are_refused() {
        let ranks: Vec<usize> = (0..=9).flat_map(|rank| [rank; 30]).collect();
        let positions = positions_of_ranks(&ranks, 9, Stream::new(1, "ranks"));
        let found = Uniformity::of(&positions, 10).unwrap();
        assert_eq!(found.histogram, vec![30; 10]);
        assert!(found.chi_square.abs() < 1e-12 && (found.p_value - 1.0).abs() < 1e-12);
        assert!(found.histogram_band.0 < 30 && found.histogram_band.1 > 30);
        assert!(Uniformity::of(&positions[..5], 10).is_err());
        assert!(Uniformity::of(&[vec![0.5; 30], vec![1.5]].concat(), 10).is_err());
    }
}

//! Hawkes processes with an exponential kernel: events in time that bring further events.
//!
//! ```text
//! λ(t) = μ + Σ_{tⱼ < t} η β exp(−β (t − tⱼ))
//! ℓ    = Σᵢ log λ(tᵢ) − μ T − η Σᵢ (1 − exp(−β (T − tᵢ)))
//! λ(tᵢ) = μ + η β Aᵢ,   Aᵢ = exp(−β (tᵢ − tᵢ₋₁)) (1 + Aᵢ₋₁)
//! ```
//!
//! μ is the background rate, η the mean number of events that an event brings (below 1), 1/β the time that
//! takes on average. The recursion makes ℓ and its gradient cost n operations. Times at which Λ = ∫ λ has
//! grown by one are a Poisson process of rate 1 if the model is right.

use super::draws::Draws;
use super::newton::{Expansion, inverse};
use crate::process::{Evaluation, Limits, minimise};
use crate::rng::Stream;
use crate::{Error, Result};

/// Rising times of events between 0 and an end.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    times: Vec<f64>,
    end: f64,
}

impl Events {
    /// Checks that times rise from 0 to `end`; equal times are refused, since λ is a rate.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming the first time that is wrong.
    pub fn new(times: Vec<f64>, end: f64) -> Result<Self> {
        if !(end > 0.0 && end.is_finite()) {
            return Err(Error::invalid("end", "positive and finite", end));
        }
        for (number, &time) in times.iter().enumerate() {
            let is_later = number == 0 || time > times[number - 1];
            if !(is_later && (0.0..=end).contains(&time)) {
                let expected = format!("later than the one before and within 0 to {end}");
                return Err(Error::invalid(format!("time {number}"), expected, time));
            }
        }
        Ok(Self { times, end })
    }

    /// The times.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// T.
    pub fn end(&self) -> f64 {
        self.end
    }
}

/// A Hawkes process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hawkes {
    /// μ, the rate without earlier events.
    pub background: f64,
    /// η, events that an event brings.
    pub branching: f64,
    /// β, how fast the excitement fades.
    pub decay: f64,
}

/// What a fit has found.
#[derive(Clone, Debug)]
pub struct HawkesFit {
    /// At the maximum.
    pub model: Hawkes,
    /// Of μ, η and β, from the curvature of ℓ.
    pub standard_errors: [f64; 3],
    /// ℓ there.
    pub log_likelihood: f64,
}

impl Hawkes {
    fn numbers(&self) -> [f64; 3] {
        [self.background, self.branching, self.decay]
    }

    /// ℓ and its gradient by μ, η and β, in n operations.
    pub fn log_likelihood(&self, events: &Events) -> (f64, [f64; 3]) {
        let [mu, eta, beta] = self.numbers();
        let (mut value, mut gradient) = (-mu * events.end, [-events.end, 0.0, 0.0]);
        // A and −dA/dβ.
        let (mut excitement, mut slope, mut before) = (0.0, 0.0, 0.0);
        for (number, &time) in events.times.iter().enumerate() {
            if number > 0 {
                let gap = time - before;
                let fade = (-beta * gap).exp();
                slope = fade * (slope + gap * (1.0 + excitement));
                excitement = fade * (1.0 + excitement);
            }
            before = time;
            let rate = mu + eta * beta * excitement;
            value += rate.ln();
            gradient[0] += 1.0 / rate;
            gradient[1] += beta * excitement / rate;
            gradient[2] += eta * (excitement - beta * slope) / rate;
            let rest = events.end - time;
            let gone = -(-beta * rest).exp_m1();
            value -= eta * gone;
            gradient[1] -= gone;
            gradient[2] -= eta * rest * (-beta * rest).exp();
        }
        (value, gradient)
    }

    /// Λ between neighbouring events: exponential with mean 1 if the model is right.
    pub fn rescaled_gaps(&self, events: &Events) -> Vec<f64> {
        let [mu, eta, beta] = self.numbers();
        let (mut left, mut before) = (0.0, 0.0);
        let gap = |&time: &f64| {
            // η exp(−β (t − tⱼ)) summed over earlier events is what they still bring.
            let fade = (-beta * (time - before)).exp();
            let mass = mu * (time - before) + left * (1.0 - fade);
            left = left * fade + eta;
            before = time;
            mass
        };
        events.times.iter().map(gap).collect()
    }

    /// The rate just before `time`.
    pub fn intensity(&self, events: &Events, time: f64) -> f64 {
        let [mu, eta, beta] = self.numbers();
        let earlier = events.times.iter().filter(|&&t| t < time);
        mu + earlier.map(|t| eta * beta * (-beta * (time - t)).exp()).sum::<f64>()
    }

    /// Events up to `end`, by Ogata's thinning: between events λ falls, so that λ now bounds what follows.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a number is not positive or η is 1 or more: then events never end.
    pub fn simulate(&self, end: f64, stream: Stream) -> Result<Events> {
        let is_right = self.numbers().iter().all(|x| *x > 0.0 && x.is_finite());
        if !is_right || self.branching >= 1.0 {
            let expected = "positive, with a branching below 1";
            return Err(Error::invalid("the Hawkes process", expected, format!("{self:?}")));
        }
        let mut draws = Draws::new(stream);
        let [mu, eta, beta] = self.numbers();
        let (mut times, mut now, mut excited) = (Vec::new(), 0.0, 0.0);
        loop {
            let bound = mu + excited;
            let wait = draws.exponential() / bound;
            now += wait;
            if now >= end {
                return Events::new(times, end);
            }
            excited *= (-beta * wait).exp();
            if draws.uniform() * bound <= mu + excited {
                times.push(now);
                excited += eta * beta;
            }
        }
    }

    /// The maximum of ℓ, climbed in logarithms from three decays.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for fewer than three events, [`Error::Failed`] if ℓ is flat at its maximum.
    pub fn fit(events: &Events) -> Result<HawkesFit> {
        let count = events.times.len();
        if count < 3 {
            return Err(Error::refused(format!("a Hawkes process needs 3 events, found {count}")));
        }
        let rate = count as f64 / events.end;
        let limits = Limits {
            bounds: [-20.0, 20.0],
            max_evaluations: 500,
            gradient_tolerance: 1e-8,
            value_tolerance: 1e-13,
        };
        let mut best: Option<(f64, Self)> = None;
        // In units of the mean gap, so that the bounds suit any unit of time.
        let at = |logs: &[f64]| Self {
            background: rate * logs[0].exp(),
            branching: logs[1].exp(),
            decay: rate * logs[2].exp(),
        };
        for decay in [0.1_f64, 1.0, 10.0] {
            let start = [0.5_f64.ln(), 0.5_f64.ln(), decay.ln()];
            let found = minimise(&start, &limits, |logs| {
                let model = at(logs);
                let (value, gradient) = model.log_likelihood(events);
                let numbers = model.numbers();
                let gradient = gradient.iter().zip(numbers).map(|(g, x)| -g * x).collect();
                Ok(Evaluation { value: -value, gradient, jitter: 0.0 })
            })?;
            let value = -found.evaluation.value;
            if best.is_none_or(|(most, _)| value > most) {
                best = Some((value, at(&found.parameters)));
            }
        }
        let Some((log_likelihood, model)) = best else {
            return Err(Error::failed("no start of the fit was finite"));
        };
        let standard_errors = model.curvature_errors(events)?;
        Ok(HawkesFit { model, standard_errors, log_likelihood })
    }

    /// From central differences of the gradient.
    fn curvature_errors(&self, events: &Events) -> Result<[f64; 3]> {
        let mut curvature = Expansion::zero(3);
        for j in 0..3 {
            let mut sides = [[0.0; 3]; 2];
            let step = 1e-5 * self.numbers()[j];
            for (side, sign) in sides.iter_mut().zip([1.0, -1.0]) {
                let mut numbers = self.numbers();
                numbers[j] += sign * step;
                let [background, branching, decay] = numbers;
                *side = Self { background, branching, decay }.log_likelihood(events).1;
            }
            let column = curvature.information.column_mut(j).iter_mut();
            for (entry, (high, low)) in column.zip(sides[0].iter().zip(sides[1])) {
                *entry = (low - high) / (2.0 * step);
            }
        }
        let covariance = inverse(&curvature)?;
        Ok([0, 1, 2].map(|j| covariance.at(j, j).sqrt()))
    }
}

/// Kolmogorov and Smirnov's distance of gaps from the exponential law of mean 1, and its asymptotic p-value.
pub fn exponential_test(gaps: &[f64]) -> (f64, f64) {
    let mut shares: Vec<f64> = gaps.iter().map(|gap| -(-gap).exp_m1()).collect();
    shares.sort_by(f64::total_cmp);
    let n = shares.len() as f64;
    let distance = shares
        .iter()
        .enumerate()
        .fold(0.0_f64, |most, (i, u)| most.max((i + 1) as f64 / n - u).max(u - i as f64 / n));
    // P(D > d) = 2 Σ (−1)^{k−1} exp(−2 k² x²), x = d (√n + 0.12 + 0.11/√n)  (Stephens, 1970)
    let x = distance * (n.sqrt() + 0.12 + 0.11 / n.sqrt());
    let tail: f64 = (1..=100_i32)
        .map(|k| f64::from(1 - 2 * ((k - 1) % 2)) * (-2.0 * f64::from(k * k) * x * x).exp())
        .sum();
    (distance, if x < 0.2 { 1.0 } else { (2.0 * tail).clamp(0.0, 1.0) })
}

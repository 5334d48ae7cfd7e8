//! Sums and products of kernels, which are kernels again: a trend plus a season, a season that
//! slowly changes.

use super::{Kernel, Pairs};
use crate::Result;
use crate::error::check_length;

/// Two kernels; the hyperparameters are those of the first, then those of the second.
#[derive(Debug)]
struct Pair {
    first: Box<dyn Kernel>,
    second: Box<dyn Kernel>,
}

impl Pair {
    fn parameter_names(&self) -> Vec<&'static str> {
        [self.first.parameter_names(), self.second.parameter_names()].concat()
    }

    fn log_parameters(&self) -> Vec<f64> {
        [self.first.log_parameters(), self.second.log_parameters()].concat()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Self> {
        let (m, n) = (self.first.log_parameters().len(), self.second.log_parameters().len());
        check_length("log_parameters", log_parameters.len(), m + n, || format!("{m} + {n}"))?;
        let (of_first, of_second) = log_parameters.split_at(m);
        Ok(Self {
            first: self.first.with_log_parameters(of_first)?,
            second: self.second.with_log_parameters(of_second)?,
        })
    }

    /// The part of a gradient that belongs to each.
    fn split<'a>(&self, gradient: &'a mut [f64]) -> (&'a mut [f64], &'a mut [f64]) {
        gradient.split_at_mut(self.first.log_parameters().len())
    }

    /// Weights of the derivatives of a product: ∂(k₁ k₂) = k₂ ∂k₁ + k₁ ∂k₂.
    fn crossed(&self, pairs: Pairs<'_>) -> [Vec<f64>; 2] {
        [&self.second, &self.first].map(|kernel| {
            let mut values = row(&**kernel, pairs.location, pairs.others, pairs.weights.len());
            values.iter_mut().zip(pairs.weights).for_each(|(value, weight)| *value *= weight);
            values
        })
    }

    /// `combine(k₁, k₂)` on a row.
    fn fill_row(
        &self,
        location: &[f64],
        others: &[f64],
        out: &mut [f64],
        combine: impl Fn(f64, f64) -> f64,
    ) {
        self.first.fill_row(location, others, out);
        let second = row(&*self.second, location, others, out.len());
        out.iter_mut().zip(second).for_each(|(k, other)| *k = combine(*k, other));
    }
}

/// The values of one kernel on a row.
fn row(kernel: &dyn Kernel, location: &[f64], others: &[f64], count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    kernel.fill_row(location, others, &mut values);
    values
}

/// k₁ + k₂: independent functions added. The hyperparameters are those of k₁, then those of k₂.
#[derive(Debug)]
pub struct Sum(Pair);

impl Sum {
    /// k₁ + k₂.
    pub fn new(first: Box<dyn Kernel>, second: Box<dyn Kernel>) -> Self {
        Self(Pair { first, second })
    }
}

/// k₁ · k₂. Of the two signal variances only the product matters: start one at 1.
#[derive(Debug)]
pub struct Product(Pair);

impl Product {
    /// k₁ · k₂.
    pub fn new(first: Box<dyn Kernel>, second: Box<dyn Kernel>) -> Self {
        Self(Pair { first, second })
    }
}

impl Kernel for Sum {
    fn parameter_names(&self) -> Vec<&'static str> {
        self.0.parameter_names()
    }

    fn log_parameters(&self) -> Vec<f64> {
        self.0.log_parameters()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(Self(self.0.with_log_parameters(log_parameters)?)))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        self.0.first.variance(location) + self.0.second.variance(location)
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        self.0.fill_row(location, others, out, |first, second| first + second);
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let (of_first, of_second) = self.0.split(gradient);
        self.0.first.add_gradient(pairs, of_first);
        self.0.second.add_gradient(pairs, of_second);
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        self.0.first.add_location_gradient(pairs, gradient);
        self.0.second.add_location_gradient(pairs, gradient);
    }
}

impl Kernel for Product {
    fn parameter_names(&self) -> Vec<&'static str> {
        self.0.parameter_names()
    }

    fn log_parameters(&self) -> Vec<f64> {
        self.0.log_parameters()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        Ok(Box::new(Self(self.0.with_log_parameters(log_parameters)?)))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        self.0.first.variance(location) * self.0.second.variance(location)
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        self.0.fill_row(location, others, out, |first, second| first * second);
    }

    fn add_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let (of_first, of_second) = self.0.split(gradient);
        let [first, second] = self.0.crossed(pairs);
        self.0.first.add_gradient(pairs.with(&first), of_first);
        self.0.second.add_gradient(pairs.with(&second), of_second);
    }

    fn add_location_gradient(&self, pairs: Pairs<'_>, gradient: &mut [f64]) {
        let [of_first, of_second] = self.0.crossed(pairs);
        self.0.first.add_location_gradient(pairs.with(&of_first), gradient);
        self.0.second.add_location_gradient(pairs.with(&of_second), gradient);
    }
}

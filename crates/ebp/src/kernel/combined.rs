//! Sums and products of kernels, which are kernels again: a trend plus a season, a season that
//! slowly changes.

use super::Kernel;
use crate::Result;
use crate::error::check_length;

/// k₁ + k₂: independent functions added. The hyperparameters are those of k₁, then those of k₂.
#[derive(Debug)]
pub struct Sum {
    first: Box<dyn Kernel>,
    second: Box<dyn Kernel>,
}

impl Sum {
    /// k₁ + k₂.
    pub fn new(first: Box<dyn Kernel>, second: Box<dyn Kernel>) -> Self {
        Self { first, second }
    }
}

/// k₁ · k₂. Of the two signal variances only the product matters: start one at 1.
#[derive(Debug)]
pub struct Product {
    first: Box<dyn Kernel>,
    second: Box<dyn Kernel>,
}

impl Product {
    /// k₁ · k₂.
    pub fn new(first: Box<dyn Kernel>, second: Box<dyn Kernel>) -> Self {
        Self { first, second }
    }
}

/// Both kernels with new hyperparameters.
fn split(
    first: &dyn Kernel,
    second: &dyn Kernel,
    log_parameters: &[f64],
) -> Result<(Box<dyn Kernel>, Box<dyn Kernel>)> {
    let (m, n) = (first.log_parameters().len(), second.log_parameters().len());
    check_length("log_parameters", log_parameters.len(), m + n, || format!("{m} + {n}"))?;
    let (of_first, of_second) = log_parameters.split_at(m);
    Ok((first.with_log_parameters(of_first)?, second.with_log_parameters(of_second)?))
}

/// The values of one kernel on a row.
fn row(kernel: &dyn Kernel, location: &[f64], others: &[f64], count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    kernel.fill_row(location, others, &mut values);
    values
}

impl Kernel for Sum {
    fn parameter_names(&self) -> Vec<&'static str> {
        [self.first.parameter_names(), self.second.parameter_names()].concat()
    }

    fn log_parameters(&self) -> Vec<f64> {
        [self.first.log_parameters(), self.second.log_parameters()].concat()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let (first, second) = split(&*self.first, &*self.second, log_parameters)?;
        Ok(Box::new(Self { first, second }))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        self.first.variance(location) + self.second.variance(location)
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        self.first.fill_row(location, others, out);
        let second = row(&*self.second, location, others, out.len());
        out.iter_mut().zip(second).for_each(|(sum, k)| *sum += k);
    }

    fn add_gradient(
        &self,
        location: &[f64],
        others: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
    ) {
        let (of_first, of_second) = gradient.split_at_mut(self.first.log_parameters().len());
        self.first.add_gradient(location, others, weights, of_first);
        self.second.add_gradient(location, others, weights, of_second);
    }
}

impl Kernel for Product {
    fn parameter_names(&self) -> Vec<&'static str> {
        [self.first.parameter_names(), self.second.parameter_names()].concat()
    }

    fn log_parameters(&self) -> Vec<f64> {
        [self.first.log_parameters(), self.second.log_parameters()].concat()
    }

    fn with_log_parameters(&self, log_parameters: &[f64]) -> Result<Box<dyn Kernel>> {
        let (first, second) = split(&*self.first, &*self.second, log_parameters)?;
        Ok(Box::new(Self { first, second }))
    }

    fn variance(&self, location: &[f64]) -> f64 {
        self.first.variance(location) * self.second.variance(location)
    }

    fn fill_row(&self, location: &[f64], others: &[f64], out: &mut [f64]) {
        self.first.fill_row(location, others, out);
        let second = row(&*self.second, location, others, out.len());
        out.iter_mut().zip(second).for_each(|(product, k)| *product *= k);
    }

    fn add_gradient(
        &self,
        location: &[f64],
        others: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
    ) {
        let (of_first, of_second) = gradient.split_at_mut(self.first.log_parameters().len());
        // ∂(k₁ k₂)/∂θ₁ = k₂ ∂k₁/∂θ₁, and the other way round
        let times = |kernel: &dyn Kernel| {
            let mut values = row(kernel, location, others, weights.len());
            values.iter_mut().zip(weights).for_each(|(value, weight)| *value *= weight);
            values
        };
        self.first.add_gradient(location, others, &times(&*self.second), of_first);
        self.second.add_gradient(location, others, &times(&*self.first), of_second);
    }
}

//! Which classes were taken for which.

use crate::{Error, Result};

/// Counts of (true class, predicted class).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    num_classes: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// Nothing counted yet.
    pub fn new(num_classes: usize) -> Self {
        Self { num_classes, counts: vec![0; num_classes * num_classes] }
    }

    /// Counts pairs of a true and a predicted class.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a class is not below the number of classes.
    pub fn add(&mut self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Result<()> {
        for (truth, predicted) in pairs {
            if truth.max(predicted) >= self.num_classes {
                let expected = format!("below num_classes {}", self.num_classes);
                return Err(Error::invalid("class", expected, truth.max(predicted)));
            }
            self.counts[truth * self.num_classes + predicted] += 1;
        }
        Ok(())
    }

    /// How many classes.
    pub fn num_classes(&self) -> usize {
        self.num_classes
    }

    /// How often `truth` was taken for `predicted`; 0 for classes there are not.
    pub fn count(&self, truth: usize, predicted: usize) -> u64 {
        let is_inside = truth.max(predicted) < self.num_classes;
        if is_inside { self.counts[truth * self.num_classes + predicted] } else { 0 }
    }

    /// All items.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Items on the diagonal.
    pub fn correct(&self) -> u64 {
        (0..self.num_classes).map(|class| self.count(class, class)).sum()
    }

    /// The share of items on the diagonal; NaN of no items.
    pub fn accuracy(&self) -> f64 {
        self.correct() as f64 / self.total() as f64
    }

    /// The standard error of the accuracy a of n independent items, Wilson's: √(a(1 − a)/n + z²/4n²)/(1 + z²/n)
    /// with z of a 95 % interval. It is √(a(1 − a)/n) of many, and not 0 where all are right.
    pub fn accuracy_std_error(&self) -> f64 {
        const Z: f64 = 1.96;
        let (accuracy, count) = (self.accuracy(), self.total() as f64);
        let square = accuracy * (1.0 - accuracy) / count + (0.5 * Z / count).powi(2);
        square.sqrt() / (1.0 + Z * Z / count)
    }

    /// Of the items of a class, the share that was found; NaN if there are none.
    pub fn recall(&self, class: usize) -> f64 {
        let all: u64 = (0..self.num_classes).map(|other| self.count(class, other)).sum();
        self.count(class, class) as f64 / all as f64
    }

    /// Of what was taken for a class, the share that is of it; NaN if there is nothing.
    pub fn precision(&self, class: usize) -> f64 {
        let all: u64 = (0..self.num_classes).map(|other| self.count(other, class)).sum();
        self.count(class, class) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of items that are all right Wilson's interval reaches from n/(n + z²) to 1. Of many it is the
    /// normal law's, but for terms of 1/n.
    #[test]
    fn the_error_of_the_accuracy_is_wilsons() {
        let mut all_right = Confusion::new(1);
        all_right.add([(0, 0); 120]).unwrap();
        let width = 1.0 - 120.0 / (120.0 + 1.96 * 1.96);
        assert!((2.0 * 1.96 * all_right.accuracy_std_error() - width).abs() < 1e-12);
        let mut many = Confusion::new(2);
        many.add((0..100_000).map(|item| (0, usize::from(item % 4 == 0)))).unwrap();
        let normal = (0.75_f64 * 0.25 / 1e5).sqrt();
        assert!((many.accuracy_std_error() / normal - 1.0).abs() < 1e-4);
    }

    #[test]
    fn shares_are_those_of_the_table() {
        let mut confusion = Confusion::new(2);
        // Three of class 0, one taken for 1; one of class 1, found.
        confusion.add([(0, 0), (0, 0), (0, 1), (1, 1)]).unwrap();
        assert_eq!((confusion.total(), confusion.correct()), (4, 3));
        assert!((confusion.accuracy() - 0.75).abs() < 1e-15);
        assert_eq!((confusion.recall(0), confusion.recall(1)), (2.0 / 3.0, 1.0));
        assert_eq!((confusion.precision(0), confusion.precision(1)), (1.0, 0.5));
        assert!(confusion.add([(0, 2)]).is_err());
        assert_eq!(confusion.count(5, 0), 0);
    }
}

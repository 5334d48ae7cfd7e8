//! Numbers on the host that several owners read: a range of one shared vector.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A range of a shared vector. A clone costs a reference count.
#[derive(Clone)]
pub struct Numbers {
    all: Arc<Vec<f32>>,
    range: Range<usize>,
}

impl Numbers {
    /// The numbers `start..start + length` of these, shared.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[must_use]
    pub fn view(&self, start: usize, length: usize) -> Self {
        assert!(start + length <= self.len(), "a view of {start} + {length} of {}", self.len());
        let start = self.range.start + start;
        Self { all: Arc::clone(&self.all), range: start..start + length }
    }

    /// The numbers to be changed: in place if nobody else holds them, a copy otherwise.
    pub fn make_mut(&mut self) -> &mut [f32] {
        if Arc::get_mut(&mut self.all).is_none() {
            *self = Self::from(self.to_vec());
        }
        &mut Arc::make_mut(&mut self.all)[self.range.clone()]
    }
}

impl From<Vec<f32>> for Numbers {
    fn from(values: Vec<f32>) -> Self {
        let range = 0..values.len();
        Self { all: Arc::new(values), range }
    }
}

impl Deref for Numbers {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.all[self.range.clone()]
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Numbers[{}]", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_shares_and_a_change_does_not_reach_other_owners() {
        let mut all = Numbers::from(vec![1.0, 2.0, 3.0, 4.0]);
        let part = all.view(1, 2);
        assert_eq!(part.view(1, 1)[..], [3.0]);
        all.make_mut()[1] = 9.0;
        assert_eq!((&part[..], &all[..]), (&[2.0, 3.0][..], &[1.0, 9.0, 3.0, 4.0][..]));
        let address = all.as_ptr();
        all.make_mut()[0] = 5.0;
        assert_eq!(all.as_ptr(), address, "a sole owner changes its numbers in place");
    }
}

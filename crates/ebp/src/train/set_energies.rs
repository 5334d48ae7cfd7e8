//! Training of set energies: sets of the plane drawn afresh, or parts of clouds of one's own.

use std::sync::Arc;

use super::ahead::Ahead;
use super::{Record, Step, Trainable};
use crate::data::PlanarFamily;
use crate::process::SetEnergyProcess;
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// Where sets come from.
#[derive(Clone, Debug)]
pub enum SetSource {
    /// Fresh sets of a family in every step.
    Planar(PlanarFamily),
    /// Random points of random clouds among these, each `[n, d]`, flat.
    Clouds(Vec<Vec<f32>>),
}

impl SetSource {
    /// `num_sets` sets of `size` elements of dimension `dim`, `[num_sets, size, dim]`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times a count is one of the numbers below it"
    )]
    pub fn draw(&self, num_sets: usize, size: usize, dim: usize, stream: Stream) -> Vec<f32> {
        let mut sets = Vec::with_capacity(num_sets * size * dim);
        for number in 0..num_sets as u64 {
            match self {
                Self::Planar(family) => sets.extend(family.draw(stream, number, size)),
                Self::Clouds(clouds) => {
                    let stream = stream.child(number);
                    let mut uniform = [0.0];
                    stream.child(0).fill_uniform(0, 0, &mut uniform);
                    let place = (f64::from(uniform[0]) * clouds.len() as f64) as usize;
                    let cloud = &clouds[place.min(clouds.len() - 1)];
                    let order = stream.child(1).permutation(cloud.len() / dim);
                    for &row in order.iter().cycle().take(size) {
                        sets.extend_from_slice(&cloud[row * dim..][..dim]);
                    }
                }
            }
        }
        sets
    }
}

/// A model of sets and what it learns from.
#[derive(Debug)]
pub struct SetTraining {
    model: SetEnergyProcess,
    sets: Arc<Drawing>,
    ahead: Ahead<Vec<f32>>,
}

/// Where the sets of a step come from.
#[derive(Debug)]
struct Drawing {
    source: SetSource,
    num_sets: usize,
    set_size: usize,
    dim: usize,
}

impl Drawing {
    fn draw(&self, step: &Step) -> Vec<f32> {
        self.source.draw(self.num_sets, self.set_size, self.dim, step.stream.child(0))
    }
}

impl SetTraining {
    /// Learns from `num_sets` sets of `set_size` elements per step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0, there is no cloud, one is empty, or the elements have
    /// another dimension than the model's.
    pub fn new(
        model: SetEnergyProcess,
        source: SetSource,
        num_sets: usize,
        set_size: usize,
    ) -> Result<Self> {
        for (field, count) in [("num_sets", num_sets), ("set_size", set_size)] {
            if count == 0 {
                return Err(Error::invalid(field, "at least 1", count));
            }
        }
        let dim = model.config().element_dim;
        match &source {
            SetSource::Planar(_) if dim != 2 => {
                return Err(Error::invalid("element_dim", "2, as sets of the plane have", dim));
            }
            SetSource::Clouds(clouds) => {
                let is_whole = |c: &Vec<f32>| !c.is_empty() && c.len().is_multiple_of(dim);
                if clouds.is_empty() || !clouds.iter().all(is_whole) {
                    let expected = format!("clouds of whole points of dimension {dim}");
                    return Err(Error::invalid("clouds", expected, clouds.len()));
                }
            }
            SetSource::Planar(_) => {}
        }
        let ahead = Ahead::new(model.learns_on_gpu());
        Ok(Self { model, sets: Arc::new(Drawing { source, num_sets, set_size, dim }), ahead })
    }

    /// The model.
    pub fn model(&self) -> &SetEnergyProcess {
        &self.model
    }

    /// The model, to be changed.
    pub fn model_mut(&mut self) -> &mut SetEnergyProcess {
        &mut self.model
    }
}

impl Trainable for SetTraining {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let sets = match self.ahead.take(step) {
            Some(sets) => sets?,
            None => self.sets.draw(step),
        };
        let inner = Step { stream: step.stream.child(1), ..*step };
        self.model.learn(sets, self.sets.set_size, &inner)
    }

    fn foresee(&mut self, next: &Step) {
        let (sets, next) = (Arc::clone(&self.sets), *next);
        self.ahead.begin(next, move || Ok(sets.draw(&next)));
    }

    fn state(&self) -> Result<Tensors> {
        self.model.state()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.model.restore(state)
    }
}

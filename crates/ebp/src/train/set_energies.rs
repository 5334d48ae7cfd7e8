//! Training of set energies: sets of the plane drawn afresh, or parts of clouds of one's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ahead::Ahead;
use super::{Record, Step, Trainable};
use crate::data::{CloudSource, PlanarFamily};
use crate::process::{SetEnergyProcess, SizeLaw};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// Where sets come from.
#[derive(Clone, Debug)]
pub enum SetSource {
    /// Fresh sets of a family in every step.
    Planar(PlanarFamily),
    /// Random points of random clouds among these, each with its mean at 0 and mean square radius 1.
    Clouds(CloudSource),
    /// Random clouds of the asked size among these, as they are but for place and scale; where none has that
    /// size, random points of any.
    Whole(CloudSource),
}

impl SetSource {
    /// `num_sets` sets of `size` elements of dimension `dim`, `[num_sets, size, dim]`, of random clouds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "u in [0, 1) times a count is one of the numbers below it"
    )]
    pub fn draw(&self, num_sets: usize, size: usize, dim: usize, stream: Stream) -> Vec<f32> {
        self.draw_of(num_sets, (size, dim), stream, |number, count| {
            let mut uniform = [0.0];
            stream.child(number as u64).child(0).fill_uniform(0, 0, &mut uniform);
            ((f64::from(uniform[0]) * count as f64) as usize).min(count - 1)
        })
    }

    /// The same with every cloud once before any comes again: to be judged by, as two sets of one cloud are nearer
    /// to each other than to anything else.
    pub fn draw_each(&self, num_sets: usize, size: usize, dim: usize, stream: Stream) -> Vec<f32> {
        let mut orders = BTreeMap::new();
        self.draw_of(num_sets, (size, dim), stream, |number, count| {
            let order = orders.entry(count).or_insert_with(|| stream.permutation(count));
            order[number % count]
        })
    }

    /// `choose` names the cloud of a set, by the number of the set and how many clouds there are.
    fn draw_of(
        &self,
        num_sets: usize,
        (size, dim): (usize, usize),
        stream: Stream,
        mut choose: impl FnMut(usize, usize) -> usize,
    ) -> Vec<f32> {
        let mut sets = Vec::with_capacity(num_sets * size * dim);
        let fitting: Vec<usize> = match self {
            Self::Whole(clouds) => {
                (0..clouds.num_sets()).filter(|&cloud| clouds.size(cloud) == size).collect()
            }
            _ => Vec::new(),
        };
        for number in 0..num_sets {
            match self {
                Self::Planar(family) => sets.extend(family.draw(stream, number as u64, size)),
                Self::Clouds(clouds) | Self::Whole(clouds) => {
                    let count = if fitting.is_empty() { clouds.num_sets() } else { fitting.len() };
                    let place = choose(number, count);
                    let place = fitting.get(place).copied().unwrap_or(place);
                    let cloud = normalised(dim, &clouds.set(place));
                    let order = stream.child(number as u64).child(1).permutation(cloud.len() / dim);
                    for &row in order.iter().cycle().take(size) {
                        sets.extend_from_slice(&cloud[row * dim..][..dim]);
                    }
                }
            }
        }
        sets
    }
}

/// Centred, with mean square radius 1.
fn normalised(dim: usize, points: &[f32]) -> Vec<f32> {
    let count = (points.len() / dim.max(1)).max(1) as f32;
    let mut centre = vec![0.0_f32; dim];
    for point in points.chunks_exact(dim) {
        centre.iter_mut().zip(point).for_each(|(sum, x)| *sum += x / count);
    }
    let mut moved: Vec<f32> = points
        .chunks_exact(dim)
        .flat_map(|point| point.iter().zip(&centre).map(|(x, c)| x - c).collect::<Vec<_>>())
        .collect();
    let scale = (moved.iter().map(|x| x * x).sum::<f32>() / count).sqrt().max(1e-6);
    for x in &mut moved {
        *x /= scale;
    }
    moved
}

/// A model of sets and what it learns from.
#[derive(Debug)]
pub struct SetTraining {
    model: SetEnergyProcess,
    sets: Arc<Drawing>,
    ahead: Ahead<(Vec<f32>, usize)>,
}

/// Where the sets of a step come from.
#[derive(Debug)]
struct Drawing {
    source: SetSource,
    num_sets: usize,
    sizes: SizeLaw,
    dim: usize,
}

impl Drawing {
    /// The sets of a step, and n: all have the same, as Zₙ is estimated from all of them.
    fn draw(&self, step: &Step) -> (Vec<f32>, usize) {
        let size = self.sizes.draw(step.stream.child(2), 0);
        (self.source.draw(self.num_sets, size, self.dim, step.stream.child(0)), size)
    }
}

impl SetTraining {
    /// Learns from `num_sets` sets per step, whose number of elements is drawn anew in every step.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0, the elements have another dimension than the model's, or
    /// a number of a cloud is not finite.
    pub fn new(
        model: SetEnergyProcess,
        source: SetSource,
        num_sets: usize,
        sizes: SizeLaw,
    ) -> Result<Self> {
        if num_sets == 0 {
            return Err(Error::invalid("num_sets", "at least 1", num_sets));
        }
        let dim = model.config().element_dim;
        match &source {
            SetSource::Planar(_) if dim != 2 => {
                return Err(Error::invalid("element_dim", "2, as sets of the plane have", dim));
            }
            SetSource::Clouds(clouds) | SetSource::Whole(clouds) if clouds.dim() != dim => {
                let expected = format!("of {dim} numbers a point");
                return Err(Error::invalid("clouds", expected, clouds.dim()));
            }
            SetSource::Clouds(clouds) | SetSource::Whole(clouds) => clouds.check_finite()?,
            SetSource::Planar(_) => {}
        }
        let ahead = Ahead::new(model.learns_on_gpu());
        Ok(Self { model, sets: Arc::new(Drawing { source, num_sets, sizes, dim }), ahead })
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
        let (sets, size) = self.ahead.take_or(step, || Ok(self.sets.draw(step)))?;
        let inner = Step { stream: step.stream.child(1), ..*step };
        self.model.learn(&sets, size, &inner)
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

//! Gradients on their way to the other shards of a step, while the backward pass goes on.
//!
//! ```text
//! backward pass   energy ─ energy ─ encoder ─ encoder ─ encoder
//! hands in                        └ ∂energy                    └ ∂encoder, new buffers
//! ```
//!
//! What is known goes in bundles, cut by the sizes of parameters and the order of the graph alone, so that all
//! shards cut alike. A mean is one of every number by itself: bundles do not change it.

use crate::Result;
use crate::exchange::Seat;

use super::device::Coming;
use super::{Array, Device, Gradients, Parameter};

/// Numbers that are worth a transfer of their own: 256 KiB, for which a network takes some ten times the time
/// that it takes to answer.
const BUNDLE: usize = 1 << 16;

/// The gradients of one set of parameters, as far as they are known.
pub(super) struct Handing<'a> {
    seat: &'a Seat,
    device: &'a Device,
    set: u32,
    /// Of the bundle that is not handed in yet.
    waiting: Vec<Part>,
    num_waiting: usize,
    /// Where the numbers of all bundles belong, in their order.
    places: Vec<(usize, usize)>,
    has_gradients: bool,
}

/// A piece of a bundle.
enum Part {
    Coming(Coming),
    Zeros(usize),
}

impl<'a> Handing<'a> {
    /// Those of the set of that number.
    pub(super) fn new(seat: &'a Seat, device: &'a Device, set: u32) -> Self {
        let (waiting, places) = (Vec::new(), Vec::new());
        Self { seat, device, set, waiting, num_waiting: 0, places, has_gradients: false }
    }

    /// Takes the final gradient of a parameter; there is none where nothing depends on it.
    pub(super) fn take(&mut self, parameter: &Parameter, gradient: Option<&Array>) -> Result<()> {
        let place = (parameter.start, parameter.len());
        if parameter.set != self.set || self.places.contains(&place) {
            return Ok(());
        }
        let part = match gradient {
            Some(gradient) => Part::Coming(self.device.begin_download(gradient)?),
            None => Part::Zeros(parameter.len()),
        };
        self.has_gradients |= gradient.is_some();
        self.places.push(place);
        self.num_waiting += parameter.len();
        self.waiting.push(part);
        if self.num_waiting >= BUNDLE {
            self.hand_in();
        }
        Ok(())
    }

    fn hand_in(&mut self) {
        let (parts, length) = (std::mem::take(&mut self.waiting), self.num_waiting);
        self.num_waiting = 0;
        self.seat.hand_in(move || {
            let mut numbers = Vec::with_capacity(length);
            for part in &parts {
                match part {
                    Part::Coming(coming) => coming.read(&mut numbers)?,
                    Part::Zeros(count) => numbers.resize(numbers.len() + count, 0.0),
                }
            }
            Ok(numbers)
        });
    }

    /// Hands in what is left of the gradients and new buffers of a step, and waits for the means of all: of
    /// `length` trained parameters as if they were one, and of the buffers.
    pub(super) fn finish(mut self, rest: &Gradients, length: usize) -> Result<Gradients> {
        for (parameter, gradient) in &rest.parts {
            self.take(parameter, Some(gradient))?;
        }
        let own = rest.kept.iter().filter(|(buffer, _)| buffer.set == self.set);
        let mut kept: Vec<(Parameter, Array)> = own.cloned().collect();
        kept.sort_by_key(|(buffer, _)| buffer.start);
        for (_, value) in &kept {
            self.waiting.push(Part::Coming(self.device.begin_download(value)?));
            self.num_waiting += value.len();
        }
        // Whoever has nothing at all to hand in still meets the others.
        if self.num_waiting > 0 || self.places.is_empty() {
            self.hand_in();
        }
        let mut means = Vec::new();
        self.seat.means(|mean| {
            means.extend_from_slice(mean);
            Ok(())
        })?;
        let mut all = vec![0.0_f32; length];
        let mut unread = &means[..];
        for (start, count) in self.places {
            let (mean, more) = unread.split_at(count);
            all[start..start + count].copy_from_slice(mean);
            unread = more;
        }
        for (_, value) in &mut kept {
            let (mean, more) = unread.split_at(value.len());
            *value = self.device.upload(mean.to_vec())?;
            unread = more;
        }
        let everything =
            Parameter { set: self.set, is_buffer: false, start: 0, rows: 1, columns: length };
        let parts = if self.has_gradients {
            vec![(everything, self.device.upload(all)?)]
        } else {
            Vec::new()
        };
        Ok(Gradients { parts, kept })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::exchange::Circle;
    use crate::tape::{AdamConfig, Initialiser, ParameterBuilder, ParameterSet, Tape, Var};

    /// Σ (w ∘ w ∘ early) with `early` read by the first operation, `late` by the second and `both` by both;
    /// `unread` by an operation that the loss does not depend on.
    fn loss(tape: &mut Tape, set: &ParameterSet, all: &[Parameter; 4], slope: f64) -> Var {
        tape.train(set);
        let [early, late, both, unread] = all.map(|one| tape.parameter(&one).unwrap());
        let first = tape.multiply(early, both).unwrap();
        tape.square(unread).unwrap();
        let second = tape.multiply(first, late).unwrap();
        let third = tape.multiply(second, both).unwrap();
        let sum = tape.sum(third).unwrap();
        tape.affine(sum, slope, 0.0).unwrap()
    }

    fn parameters(width: usize) -> (ParameterSet, [Parameter; 4]) {
        let mut builder = ParameterBuilder::new(1);
        let mut group = builder.group("a");
        let all = ["early", "late", "both", "unread"]
            .map(|name| group.trained(name, &[width], Initialiser::Constant(1.0)).unwrap());
        let device = Device::default();
        (ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap(), all)
    }

    #[test]
    fn gradients_are_told_once_nothing_can_be_added() {
        let (set, all) = parameters(3);
        let mut tape = set.device().tape();
        let loss = loss(&mut tape, &set, &all, 2.0);
        let mut told = Vec::new();
        let found = tape.backward_telling(loss, |parameter, gradient| {
            told.push((*parameter, gradient.map(|gradient| gradient.host().unwrap().to_vec())));
            Ok(())
        });
        // All parameters are 1: a factor that occurs twice has twice the gradient.
        let [early, late, both, unread] = all;
        let expected = [(late, Some(2.0)), (unread, None), (early, Some(2.0)), (both, Some(4.0))];
        assert_eq!(told, expected.map(|(one, slope)| (one, slope.map(|slope| vec![slope; 3]))));
        assert_eq!(found.unwrap().parts.len(), 3);
    }

    /// Parameters of a bundle and more each: shards that hand in parts take the step along the mean gradient, to
    /// the last bit, as one that hands in everything at the end.
    #[test]
    fn bundles_do_not_change_a_step() {
        let slopes = [0.1, 0.7, 0.4, 1.1];
        let state = |goes_in_parts: bool| {
            let seats = Circle::seats(4, 2, None).unwrap();
            let shard = |seat: Arc<Seat>| {
                let (mut set, all) = parameters(BUNDLE + 5);
                set.join(&seat);
                for _ in 0..3 {
                    let work = || {
                        let mut tape = set.device().tape();
                        let slope = slopes[seat.shard().index()];
                        let loss = loss(&mut tape, &set, &all, slope);
                        let step = if goes_in_parts {
                            set.descend(tape, loss, 0.1)?
                        } else {
                            set.step(&tape.backward(loss)?, 0.1)?
                        };
                        Ok(vec![("norm", step.gradient_norm)])
                    };
                    seat.take_step(work).unwrap();
                }
                set.export().unwrap()
            };
            let shard = &shard;
            thread::scope(|scope| {
                let all: Vec<_> =
                    seats.into_iter().map(|seat| scope.spawn(move || shard(seat))).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let (parts, whole) = (state(true), state(false));
        assert!(parts.iter().chain(&whole).all(|state| *state == whole[0]));
        // ½ of 2.3 is the mean slope; the first moment of Adam is a tenth of the first gradient.
        let first = whole[0].get("adam/a.late.first_moment").unwrap().as_f32().unwrap();
        assert!(first[0] > 0.0 && first.iter().all(|one| one.to_bits() == first[0].to_bits()));
    }
}

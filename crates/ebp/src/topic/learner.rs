//! What learns topics step by step.

use std::fmt::Debug;
use std::sync::Arc;

use super::TopicModel;
use crate::nn::{Record, Step};
use crate::process::Prepared;
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::{Error, Result};

/// Makes what a step reads, on any thread: a function of the step alone.
pub type Batches = Arc<dyn Fn(&Step) -> Result<Prepared> + Send + Sync>;

/// A topic model that learns: a step is a sweep over its documents, or a mini-batch of them.
pub trait TopicLearner: Debug + Send {
    /// One step, a function of the state, the step's number and its stream.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] if it diverged.
    fn step(&mut self, step: &Step) -> Result<Record>;

    /// What makes batches ahead of their steps; `None` where steps read the documents themselves.
    fn batches(&self) -> Option<Batches> {
        None
    }

    /// As [`step`](Self::step), from what [`batches`](Self::batches) made for the same step.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), and if the batch was made by another kind of learner.
    fn step_on(&mut self, batch: Prepared, _step: &Step) -> Result<Record> {
        Err(Error::invalid("batch", "none, since this learner reads none", format!("{batch:?}")))
    }

    /// Whether steps are taken on a GPU: more threads may then make batches.
    fn learns_on_gpu(&self) -> bool {
        false
    }

    /// Everything that a later step depends on.
    ///
    /// # Errors
    ///
    /// None of its own; a tensor whose size is wrong.
    fn state(&self) -> Result<Tensors>;

    /// Takes back what [`state`](Self::state) gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing, does not fit or is not known.
    fn restore(&mut self, state: &Tensors) -> Result<()>;

    /// What has been learned so far.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the parameters are no law.
    fn model(&self) -> Result<Box<dyn TopicModel>>;
}

/// A state of f64 arrays by name.
pub(super) fn pack(entries: &[(&str, &[usize], &[f64])]) -> Result<Tensors> {
    let tensor = |&(name, dims, values): &(&str, &[usize], &[f64])| {
        let values = TensorValues::F64(values.to_vec());
        Ok((name.to_owned(), Tensor::from_values(dims.to_vec(), values)?))
    };
    entries.iter().map(tensor).collect()
}

/// The numbers of one f64 array of a state, which must have the shape it is known to have.
pub(super) fn unpack(state: &Tensors, name: &str, dims: &[usize]) -> Result<Vec<f64>> {
    match state.get(name).map(|tensor| (tensor.dims(), tensor.values())) {
        Some((found, TensorValues::F64(values))) if found == dims => Ok(values.clone()),
        Some((found, _)) => {
            let expected = format!("f64 of shape {dims:?}");
            Err(Error::invalid(name, expected, format!("shape {found:?}")))
        }
        None => Err(Error::invalid(name, "in the state", "nothing")),
    }
}

/// The numbers of one f64 array of a state with its shape, for who knows no shape yet.
pub(super) fn unpack_any<'a>(state: &'a Tensors, name: &str) -> Result<(&'a [usize], &'a [f64])> {
    match state.get(name).map(|tensor| (tensor.dims(), tensor.values())) {
        Some((dims, TensorValues::F64(values))) => Ok((dims, values)),
        _ => Err(Error::invalid(name, "f64 numbers in the state", "nothing of the kind")),
    }
}

/// That a state has the entries that are known and no others.
pub(super) fn check_names(state: &Tensors, names: &[&str]) -> Result<()> {
    match state.keys().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Error::invalid("state", format!("{names:?} alone"), name)),
    }
}

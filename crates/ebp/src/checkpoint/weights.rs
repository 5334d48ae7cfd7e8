//! Checkpoints of weights only: a model to be used, without what only training needs.
//!
//! The state of an energy-based process has parts `part/name`:
//!
//! ```text
//!                    in a run                         among weights
//! parameters         w of every variable, buffers     a where there is an average, else as it was
//! average            a of every trained variable      left out: a = w
//! adam, …_adam       m, v and the number of steps     left out: m = v = 0, no steps
//! ```
//!
//! A trained model is used with its averages, so weights answer bit for bit as the run does, in a
//! quarter of its bytes. They cannot be trained further: w and the moments are gone.

use std::collections::BTreeMap;

use super::parts::{StateParts, join_parts};
use super::{Checkpoint, CheckpointMeta, Holds};
use crate::tape::{FIRST_MOMENT, NUM_STEPS, SECOND_MOMENT};
use crate::tensor::{Tensor, Tensors};
use crate::{Error, Result};

const PARAMETERS: &str = "parameters";
const AVERAGE: &str = "average";
const ADAM: &str = "adam";

impl Checkpoint {
    /// The same model without what only training needs; see [`Holds::Weights`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it holds weights only already, or no parameters.
    pub fn weights(&self) -> Result<Self> {
        self.check_resumable()?;
        let expected = "that of an energy-based process: `parameters`, `adam` and `average`";
        let invalid = |found: String| Error::invalid("state", expected, found);
        let without_part = self.state.keys().find(|name| !name.contains('/'));
        if let Some(name) = without_part {
            return Err(invalid(format!("`{name}`")));
        }
        let mut parts = StateParts::split(&self.state)?;
        let mut parameters = parts.take(PARAMETERS)?;
        // A model without averages is used with its parameters.
        let average = parts.take_any(AVERAGE);
        let mut left_out =
            BTreeMap::from([(AVERAGE.to_owned(), average.keys().cloned().collect::<Vec<_>>())]);
        for (name, average) in average {
            match parameters.get_mut(&name) {
                Some(weight) if weight.dims() == average.dims() => *weight = average,
                _ => return Err(invalid(format!("an average of `{name}` and no such parameter"))),
            }
        }
        for (part, moments) in parts.rest() {
            if !is_optimiser(&part) {
                return Err(invalid(format!("`{part}`")));
            }
            left_out.insert(part, moments.into_keys().collect());
        }
        let meta = CheckpointMeta { holds: Holds::Weights(left_out), ..self.meta.clone() };
        Ok(Self { state: join_parts([(PARAMETERS, parameters)]), meta })
    }

    /// The state to restore a model from that is to be used: this one, with what weights left out
    /// put back as if training began here.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a variable that is missing.
    pub fn model_state(&self) -> Result<Tensors> {
        let Holds::Weights(left_out) = &self.meta.holds else { return Ok(self.state.clone()) };
        let mut state = self.state.clone();
        for (part, names) in left_out {
            for name in names {
                let weight = |name: &str| {
                    let found = self.state.get(&format!("{PARAMETERS}/{name}"));
                    found.ok_or_else(|| Error::invalid("state", format!("with `{name}`"), "none"))
                };
                let zeros = |weight: &Tensor| {
                    let dims = weight.dims().to_vec();
                    let length = dims.iter().product();
                    Tensor::new(dims, vec![0.0; length])
                };
                let whole = format!("{part}/{name}");
                match name.rsplit_once('.') {
                    _ if !is_optimiser(part) => drop(state.insert(whole, weight(name)?.clone())),
                    Some((name, FIRST_MOMENT | SECOND_MOMENT)) => {
                        state.insert(whole, zeros(weight(name)?)?);
                    }
                    Some((_, NUM_STEPS)) => drop(state.insert(whole, Tensor::integer(0))),
                    // Earlier exports name the variable and mean all three.
                    _ => {
                        for moment in [FIRST_MOMENT, SECOND_MOMENT] {
                            state.insert(format!("{whole}.{moment}"), zeros(weight(name)?)?);
                        }
                        state.insert(format!("{whole}.{NUM_STEPS}"), Tensor::integer(0));
                    }
                }
            }
        }
        Ok(state)
    }

    /// That a run can go on from here.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it holds weights only.
    pub fn check_resumable(&self) -> Result<()> {
        match self.meta.holds {
            Holds::Everything => Ok(()),
            Holds::Weights(_) => Err(Error::invalid(
                "checkpoint",
                "one that a run can go on from",
                "weights only, without the state of the optimiser; go on with the run that they \
                 were exported from, or begin a new one in another folder",
            )),
        }
    }
}

/// `adam`, or one of a part of the model, such as `sampler_adam`.
fn is_optimiser(part: &str) -> bool {
    part == ADAM || part.ends_with("_adam")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor::new(vec![values.len()], values.to_vec()).unwrap()
    }

    /// A trained network with a buffer, and a sampler that has no average.
    fn full() -> Checkpoint {
        let mut state = BTreeMap::from([
            ("parameters/model.w".to_owned(), tensor(&[1.0, 2.0])),
            ("parameters/model.buffer".to_owned(), tensor(&[7.0])),
            ("parameters/sampler.v".to_owned(), tensor(&[3.0])),
            ("average/model.w".to_owned(), tensor(&[0.5, 1.5])),
        ]);
        for (name, moment) in
            [("adam/model.w", tensor(&[4.0, 4.0])), ("sampler_adam/sampler.v", tensor(&[5.0]))]
        {
            state.insert(format!("{name}.first_moment"), moment.clone());
            state.insert(format!("{name}.second_moment"), moment);
            state.insert(format!("{name}.num_steps"), Tensor::integer(9));
        }
        let meta = CheckpointMeta { step: 9, seed: 3, ..CheckpointMeta::default() };
        Checkpoint { state, meta }
    }

    fn values(state: &Tensors, name: &str) -> Vec<f32> {
        state[name].as_f32().unwrap().to_vec()
    }

    #[test]
    fn averages_stand_for_parameters_and_the_rest_of_training_goes() {
        let weights = full().weights().unwrap();
        let names: Vec<_> = weights.state.keys().map(String::as_str).collect();
        let kept = ["parameters/model.buffer", "parameters/model.w", "parameters/sampler.v"];
        assert_eq!(names, kept);
        assert_eq!(values(&weights.state, "parameters/model.w"), [0.5, 1.5]);
        assert_eq!(values(&weights.state, "parameters/model.buffer"), [7.0]);
        assert_eq!(values(&weights.state, "parameters/sampler.v"), [3.0]);
        assert_eq!((weights.meta.step, weights.meta.seed), (9, 3));
    }

    #[test]
    fn a_model_gets_all_its_parts_back_from_a_folder_of_weights() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        full().weights().unwrap().save(&path).unwrap();
        let state = Checkpoint::load(&path).unwrap().model_state().unwrap();
        assert!(state.keys().eq(full().state.keys()), "{state:?}");
        for name in ["parameters/model.w", "average/model.w"] {
            assert_eq!(values(&state, name), [0.5, 1.5]);
        }
        assert_eq!(values(&state, "parameters/sampler.v"), [3.0]);
        assert_eq!(values(&state, "adam/model.w.second_moment"), [0.0, 0.0]);
        assert_eq!(values(&state, "sampler_adam/sampler.v.first_moment"), [0.0]);
        assert_eq!(state["adam/model.w.num_steps"].as_integer(), Some(0));
        // What a run saved stays as it is.
        assert_eq!(values(&full().model_state().unwrap(), "parameters/model.w"), [1.0, 2.0]);
    }

    #[test]
    fn what_has_no_averages_or_no_more_to_leave_out_is_refused() {
        let message = full().weights().unwrap().weights().unwrap_err().to_string();
        assert!(message.contains("one that a run can go on from, found weights only"), "{message}");
        for (name, found) in [
            ("parameters.w", "found `parameters.w`"),
            ("noise/w", "found `noise`"),
            ("average/model.other", "found an average of `model.other`"),
        ] {
            let mut broken = full();
            broken.state.insert(name.to_owned(), tensor(&[1.0]));
            let message = broken.weights().unwrap_err().to_string();
            assert!(message.contains(found), "{message}");
        }
        let mut broken = full().weights().unwrap();
        broken.state.remove("parameters/model.w");
        let message = broken.model_state().unwrap_err().to_string();
        assert_eq!(message, "`state` must be with `model.w`, found none");
    }
}

//! Parameters with their optimiser: what a training step moves and a checkpoint holds.

use std::collections::BTreeMap;

use candle_core::Tensor;

use crate::nn::{Adam, AdamConfig, Parameters};
use crate::tensor::Tensors;
use crate::{Error, Result};

const PARAMETERS: &str = "parameters.";
const OPTIMISER: &str = "optimiser.";

/// All that changes in training.
#[derive(Debug)]
pub(crate) struct Trained {
    parameters: Parameters,
    adam: Adam,
}

impl Trained {
    /// Optimises what `parameters` trains at this moment.
    pub(crate) fn new(parameters: Parameters, config: AdamConfig) -> Result<Self> {
        let adam = Adam::new(&parameters, config)?;
        Ok(Self { parameters, adam })
    }

    /// Goes one step down `loss`, a scalar; returns the gradient's length.
    pub(crate) fn descend(&mut self, loss: &Tensor, learning_rate: f64) -> Result<f64> {
        let value = loss.to_scalar::<f32>()?;
        if !value.is_finite() {
            return Err(Error::NonFinite {
                field: "loss",
                index: 0,
                value,
                remedy: "lower the learning rate or go back to an earlier checkpoint",
            });
        }
        Ok(self.adam.step(&loss.backward()?, learning_rate)?.gradient_norm)
    }

    pub(crate) fn state(&self) -> Result<Tensors> {
        let mut state = BTreeMap::new();
        for (prefix, part) in
            [(PARAMETERS, self.parameters.export()?), (OPTIMISER, self.adam.export()?)]
        {
            state
                .extend(part.into_iter().map(|(name, tensor)| (format!("{prefix}{name}"), tensor)));
        }
        Ok(state)
    }

    pub(crate) fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut parts = [BTreeMap::new(), BTreeMap::new()];
        for (name, tensor) in state {
            let found = [PARAMETERS, OPTIMISER]
                .iter()
                .zip(&mut parts)
                .find_map(|(prefix, part)| Some((name.strip_prefix(prefix)?, part)));
            let Some((rest, part)) = found else {
                return Err(Error::invalid(name, "absent, since it is not known", "a tensor"));
            };
            part.insert(rest.to_owned(), tensor.clone());
        }
        let [parameters, optimiser] = parts;
        // Each import changes all or nothing; should the second fail, the first is undone.
        let before = self.parameters.export()?;
        self.parameters.import(&parameters)?;
        self.adam.import(&optimiser).or_else(|error| {
            self.parameters.import(&before)?;
            Err(error)
        })
    }
}

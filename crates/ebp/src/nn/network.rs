//! A network over the elements of sets, with its parameters.

use std::sync::Arc;

use crate::point::{MlpConfig, MlpShape, Pooling};
use crate::tape::{Group, Parameter, Points, Tape, Var};
use crate::{Result, SetOffsets};

/// A network of the primitive: its shape and where its flat parameters lie.
#[derive(Clone, Debug)]
pub struct Network {
    shape: Arc<MlpShape>,
    parameters: Parameter,
}

/// Sets that a [`Network`] is applied to.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// [x, t] of every element, `[total, d_x + d_t]`.
    pub elements: Var,
    /// One context per set, `[sets, context_dim]`.
    pub context: Option<Var>,
    /// Which elements belong to which set.
    pub offsets: &'a Arc<SetOffsets>,
}

impl Network {
    /// A network with random weights whose flat parameters are called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a width is outside its range or the
    /// name is taken.
    pub fn new(group: &mut Group<'_>, name: &str, config: MlpConfig) -> Result<Self> {
        let shape = MlpShape::new(config)?;
        let parameters = group.point_mlp(name, &shape)?;
        Ok(Self { shape: Arc::new(shape), parameters })
    }

    /// Its layers.
    pub fn shape(&self) -> &Arc<MlpShape> {
        &self.shape
    }

    /// Its flat parameters.
    pub fn parameters(&self) -> &Parameter {
        &self.parameters
    }

    /// The arguments of the tape's operations on it.
    ///
    /// # Errors
    ///
    /// As [`Tape::parameter`].
    pub fn points(&self, tape: &mut Tape, sets: Sets<'_>) -> Result<Points> {
        Ok(Points {
            shape: Arc::clone(&self.shape),
            parameters: tape.parameter(&self.parameters)?,
            elements: sets.elements,
            context: sets.context,
            offsets: Arc::clone(sets.offsets),
        })
    }

    /// f of every element, `[total, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`Tape::point_values`].
    pub fn values(&self, tape: &mut Tape, sets: Sets<'_>) -> Result<Var> {
        let points = self.points(tape, sets)?;
        tape.point_values(&points)
    }

    /// Σ f over each set, `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`Tape::point_values`].
    pub fn sums(&self, tape: &mut Tape, sets: Sets<'_>) -> Result<Var> {
        let points = self.points(tape, sets)?;
        tape.point_sums(&points)
    }

    /// The pooled outputs of each set, `[sets, output_dim]`.
    ///
    /// # Errors
    ///
    /// As [`Tape::point_values`].
    pub fn pool(&self, tape: &mut Tape, sets: Sets<'_>, pooling: Pooling) -> Result<Var> {
        let points = self.points(tape, sets)?;
        tape.point_pool(&points, pooling)
    }

    /// ∇ₓ f of every element, `[total, d_x]`.
    ///
    /// # Errors
    ///
    /// As [`Tape::point_score`].
    pub fn score(&self, tape: &mut Tape, sets: Sets<'_>) -> Result<Var> {
        let points = self.points(tape, sets)?;
        tape.point_score(&points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    #[test]
    fn sums_and_pools_are_those_of_the_values() {
        let mut builder = ParameterBuilder::new(4);
        let config = MlpConfig { context_dim: 2, output_dim: 3, ..MlpConfig::default() };
        let network = Network::new(&mut builder.group("model"), "network", config).unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let offsets = Arc::new(SetOffsets::from_sizes([2, 3]).unwrap());
        let elements = tape.normals((5, 3), Stream::new(1, "elements")).unwrap();
        let context = tape.normals((2, 2), Stream::new(1, "context")).unwrap();
        let sets = Sets { elements, context: Some(context), offsets: &offsets };
        let values = network.values(&mut tape, sets).unwrap();
        let expected = tape.set_sums(values, &offsets).unwrap();
        let sums = network.sums(&mut tape, sets).unwrap();
        let pooled = network.pool(&mut tape, sets, Pooling::Mean).unwrap();
        let [expected, sums, pooled] =
            [expected, sums, pooled].map(|var| tape.download(var).unwrap());
        for (at, expected) in expected.iter().enumerate() {
            let size = if at < 3 { 2.0 } else { 3.0 };
            assert!((sums[at] - expected).abs() < 1e-5, "{} {expected}", sums[at]);
            assert!((pooled[at] * size - expected).abs() < 1e-5, "{} {expected}", pooled[at]);
        }
    }
}

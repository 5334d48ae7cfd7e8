//! A model that trains in microseconds: y = 2 x − 1 by linear regression on noisy data, with
//! everything that a checkpoint has to carry. It can be told to diverge.

use ebp::tape::{
    AdamConfig, Device, Initialiser, Parameter, ParameterBuilder, ParameterSet, check_taken,
};
use ebp::tensor::{Tensor, Tensors};
use ebp::train::{Record, Step, Trainable};
use ebp::{Error, Result};

const BATCH: usize = 16;

/// How a step goes wrong.
#[allow(dead_code, reason = "the example never diverges")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The loss is NaN.
    Record,
    /// An error says that a gradient is infinite.
    Gradient,
    /// A parameter becomes NaN unnoticed.
    State,
}

#[derive(Debug)]
pub(crate) struct Toy {
    slope: Parameter,
    offset: Parameter,
    parameters: ParameterSet,
    pub(crate) fault: fn(&Step) -> Fault,
    pub(crate) learning_rate: f64,
}

impl Toy {
    pub(crate) fn new(seed: u64) -> Result<Self> {
        let mut builder = ParameterBuilder::new(seed);
        let mut group = builder.group("model");
        let slope = group.trained("slope", &[1], Initialiser::Zeros)?;
        let offset = group.trained("offset", &[1], Initialiser::Zeros)?;
        let device = Device::default();
        let parameters = ParameterSet::new(builder, &device, AdamConfig::default(), Some(0.9))?;
        Ok(Self { slope, offset, parameters, fault: |_| Fault::None, learning_rate: 0.02 })
    }

    /// Distance of the parameters from the truth.
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn error(&self) -> Result<f64> {
        let slope = f64::from(self.parameters.values(&self.slope)?[0]);
        let offset = f64::from(self.parameters.values(&self.offset)?[0]);
        Ok((slope - 2.0).hypot(offset + 1.0))
    }
}

impl Trainable for Toy {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let mut draws = [0.0; 2 * BATCH];
        step.stream.fill_normal(0, 0, &mut draws);
        let (x, noise) = draws.split_at(BATCH);
        let y: Vec<f32> = x.iter().zip(noise).map(|(x, e)| 2.0 * x - 1.0 + 0.1 * e).collect();
        let mut tape = self.parameters.device().tape();
        tape.train(&self.parameters);
        let (slope, offset) = (tape.parameter(&self.slope)?, tape.parameter(&self.offset)?);
        let x = tape.upload(x.to_vec(), (BATCH, 1))?;
        let y = tape.upload(y, (BATCH, 1))?;
        let scaled = tape.multiply(x, slope)?;
        let predicted = tape.add(scaled, offset)?;
        let residual = tape.subtract(predicted, y)?;
        let squares = tape.square(residual)?;
        let mean = tape.mean(squares)?;
        let mut loss = f64::from(tape.download(mean)?[0]);
        let rate = self.learning_rate * step.learning_rate_factor;
        let moved = self.parameters.step(&tape.backward(mean)?, rate)?;
        match (self.fault)(step) {
            Fault::None => {}
            Fault::Record => loss = f64::NAN,
            Fault::Gradient => {
                let (parameter, value) = ("slope".into(), f32::INFINITY);
                return Err(Error::NonFiniteGradient { parameter, index: 0, value });
            }
            Fault::State => {
                let mut state = self.state()?;
                state
                    .insert("parameters/model.slope".into(), Tensor::new(vec![1], vec![f32::NAN])?);
                self.restore(&state)?;
            }
        }
        Ok(vec![("loss", loss), ("gradient_norm", moved.gradient_norm)])
    }

    fn state(&self) -> Result<Tensors> {
        self.parameters.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut state = state.clone();
        self.parameters.import(&mut state)?;
        check_taken(&state)
    }
}

//! A model that trains in microseconds: y = 2 x − 1 by linear regression on noisy data, with
//! everything that a checkpoint has to carry. It can be told to diverge.

use ebp::rng::Stream;
use ebp::tape::{AdamConfig, Device, Initialiser, Parameter, ParameterBuilder, ParameterSet};
use ebp::tape::{Tape, check_taken};
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
    device: Device,
    slope: Parameter,
    offset: Parameter,
    parameters: ParameterSet,
    pub(crate) fault: fn(&Step) -> Fault,
    pub(crate) learning_rate: f64,
}

impl Toy {
    pub(crate) fn new(seed: u64) -> Result<Self> {
        let device = Device::default();
        let mut builder = ParameterBuilder::new(seed);
        let mut model = builder.group("model");
        let slope = model.trained("slope", &[1], Initialiser::Zeros)?;
        let offset = model.trained("offset", &[1], Initialiser::Zeros)?;
        let parameters = ParameterSet::new(builder, &device, AdamConfig::default(), Some(0.9))?;
        Ok(Self { device, slope, offset, parameters, fault: |_| Fault::None, learning_rate: 0.02 })
    }

    /// Distance of the parameters from the truth.
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn error(&self) -> Result<f64> {
        let value = |of| self.parameters.values(of).map(|values| f64::from(values[0]));
        Ok((value(&self.slope)? - 2.0).hypot(value(&self.offset)? + 1.0))
    }

    /// The mean of (slope · x + offset − y)² over a batch that `stream` draws.
    fn loss(&self, tape: &mut Tape, stream: Stream) -> Result<ebp::tape::Var> {
        let mut draws = [0.0; 2 * BATCH];
        stream.fill_normal(0, 0, &mut draws);
        let (x, noise) = draws.split_at(BATCH);
        let y = x.iter().zip(noise).map(|(x, e)| 2.0 * x - 1.0 + 0.1 * e).collect();
        let x = tape.upload(x.to_vec(), (BATCH, 1))?;
        let y = tape.upload(y, (BATCH, 1))?;
        let slope = tape.parameter(&self.slope)?;
        let offset = tape.parameter(&self.offset)?;
        let scaled = tape.multiply(x, slope)?;
        let predicted = tape.add(scaled, offset)?;
        let errors = tape.subtract(predicted, y)?;
        let squares = tape.square(errors)?;
        tape.mean(squares)
    }
}

impl Trainable for Toy {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let mut tape = self.device.tape();
        tape.train(&self.parameters);
        let loss = self.loss(&mut tape, step.stream)?;
        let mut found = f64::from(tape.download(loss)?[0]);
        let rate = self.learning_rate * step.learning_rate_factor;
        let moved = self.parameters.step(&tape.backward(loss)?, rate)?;
        match (self.fault)(step) {
            Fault::None => {}
            Fault::Record => found = f64::NAN,
            Fault::Gradient => {
                let (parameter, value) = ("slope".into(), f32::INFINITY);
                return Err(Error::NonFiniteGradient { parameter, index: 0, value });
            }
            Fault::State => {
                let mut state = self.state()?;
                let broken = Tensor::new(vec![1], vec![f32::NAN])?;
                state.insert("parameters/model.slope".into(), broken);
                self.restore(&state)?;
            }
        }
        Ok(vec![("loss", found), ("gradient_norm", moved.gradient_norm)])
    }

    fn state(&self) -> Result<Tensors> {
        self.parameters.export()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let mut left = state.clone();
        self.parameters.import(&mut left)?;
        check_taken(&left)
    }
}

//! A model that trains in microseconds: y = 2 x − 1 by linear regression on noisy data, with
//! everything that a checkpoint has to carry. It can be told to diverge.

use candle_core::{Device, Tensor, Var};
use ebp::nn::{Adam, AdamConfig, Initialiser, MovingAverage, Parameters};
use ebp::tensor::Tensors;
use ebp::train::{Record, Step, Trainable};
use ebp::{Error, Result};

const BATCH: usize = 16;
const PARTS: [&str; 3] = ["model", "adam", "average"];

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
    pub(crate) slope: Var,
    pub(crate) offset: Var,
    parameters: Parameters,
    adam: Adam,
    average: MovingAverage,
    pub(crate) fault: fn(&Step) -> Fault,
    pub(crate) learning_rate: f64,
}

impl Toy {
    pub(crate) fn new(seed: u64) -> Result<Self> {
        let parameters = Parameters::new(seed);
        let slope = parameters.trained("slope", &[1], Initialiser::Zeros)?;
        let offset = parameters.trained("offset", &[1], Initialiser::Zeros)?;
        Ok(Self {
            adam: Adam::new(&parameters, AdamConfig::default())?,
            average: MovingAverage::new(&parameters, 0.9)?,
            slope,
            offset,
            parameters,
            fault: |_| Fault::None,
            learning_rate: 0.02,
        })
    }

    /// Distance of the parameters from the truth.
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn error(&self) -> Result<f64> {
        let slope = f64::from(self.slope.to_vec1::<f32>()?[0]);
        let offset = f64::from(self.offset.to_vec1::<f32>()?[0]);
        Ok((slope - 2.0).hypot(offset + 1.0))
    }
}

impl Trainable for Toy {
    fn step(&mut self, step: &Step) -> Result<Record> {
        let mut draws = [0.0; 2 * BATCH];
        step.stream.fill_normal(0, 0, &mut draws);
        let (x, noise) = draws.split_at(BATCH);
        let y: Vec<f32> = x.iter().zip(noise).map(|(x, e)| 2.0 * x - 1.0 + 0.1 * e).collect();
        let x = Tensor::new(x, &Device::Cpu)?;
        let y = Tensor::new(y, &Device::Cpu)?;
        let predicted = x.broadcast_mul(&self.slope)?.broadcast_add(&self.offset)?;
        let loss = (predicted - y)?.sqr()?.mean_all()?;
        let moved =
            self.adam.step(&loss.backward()?, self.learning_rate * step.learning_rate_factor)?;
        self.average.update()?;
        let mut loss = f64::from(loss.to_scalar::<f32>()?);
        match (self.fault)(step) {
            Fault::None => {}
            Fault::Record => loss = f64::NAN,
            Fault::Gradient => {
                let (parameter, value) = ("slope".into(), f32::INFINITY);
                return Err(Error::NonFiniteGradient { parameter, index: 0, value });
            }
            Fault::State => self.slope.set(&Tensor::new(&[f32::NAN], &Device::Cpu)?)?,
        }
        Ok(vec![("loss", loss), ("gradient_norm", moved.gradient_norm)])
    }

    fn state(&self) -> Result<Tensors> {
        let parts = [self.parameters.export()?, self.adam.export()?, self.average.export()?];
        let mut state = Tensors::new();
        for (part, tensors) in PARTS.into_iter().zip(parts) {
            state.extend(tensors.into_iter().map(|(name, x)| (format!("{part}.{name}"), x)));
        }
        Ok(state)
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let part = |part: &str| -> Tensors {
            let names = state.iter().filter_map(|(name, x)| {
                Some((name.strip_prefix(part)?.strip_prefix('.')?.to_owned(), x.clone()))
            });
            names.collect()
        };
        self.parameters.import(&part(PARTS[0]))?;
        self.adam.import(&part(PARTS[1]))?;
        self.average.import(&part(PARTS[2]))
    }
}

//! Named parameters: what is trained, saved and restored.
//!
//! All trained parameters of an optimiser lie in one flat array on the device, and so do their
//! gradient, Adam's moments and the moving average: an update is one pass. The starting value of a
//! parameter is a function of the seed and its full name, so equal seeds give equal bytes whatever
//! the order in which modules are built.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::adam::{AdamConfig, AdamStep, Moments};
use super::handing::Handing;
use super::{Array, Device, Gradients, Initialiser, Tape, Var};
use crate::exchange::Seat;
use crate::point::{MlpShape, PointMlp};
use crate::rng::Stream;
use crate::tensor::{Tensor, Tensors};
use crate::{Error, Result};

/// The place of a parameter in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub(super) set: u32,
    pub(super) is_buffer: bool,
    pub(super) start: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Parameter {
    /// How many numbers.
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    dims: Vec<usize>,
    parameter: Parameter,
}

/// Collects the parameters of modules before they go to a device.
#[derive(Debug)]
pub struct ParameterBuilder {
    number: u32,
    seed: u64,
    entries: Vec<Entry>,
    trained: Vec<f32>,
    buffers: Vec<f32>,
}

/// Numbers of sets, so that a tape knows whose parameter it is asked for.
static NUMBER: AtomicU32 = AtomicU32::new(0);

impl ParameterBuilder {
    /// No parameters yet.
    pub fn new(seed: u64) -> Self {
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            seed,
            entries: Vec::new(),
            trained: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Parameters whose names begin with `name` and a dot.
    pub fn group(&mut self, name: &str) -> Group<'_> {
        Group { builder: self, prefix: format!("{name}.") }
    }
}

/// A part of a [`ParameterBuilder`]: a module's own names.
#[derive(Debug)]
pub struct Group<'a> {
    builder: &'a mut ParameterBuilder,
    prefix: String,
}

impl Group<'_> {
    /// A part of this part.
    pub fn group(&mut self, name: &str) -> Group<'_> {
        Group { prefix: format!("{}{name}.", self.prefix), builder: self.builder }
    }

    /// The stream that a parameter called `name` would be drawn from.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.builder.seed, &format!("{}{name}", self.prefix))
    }

    /// A trained matrix or, with one dimension, a trained row.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the name is taken or the initialiser does not fit the shape.
    pub fn trained(
        &mut self,
        name: &str,
        dims: &[usize],
        initialiser: Initialiser,
    ) -> Result<Parameter> {
        let values = initialiser.draw(dims, self.stream(name))?;
        self.push(name, dims, values, false)
    }

    /// Numbers that are saved but not trained, such as running statistics.
    ///
    /// # Errors
    ///
    /// As [`trained`](Self::trained).
    pub fn buffer(
        &mut self,
        name: &str,
        dims: &[usize],
        initialiser: Initialiser,
    ) -> Result<Parameter> {
        let values = initialiser.draw(dims, self.stream(name))?;
        self.push(name, dims, values, true)
    }

    /// The flat parameters of a network, with random weights.
    ///
    /// # Errors
    ///
    /// As [`trained`](Self::trained).
    pub fn point_mlp(&mut self, name: &str, shape: &MlpShape) -> Result<Parameter> {
        let values = PointMlp::random(shape.clone(), self.stream(name)).parameters().to_vec();
        self.push(name, &[shape.num_parameters()], values, false)
    }

    /// The starting values of a parameter, to be changed before training.
    pub fn values_mut(&mut self, parameter: &Parameter) -> &mut [f32] {
        let builder = &mut *self.builder;
        let all = if parameter.is_buffer { &mut builder.buffers } else { &mut builder.trained };
        &mut all[parameter.start..parameter.start + parameter.len()]
    }

    fn push(
        &mut self,
        name: &str,
        dims: &[usize],
        values: Vec<f32>,
        is_buffer: bool,
    ) -> Result<Parameter> {
        let name = format!("{}{name}", self.prefix);
        let builder = &mut *self.builder;
        if builder.entries.iter().any(|entry| entry.name == name) {
            return Err(Error::invalid("parameter", "a name of its own", name));
        }
        let all = if is_buffer { &mut builder.buffers } else { &mut builder.trained };
        // Kernels read four numbers at a time, from addresses that are multiples of 16 bytes.
        all.resize(all.len().next_multiple_of(4), 0.0);
        let (rows, columns) = match *dims {
            [columns] => (1, columns),
            [rows, ref rest @ ..] => (rows, rest.iter().product()),
            [] => (1, 1),
        };
        let parameter =
            Parameter { set: builder.number, is_buffer, start: all.len(), rows, columns };
        all.extend(values);
        builder.entries.push(Entry { name, dims: dims.to_vec(), parameter });
        Ok(parameter)
    }
}

/// Parameters on a device, with the optimiser that trains them and their moving average.
#[derive(Debug)]
pub struct ParameterSet {
    number: u32,
    entries: Vec<Entry>,
    device: Device,
    trained: Array,
    buffers: Array,
    moments: Moments,
    average: Option<(f32, Array)>,
    is_average: bool,
    /// Where the other shards of a step are met, if there are any.
    seat: Option<Arc<Seat>>,
}

impl ParameterSet {
    /// Brings parameters to a device. With `average_decay` an exponential moving average of them is
    /// kept, in which the values before the first step do not count.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a setting is outside its range, [`Error::Device`] if the device
    /// fails.
    pub fn new(
        builder: ParameterBuilder,
        device: &Device,
        config: AdamConfig,
        average_decay: Option<f32>,
    ) -> Result<Self> {
        if let Some(decay) = average_decay
            && !(0.0..1.0).contains(&decay)
        {
            return Err(Error::invalid("average_decay", "in [0, 1)", decay));
        }
        let ParameterBuilder { number, mut entries, trained, buffers, .. } = builder;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let average = match average_decay {
            Some(decay) => Some((decay, device.upload(trained.clone())?)),
            None => None,
        };
        Ok(Self {
            number,
            entries,
            device: device.clone(),
            moments: Moments::new(config, device, trained.len())?,
            trained: device.upload(trained)?,
            buffers: device.upload(buffers)?,
            average,
            is_average: false,
            seat: None,
        })
    }

    /// Lets every later step be one of all shards of a circle, by the mean of their gradients. All must
    /// have the same parameters.
    pub fn join(&mut self, seat: &Arc<Seat>) {
        self.seat = Some(Arc::clone(seat));
    }

    /// The mean of a number over the shards of a step: what all shards decide by.
    ///
    /// # Errors
    ///
    /// [`Error::Peer`] if another shard failed.
    pub(crate) fn common(&self, number: f64) -> Result<f64> {
        match &self.seat {
            Some(seat) => Ok(seat.mean_double(vec![number])?.iter().sum()),
            None => Ok(number),
        }
    }

    /// The device they are on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many numbers are trained.
    pub fn num_trained(&self) -> usize {
        let trained = self.entries.iter().filter(|entry| !entry.parameter.is_buffer);
        trained.map(|entry| entry.parameter.len()).sum()
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// What a tape reads: parameters, or their average where that is in use, and buffers. One that
    /// trains always gets the parameters themselves.
    pub(super) fn arrays(&self, is_trained: bool) -> (Array, Array) {
        let trained = match &self.average {
            Some((_, parameters)) if self.is_average && is_trained => parameters,
            _ => &self.trained,
        };
        (trained.clone(), self.buffers.clone())
    }

    /// The values of one parameter, on the host.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn values(&self, parameter: &Parameter) -> Result<Vec<f32>> {
        let all = if parameter.is_buffer { &self.buffers } else { &self.trained };
        self.device.download(&all.view(parameter.start, parameter.len()))
    }

    /// Goes back from `loss` and takes one step of Adam and of the moving average, with the new buffers of the
    /// step: of the mean over all shards where there are several, to whom gradients travel while the way back goes
    /// on. The tape ends here.
    ///
    /// # Errors
    ///
    /// As [`Tape::backward`] and [`step`](Self::step).
    pub fn descend(&mut self, tape: Tape, loss: Var, learning_rate: f64) -> Result<AdamStep> {
        let Some(seat) = self.seat.clone() else {
            return self.step_alone(&tape.backward(loss)?, learning_rate);
        };
        let mut handing = Handing::new(&seat, &self.device, self.number);
        let gradients =
            tape.backward_telling(loss, |parameter, found| handing.take(parameter, found))?;
        let mean = handing.finish(&gradients, self.trained.len())?;
        self.step_alone(&mean, learning_rate)
    }

    /// One step of Adam and of the moving average, and the new buffers of the step: of the mean over all
    /// shards where there are several.
    ///
    /// # Errors
    ///
    /// [`Error::NonFiniteGradient`] naming the parameter; nothing is changed then. [`Error::Peer`] if
    /// another shard failed.
    pub fn step(&mut self, gradients: &Gradients, learning_rate: f64) -> Result<AdamStep> {
        let Some(seat) = self.seat.clone() else {
            return self.step_alone(gradients, learning_rate);
        };
        let handing = Handing::new(&seat, &self.device, self.number);
        let mean = handing.finish(gradients, self.trained.len())?;
        self.step_alone(&mean, learning_rate)
    }

    fn step_alone(&mut self, gradients: &Gradients, learning_rate: f64) -> Result<AdamStep> {
        self.use_average(false);
        let own = gradients.parts.iter().filter(|(parameter, _)| parameter.set == self.number);
        let average = self.average.as_mut().map(|(decay, average)| (*decay, average));
        let parts: Vec<_> = own.map(|(parameter, gradient)| (parameter.start, gradient)).collect();
        let trained = &mut self.trained;
        let step = self
            .moments
            .step(&self.device, (trained, average), &parts, learning_rate)
            .map_err(|error| match error {
                Error::NonFiniteGradient { index, value, .. } => self.name(index, value),
                error => error,
            })?;
        self.keep(gradients)?;
        Ok(step)
    }

    /// Takes over new values of buffers.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn keep(&mut self, gradients: &Gradients) -> Result<()> {
        for (buffer, value) in &gradients.kept {
            if buffer.set == self.number {
                self.device.write(&mut self.buffers, buffer.start, value)?;
            }
        }
        Ok(())
    }

    fn name(&self, index: usize, value: f32) -> Error {
        let holds = |entry: &&Entry| {
            let place = &entry.parameter;
            !place.is_buffer && (place.start..place.start + place.len()).contains(&index)
        };
        let (parameter, index) = match self.entries.iter().find(holds) {
            Some(entry) => (entry.name.clone(), index - entry.parameter.start),
            None => ("parameters".into(), index),
        };
        Error::NonFiniteGradient { parameter, index, value }
    }

    /// Lets tapes read the moving average in place of the parameters, or the parameters again.
    pub fn use_average(&mut self, is_wanted: bool) {
        if let Some((_, average)) = &mut self.average
            && self.is_average != is_wanted
        {
            std::mem::swap(average, &mut self.trained);
            self.is_average = is_wanted;
        }
    }

    /// Everything that a later step depends on: `parameters/name`, `adam/name.first_moment`,
    /// `adam/name.second_moment`, `adam/prefix.num_steps` and `average/name`.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn export(&self) -> Result<Tensors> {
        let mut state = Tensors::new();
        let trained = self.device.download(&self.trained)?;
        let buffers = self.device.download(&self.buffers)?;
        let (first, second) = self.moments.download(&self.device)?;
        let average = match &self.average {
            Some((_, average)) => Some(self.device.download(average)?),
            None => None,
        };
        // What is used at the moment may be the average.
        let (trained, average) = match average {
            Some(average) if self.is_average => (average, Some(trained)),
            average => (trained, average),
        };
        for Entry { name, dims, parameter } in &self.entries {
            let range = parameter.start..parameter.start + parameter.len();
            let tensor = |all: &[f32]| Tensor::new(dims.clone(), all[range.clone()].to_vec());
            if parameter.is_buffer {
                state.insert(format!("parameters/{name}"), tensor(&buffers)?);
                continue;
            }
            state.insert(format!("parameters/{name}"), tensor(&trained)?);
            state.insert(format!("adam/{name}.{FIRST_MOMENT}"), tensor(&first)?);
            state.insert(format!("adam/{name}.{SECOND_MOMENT}"), tensor(&second)?);
            if let Some(average) = &average {
                state.insert(format!("average/{name}"), tensor(average)?);
            }
        }
        let steps = Tensor::integer(i64::from(self.moments.num_steps));
        state.insert(format!("adam/{}.{NUM_STEPS}", self.prefix()), steps);
        Ok(state)
    }

    /// The first part of all names.
    fn prefix(&self) -> &str {
        let name = self.entries.first().map_or("", |entry| &entry.name);
        name.split('.').next().unwrap_or(name)
    }

    /// Takes back what [`export`](Self::export) gave, and removes it from `state`: what is left
    /// there belongs to others.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming an entry that is missing or does not fit; nothing is changed
    /// then.
    pub fn import(&mut self, state: &mut Tensors) -> Result<()> {
        self.use_average(false);
        let mut trained = self.device.download(&self.trained)?;
        let mut buffers = self.device.download(&self.buffers)?;
        let (mut first, mut second) = self.moments.download(&self.device)?;
        let mut average = trained.clone();
        let mut used = Vec::new();
        for Entry { name, dims, parameter } in &self.entries {
            let range = parameter.start..parameter.start + parameter.len();
            let mut parts: Vec<(String, &mut Vec<f32>)> = Vec::new();
            if parameter.is_buffer {
                parts.push((format!("parameters/{name}"), &mut buffers));
            } else {
                parts.push((format!("parameters/{name}"), &mut trained));
                parts.push((format!("adam/{name}.{FIRST_MOMENT}"), &mut first));
                parts.push((format!("adam/{name}.{SECOND_MOMENT}"), &mut second));
                if self.average.is_some() {
                    parts.push((format!("average/{name}"), &mut average));
                }
            }
            for (name, to) in parts {
                to[range.clone()].copy_from_slice(saved(state, &name, dims)?);
                used.push(name);
            }
        }
        let name = format!("adam/{}.{NUM_STEPS}", self.prefix());
        let found = state.get(&name).and_then(Tensor::as_integer);
        let Some(num_steps) = found.and_then(|steps| u32::try_from(steps).ok()) else {
            return Err(Error::invalid(name, "a saved number of steps", format!("{found:?}")));
        };
        used.push(name);
        self.trained = self.device.upload(trained)?;
        self.buffers = self.device.upload(buffers)?;
        self.moments.upload(&self.device, first, second, num_steps)?;
        if let Some((_, own)) = &mut self.average {
            *own = self.device.upload(average)?;
        }
        for name in &used {
            state.remove(name);
        }
        Ok(())
    }
}

pub(crate) const FIRST_MOMENT: &str = "first_moment";
pub(crate) const SECOND_MOMENT: &str = "second_moment";
pub(crate) const NUM_STEPS: &str = "num_steps";

fn saved<'a>(state: &'a BTreeMap<String, Tensor>, name: &str, dims: &[usize]) -> Result<&'a [f32]> {
    let found = state.get(name);
    match found.and_then(|tensor| Some((tensor.dims(), tensor.as_f32()?))) {
        Some((found, values)) if found == dims => Ok(values),
        _ => Err(Error::invalid(
            name,
            format!("a saved f32 tensor of shape {dims:?}"),
            found.map_or("none".into(), |tensor| format!("{tensor:?}")),
        )),
    }
}

/// Refuses entries of a saved state that no part of the model took.
///
/// # Errors
///
/// [`Error::InvalidValue`] naming one.
pub fn check_taken(state: &Tensors) -> Result<()> {
    match state.keys().next() {
        None => Ok(()),
        Some(name) => {
            Err(Error::invalid("state", "entries that this model has", format!("`{name}`")))
        }
    }
}

//! One step's graph: values in the order in which they were computed, and how to go back.

use std::cell::RefCell;
use std::fmt;

use super::{Array, Device, Parameter, ParameterSet};
use crate::{Error, Result};

/// The number of a value on its tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub(super) u32);

/// Rows and columns; every value is a matrix, row-major.
pub type Shape = (usize, usize);

/// The graph of one step, on one device.
///
/// Operations are computed when they are appended; [`backward`](Self::backward) walks them in
/// reverse. Only what depends on a trained parameter is kept for the way back.
pub struct Tape {
    device: Device,
    values: Vec<Value>,
    operations: Vec<Operation>,
    bound: Vec<Bound>,
    /// Those that were asked for.
    parameters: Vec<(Parameter, Var)>,
    kept: Vec<(Parameter, Array)>,
}

struct Value {
    array: Array,
    shape: Shape,
    /// Whether a gradient is asked for, and flows from it to a trained parameter.
    is_tracked: bool,
    parameter: Option<Parameter>,
}

struct Operation {
    inputs: Vec<Var>,
    first_output: usize,
    num_outputs: usize,
    reverse: Reverse,
}

#[derive(Clone)]
struct Bound {
    set: u32,
    trained: Array,
    buffers: Array,
    is_trained: bool,
}

type Reverse = Box<dyn FnOnce(&Reversal<'_>) -> Result<Vec<Option<Array>>>>;

/// What an operation is given on the way back.
#[derive(Debug)]
pub struct Reversal<'a> {
    /// Where everything lies.
    pub(super) device: &'a Device,
    /// ∂L/∂output of each output; `None` where L does not depend on it.
    pub(super) cotangents: &'a [Option<Array>],
    /// Whether ∂L/∂input is asked for, per input.
    pub(super) wanted: &'a [bool],
    /// ∂L/∂input as far as other uses of the input have summed it.
    sums: RefCell<Vec<Option<Array>>>,
}

impl Reversal<'_> {
    /// The cotangent of the only output.
    pub(super) fn cotangent(&self) -> Result<&Array> {
        match self.cotangents {
            [Some(cotangent)] => Ok(cotangent),
            _ => Err(Error::invalid("cotangents", "that of one output", self.cotangents.len())),
        }
    }

    /// What other uses of an input have summed, to be added to the gradient that is returned: the
    /// gradient of a large parameter is not written twice then.
    pub(super) fn take_sum(&self, input: usize) -> Option<Array> {
        self.sums.borrow_mut()[input].take()
    }

    /// Computes the gradient of an input if it is wanted.
    pub(super) fn when(
        &self,
        input: usize,
        gradient: impl FnOnce() -> Result<Array>,
    ) -> Result<Option<Array>> {
        if self.wanted[input] { gradient().map(Some) } else { Ok(None) }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tape {{ values: {}, device: {:?} }}", self.values.len(), self.device)
    }
}

impl Tape {
    /// An empty tape.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            values: Vec::new(),
            operations: Vec::new(),
            bound: Vec::new(),
            parameters: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// An empty tape that reads the same parameters, as constants.
    pub(super) fn reader(&self) -> Self {
        let mut tape = Self::new(&self.device);
        let constant = |bound: &Bound| Bound { is_trained: false, ..bound.clone() };
        tape.bound = self.bound.iter().map(constant).collect();
        tape
    }

    /// Where values are computed.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lets operations read the parameters of `set`, and trains them.
    pub fn train(&mut self, set: &ParameterSet) {
        self.bind(set, true);
    }

    /// Lets operations read the parameters of `set`, as constants.
    pub fn read(&mut self, set: &ParameterSet) {
        self.bind(set, false);
    }

    fn bind(&mut self, set: &ParameterSet, is_trained: bool) {
        let (trained, buffers) = set.arrays(is_trained);
        self.bound.push(Bound { set: set.number(), trained, buffers, is_trained });
    }

    /// A constant.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the numbers are not rows × columns.
    pub fn constant(&mut self, array: Array, shape: Shape) -> Result<Var> {
        if array.len() != shape.0 * shape.1 {
            let expected = format!("{} x {} numbers", shape.0, shape.1);
            return Err(Error::invalid("constant", expected, array.len()));
        }
        Ok(self.push(Value { array, shape, is_tracked: false, parameter: None }))
    }

    /// A constant from numbers of the host.
    ///
    /// # Errors
    ///
    /// As [`constant`](Self::constant), or if the device fails.
    pub fn upload(&mut self, values: Vec<f32>, shape: Shape) -> Result<Var> {
        let array = self.device.upload(values)?;
        self.constant(array, shape)
    }

    /// A value whose gradient is asked for; see [`gradient`](Self::gradient).
    ///
    /// # Errors
    ///
    /// As [`constant`](Self::constant).
    pub fn variable(&mut self, array: Array, shape: Shape) -> Result<Var> {
        let var = self.constant(array, shape)?;
        self.values[var.0 as usize].is_tracked = true;
        Ok(var)
    }

    /// A parameter of a bound set: one value, however often it is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if its set is not bound to this tape.
    pub fn parameter(&mut self, parameter: &Parameter) -> Result<Var> {
        let Some(bound) = self.bound.iter().find(|bound| bound.set == parameter.set) else {
            return Err(Error::invalid("parameter", "of a set that the tape reads", "another set"));
        };
        let known = self.parameters.iter().find(|(known, _)| known == parameter);
        if let Some(&(_, var)) = known {
            return Ok(var);
        }
        let from = if parameter.is_buffer { &bound.buffers } else { &bound.trained };
        let value = Value {
            array: from.view(parameter.start, parameter.len()),
            shape: (parameter.rows, parameter.columns),
            is_tracked: bound.is_trained && !parameter.is_buffer,
            parameter: Some(*parameter),
        };
        let var = self.push(value);
        self.parameters.push((*parameter, var));
        Ok(var)
    }

    /// The same numbers as a constant: nothing flows back through it.
    pub fn detach(&mut self, var: Var) -> Var {
        let value = &self.values[var.0 as usize];
        let (array, shape) = (value.array.clone(), value.shape);
        self.push(Value { array, shape, is_tracked: false, parameter: None })
    }

    /// The same numbers, row-major, under another shape.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if there are not as many.
    pub fn reshape(&mut self, var: Var, shape: Shape) -> Result<Var> {
        let array = self.array(var).clone();
        if array.len() != shape.0 * shape.1 {
            let expected = format!("{} numbers", array.len());
            return Err(Error::invalid("shape", expected, format!("{} x {}", shape.0, shape.1)));
        }
        Ok(self
            .record(&[var], array, shape, |reversal| Ok(vec![Some(reversal.cotangent()?.clone())])))
    }

    /// A new value of a buffer (running statistics), taken over when the step ends.
    pub fn keep(&mut self, buffer: &Parameter, value: Array) {
        self.kept.push((*buffer, value));
    }

    /// The numbers of a value.
    pub fn array(&self, var: Var) -> &Array {
        &self.values[var.0 as usize].array
    }

    /// Rows and columns of a value.
    pub fn shape(&self, var: Var) -> Shape {
        self.values[var.0 as usize].shape
    }

    /// A copy of a value on the host. Waits for the device.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn download(&self, var: Var) -> Result<Vec<f32>> {
        self.device.download(self.array(var))
    }

    /// Whether a gradient flows through a value.
    pub(crate) fn is_tracked(&self, var: Var) -> bool {
        self.values[var.0 as usize].is_tracked
    }

    /// Checks a value's shape.
    pub(crate) fn check(&self, field: &str, var: Var, expected: Shape) -> Result<()> {
        let found = self.shape(var);
        if found == expected {
            return Ok(());
        }
        let show = |(rows, columns): Shape| format!("{rows} x {columns}");
        Err(Error::invalid(field, show(expected), show(found)))
    }

    /// Appends an operation of one output.
    pub(super) fn record(
        &mut self,
        inputs: &[Var],
        array: Array,
        shape: Shape,
        reverse: impl FnOnce(&Reversal<'_>) -> Result<Vec<Option<Array>>> + 'static,
    ) -> Var {
        self.record_all(inputs, vec![(array, shape)], reverse)
    }

    /// Appends an operation of several outputs, whose numbers follow each other; the first is
    /// returned.
    pub(super) fn record_all(
        &mut self,
        inputs: &[Var],
        outputs: Vec<(Array, Shape)>,
        reverse: impl FnOnce(&Reversal<'_>) -> Result<Vec<Option<Array>>> + 'static,
    ) -> Var {
        let is_tracked = inputs.iter().any(|&input| self.is_tracked(input));
        let (first_output, num_outputs) = (self.values.len(), outputs.len());
        for (array, shape) in outputs {
            debug_assert_eq!(array.len(), shape.0 * shape.1);
            self.push(Value { array, shape, is_tracked, parameter: None });
        }
        if is_tracked {
            let (inputs, reverse) = (inputs.to_vec(), Box::new(reverse));
            self.operations.push(Operation { inputs, first_output, num_outputs, reverse });
        }
        Var(u32::try_from(first_output).unwrap_or(u32::MAX))
    }

    fn push(&mut self, value: Value) -> Var {
        self.values.push(value);
        Var(u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX))
    }

    /// ∂`loss`/∂parameter of every trained parameter that it depends on. The tape ends here.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the loss is no single number or depends on no trained
    /// parameter, and what operations report on the way back.
    pub fn backward(self, loss: Var) -> Result<Gradients> {
        self.backward_telling(loss, |_, _| Ok(()))
    }

    /// The same, and tells of the gradient of a parameter as soon as nothing more can be added to it: when the
    /// first operation that read the parameter has been passed on the way back. The order is that of the
    /// operations, whatever the numbers are.
    ///
    /// # Errors
    ///
    /// As [`backward`](Self::backward), and what `tell` reports.
    pub(super) fn backward_telling(
        mut self,
        loss: Var,
        tell: impl FnMut(&Parameter, Option<&Array>) -> Result<()>,
    ) -> Result<Gradients> {
        self.check("loss", loss, (1, 1))?;
        if !self.is_tracked(loss) {
            let expected = "a function of a trained parameter";
            return Err(Error::invalid("loss", expected, "a constant"));
        }
        let gradients = self.reverse(loss, tell)?;
        let of_parameters = self.values.iter().zip(gradients);
        let parts = of_parameters
            .filter_map(|(value, gradient)| Some((value.parameter?, gradient?)))
            .collect();
        Ok(Gradients { parts, kept: self.kept })
    }

    /// ∂Σ`of`/∂`at`, where `at` is a [`variable`](Self::variable) and the sum is over all entries;
    /// zeros if they do not depend on it. The tape ends here.
    ///
    /// # Errors
    ///
    /// What operations report on the way back.
    pub fn gradient(mut self, of: Var, at: Var) -> Result<Array> {
        let gradient = self.reverse(of, |_, _| Ok(()))?.swap_remove(at.0 as usize);
        let length = self.array(at).len();
        gradient.map_or_else(|| self.device.zeros(length), Ok)
    }

    /// Trained parameters and the number of the first operation that read each, in the order of operations.
    fn first_readers(&self) -> Vec<(usize, Var)> {
        let (mut found, mut is_found) = (Vec::new(), vec![false; self.values.len()]);
        for (number, operation) in self.operations.iter().enumerate() {
            for &input in &operation.inputs {
                let at = input.0 as usize;
                if self.values[at].parameter.is_some() && self.is_tracked(input) && !is_found[at] {
                    is_found[at] = true;
                    found.push((number, input));
                }
            }
        }
        found
    }

    /// The gradient of the sum over all entries of `from`, per value.
    fn reverse(
        &mut self,
        from: Var,
        mut tell: impl FnMut(&Parameter, Option<&Array>) -> Result<()>,
    ) -> Result<Vec<Option<Array>>> {
        let mut gradients: Vec<Option<Array>> = vec![None; self.values.len()];
        let mut untold = self.first_readers();
        gradients[from.0 as usize] = Some(self.device.ones(self.array(from).len())?);
        loop {
            // Those whose first reader was the last operation.
            let passed = untold.partition_point(|(reader, _)| *reader < self.operations.len());
            for (_, var) in untold.split_off(passed) {
                if let Some(parameter) = &self.values[var.0 as usize].parameter {
                    tell(parameter, gradients[var.0 as usize].as_ref())?;
                }
            }
            let Some(operation) = self.operations.pop() else { break };
            let outputs = operation.first_output..operation.first_output + operation.num_outputs;
            if gradients[outputs.clone()].iter().all(Option::is_none) {
                continue;
            }
            let cotangents: Vec<_> = gradients[outputs].iter_mut().map(Option::take).collect();
            let wanted: Vec<bool> =
                operation.inputs.iter().map(|&input| self.is_tracked(input)).collect();
            let sums: Vec<_> =
                operation.inputs.iter().map(|input| gradients[input.0 as usize].take()).collect();
            let reversal = Reversal {
                device: &self.device,
                cotangents: &cotangents,
                wanted: &wanted,
                sums: RefCell::new(sums),
            };
            let found = (operation.reverse)(&reversal)?;
            debug_assert_eq!(found.len(), operation.inputs.len());
            let sums = reversal.sums.into_inner();
            for (input, terms) in operation.inputs.iter().zip(sums.into_iter().zip(found)) {
                let gradient = terms.1.filter(|_| self.is_tracked(*input));
                let place = &mut gradients[input.0 as usize];
                for term in [terms.0, gradient].into_iter().flatten() {
                    *place = Some(match place.take() {
                        Some(sum) => self.device.add(sum, &term)?,
                        None => term,
                    });
                }
            }
        }
        Ok(gradients)
    }

    /// Ends a tape that nothing is learned from, and hands over its new buffers.
    pub fn finish(self) -> Gradients {
        Gradients { parts: Vec::new(), kept: self.kept }
    }
}

/// What a step found: gradients of parameters, and new values of buffers.
#[derive(Debug)]
pub struct Gradients {
    pub(crate) parts: Vec<(Parameter, Array)>,
    pub(crate) kept: Vec<(Parameter, Array)>,
}

impl Gradients {
    /// The gradient of one parameter, summed over its uses, on the host; `None` if nothing depends
    /// on it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn of(&self, parameter: &Parameter, device: &Device) -> Result<Option<Vec<f32>>> {
        let mut sum: Option<Vec<f32>> = None;
        for (_, gradient) in self.parts.iter().filter(|(found, _)| found == parameter) {
            let more = device.download(gradient)?;
            sum = Some(match sum {
                Some(sum) => sum.iter().zip(&more).map(|(a, b)| a + b).collect(),
                None => more,
            });
        }
        Ok(sum)
    }
}

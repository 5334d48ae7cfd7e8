//! Operations of the tape as cases: their inputs, how they are recorded, and a plain f64 twin.
//!
//! A case is judged twice: its outputs by the twin, and its gradients by central differences of the
//! twin (`tape.rs`). On a GPU the same cases are compared with the CPU (`tape_cuda.rs`).

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod convolution;
#[allow(dead_code, reason = "two test programs share these cases, each uses some")]
mod large;
mod mixture;
mod models;
mod points;
mod simple;

use ebp::Result;
use ebp::rng::Stream;
use ebp::tape::{
    AdamConfig, Device, Initialiser, ParameterBuilder, ParameterSet, Shape, Tape, Var,
};

/// A matrix that an operation reads.
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) values: Vec<f32>,
    /// Whether the operation says how a loss depends on it.
    pub(crate) is_tracked: bool,
}

/// What a case records.
#[derive(Default)]
pub(crate) struct Outputs {
    /// Values that a loss may depend on.
    pub(crate) tracked: Vec<Var>,
    /// Values that count as constants.
    pub(crate) constants: Vec<Var>,
}

impl From<Var> for Outputs {
    fn from(output: Var) -> Self {
        Self { tracked: vec![output], constants: Vec::new() }
    }
}

type Build = Box<dyn Fn(&mut Tape, &[Var]) -> Result<Outputs>>;
type Twin = Box<dyn Fn(&[Vec<f64>]) -> Vec<Vec<f64>>>;

/// An operation on given inputs.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    build: Build,
    /// The outputs, tracked ones first.
    twin: Twin,
}

/// What a device found: outputs, tracked ones first, and the gradient of every tracked input.
pub(crate) struct Found {
    pub(crate) outputs: Vec<Vec<f32>>,
    pub(crate) gradients: Vec<Vec<f32>>,
}

impl Case {
    pub(crate) fn new(
        name: impl Into<String>,
        inputs: Vec<Input>,
        build: impl Fn(&mut Tape, &[Var]) -> Result<Outputs> + 'static,
        twin: impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>> + 'static,
    ) -> Self {
        Self { name: name.into(), inputs, build: Box::new(build), twin: Box::new(twin) }
    }

    /// Records the case, and goes back from L = Σ r · output with fixed random r.
    pub(crate) fn run(&self, device: &Device) -> Result<Found> {
        let mut builder = ParameterBuilder::new(1);
        let mut places = Vec::new();
        for input in self.inputs.iter().filter(|input| input.is_tracked) {
            let (rows, columns) = input.shape;
            let mut group = builder.group("inputs");
            let place = group.trained(input.name, &[rows, columns], Initialiser::Zeros)?;
            group.values_mut(&place).copy_from_slice(&input.values);
            places.push(place);
        }
        let set = ParameterSet::new(builder, device, AdamConfig::default(), None)?;
        let mut tape = device.tape();
        tape.train(&set);
        let mut tracked = places.iter();
        let mut vars = Vec::new();
        for input in &self.inputs {
            vars.push(if input.is_tracked {
                tape.parameter(tracked.next().unwrap())?
            } else {
                tape.upload(input.values.clone(), input.shape)?
            });
        }
        let Outputs { tracked, constants } = (self.build)(&mut tape, &vars)?;
        let outputs = tracked.iter().chain(&constants).map(|&var| tape.download(var));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        if tracked.is_empty() {
            return Ok(Found { outputs, gradients: Vec::new() });
        }
        let mut loss = None;
        for (number, &output) in tracked.iter().enumerate() {
            let shape = tape.shape(output);
            let weights = tape.upload(weights(number, shape.0 * shape.1), shape)?;
            let weighted = tape.multiply(output, weights)?;
            let term = tape.sum(weighted)?;
            loss = Some(match loss {
                Some(sum) => tape.add(sum, term)?,
                None => term,
            });
        }
        let gradients = tape.backward(loss.unwrap())?;
        let of_inputs = places.iter().map(|place| {
            let zeros = || vec![0.0; place.len()];
            Ok(gradients.of(place, device)?.unwrap_or_else(zeros))
        });
        Ok(Found { outputs, gradients: of_inputs.collect::<Result<_>>()? })
    }

    /// Outputs against the twin, gradients against central differences of the twin.
    pub(crate) fn check_on_the_cpu(&self) {
        let found = self.run(&Device::default()).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let point: Vec<Vec<f64>> = self.inputs.iter().map(|input| widen(&input.values)).collect();
        let expected = (self.twin)(&point);
        assert_eq!(found.outputs.len(), expected.len(), "{}: number of outputs", self.name);
        for (number, (found, expected)) in found.outputs.iter().zip(&expected).enumerate() {
            assert_close(&format!("{} output {number}", self.name), found, expected);
        }
        if found.gradients.is_empty() {
            return;
        }
        let tracked = (0..self.inputs.len()).filter(|&input| self.inputs[input].is_tracked);
        for (input, gradient) in tracked.zip(&found.gradients) {
            let what = format!("{} gradient of {}", self.name, self.inputs[input].name);
            assert_close(&what, gradient, &self.differences(&point, input));
        }
    }

    /// ∂L/∂input by (L(x + h) − L(x − h)) / 2h in f64: errs by h² = 1e-10 times a third derivative.
    fn differences(&self, point: &[Vec<f64>], input: usize) -> Vec<f64> {
        const H: f64 = 1e-5;
        let mut nudged = point.to_vec();
        let mut difference = |index: usize| {
            let mut loss = |shift: f64| {
                nudged[input][index] = point[input][index] + shift;
                self.twin_loss(&nudged)
            };
            let (above, below) = (loss(H), loss(-H));
            nudged[input][index] = point[input][index];
            (above - below) / (2.0 * H)
        };
        (0..point[input].len()).map(&mut difference).collect()
    }

    fn twin_loss(&self, point: &[Vec<f64>]) -> f64 {
        let outputs = (self.twin)(point);
        let num_tracked = self.num_tracked_outputs();
        let tracked = outputs.iter().take(num_tracked).enumerate();
        let terms = tracked.map(|(number, output)| {
            let weights = weights(number, output.len());
            output.iter().zip(weights).map(|(x, r)| x * f64::from(r)).sum::<f64>()
        });
        terms.sum()
    }

    fn num_tracked_outputs(&self) -> usize {
        let device = Device::default();
        let mut tape = device.tape();
        let upload = |input: &Input| tape.upload(input.values.clone(), input.shape).unwrap();
        let vars: Vec<Var> = self.inputs.iter().map(upload).collect();
        (self.build)(&mut tape, &vars).unwrap().tracked.len()
    }
}

/// The fixed directions r of output `number`.
fn weights(number: usize, length: usize) -> Vec<f32> {
    normals(&format!("weights {number}"), length)
}

/// Standard normals of a name.
pub(crate) fn normals(name: &str, length: usize) -> Vec<f32> {
    let mut values = vec![0.0; length];
    Stream::new(3, name).fill_normal(0, 0, &mut values);
    values
}

/// A tracked input of standard normals.
pub(crate) fn random(name: &'static str, shape: Shape) -> Input {
    scaled(name, shape, 1.0)
}

/// A tracked input of normals of some standard deviation.
pub(crate) fn scaled(name: &'static str, shape: Shape, std_dev: f32) -> Input {
    let values = normals(name, shape.0 * shape.1).into_iter().map(|x| std_dev * x).collect();
    Input { name, shape, values, is_tracked: true }
}

/// The same input as a constant.
pub(crate) fn fixed(input: Input) -> Input {
    Input { is_tracked: false, ..input }
}

pub(crate) fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// How far f32 may be from f64, relative to 1 + the largest magnitude: sums of some hundred terms
/// of order one, through a few layers and back.
pub(crate) const TOLERANCE: f64 = 1e-5;

/// Asserts |found − expected| ≤ [`TOLERANCE`] (1 + max |expected|), entry by entry.
#[track_caller]
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let bound = TOLERANCE * (1.0 + largest);
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(
            error <= bound,
            "{what}[{index}]: found {found}, expected {expected}, error {error:e} > {bound:e}"
        );
    }
}

pub(crate) use self::convolution::convolutions;
#[allow(unused_imports, reason = "two test programs share these cases, each uses some")]
pub(crate) use self::large::all as large;
pub(crate) use self::mixture::all as mixtures;
pub(crate) use self::models::all as models;
pub(crate) use self::points::all as points;
pub(crate) use self::simple::all as simple;

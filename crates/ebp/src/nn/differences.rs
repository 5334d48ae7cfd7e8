//! Gradients of modules against differences of their values.

use crate::Result;
use crate::rng::Stream;
use crate::tape::{AdamConfig, Device, Parameter, ParameterBuilder, ParameterSet, Tape, Var};

/// Compares ∂L/∂p with (L(p + h) − L(p − h))/2h for every number of the named parameters, where L
/// weighs the entries of `output` at random.
///
/// f32 values of order one carry errors of about 1e-6; with h = 1e-2 that is 1e-4 in the quotient,
/// and the curvature adds h² = 1e-4.
pub(crate) fn check(
    builder: ParameterBuilder,
    parameters: &[(&str, Parameter)],
    output: impl Fn(&mut Tape) -> Result<Var>,
) {
    let device = Device::default();
    let mut set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
    let loss = |set: &ParameterSet| {
        let mut tape = device.tape();
        tape.train(set);
        let found = output(&mut tape).unwrap();
        let weights = tape.normals(tape.shape(found), Stream::new(9, "weights")).unwrap();
        let weighted = tape.multiply(found, weights).unwrap();
        let loss = tape.sum(weighted).unwrap();
        let value = f64::from(tape.download(loss).unwrap()[0]);
        (value, tape.backward(loss).unwrap())
    };
    let (_, gradients) = loss(&set);
    let start = set.export().unwrap();
    for (name, parameter) in parameters {
        let found = gradients.of(parameter, &device).unwrap();
        let found = found.unwrap_or_else(|| vec![0.0; parameter.len()]);
        let key = format!("parameters/model.{name}");
        for (index, found) in found.iter().enumerate() {
            let mut value = |shift: f32| {
                let mut state = start.clone();
                let mut values = start[&key].as_f32().unwrap().to_vec();
                values[index] += shift;
                let dims = start[&key].dims().to_vec();
                state.insert(key.clone(), crate::tensor::Tensor::new(dims, values).unwrap());
                set.import(&mut state).unwrap();
                loss(&set).0
            };
            let h = 1e-2;
            let expected = (value(h) - value(-h)) / (2.0 * f64::from(h));
            let error = (f64::from(*found) - expected).abs();
            assert!(error < 2e-3 * (1.0 + expected.abs()), "{name}[{index}]: {found} {expected}");
        }
    }
}

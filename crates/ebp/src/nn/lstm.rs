//! Long short-term memory:
//!
//! ```text
//! [i, f, g, o] = W [x, h] + b,    c' = sigmoid(f) c + sigmoid(i) tanh(g),    h' = sigmoid(o) tanh(c')
//! ```

use crate::Result;
use crate::nn::{Dense, DenseConfig};
use crate::tape::{Group, Initialiser, Tape, Var};

/// A layer of long short-term memory.
#[derive(Clone, Debug)]
pub struct LSTM {
    gates: Dense,
    width: usize,
}

/// What the layer remembers, a row per sequence.
#[derive(Clone, Copy, Debug)]
pub struct LSTMState {
    /// h, `[rows, width]`: what others read.
    pub hidden: Var,
    /// c, `[rows, width]`.
    pub memory: Var,
}

impl LSTM {
    /// Weights from U(−b, b), b = 1/√width; biases start at zero.
    ///
    /// # Errors
    ///
    /// As [`Dense::new`].
    pub fn new(group: &mut Group<'_>, name: &str, inputs: usize, width: usize) -> Result<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
        let bound = (1.0 / (width.max(1) as f64).sqrt()) as f32;
        let law = Initialiser::Uniform { low: -bound, high: bound };
        let config = DenseConfig::linear(inputs + width, 4 * width, law);
        Ok(Self { gates: Dense::new(group, name, &config)?, width })
    }

    /// Nothing remembered yet.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn start(&self, tape: &mut Tape, rows: usize) -> Result<LSTMState> {
        let zeros = tape.device().zeros(rows * self.width)?;
        let zeros = tape.constant(zeros, (rows, self.width))?;
        Ok(LSTMState { hidden: zeros, memory: zeros })
    }

    /// The state after reading `input` `[rows, inputs]`.
    ///
    /// # Errors
    ///
    /// As every operation of the tape.
    pub fn step(&self, tape: &mut Tape, input: Var, state: LSTMState) -> Result<LSTMState> {
        let read = tape.concat(&[input, state.hidden])?;
        let gates = self.gates.forward(tape, read)?;
        let (hidden, memory) = tape.lstm_cell(gates, state.memory)?;
        Ok(LSTMState { hidden, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::super::differences::check;
    use super::*;
    use crate::rng::Stream;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    const INPUTS: usize = 2;
    const WIDTH: usize = 3;

    fn run(layer: &LSTM, tape: &mut Tape, length: u64) -> Result<Var> {
        let mut state = layer.start(tape, 2)?;
        for time in 0..length {
            let input = tape.normals((2, INPUTS), Stream::new(5, "input").child(time))?;
            state = layer.step(tape, input, state)?;
        }
        Ok(state.hidden)
    }

    #[test]
    fn the_layer_follows_the_plain_loop() {
        let mut builder = ParameterBuilder::new(8);
        let layer = LSTM::new(&mut builder.group("model"), "cell", INPUTS, WIDTH).unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let found = run(&layer, &mut tape, 4).unwrap();
        let found = tape.download(found).unwrap();
        let weights = set.values(layer.gates.parameters()).unwrap();
        let (columns, sigmoid) = (INPUTS + WIDTH, |x: f64| 1.0 / (1.0 + (-x).exp()));
        for row in 0..2 {
            let (mut h, mut c) = (vec![0.0_f64; WIDTH], vec![0.0_f64; WIDTH]);
            for time in 0..4 {
                let mut input = vec![0.0; 2 * INPUTS];
                Stream::new(5, "input").child(time).fill_normal(0, 0, &mut input);
                let x = input[row * INPUTS..][..INPUTS].iter().map(|&x| f64::from(x));
                let read: Vec<f64> = x.chain(h.iter().copied()).collect();
                let gate = |unit: usize| -> f64 {
                    let line = weights[unit * columns..][..columns].iter().zip(&read);
                    let bias = f64::from(weights[4 * WIDTH * columns + unit]);
                    line.map(|(&w, x)| f64::from(w) * x).sum::<f64>() + bias
                };
                let gates: Vec<f64> = (0..4 * WIDTH).map(gate).collect();
                for k in 0..WIDTH {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|part| gates[part * WIDTH + k]);
                    c[k] = sigmoid(f) * c[k] + sigmoid(i) * g.tanh();
                    h[k] = sigmoid(o) * c[k].tanh();
                }
            }
            for (found, expected) in found[row * WIDTH..].iter().zip(&h) {
                assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
    }

    #[test]
    fn gradients_pass_through_time() {
        let mut builder = ParameterBuilder::new(8);
        let layer = LSTM::new(&mut builder.group("model"), "cell", INPUTS, WIDTH).unwrap();
        let parameters = [("cell", *layer.gates.parameters())];
        check(builder, &parameters, |tape| run(&layer, tape, 3));
    }
}

//! The cell of a long short-term memory, after its gates are known:
//!
//! ```text
//! [i, f, g, o] = gates,    c' = sigmoid(f) c + sigmoid(i) tanh(g),    h' = sigmoid(o) tanh(c')
//! ```

use super::{Array, Device, Tape, Var, cuda};
use crate::Result;

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// (h', c').
fn cell(device: &Device, gates: &Array, state: &Array, width: usize) -> Result<[Array; 2]> {
    match device {
        Device::Cpu(_) => {
            let (gates, state) = (gates.host()?, state.host()?);
            let (mut hidden, mut memory) =
                (Vec::with_capacity(state.len()), Vec::with_capacity(state.len()));
            for (gates, state) in gates.chunks_exact(4 * width).zip(state.chunks_exact(width)) {
                for (unit, c) in state.iter().enumerate() {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * width + unit]);
                    let next = sigmoid(f) * c + sigmoid(i) * g.tanh();
                    memory.push(next);
                    hidden.push(sigmoid(o) * next.tanh());
                }
            }
            Ok([hidden.into(), memory.into()])
        }
        Device::Cuda(gpu) => cuda::cell(gpu, gates.cuda()?, state.cuda()?, width),
    }
}

/// Gradients with respect to gates and c, from those of h' and c'.
fn cell_backward(
    device: &Device,
    [gates, state]: [&Array; 2],
    [of_hidden, of_memory]: [Option<&Array>; 2],
    width: usize,
) -> Result<[Array; 2]> {
    match device {
        Device::Cpu(_) => {
            let (gates, state) = (gates.host()?, state.host()?);
            let host = |array: Option<&Array>| array.map(|array| array.host().cloned()).transpose();
            let (of_hidden, of_memory) = (host(of_hidden)?, host(of_memory)?);
            let mut to_gates = vec![0.0; gates.len()];
            let mut to_state = vec![0.0; state.len()];
            for (row, to_gates) in to_gates.chunks_exact_mut(4 * width).enumerate() {
                for unit in 0..width {
                    let at = row * width + unit;
                    let gate = |gate: usize| gates[4 * row * width + gate * width + unit];
                    let (i, f, o) = (sigmoid(gate(0)), sigmoid(gate(1)), sigmoid(gate(3)));
                    let (g, c) = (gate(2).tanh(), state[at]);
                    let bent = (f * c + i * g).tanh();
                    let h = of_hidden.as_ref().map_or(0.0, |of_hidden| of_hidden[at]);
                    let m = of_memory.as_ref().map_or(0.0, |of_memory| of_memory[at])
                        + h * o * (1.0 - bent * bent);
                    to_gates[unit] = m * g * i * (1.0 - i);
                    to_gates[width + unit] = m * c * f * (1.0 - f);
                    to_gates[2 * width + unit] = m * i * (1.0 - g * g);
                    to_gates[3 * width + unit] = h * bent * o * (1.0 - o);
                    to_state[at] = m * f;
                }
            }
            Ok([to_gates.into(), to_state.into()])
        }
        Device::Cuda(gpu) => {
            let of_hidden = of_hidden.map(Array::cuda).transpose()?;
            let of_memory = of_memory.map(Array::cuda).transpose()?;
            cuda::cell_backward(gpu, [gates.cuda()?, state.cuda()?], [of_hidden, of_memory], width)
        }
    }
}

impl Tape {
    /// (h', c') from `gates` `[rows, 4 width]` and c `[rows, width]`.
    ///
    /// # Errors
    ///
    /// As [`affine`](Self::affine).
    pub fn lstm_cell(&mut self, gates: Var, state: Var) -> Result<(Var, Var)> {
        let (rows, width) = self.shape(state);
        self.check("gates", gates, (rows, 4 * width))?;
        let (of_gates, of_state) = (self.array(gates).clone(), self.array(state).clone());
        let [hidden, memory] = cell(self.device(), &of_gates, &of_state, width)?;
        let shape = (rows, width);
        let outputs = vec![(hidden, shape), (memory, shape)];
        let first = self.record_all(&[gates, state], outputs, move |reversal| {
            let cotangents = [reversal.cotangents[0].as_ref(), reversal.cotangents[1].as_ref()];
            let inputs = [&of_gates, &of_state];
            let [gates, state] = cell_backward(reversal.device, inputs, cotangents, width)?;
            Ok(vec![Some(gates), Some(state)])
        });
        Ok((first, Var(first.0 + 1)))
    }
}

//! Spectral normalisation of all layers of a network (Miyato et al., 2018), with its left vectors as
//! a buffer.
//!
//! The norms from few power iterations are too small, so W̄ may be longer than 1 at the start: begin
//! with [`SpectralNorm::iterate`].

use std::sync::Arc;

use crate::Result;
use crate::nn::Mode;
use crate::point::MlpShape;
use crate::tape::{Group, Initialiser, Operators, Parameter, ParameterSet, Tape, Var};

/// The operators of a network and the vectors of their power iterations.
#[derive(Clone, Debug)]
pub struct SpectralNorm {
    operators: Arc<Operators>,
    left: Parameter,
}

impl SpectralNorm {
    /// For the flat parameters of a network; biases pass unchanged. The vectors are the buffer
    /// `left_vectors`.
    ///
    /// # Errors
    ///
    /// As [`Group::buffer`].
    pub fn new(group: &mut Group<'_>, shape: &MlpShape) -> Result<Self> {
        let operators = Arc::new(Operators::new(shape));
        let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
        let left = group.buffer("left_vectors", &[operators.num_rows()], law)?;
        Ok(Self { operators, left })
    }

    /// The parameters with every layer divided by its norm. [`Mode::Train`] moves the vectors by
    /// one power iteration, which the set keeps when the step ends.
    ///
    /// # Errors
    ///
    /// As [`Tape::spectral_norm`].
    pub fn normalise(&self, tape: &mut Tape, weights: Var, mode: Mode) -> Result<Var> {
        let left = tape.parameter(&self.left)?;
        let moves = mode == Mode::Train;
        let (normalised, left) = tape.spectral_norm(weights, left, &self.operators, moves)?;
        if moves {
            let left = tape.array(left).clone();
            tape.keep(&self.left, left);
        }
        Ok(normalised)
    }

    /// Moves the vectors by `num_iterations` power iterations.
    ///
    /// # Errors
    ///
    /// As [`Tape::spectral_norm`].
    pub fn iterate(
        &self,
        set: &mut ParameterSet,
        weights: &Parameter,
        num_iterations: usize,
    ) -> Result<()> {
        for _ in 0..num_iterations {
            let mut tape = set.device().tape();
            tape.read(set);
            let weights = tape.parameter(weights)?;
            self.normalise(&mut tape, weights, Mode::Train)?;
            set.keep(&tape.finish())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Network;
    use crate::point::MlpConfig;
    use crate::tape::{AdamConfig, Device, ParameterBuilder};

    /// After many iterations ‖W̄‖ = 1: no unit vector is made longer, and one keeps its length.
    #[test]
    fn layers_have_norm_one_after_many_iterations() {
        let mut builder = ParameterBuilder::new(3);
        let mut group = builder.group("model");
        let config = MlpConfig { context_dim: 0, hidden_widths: vec![4], ..MlpConfig::default() };
        let network = Network::new(&mut group, "network", config).unwrap();
        let norm = SpectralNorm::new(&mut group, network.shape()).unwrap();
        let device = Device::default();
        let mut set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        norm.iterate(&mut set, network.parameters(), 200).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let weights = tape.parameter(network.parameters()).unwrap();
        let normalised = norm.normalise(&mut tape, weights, Mode::Evaluate).unwrap();
        let all = tape.download(normalised).unwrap();
        assert!(tape.finish().kept.is_empty());
        let layer = &network.shape().layers()[0];
        let rows: Vec<&[f32]> = all[layer.weight.clone()].chunks_exact(3).collect();
        let mut longest = 0.0_f64;
        for i in 0..200 {
            for j in 0..100 {
                let (a, b) = (f64::from(i) * 0.0314, f64::from(j) * 0.0314);
                let x = [a.cos() * b.sin(), a.sin() * b.sin(), b.cos()];
                let length = |row: &&[f32]| {
                    row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>().powi(2)
                };
                longest = longest.max(rows.iter().map(length).sum::<f64>().sqrt());
            }
        }
        // The grid's directions are within 0.03 of any: 1 − 0.03² at worst.
        assert!((0.999..1.0 + 1e-5).contains(&longest), "{longest}");
    }
}

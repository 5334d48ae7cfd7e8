//! Every draw for itself: a network writes the planar flow of an anchor from θ and its location.

use super::writer::Writer;
use super::{Drawn, Places};
use crate::Result;
use crate::recipe::SamplerConfig;
use crate::rng::Stream;
use crate::tape::{Group, Tape, Var};

#[derive(Clone, Debug)]
pub(super) struct FlowGenerator {
    dims: usize,
    writer: Writer,
}

impl FlowGenerator {
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        group: &mut Group<'_>,
    ) -> Result<Self> {
        // Layers of zeros are the identity.
        let start = vec![0.0; config.num_layers * (2 * dims + 1)];
        let writer = Writer::new(config, (num_features, latent_dim), &start, group)?;
        Ok(Self { dims, writer })
    }

    /// `count` draws per anchor.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        theta: Var,
        places: &Places,
        count: usize,
        stream: Stream,
    ) -> Result<Drawn> {
        let layers = self.writer.write(tape, theta, places)?;
        let draws = tape.planar(layers, self.dims, count, stream)?;
        Ok(Drawn { values: draws.values, log_density: draws.log_density, log_shares: None })
    }
}

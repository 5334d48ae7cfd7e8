//! Maximum likelihood with log Z as a sum over a finite alphabet (`energy::levels`) or a vocabulary
//! (`energy::words`): no estimate.

use super::{Estimate, Partition, Round};
use crate::energy::Energy;
use crate::sampler::mean_of_means;
use crate::tape::Tape;
use crate::{Error, Result};

#[derive(Debug)]
pub(super) struct Exact;

impl Partition for Exact {
    fn loss(&mut self, tape: &mut Tape, round: &Round<'_>) -> Result<Estimate> {
        if let (Energy::Words(words), Some((rows, shares))) = (round.energy, round.made.words) {
            let masses = words.log_mass(tape, round.theta, rows)?;
            let shares = tape.constant(shares.clone(), (shares.len(), 1))?;
            let terms = tape.multiply(masses, shares)?;
            let mean = tape.sum(terms)?;
            let nats = tape.affine(mean, -1.0, 0.0)?;
            return Ok(Estimate::of_nats(nats));
        }
        let (Energy::Levels(levels), Some(symbols), Some(features)) =
            (round.energy, round.made.symbols, round.targets.features)
        else {
            return Err(Error::invalid("batch", "with symbols", "without"));
        };
        let offsets = &round.targets.offsets;
        let masses = levels.log_mass(tape, (features, round.theta, offsets), symbols)?;
        let mean = mean_of_means(tape, masses, offsets)?;
        // Densities are masses over the widths of their cells.
        let log_cells = levels.alphabet.log_cell() * levels.num_channels() as f64;
        let loss = tape.affine(mean, -1.0, 0.0)?;
        let nats = tape.affine(mean, -1.0, log_cells)?;
        Ok(Estimate { loss, ..Estimate::of_nats(nats) })
    }
}

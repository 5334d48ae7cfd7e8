//! f(x, t; θ): log potentials of values at places, given a latent.
//!
//! `element` is a network over one value, `levels` gives the potentials of all symbols of a finite
//! alphabet at once, channel by channel, `words` those of a vocabulary, once per set. Beside its location a target may see the context around it
//! (`surroundings`, `attention`, the convolutional `view`) and what latents paint at its place (`canvas`): all of it enters as
//! numbers of the location, so that given θ targets are independent and any number of them has a
//! law.

mod attention;
mod canvas;
mod element;
mod features;
mod levels;
mod surroundings;
mod view;
mod words;

pub(crate) use self::attention::{CrossAttention, Looks};
pub(crate) use self::canvas::Canvas;
pub(crate) use self::element::{ElementEnergy, base_measure, element_rows};
pub(crate) use self::features::{known_places, push_features};
pub(crate) use self::levels::{Alphabet, LevelsEnergy, SymbolRows};
pub(crate) use self::surroundings::{Observed, Surroundings};
pub(crate) use self::view::{Seen, View, push_grid};
pub(crate) use self::words::{WordRows, WordsEnergy};

/// How potentials are computed.
#[derive(Clone, Debug)]
pub(crate) enum Energy {
    /// f of one value.
    Element(ElementEnergy),
    /// Those of all symbols at once.
    Levels(LevelsEnergy),
    /// Those of all words of a vocabulary, once per set.
    Words(WordsEnergy),
}

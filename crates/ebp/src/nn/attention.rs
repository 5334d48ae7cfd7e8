//! Attention with several heads and linear maps of its own (Vaswani et al., 2017).

use std::sync::Arc;

use crate::nn::{Dense, DenseConfig, Initialiser};
use crate::tape::{AttentionSets, Group, Tape, Var};
use crate::{Error, Result};

/// o = W_o attention(W_q q, W_k k, W_v v), per head.
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    query: Dense,
    key: Dense,
    value: Dense,
    output: Dense,
    num_heads: usize,
}

/// What looks and what is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// `[queries, width]`.
    pub queries: Var,
    /// `[keys, width]`.
    pub keys: Var,
    /// What is found at the keys, `[keys, width]`.
    pub values: Var,
}

impl MultiHeadAttention {
    /// Four maps `query`, `key`, `value` and `output` of `[width, width]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `num_heads` does not divide `width`; else as [`Dense::new`].
    pub fn new(group: &mut Group<'_>, width: usize, num_heads: usize) -> Result<Self> {
        if num_heads == 0 || !width.is_multiple_of(num_heads) {
            let expected = format!("a divisor of width {width}");
            return Err(Error::invalid("num_heads", expected, num_heads));
        }
        let config = DenseConfig::linear(width, width, Initialiser::Xavier);
        let mut map = |name| Dense::new(group, name, &config);
        Ok(Self {
            query: map("query")?,
            key: map("key")?,
            value: map("value")?,
            output: map("output")?,
            num_heads,
        })
    }

    /// What each query finds among the keys of its set, `[queries, width]`; the output's bias
    /// where a set has none.
    ///
    /// # Errors
    ///
    /// As [`Tape::attention`].
    pub fn forward(
        &self,
        tape: &mut Tape,
        looking: Looking,
        sets: &Arc<AttentionSets>,
    ) -> Result<Var> {
        let queries = self.query.forward(tape, looking.queries)?;
        let keys = self.key.forward(tape, looking.keys)?;
        let values = self.value.forward(tape, looking.values)?;
        let found = tape.attention(queries, keys, values, sets, self.num_heads)?;
        self.output.forward(tape, found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::differences::check;
    use super::*;
    use crate::rng::Stream;
    use crate::tape::ParameterBuilder;

    #[test]
    fn gradients_reach_all_four_maps() {
        let mut builder = ParameterBuilder::new(3);
        let module = MultiHeadAttention::new(&mut builder.group("model"), 4, 2).unwrap();
        let sets = Arc::new(AttentionSets::from_sizes([(2, 3), (1, 0), (1, 2)]));
        let parameters = [
            ("query", *module.query.parameters()),
            ("key", *module.key.parameters()),
            ("value", *module.value.parameters()),
            ("output", *module.output.parameters()),
        ];
        check(builder, &parameters, |tape| {
            let queries = tape.normals((4, 4), Stream::new(1, "queries"))?;
            let keys = tape.normals((5, 4), Stream::new(1, "keys"))?;
            let values = tape.normals((5, 4), Stream::new(1, "values"))?;
            module.forward(tape, Looking { queries, keys, values }, &sets)
        });
    }

    #[test]
    fn heads_must_divide_the_width() {
        let mut builder = ParameterBuilder::new(3);
        let error = MultiHeadAttention::new(&mut builder.group("model"), 4, 3).unwrap_err();
        assert_eq!(error.to_string(), "`num_heads` must be a divisor of width 4, found 3");
    }
}

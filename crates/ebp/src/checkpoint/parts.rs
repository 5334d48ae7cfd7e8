//! The state of a model in parts: `part/name` for every tensor of its parameters, optimisers and
//! averages.

use std::collections::BTreeMap;

use crate::tensor::Tensors;
use crate::{Error, Result};

/// One map of all parts.
pub(crate) fn join_parts<'a>(parts: impl IntoIterator<Item = (&'a str, Tensors)>) -> Tensors {
    let name_all = |(part, tensors): (&'a str, Tensors)| {
        tensors.into_iter().map(move |(name, tensor)| (format!("{part}/{name}"), tensor))
    };
    parts.into_iter().flat_map(name_all).collect()
}

/// What [`join_parts`] made, apart again.
#[derive(Debug)]
pub(crate) struct StateParts(BTreeMap<String, Tensors>);

impl StateParts {
    pub(crate) fn split(state: &Tensors) -> Result<Self> {
        let mut parts = BTreeMap::<String, Tensors>::new();
        for (name, tensor) in state {
            let Some((part, rest)) = name.split_once('/') else {
                return Err(Error::invalid("state", "names with a part before `/`", name));
            };
            parts.entry(part.to_owned()).or_default().insert(rest.to_owned(), tensor.clone());
        }
        Ok(Self(parts))
    }

    /// A part, which must be there.
    pub(crate) fn take(&mut self, part: &str) -> Result<Tensors> {
        let found = self.0.remove(part);
        found.ok_or_else(|| Error::invalid("state", "all parts", format!("no {part}")))
    }

    /// A part that may be missing.
    pub(crate) fn take_any(&mut self, part: &str) -> Tensors {
        self.0.remove(part).unwrap_or_default()
    }

    /// What was not taken.
    pub(crate) fn rest(self) -> BTreeMap<String, Tensors> {
        self.0
    }
}

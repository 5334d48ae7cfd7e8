//! An error that travels to other shards and processes.

use serde::{Deserialize, Serialize};

use crate::Error;

/// What went wrong, in words, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// Such as `shard 2 of 4`; empty if it is known already.
    who: String,
    message: String,
    help: Option<String>,
    /// The quantity that was not finite and its value, if that was all.
    divergence: Option<(String, String)>,
}

impl Failure {
    pub(crate) fn new(who: impl Into<String>, error: &Error) -> Self {
        // What came from another one keeps its name.
        if let Error::Peer { who, message, help, divergence } = error {
            let (who, message) = (who.clone(), message.clone());
            return Self { who, message, help: help.clone(), divergence: divergence.clone() };
        }
        Self {
            who: who.into(),
            message: error.to_string(),
            help: error.help().map(Into::into),
            divergence: error.divergence(),
        }
    }

    /// The error that every shard ends its step with.
    pub(crate) fn error(&self) -> Error {
        let Self { who, message, help, divergence } = self.clone();
        Error::Peer { who, message, help, divergence }
    }
}

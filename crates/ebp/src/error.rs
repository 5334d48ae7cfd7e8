//! The one error type of the library.

use std::path::PathBuf;

use rayon::prelude::*;

/// What can go wrong.
///
/// Every variant says which field was wrong, what was expected and what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or size is outside its range.
    #[error("`{field}` must be {expected}, found {found}")]
    InvalidValue {
        /// The field, as the caller wrote it.
        field: String,
        /// The allowed range, in words.
        expected: String,
        /// What was passed.
        found: String,
    },
    /// A buffer has the wrong number of entries.
    #[error("`{field}` must have {expected} entries ({meaning}), found {found}")]
    WrongLength {
        /// The field, as the caller wrote it.
        field: &'static str,
        /// How many entries were expected.
        expected: usize,
        /// The product that gives `expected`, such as `sets 4 x context_dim 8`.
        meaning: String,
        /// How many entries were found.
        found: usize,
    },
    /// A set without elements: it has no sum, no pool and no density.
    #[error(
        "`offsets` must describe sets with at least one element each, \
         found that set {set} of {num_sets} is empty; remove it from the batch"
    )]
    EmptySet {
        /// Which set.
        set: usize,
        /// How many sets the batch holds.
        num_sets: usize,
    },
    /// A quantity is NaN or infinite.
    #[error("`{field}` must be finite, found {value} at index {index}; {remedy}")]
    NonFinite {
        /// The field, as the caller wrote it, or the name of a computed quantity.
        field: &'static str,
        /// Flat index of the first offending entry.
        index: usize,
        /// Its value.
        value: f32,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A gradient is NaN or infinite; no parameter was changed.
    #[error(
        "gradient of `{parameter}` must be finite, found {value} at index {index}; \
         lower the learning rate or go back to an earlier checkpoint"
    )]
    NonFiniteGradient {
        /// The parameter's full name.
        parameter: String,
        /// Flat index of the first offending entry.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// A training step produced a number that is NaN or infinite, and the run was told to stop or
    /// had no rollback left.
    #[error("step {step} diverged: `{quantity}` must be finite, found {found}; {remedy}")]
    Diverged {
        /// The step's number, from 0.
        step: u64,
        /// The first offending quantity: of the record, of a gradient or of the saved state.
        quantity: String,
        /// Its value, in words.
        found: String,
        /// What was tried, what is kept, and what to do.
        remedy: String,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A saved file does not hold what was written to it, or never did.
    #[error("`{}` is damaged or was not written by this library: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder that should receive a new run already holds something.
    #[error("`{}` must be empty or new, found {found}; {remedy}", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A covariance has no Cholesky factor, whatever jitter is added to its diagonal.
    #[error(
        "the covariance must be positive definite, found a pivot that is not positive in row {row} \
         of {dim} even with jitter {jitter} on the diagonal; raise the noise variance, merge \
         repeated locations or shorten the length scale"
    )]
    NotPositiveDefinite {
        /// The row whose pivot failed last.
        row: usize,
        /// The dimension of the matrix.
        dim: usize,
        /// The largest jitter that was tried.
        jitter: f64,
    },
    /// A text file does not hold what it should.
    #[error("{file}, line {line}, column {column}: expected {expected}, found {found}")]
    Parse {
        /// The file, as the caller named it.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The column's name, or its number from 1.
        column: String,
        /// What should stand there.
        expected: String,
        /// What stands there, shortened.
        found: String,
    },
    /// A data file does not hold what it should.
    #[error("{file}, {place}: expected {expected}, found {found}")]
    Malformed {
        /// The file, as the caller named it.
        file: String,
        /// Where in it.
        place: Place,
        /// What should stand there.
        expected: String,
        /// What stands there, shortened.
        found: String,
    },
    /// The GPU, its driver or one of its libraries is missing or failed.
    #[error("cannot {action}: {reason}; {remedy}")]
    Device {
        /// What was tried.
        action: &'static str,
        /// What the driver said.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// What was asked for cannot be done; nothing was tried.
    #[error("{message}")]
    Refused {
        /// What is wrong with it.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// It was tried and went wrong.
    #[error("{message}")]
    Failed {
        /// What went wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// Another shard or another process of the same training failed.
    #[error("{who}: {message}")]
    Peer {
        /// Which one, such as `shard 2 of 4`.
        who: String,
        /// What it said.
        message: String,
        /// What to do about it.
        help: Option<String>,
        /// The quantity that was not finite and its value, in words, if the step diverged there.
        divergence: Option<(String, String)>,
    },
    /// A training run was asked to stop; its state is saved if it has a folder.
    #[error("interrupted after step {step}")]
    Interrupted {
        /// After how many steps.
        step: u64,
    },
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A byte, from 0.
    Byte(usize),
    /// A line of a text, from 1.
    Line(usize),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

/// The result of a fallible call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A setting outside its range.
    pub(crate) fn invalid(
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl std::fmt::Display,
    ) -> Self {
        Self::InvalidValue {
            field: field.into(),
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    /// Something that cannot be done, in words; [`with_help`](Self::with_help) adds the way out.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused { message: message.into(), help: None }
    }

    /// Something that went wrong, in words.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), help: None }
    }

    /// The same with what to do about it, where it is told in words.
    pub(crate) fn with_help(self, text: impl Into<String>) -> Self {
        match self {
            Self::Refused { message, .. } => Self::Refused { message, help: Some(text.into()) },
            Self::Failed { message, .. } => Self::Failed { message, help: Some(text.into()) },
            other => other,
        }
    }

    /// What to do about it, where that is not part of the message.
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Refused { help, .. } | Self::Failed { help, .. } | Self::Peer { help, .. } => {
                help.as_deref()
            }
            _ => None,
        }
    }

    /// The quantity that is not finite and its value, in words, where that is what went wrong.
    pub(crate) fn divergence(&self) -> Option<(String, String)> {
        match self {
            Self::NonFinite { field, value, .. } => Some(((*field).to_owned(), value.to_string())),
            Self::NonFiniteGradient { parameter, value, .. } => {
                Some((format!("gradient of {parameter}"), value.to_string()))
            }
            Self::Peer { divergence, .. } => divergence.clone(),
            _ => None,
        }
    }

    /// What to do with an error of the file system: `.map_err(Error::io("write", path))`.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// Checks a buffer's length; `meaning` explains the product behind `expected`.
pub(crate) fn check_length(
    field: &'static str,
    found: usize,
    expected: usize,
    meaning: impl FnOnce() -> String,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::WrongLength { field, expected, meaning: meaning(), found })
}

/// Finds the first entry that is NaN or infinite.
pub(crate) fn check_finite(
    field: &'static str,
    values: &[f32],
    remedy: &'static str,
) -> Result<()> {
    /// What one thread looks at before it asks for help.
    const SHARE: usize = 1 << 16;
    let first = if values.len() <= SHARE {
        first_non_finite(values)
    } else {
        let shares = values.par_chunks(SHARE).enumerate();
        shares.find_map_first(|(share, part)| first_non_finite(part).map(|i| share * SHARE + i))
    };
    match first {
        None => Ok(()),
        Some(index) => Err(Error::NonFinite { field, index, value: values[index], remedy }),
    }
}

fn first_non_finite(values: &[f32]) -> Option<usize> {
    // A float is finite unless its exponent is all ones. Or-ing tests over a block has no order to
    // keep, as a sum of floats would, so it runs in vectors.
    const EXPONENT: u32 = 0x7f80_0000;
    const BLOCK: usize = 1024;
    values.chunks(BLOCK).enumerate().find_map(|(block, chunk)| {
        if !chunk.iter().fold(false, |bad, v| bad | (v.to_bits() & EXPONENT == EXPONENT)) {
            return None;
        }
        chunk.iter().position(|v| !v.is_finite()).map(|offset| block * BLOCK + offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_non_finite_entry_is_named() {
        let mut values = vec![0.5; 3000];
        assert!(check_finite("elements", &values, "remove it").is_ok());
        values[2500] = f32::NEG_INFINITY;
        values[2700] = f32::NAN;
        let message = check_finite("elements", &values, "remove it").unwrap_err().to_string();
        assert_eq!(message, "`elements` must be finite, found -inf at index 2500; remove it");
    }

    #[test]
    fn a_wrong_length_names_field_expectation_and_finding() {
        let error = check_length("context", 7, 8, || "sets 2 x context_dim 4".into()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`context` must have 8 entries (sets 2 x context_dim 4), found 7"
        );
    }
}

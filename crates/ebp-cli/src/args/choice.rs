//! Words that stand for values of the library.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A name, what it means, and its value.
pub(crate) type Choice<T> = (&'static str, &'static str, T);

/// Takes one of the names.
pub(crate) fn choice<T>(all: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = all.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values).try_map(|typed| {
        let found = all.iter().find(|(name, ..)| *name == typed);
        found.map(|(.., value)| *value).ok_or("no such value")
    })
}

/// The name of a value.
pub(crate) fn name_of<T: PartialEq>(all: &[Choice<T>], value: &T) -> &'static str {
    all.iter().find(|(.., known)| known == value).map_or("", |(name, ..)| *name)
}

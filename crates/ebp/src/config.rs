//! Settings in layers: a preset, then a file, then `key=value`, each over the one before.
//!
//! Settings are a struct with `#[serde(default, deny_unknown_fields)]`. A key
//! that it does not have is an error that names the nearest one it does have, in whichever layer
//! it stands. What comes out is the struct and its full text, which is what a run keeps.

use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::{Error, Result};

/// Where settings come from, lowest first; the struct's defaults lie below all.
#[derive(Clone, Debug, Default)]
pub struct Layers<'a> {
    /// All presets there are, by name.
    pub presets: &'a [(&'a str, &'a str)],
    /// The one to start from.
    pub preset: Option<String>,
    /// A file of settings.
    pub file: Option<PathBuf>,
    /// `key=value` as typed; the key with dots, the value in TOML. A plain word needs no quotes.
    pub assignments: Vec<String>,
}

/// Settings, and their text.
#[derive(Clone, Debug)]
pub struct Resolved<C> {
    /// The settings.
    pub config: C,
    /// All of them as TOML.
    pub text: String,
}

impl Layers<'_> {
    /// Puts the layers on top of each other.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] naming the layer, the key, and what is wrong with it.
    pub fn resolve<C>(&self) -> Result<Resolved<C>>
    where
        C: DeserializeOwned + Serialize + Default,
    {
        let config: C = merge(self.layers()?)?;
        let text = text_of(&config)?;
        Ok(Resolved { config, text })
    }

    /// The setting `kind`, which says whose settings these are; `None` if no layer has it.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve); [`Error::Refused`] if a `kind` is no text.
    pub fn kind(&self) -> Result<Option<String>> {
        let mut kind = None;
        for (source, layer) in self.layers()? {
            match layer.get("kind") {
                None => {}
                Some(Value::String(found)) => kind = Some(found.clone()),
                Some(found) => {
                    return Err(Error::refused(format!(
                        "{source}: `kind` must be text, found {found}"
                    )));
                }
            }
        }
        Ok(kind)
    }

    /// As [`resolve`](Self::resolve), without the setting `kind` that [`kind`](Self::kind) reads.
    pub(crate) fn resolve_kind<C>(&self) -> Result<C>
    where
        C: DeserializeOwned + Serialize + Default,
    {
        let mut layers = self.layers()?;
        for (_, layer) in &mut layers {
            layer.remove("kind");
        }
        merge(layers)
    }

    /// Every layer with the words for where it comes from.
    fn layers(&self) -> Result<Vec<(String, Table)>> {
        let mut layers = Vec::new();
        if let Some(name) = &self.preset {
            let (_, text) =
                self.presets.iter().find(|(known, _)| known == name).ok_or_else(|| {
                    let known: Vec<_> = self.presets.iter().map(|(known, _)| *known).collect();
                    Error::refused(format!("there is no preset `{name}`"))
                        .with_help(suggestion(name, &known))
                })?;
            let source = format!("preset `{name}`");
            layers.push((source.clone(), parse(text, &source)?));
        }
        if let Some(path) = &self.file {
            let source = format!("`{}`", path.display());
            let text = fs::read_to_string(path).map_err(|error| {
                Error::refused(format!("cannot read {source}: {error}"))
                    .with_help("is the path right?")
            })?;
            layers.push((source.clone(), parse(&text, &source)?));
        }
        for assignment in &self.assignments {
            layers.push((format!("`--set {assignment}`"), parse_assignment(assignment)?));
        }
        Ok(layers)
    }
}

/// The layers on top of each other.
fn merge<C>(layers: Vec<(String, Table)>) -> Result<C>
where
    C: DeserializeOwned + Serialize + Default,
{
    let defaults = Table::try_from(C::default()).map_err(|error| {
        Error::failed(format!("the default settings cannot be written: {error}"))
    })?;
    let mut table = defaults.clone();
    let mut config = C::default();
    for (source, layer) in layers {
        overlay(&mut table, layer);
        // After every layer, so that an error names the one that brought it.
        config = read(&table, &defaults, &source)?;
    }
    Ok(config)
}

/// The dotted keys whose values differ between two texts of settings, or that only one has.
///
/// # Errors
///
/// [`Error::Refused`] if a text is not TOML.
pub fn differing_keys(before: &str, after: &str) -> Result<Vec<String>> {
    let leaves = |text: &str| -> Result<Vec<(String, Value)>> {
        Ok(leaves(&parse(text, "the saved configuration")?))
    };
    let (before, after) = (leaves(before)?, leaves(after)?);
    let only_in = |some: &[(String, Value)], others: &[(String, Value)]| -> Vec<String> {
        some.iter().filter(|leaf| !others.contains(leaf)).map(|(key, _)| key.clone()).collect()
    };
    let mut keys = [only_in(&before, &after), only_in(&after, &before)].concat();
    keys.sort();
    keys.dedup();
    Ok(keys)
}

fn read<C: DeserializeOwned>(table: &Table, defaults: &Table, source: &str) -> Result<C> {
    serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        let reason = reason.trim();
        let Some(unknown) = reason.strip_prefix("unknown field `") else {
            return Error::refused(format!("{source}: `{path}`: {reason}"));
        };
        // serde: unknown field `a`, expected one of `b`, `c`
        let mut words = unknown.split('`');
        let key = words.next().unwrap_or_default();
        let siblings: Vec<_> = words.skip(1).step_by(2).collect();
        let folder = path.strip_suffix(key).unwrap_or(&path).trim_end_matches('.');
        let full = |name: &str| match folder {
            "" => name.to_owned(),
            folder => format!("{folder}.{name}"),
        };
        // The right word in the wrong place is a likelier mistake than a misspelt one.
        let elsewhere = leaves(defaults)
            .into_iter()
            .map(|(leaf, _)| leaf)
            .find(|leaf| leaf.rsplit('.').next() == Some(key));
        let known: Vec<_> = siblings.iter().map(|name| full(name)).collect();
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        let help = match elsewhere {
            Some(leaf) => format!("did you mean `{leaf}`?"),
            None => suggestion(&full(key), &known),
        };
        Error::refused(format!("{source}: there is no setting `{}`", full(key))).with_help(help)
    })
}

/// The nearest of the known names, or all if none is near.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    let distance = |known: &&&str| strsim::damerau_levenshtein(name, known);
    match known.iter().min_by_key(distance) {
        None => "there are none".into(),
        // A third of the letters wrong is a misspelling; more is another word.
        Some(nearest) if 3 * distance(&nearest) <= name.len().max(3) => {
            format!("did you mean `{nearest}`?")
        }
        Some(_) => format!("known are: {}", known.join(", ")),
    }
}

fn parse(text: &str, source: &str) -> Result<Table> {
    text.parse()
        .map_err(|error: toml::de::Error| Error::refused(format!("{source} is not TOML: {error}")))
}

/// Settings as TOML.
pub(crate) fn text_of(settings: &impl Serialize) -> Result<String> {
    toml::to_string_pretty(settings)
        .map_err(|error| Error::failed(format!("the settings cannot be written: {error}")))
}

/// `a.b=value` as the table `{ a: { b: value } }`.
fn parse_assignment(assignment: &str) -> Result<Table> {
    let wrong = |reason: &str| {
        Error::refused(format!("`--set {assignment}` {reason}"))
            .with_help("such as `--set train.num_steps=500`; text with spaces needs quotes")
    };
    let (key, value) = assignment.split_once('=').ok_or_else(|| wrong("has no `=`"))?;
    let words: Vec<_> = key.trim().split('.').map(str::trim).collect();
    if words.iter().any(|word| word.is_empty()) {
        return Err(wrong("has no key before its `=`"));
    }
    let value =
        parse_value(value.trim()).ok_or_else(|| wrong("has no TOML value after its `=`"))?;
    let (last, folders) = words.split_last().ok_or_else(|| wrong("has no key"))?;
    let leaf = Table::from_iter([((*last).to_owned(), value)]);
    Ok(folders
        .iter()
        .rev()
        .fold(leaf, |inner, word| Table::from_iter([((*word).to_owned(), Value::Table(inner))])))
}

fn parse_value(text: &str) -> Option<Value> {
    let table: Option<Table> = format!("value = {text}").parse().ok();
    if let Some(mut table) = table {
        let value = table.remove("value")?;
        // A line break could smuggle in a second key.
        return table.is_empty().then_some(value);
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '.');
    (is_plain && text.chars().all(is_word)).then(|| Value::String(text.to_owned()))
}

fn overlay(table: &mut Table, layer: Table) {
    for (key, value) in layer {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The value of one dotted key of a text of settings, as TOML.
pub(crate) fn leaf(text: &str, key: &str) -> Result<Option<String>> {
    let found = leaves(&parse(text, "the saved configuration")?);
    Ok(found.into_iter().find(|(known, _)| known == key).map(|(_, value)| value.to_string()))
}

/// Every value that is not a table, by dotted key.
fn leaves(table: &Table) -> Vec<(String, Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => out.extend(
                leaves(inner).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)),
            ),
            value => out.push((key.clone(), value.clone())),
        }
    }
    out
}

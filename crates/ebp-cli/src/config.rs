//! Settings in layers: a preset, then a file, then `--set key=value`, each over the one before.
//!
//! The settings of a command are a struct with `#[serde(default, deny_unknown_fields)]`. A key
//! that it does not have is an error that names the nearest one it does have, in whichever layer
//! it stands. What comes out is the struct and its full text, which is what a run keeps.

use std::fs;
use std::path::PathBuf;

use miette::{Report, miette};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::failure::Failure;

/// Name and text of every file of `configs/`, sorted by name.
pub const PRESETS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/presets.rs"));

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
    /// [`Failure::Usage`] naming the layer, the key, and what is wrong with it.
    pub fn resolve<C>(&self) -> Result<Resolved<C>, Failure>
    where
        C: DeserializeOwned + Serialize + Default,
    {
        self.merge().map_err(Failure::Usage)
    }

    /// The setting `kind`, which says whose settings these are; `None` if no layer has it.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if a layer cannot be read, or its `kind` is no text.
    pub fn kind(&self) -> Result<Option<String>, Failure> {
        let mut kind = None;
        for (source, layer) in self.layers().map_err(Failure::Usage)? {
            match layer.get("kind") {
                None => {}
                Some(Value::String(found)) => kind = Some(found.clone()),
                Some(found) => {
                    return Err(Failure::Usage(miette!(
                        "{source}: `kind` must be text, found {found}"
                    )));
                }
            }
        }
        Ok(kind)
    }

    fn merge<C>(&self) -> Result<Resolved<C>, Report>
    where
        C: DeserializeOwned + Serialize + Default,
    {
        let defaults = Table::try_from(C::default())
            .map_err(|error| miette!("the default settings cannot be written: {error}"))?;
        let mut table = defaults.clone();
        let mut config = C::default();
        for (source, layer) in self.layers()? {
            overlay(&mut table, layer);
            // After every layer, so that an error names the one that brought it.
            config = read(&table, &defaults).map_err(|problem| problem.report(&source))?;
        }
        let text = toml::to_string_pretty(&config)
            .map_err(|error| miette!("the settings cannot be written: {error}"))?;
        Ok(Resolved { config, text })
    }

    /// Every layer with the words for where it comes from.
    fn layers(&self) -> Result<Vec<(String, Table)>, Report> {
        let mut layers = Vec::new();
        if let Some(name) = &self.preset {
            let (_, text) =
                self.presets.iter().find(|(known, _)| known == name).ok_or_else(|| {
                    let known: Vec<_> = self.presets.iter().map(|(known, _)| *known).collect();
                    miette!(help = suggestion(name, &known), "there is no preset `{name}`")
                })?;
            let source = format!("preset `{name}`");
            layers.push((source.clone(), parse(text, &source)?));
        }
        if let Some(path) = &self.file {
            let source = format!("`{}`", path.display());
            let text = fs::read_to_string(path).map_err(|error| {
                miette!(help = "is the path right?", "cannot read {source}: {error}")
            })?;
            layers.push((source.clone(), parse(&text, &source)?));
        }
        for assignment in &self.assignments {
            layers.push((format!("`--set {assignment}`"), parse_assignment(assignment)?));
        }
        Ok(layers)
    }
}

/// The dotted keys whose values differ between two texts of settings, or that only one has.
///
/// # Errors
///
/// [`Failure::Failed`] if a text is not TOML.
pub fn differing_keys(before: &str, after: &str) -> Result<Vec<String>, Failure> {
    let leaves = |text: &str| -> Result<Vec<(String, Value)>, Failure> {
        let table = parse(text, "the saved configuration").map_err(Failure::Failed)?;
        Ok(leaves(&table))
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

/// What is wrong with a key.
#[derive(Debug)]
struct Problem {
    message: String,
    help: Option<String>,
}

impl Problem {
    fn report(self, source: &str) -> Report {
        let Self { message, help } = self;
        match help {
            Some(help) => miette!(help = help, "{source}: {message}"),
            None => miette!("{source}: {message}"),
        }
    }
}

fn read<C: DeserializeOwned>(table: &Table, defaults: &Table) -> Result<C, Problem> {
    serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        let reason = reason.trim();
        let Some(unknown) = reason.strip_prefix("unknown field `") else {
            return Problem { message: format!("`{path}`: {reason}"), help: None };
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
        Problem { message: format!("there is no setting `{}`", full(key)), help: Some(help) }
    })
}

/// The nearest of the known names, or all if none is near.
fn suggestion(name: &str, known: &[&str]) -> String {
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

fn parse(text: &str, source: &str) -> Result<Table, Report> {
    text.parse().map_err(|error: toml::de::Error| miette!("{source} is not TOML: {error}"))
}

/// `a.b=value` as the table `{ a: { b: value } }`.
fn parse_assignment(assignment: &str) -> Result<Table, Report> {
    let wrong = |reason: &str| {
        miette!(
            help = "such as `--set train.num_steps=500`; text with spaces needs quotes",
            "`--set {assignment}` {reason}"
        )
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

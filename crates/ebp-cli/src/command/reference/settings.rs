//! Every setting of every kind of model, asked of the settings themselves: a key that cannot be names those
//! that can, a word where a number is expected says what is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ebp::config::Layers;
use ebp::model::Settings;
use miette::miette;
use toml::{Table, Value};

use super::{MADE_BY, cell, code};
use crate::failure::Failure;

/// A kind of model.
pub(super) struct Kind {
    /// The value of the key `kind`.
    pub(super) name: &'static str,
    /// What people call its data.
    pub(super) title: &'static str,
    /// What it learns from.
    pub(super) about: &'static str,
}

/// All of them.
pub(super) const KINDS: &[Kind] = &[
    Kind { name: "curves", title: "Curves and tables", about: "values at locations" },
    Kind { name: "clouds", title: "Point clouds", about: "points without locations" },
    Kind { name: "pictures", title: "Pictures", about: "pixels, some of which are given" },
    Kind { name: "topics", title: "Documents", about: "bags of words" },
    Kind {
        name: "patterns",
        title: "Point patterns",
        about: "points in a window, or events in time",
    },
    Kind {
        name: "latents",
        title: "Rows and sets with latents",
        about: "the paper's special cases",
    },
    Kind { name: "set-energies", title: "Energies of whole sets", about: "sets without a latent" },
];

/// Kind and key, and what the field of that key says of itself, one a line and sorted. A test compares them with
/// the library's source, which is not there when the program is compiled from its package.
const MEANINGS: &str = include_str!("meanings.tsv");

/// A word that no setting takes for another.
const NO_WORD: &str = "no such value of anything";
/// A key that no group of settings has.
const NO_KEY: &str = "there_is_certainly_no_setting_of_this_name";

/// The page.
pub(super) fn page() -> Result<String, Failure> {
    let mut out = format!("{MADE_BY}# Settings\n\n");
    out.push_str(
        "A key is typed as it stands here: `ebp train PRESET --set KEY=VALUE`. In a file its words before the last \
         dot are a table: `model.kl_weight = 2` is `kl_weight = 2` under `[model]`. The defaults are those of the \
         kind; [presets](presets.md) change some of them, and `ebp train PRESET --print-config` prints what holds. \
         *–* is a setting that is absent unless given.\n",
    );
    let meanings = meanings();
    for kind in KINDS {
        _ = write!(out, "\n## {}\n\n`kind = \"{}\"`: {}.\n\n", kind.title, kind.name, kind.about);
        out.push_str("| setting | default | what it may be | what it is |\n|---|---|---|---|\n");
        for row in rows(kind.name)? {
            let default = row.default.as_deref().map_or_else(|| "–".to_owned(), code);
            let meaning = meanings.get(&(kind.name, row.key.as_str())).copied().unwrap_or_default();
            let meaning = cell(meaning);
            _ = writeln!(out, "| {} | {default} | {} | {meaning} |", code(&row.key), row.shape);
        }
    }
    Ok(out)
}

/// A setting.
struct Row {
    key: String,
    default: Option<String>,
    shape: String,
}

/// All settings of a kind in the order in which they are declared, those of a group after its own.
fn rows(kind: &str) -> Result<Vec<Row>, Failure> {
    let defaults = defaults(kind)?;
    let mut rows = Vec::new();
    collect(kind, "", &defaults, &mut rows);
    let missing = defaults.values.keys().find(|key| rows.iter().all(|row| row.key != **key));
    match missing {
        None => Ok(rows),
        Some(key) => Err(Failure::Failed(miette!("no wrong key of {kind} names `{key}`"))),
    }
}

fn collect(kind: &str, group: &str, defaults: &Defaults, rows: &mut Vec<Row>) {
    let (groups, keys): (Vec<_>, Vec<_>) =
        siblings(kind, group).into_iter().partition(|key| defaults.groups.contains(key));
    rows.extend(keys.into_iter().map(|key| {
        // What is absent unless given has no default.
        let default = defaults.values.get(&key).cloned();
        let shape = shape(kind, &key);
        Row { key, default, shape }
    }));
    for group in groups {
        collect(kind, &group, defaults, rows);
    }
}

/// What a kind has unless told otherwise.
struct Defaults {
    values: BTreeMap<String, String>,
    /// Dotted names of tables.
    groups: BTreeSet<String>,
}

fn defaults(kind: &str) -> Result<Defaults, Failure> {
    fn walk(table: &Table, prefix: &str, out: &mut Defaults) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                Value::Table(inner) => {
                    out.groups.insert(key.clone());
                    walk(inner, &key, out);
                }
                value => {
                    out.values.insert(key, value.to_string());
                }
            }
        }
    }
    let text = given(kind, &[])?.text()?;
    let table: Table =
        text.parse().map_err(|error| Failure::Failed(miette!("settings of {kind}: {error}")))?;
    let mut out = Defaults { values: BTreeMap::new(), groups: BTreeSet::new() };
    walk(&table, "", &mut out);
    out.values.remove("kind");
    Ok(out)
}

/// Settings of a kind with changes.
fn given(kind: &str, changes: &[String]) -> ebp::Result<Settings> {
    let mut assignments = vec![format!("kind={kind}")];
    assignments.extend(changes.iter().cloned());
    Settings::resolve(&Layers { assignments, ..Layers::default() })
}

/// All keys of a group, by what a wrong one is told.
fn siblings(kind: &str, group: &str) -> Vec<String> {
    let key = if group.is_empty() { NO_KEY.to_owned() } else { format!("{group}.{NO_KEY}") };
    let Err(error) = given(kind, &[format!("{key}=1")]) else { return Vec::new() };
    let known = error.help().and_then(|help| help.strip_prefix("known are: "));
    let known = known.map(|known| known.split(", ").map(str::to_owned).collect::<Vec<_>>());
    // The error ends with the name of the group, which reads as one more key in it.
    let name_of_group = format!("{group}.{group}");
    let mut known = known.unwrap_or_default();
    known.retain(|key| *key != name_of_group);
    known
}

/// What a setting may be, by what a wrong value is told.
fn shape(kind: &str, key: &str) -> String {
    let told = |value: &str| -> Option<String> {
        given(kind, &[format!("{key}={value}")]).err().map(|error| error.to_string())
    };
    let word = format!("\"{NO_WORD}\"");
    let Some(told_of_word) = told(&word) else { return "text".to_owned() };
    if let Some(one) = expected(&told_of_word)
        && one != "list"
    {
        return one;
    }
    match told(&format!("[{word}]")).as_deref().map(expected) {
        Some(Some(of)) if of != "list" => format!("list of: {of}"),
        Some(_) => "list".to_owned(),
        None => "list of: text".to_owned(),
    }
}

/// The words of an error for what it expected.
fn expected(told: &str) -> Option<String> {
    let (_, choices) = told.split_once("expected ")?;
    let choices = choices.lines().next()?.trim();
    if told.contains("unknown variant") {
        let names: Vec<_> = choices.split('`').skip(1).step_by(2).map(code).collect();
        return Some(names.join(", "));
    }
    let name = match choices {
        "a boolean" => "true or false",
        "a sequence" => "list",
        "f32" | "f64" => "number",
        "u64" | "u32" | "usize" | "u8" | "u16" => "whole number",
        other if other.starts_with("an array of length") => "list",
        other => other,
    };
    Some(name.to_owned())
}

fn meanings() -> BTreeMap<(&'static str, &'static str), &'static str> {
    let fields = MEANINGS.lines().filter_map(|line| {
        let mut words = line.split('\t');
        Some(((words.next()?, words.next()?), words.next()?))
    });
    fields.collect()
}

#[cfg(test)]
pub(super) fn keys(kind: &str) -> Vec<String> {
    rows(kind).unwrap().into_iter().map(|row| row.key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_asked_what_they_are() {
        let rows = rows("clouds").unwrap();
        let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap();
        assert_eq!(row("seed").default.as_deref(), Some("1"));
        assert_eq!(row("seed").shape, "whole number");
        assert_eq!(row("model.kl_weight").shape, "number");
        assert_eq!(row("model.encoder_widths").shape, "list of: whole number");
        assert_eq!(row("data.source").shape, "text");
        let choices = &row("model.estimator").shape;
        assert!(choices.contains("`importance`") && choices.contains("`ade`"), "{choices}");
        for row in &rows {
            assert!(
                !row.shape.contains(NO_WORD) && !row.shape.is_empty(),
                "{}: {}",
                row.key,
                row.shape
            );
        }
    }
}

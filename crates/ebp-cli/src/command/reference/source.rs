//! What settings say of themselves in the library's source: the comment of the field behind every key.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::settings::{KINDS, keys};

/// The structures that kinds of settings are.
const ROOTS: &[(&str, &str)] = &[
    ("curves", "CurveSettings"),
    ("clouds", "CloudSettings"),
    ("pictures", "PictureSettings"),
    ("topics", "TopicSettings"),
    ("patterns", "PatternSettings"),
    ("latents", "LatentSettings"),
    ("set-energies", "SetEnergySettings"),
];

/// A field: its name, its type, and the first paragraph above it.
struct Field {
    name: String,
    kind: String,
    words: String,
}

/// Structures by name; several may have one name.
type Structures = BTreeMap<String, Vec<Vec<Field>>>;

/// The text of `meanings.tsv`.
pub(super) fn meanings() -> String {
    let mut structures = Structures::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../ebp/src"), &mut structures);
    let mut out = String::new();
    for kind in KINDS {
        let (_, root) = ROOTS.iter().find(|(name, _)| *name == kind.name).unwrap();
        for key in keys(kind.name) {
            let words = find(&structures, root, &key);
            let words = words.unwrap_or_else(|| panic!("no field for `{key}` of {}", kind.name));
            writeln!(out, "{}\t{key}\t{words}", kind.name).unwrap();
        }
    }
    out
}

fn find(structures: &Structures, root: &str, key: &str) -> Option<String> {
    let (first, rest) =
        key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let candidates = structures.get(root)?.iter();
    let fields = candidates.filter_map(|fields| fields.iter().find(|field| field.name == first));
    for field in fields {
        match rest {
            None => return Some(field.words.clone()),
            Some(rest) => {
                if let Some(words) = find(structures, inner(&field.kind), rest) {
                    return Some(words);
                }
            }
        }
    }
    None
}

/// `Option<Box<path::Name>>` as `Name`.
fn inner(kind: &str) -> &str {
    let name = kind.trim_end_matches('>').rsplit('<').next().unwrap_or(kind);
    name.rsplit("::").next().unwrap_or(name)
}

fn read(path: &Path, structures: &mut Structures) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), structures);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        let text = fs::read_to_string(path).unwrap();
        let mut open: Option<(String, Vec<Field>)> = None;
        let mut words: Vec<&str> = Vec::new();
        for line in text.lines() {
            let bare = line.trim();
            if let Some(name) =
                bare.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {"))
            {
                open = Some((name.to_owned(), Vec::new()));
                words.clear();
            } else if line == "}" {
                if let Some((name, fields)) = open.take() {
                    structures.entry(name).or_default().push(fields);
                }
            } else if let Some((_, fields)) = &mut open {
                if let Some(said) = bare.strip_prefix("///") {
                    words.push(said.trim());
                } else if let Some((name, kind)) = bare.strip_suffix(',').and_then(field) {
                    let first = words.split(|line| line.is_empty()).next().unwrap_or_default();
                    let words_of = plain(&first.join(" "));
                    fields.push(Field { name: name.into(), kind: kind.into(), words: words_of });
                    words.clear();
                }
            }
        }
    }
}

/// Name and type of `pub name: Type`.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, kind) = line.strip_prefix("pub ").unwrap_or(line).split_once(": ")?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_name.then_some((name, kind))
}

/// Without links of documentation: [`Name`](path) and [`Name`] as `Name`.
fn plain(words: &str) -> String {
    let mut out = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((name, after)) = after.split_once("`]") else { break };
        _ = write!(out, "{before}`{name}`");
        rest = match after.strip_prefix('(').and_then(|after| after.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}

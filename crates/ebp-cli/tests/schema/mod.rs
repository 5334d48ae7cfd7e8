//! The page `docs/json.md` as a schema, and what of it was seen.
//!
//! A heading `### ebp …` of *Commands* names commands, separated by commas; one of *Objects inside others* an object;
//! *Every object* is part of all commands. Below it stands a table of fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What a field holds.
#[derive(Clone, Debug)]
enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    /// Anything: settings, which have a documentation of their own.
    Object,
    List(Box<Kind>),
    Map(Box<Kind>),
    Tuple(Vec<Kind>),
    OrNull(Box<Kind>),
    /// An object of the page.
    Named(String),
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    kind: Kind,
    is_optional: bool,
}

/// The page, and the fields that were seen with a value.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    head: Vec<Field>,
    pub(crate) commands: BTreeMap<String, Vec<String>>,
    sections: BTreeMap<String, Vec<Field>>,
    seen: BTreeSet<String>,
    complaints: Vec<String>,
}

impl Schema {
    /// Reads the page; what cannot be read fails the test.
    pub(crate) fn of_page(text: &str) -> Self {
        let mut schema = Self::default();
        let (mut part, mut title) = ("", String::new());
        for (number, line) in text.lines().enumerate() {
            if let Some(heading) = line.strip_prefix("## ") {
                (part, title) = (heading, String::new());
            } else if let Some(heading) = line.strip_prefix("### ") {
                heading.clone_into(&mut title);
                assert!(!schema.sections.contains_key(&title), "`{title}` stands there twice");
                schema.sections.insert(title.clone(), Vec::new());
                if part == "Commands" {
                    let names = title.split(", ").map(|name| name.replace('`', "")).collect();
                    schema.commands.insert(title.clone(), names);
                }
            } else if line.starts_with("| `") {
                let field =
                    field(line).unwrap_or_else(|what| panic!("line {}: {what}", number + 1));
                if part == "Every object" {
                    schema.head.push(field);
                } else {
                    schema.sections.get_mut(&title).expect("a heading above").push(field);
                }
            }
        }
        for (title, fields) in &schema.sections {
            assert!(!fields.is_empty(), "`{title}` has no fields");
            for field in fields {
                schema.check_links(title, &field.kind);
            }
        }
        schema
    }

    fn check_links(&self, title: &str, kind: &Kind) {
        match kind {
            Kind::Named(name) => {
                assert!(self.sections.contains_key(name), "{title} links to `{name}`, not there");
            }
            Kind::List(inner) | Kind::Map(inner) | Kind::OrNull(inner) => {
                self.check_links(title, inner);
            }
            Kind::Tuple(all) => all.iter().for_each(|inner| self.check_links(title, inner)),
            _ => {}
        }
    }

    /// Compares what a command printed with its section, and remembers what was seen.
    pub(crate) fn compare(&mut self, command: &str, printed: &Value) {
        let title =
            self.commands.iter().find(|(_, names)| names.iter().any(|name| name == command));
        let title = title.map_or_else(|| panic!("the page has no `{command}`"), |(title, _)| title);
        let title = title.clone();
        let fields = [&self.head[..], &self.sections[&title]].concat();
        self.object(&title, &fields, printed, command);
    }

    fn object(&mut self, title: &str, fields: &[Field], value: &Value, path: &str) {
        let Value::Object(found) = value else {
            self.complaints.push(format!("{path} is no object: {value}"));
            return;
        };
        for name in found.keys().filter(|name| fields.iter().all(|field| field.name != **name)) {
            self.complaints.push(format!("{path}.{name} is not on the page: {}", found[name]));
        }
        for Field { name, kind, is_optional } in fields {
            let path = format!("{path}.{name}");
            match found.get(name) {
                Some(value) => self.value(title, name, kind, value, &path),
                None if *is_optional => {}
                None => self.complaints.push(format!("{path} is on the page and not there")),
            }
        }
    }

    fn value(&mut self, title: &str, name: &str, kind: &Kind, value: &Value, path: &str) {
        let is_right = match (kind, value) {
            (Kind::OrNull(_), Value::Null) => return,
            (Kind::OrNull(inner), _) => return self.value(title, name, inner, value, path),
            (Kind::Named(object), _) => {
                self.seen.insert(format!("{title}: {name}"));
                let fields = self.sections[object].clone();
                return self.object(object, &fields, value, path);
            }
            (Kind::List(inner), Value::Array(all)) => {
                for (place, value) in all.iter().enumerate() {
                    self.value(title, name, inner, value, &format!("{path}[{place}]"));
                }
                return;
            }
            (Kind::Map(inner), Value::Object(all)) => {
                for (key, value) in all {
                    self.value(title, name, inner, value, &format!("{path}[{key}]"));
                }
                return;
            }
            (Kind::Tuple(kinds), Value::Array(all)) if kinds.len() == all.len() => {
                for (place, (kind, value)) in kinds.iter().zip(all).enumerate() {
                    self.value(title, name, kind, value, &format!("{path}[{place}]"));
                }
                return;
            }
            (Kind::String, Value::String(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Object, Value::Object(_)) => true,
            (Kind::Integer, number) => number.is_u64() || number.is_i64(),
            (Kind::Number, number) => number.is_f64(),
            _ => false,
        };
        if is_right {
            self.seen.insert(format!("{title}: {name}"));
        } else {
            self.complaints.push(format!("{path} must be {kind:?}, found {value}"));
        }
    }

    /// What did not fit, and the fields of the page that no command printed with a value.
    pub(crate) fn verdict(&self) -> (&[String], Vec<String>) {
        let all = self.sections.iter().flat_map(|(title, fields)| {
            fields.iter().map(move |field| format!("{title}: {}", field.name))
        });
        (&self.complaints, all.filter(|field| !self.seen.contains(field)).collect())
    }
}

/// `| `name`? | kind | unit | meaning |`
fn field(line: &str) -> Result<Field, String> {
    // `\|` is a letter of a cell.
    let line = line.replace("\\|", "/");
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, words, _unit, meaning] = cells[..] else {
        return Err(format!("expected four cells, found {}", cells.len()));
    };
    if meaning.is_empty() {
        return Err(format!("{name} has no meaning"));
    }
    let name = name.strip_prefix('`').ok_or("a name in backticks")?;
    let (name, mark) = name.split_once('`').ok_or("a name in backticks")?;
    let kind = kind(words).ok_or_else(|| format!("`{words}` is no type"))?;
    Ok(Field { name: name.to_owned(), kind, is_optional: mark == "?" })
}

fn kind(words: &str) -> Option<Kind> {
    let words = words.trim();
    // Of a list it is the list that may be null; `list of (number or null)` is the other one.
    if let Some(inner) = words.strip_suffix(" or null") {
        return Some(Kind::OrNull(Box::new(kind(inner)?)));
    }
    if let Some(inner) = words.strip_prefix("list of ") {
        return Some(Kind::List(Box::new(kind(inner)?)));
    }
    if let Some(inner) = words.strip_prefix("map of ") {
        return Some(Kind::Map(Box::new(kind(inner)?)));
    }
    if let Some(inner) = words.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        let mut all: Vec<Kind> = inner.split(", ").map(kind).collect::<Option<_>>()?;
        return if all.len() == 1 { all.pop() } else { Some(Kind::Tuple(all)) };
    }
    if let Some(inner) = words.strip_prefix('[') {
        return inner.split_once(']').map(|(name, _)| Kind::Named(name.to_owned()));
    }
    match words {
        "string" => Some(Kind::String),
        "integer" => Some(Kind::Integer),
        "number" => Some(Kind::Number),
        "boolean" => Some(Kind::Boolean),
        "object" => Some(Kind::Object),
        _ => None,
    }
}

//! Which column of a table is what.

use crate::{Error, Result};

use super::{Record, parse_error};

/// The columns to read, by their names in the header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnChoice {
    /// The column that says which set a row belongs to. `None`: the column `set` if there is one.
    pub set: Option<String>,
    /// Whether a table may lack the column chosen for `set`; it is one set then.
    pub set_is_optional: bool,
    /// The columns of the locations. Empty: `t`, or `t1`, `t2`, ….
    pub locations: Vec<String>,
    /// The columns of the values. Empty: `x`, or `x1`, `x2`, ….
    pub values: Vec<String>,
}

/// The places of the chosen columns.
pub(super) struct Columns {
    names: Vec<String>,
    set: Option<usize>,
    pub(super) locations: Vec<usize>,
    pub(super) values: Vec<usize>,
}

impl Columns {
    pub(super) fn find(file: &str, header: &Record, choice: &ColumnChoice) -> Result<Self> {
        let search = Search { file, header };
        let set = match &choice.set {
            Some(name) if choice.set_is_optional => search.optional(name)?,
            Some(name) => Some(search.required(name)?),
            None => search.optional("set")?,
        };
        let group = |chosen: &[String], letter| match chosen {
            [] => search.numbered(letter),
            names => names.iter().map(|name| search.required(name)).collect(),
        };
        Ok(Self {
            set,
            locations: group(&choice.locations, "t")?,
            values: group(&choice.values, "x")?,
            names: header.fields.clone(),
        })
    }

    /// Every column as a value but the one called `label`, which may be missing.
    pub(super) fn all_but(file: &str, header: &Record, label: &str) -> Result<Self> {
        let set = Search { file, header }.optional(label)?;
        let values: Vec<usize> =
            (0..header.fields.len()).filter(|&place| Some(place) != set).collect();
        if values.is_empty() {
            let expected = format!("columns of numbers beside `{label}`");
            return Err(parse_error(file, header.line, "names", expected, "none"));
        }
        Ok(Self { names: header.fields.clone(), set, locations: Vec::new(), values })
    }

    /// The same for a table that may lack the values; then none are found.
    pub(super) fn find_locations(
        file: &str,
        header: &Record,
        choice: &ColumnChoice,
    ) -> Result<Self> {
        let search = Search { file, header };
        let mut has_values = true;
        for name in &choice.values {
            has_values &= search.optional(name)?.is_some();
        }
        if choice.values.is_empty() {
            has_values = search.optional("x")?.is_some() || search.optional("x1")?.is_some();
        }
        if has_values {
            return Self::find(file, header, choice);
        }
        let locations = match choice.locations.as_slice() {
            [] => search.numbered("t")?,
            names => names.iter().map(|name| search.required(name)).collect::<Result<_>>()?,
        };
        Ok(Self { names: header.fields.clone(), set: None, locations, values: Vec::new() })
    }

    /// Every row must be as long as the header.
    pub(super) fn check_count(&self, file: &str, record: &Record) -> Result<()> {
        let (expected, found) = (self.names.len(), record.fields.len());
        if expected == found {
            return Ok(());
        }
        let column = (expected.min(found) + 1).to_string();
        let expected = format!("{expected} fields as in the header");
        Err(parse_error(file, record.line, column, expected, &format!("{found}")))
    }

    /// The name of the row's set, if the table has such a column.
    pub(super) fn set_name<'r>(&self, record: &'r Record) -> Option<&'r str> {
        Some(&record.fields[self.set?])
    }

    /// Appends the row's numbers in `places` to `numbers`.
    pub(super) fn read_numbers(
        &self,
        file: &str,
        record: &Record,
        places: &[usize],
        numbers: &mut Vec<f64>,
    ) -> Result<()> {
        for &place in places {
            let field = record.fields[place].trim();
            match field.parse::<f64>() {
                Ok(number) if number.is_finite() => numbers.push(number),
                parsed => {
                    let column = format!("`{}` ({})", self.names[place], place + 1);
                    let expected = match parsed {
                        Ok(_) => "a finite number",
                        Err(_) if field.contains(',') => "a number with a decimal point",
                        Err(_) => "a number",
                    };
                    let found =
                        if field.is_empty() { "nothing".to_owned() } else { format!("`{field}`") };
                    return Err(parse_error(file, record.line, column, expected, &found));
                }
            }
        }
        Ok(())
    }
}

/// Looks for columns in a header.
struct Search<'a> {
    file: &'a str,
    header: &'a Record,
}

impl Search<'_> {
    fn optional(&self, name: &str) -> Result<Option<usize>> {
        let mut places = (0..self.header.fields.len()).filter(|&i| self.header.fields[i] == name);
        match (places.next(), places.next()) {
            (first, None) => Ok(first),
            (_, Some(second)) => Err(parse_error(
                self.file,
                self.header.line,
                (second + 1).to_string(),
                format!("one column named `{name}`"),
                "a second one",
            )),
        }
    }

    fn required(&self, name: &str) -> Result<usize> {
        self.optional(name)?.ok_or_else(|| self.missing(&format!("`{name}`")))
    }

    /// The column `letter`, or `letter`1, `letter`2, … without a gap.
    fn numbered(&self, letter: &str) -> Result<Vec<usize>> {
        let mut places = Vec::new();
        while let Some(place) = self.optional(&format!("{letter}{}", places.len() + 1))? {
            places.push(place);
        }
        let is_numbered = |name: &String| {
            name.strip_prefix(letter).is_some_and(|digits| {
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let count = self.header.fields.iter().filter(|name| is_numbered(name)).count();
        match self.optional(letter)? {
            Some(place) if count == 0 => Ok(vec![place]),
            None if count == places.len() && count > 0 => Ok(places),
            None if count == 0 => Err(self.missing(&format!("`{letter}` or `{letter}1`"))),
            _ => Err(self.missing(&format!(
                "either `{letter}` or `{letter}1`, `{letter}2`, … without a gap"
            ))),
        }
    }

    fn missing(&self, wanted: &str) -> Error {
        let found = format!("columns {}", self.header.fields.join(", "));
        parse_error(self.file, self.header.line, "names", format!("{wanted} in the header"), &found)
    }
}

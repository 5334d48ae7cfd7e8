//! What the folder of a run holds: its record, its pictures, its numbers. Also pictures of any folder.
//!
//! Of `config.toml` and `run.json` the page gets no folders of this machine and no command line: pages are
//! shown to others.

use std::fs;
use std::path::{Path, PathBuf};

use ebp::data::image::is_image;
use serde_json::{Value, json};

use super::pack::base64;
use super::page::{Numbers, Page, Picture};
use super::record::Columns;
use crate::failure::Failure;

/// Folders of a run that have pictures.
pub(super) const PICTURE_FOLDERS: [&str; 2] = ["plots", "samples"];
/// Bytes of pictures that a page takes, in all.
const MOST_PICTURE_BYTES: usize = 700_000;
/// Points of a training curve.
const MOST_STEPS: usize = 600;
/// Larger files of numbers are no summaries.
const LARGEST_NUMBERS: u64 = 64 * 1024;

/// Whether a folder is that of a run, at any time of its life.
pub(super) fn is_run(path: &Path) -> bool {
    path.join("config.toml").is_file() || path.join("metrics.jsonl").is_file()
}

/// Adds what the folder holds.
pub(super) fn add(page: &mut Page, run: &Path) -> Result<(), Failure> {
    let record = run.join("metrics.jsonl");
    if record.is_file() {
        let text = fs::read(&record).map_err(|error| Failure::cannot("read", &record, &error))?;
        let mut columns = Columns::default();
        text.split(|&byte| byte == b'\n').for_each(|line| columns.take(line));
        page.metrics = Some(columns.thinned(MOST_STEPS));
    }
    let files = pictures_of(run).into_iter().map(|(name, path)| (name, path, true)).collect();
    embed(page, files)?;
    add_numbers(page, run);
    Ok(())
}

/// The pictures in a run's folders: what they are called on a page, and where they are. Links are left out.
pub(super) fn pictures_of(run: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for folder in PICTURE_FOLDERS {
        let mut names: Vec<String> = fs::read_dir(run.join(folder))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| media_type(Path::new(name)).is_some())
            .collect();
        names.sort();
        found.extend(
            names.into_iter().map(|name| (format!("{folder}/{name}"), run.join(folder).join(name))),
        );
    }
    found
}

/// What a browser calls a picture's format.
pub(super) fn media_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        _ => return None,
    })
}

/// Adds pictures of files and folders.
pub(super) fn add_pictures(page: &mut Page, sources: &[PathBuf]) -> Result<(), Failure> {
    let mut files = Vec::new();
    for source in sources {
        let mut paths = vec![source.clone()];
        if source.is_dir() {
            let inside =
                fs::read_dir(source).map_err(|error| Failure::cannot("read", source, &error))?;
            paths = inside.flatten().map(|entry| entry.path()).filter(|p| is_image(p)).collect();
            paths.sort();
        }
        files.extend(paths.into_iter().map(|path| {
            let name =
                path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
            (name, path, false)
        }));
    }
    page.subtitle = format!("{} pictures", files.len());
    embed(page, files)
}

/// Puts the bytes of pictures into the page, as many as it takes; formats that browsers do not know are
/// written anew.
fn embed(page: &mut Page, files: Vec<(String, PathBuf, bool)>) -> Result<(), Failure> {
    let (mut total, mut left_out) = (0, 0);
    for (name, path, of_run) in files {
        let cannot = |error: &std::io::Error| Failure::cannot("read", &path, error);
        let mut bytes = fs::read(&path).map_err(|error| cannot(&error))?;
        let Ok(picture) = image::load_from_memory(&bytes) else {
            // A run may be writing it just now.
            page.notes.push(format!("`{}` is no whole picture and was left out", path.display()));
            continue;
        };
        let media = media_type(&path).unwrap_or_else(|| {
            let mut written = std::io::Cursor::new(Vec::new());
            if picture.write_to(&mut written, image::ImageFormat::Png).is_ok() {
                bytes = written.into_inner();
            }
            "image/png"
        });
        // The first one of a run is always shown.
        if total + bytes.len() > MOST_PICTURE_BYTES && !(of_run && total == 0) {
            left_out += 1;
            continue;
        }
        total += bytes.len();
        let source = format!("data:{media};base64,{}", base64(&bytes));
        page.pictures.push(Picture { name, source, width: picture.width() });
    }
    if left_out > 0 {
        page.notes.push(format!(
            "{left_out} pictures were left out: a page takes {} kB of them",
            MOST_PICTURE_BYTES / 1000
        ));
    }
    Ok(())
}

/// Tables of the numbers that stand in the folder itself.
pub(super) fn add_numbers(page: &mut Page, run: &Path) {
    let read = |name: &str| fs::read_to_string(run.join(name)).ok();
    let mut names: Vec<String> = fs::read_dir(run)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST_NUMBERS)
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "json"))
        .collect();
    names.sort();
    for name in names {
        let Some(value) = read(&name).and_then(|text| serde_json::from_str(&text).ok()) else {
            continue;
        };
        add_table(page, &name, &value);
    }
    if let Some(value) =
        read("config.toml").and_then(|text| toml::from_str::<toml::Value>(&text).ok())
    {
        add_table(page, "config.toml", &json!(value));
    }
}

fn add_table(page: &mut Page, name: &str, value: &Value) {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    if !rows.is_empty() {
        page.numbers.push(Numbers { name: name.to_owned(), rows });
    }
}

/// Names and values of a tree, without what tells of this machine.
fn flatten(prefix: &str, value: &Value, rows: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key != "arguments" {
                    let name =
                        if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    flatten(&name, value, rows);
                }
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (number, item) in items.iter().enumerate() {
                flatten(&format!("{prefix}[{}]", number + 1), item, rows);
            }
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(|item| name_only(item).to_string()).collect();
            rows.push((prefix.to_owned(), words.join(", ").replace('"', "").into()));
        }
        Value::Bool(truth) => rows.push((prefix.to_owned(), truth.to_string().into())),
        Value::Null => rows.push((prefix.to_owned(), "–".into())),
        _ => rows.push((prefix.to_owned(), name_only(value))),
    }
}

/// Of a path its last part.
fn name_only(value: &Value) -> Value {
    match value.as_str() {
        Some(text) if Path::new(text).is_absolute() || text.contains("..") => {
            Path::new(text).file_name().map_or(Value::Null, |name| name.to_string_lossy().into())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_tell_nothing_of_this_machine() {
        let value = json!({
            "arguments": ["/home/me/ebp", "train"],
            "data": { "source": "/home/me/secret/chairs.npy", "sizes": [1, 2] },
            "rows": [{ "a": 1.5 }, { "a": true }],
        });
        let mut rows = Vec::new();
        flatten("", &value, &mut rows);
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [
            ("data.sizes", json!("1, 2")),
            ("data.source", json!("chairs.npy")),
            ("rows[1].a", json!(1.5)),
            ("rows[2].a", json!("true")),
        ];
        assert_eq!(rows.len(), expected.len());
        for ((name, value), (known, wanted)) in rows.iter().zip(&expected) {
            assert_eq!((name.as_str(), value), (*known, wanted));
        }
    }
}

//! The direction of dependencies, read from the source and compared with the table of
//! ARCHITECTURE.md. One crate cannot make the compiler enforce this.

use std::fs;
use std::path::{Path, PathBuf};

/// The rows of the table, lowest first. A module may use every lower row. Within row 0, whose
/// modules build on each other, it may also use those to its left; within other rows, nobody.
const LAYERS: [&[&str]; 9] = [
    &["error", "files", "rng", "set", "linalg", "point"],
    &["config", "nn", "kernel", "data"],
    &["energy", "latent", "checkpoint"],
    &["sampler", "generator"],
    &["process"],
    &["objective", "metric"],
    &["train", "figure"],
    &["model"],
    &["experiment"],
];

/// Names that `lib.rs` re-exports at the root, and where they live.
const ROOT_NAMES: [(&str, &str); 4] =
    [("Error", "error"), ("Result", "error"), ("IndexedSet", "set"), ("SetOffsets", "set")];

/// Where unsafe code may stand: SIMD intrinsics, and files mapped into memory.
const UNSAFE_PLACES: [&str; 3] = ["point/cpu", "point/cuda", "data/cache/map.rs"];

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut violations = Vec::new();
    for (path, code) in sources() {
        let Some(user) = module_of(&path) else { continue };
        let Some(from) = place(&user) else {
            violations.push(format!("{}: unknown module {user}", path.display()));
            continue;
        };
        for name in used_names(&code) {
            let used = ROOT_NAMES
                .iter()
                .find(|(root, _)| *root == name)
                .map_or(name.as_str(), |(_, module)| *module);
            match place(used) {
                None => violations.push(format!("{}: unknown `crate::{used}`", path.display())),
                Some(below) if !may_use(from, below) => {
                    violations.push(format!("{}: {user} must not use {used}", path.display()));
                }
                Some(_) => {}
            }
        }
    }
    violations.sort();
    violations.dedup();
    assert!(violations.is_empty(), "see ARCHITECTURE.md:\n{}", violations.join("\n"));
}

#[test]
fn unsafe_code_stays_in_its_places() {
    for (path, code) in sources() {
        let has_unsafe =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
        let is_allowed = UNSAFE_PLACES.iter().any(|place| path.starts_with(place));
        assert!(!has_unsafe || is_allowed, "unsafe in {}", path.display());
    }
}

#[test]
fn the_reader_sees_every_way_to_name_a_module() {
    let code = "use crate::error::{check_finite, check_length};\n\
                use crate::{\n    Error, Result,\n    set::{self, SetOffsets},\n};\n\
                let x = crate::rng::Stream::new(1, \"a\"); pub(crate) fn f() {}";
    assert_eq!(used_names(code), ["error", "Error", "Result", "set", "rng"]);
    assert_eq!(without_comments("a // crate::x\nb /// y\nc"), "a \nb \nc\n");
    assert_eq!(module_of(Path::new("point/cpu/mod.rs")).as_deref(), Some("point"));
    assert_eq!(module_of(Path::new("set.rs")).as_deref(), Some("set"));
    assert_eq!(module_of(Path::new("lib.rs")), None);
}

#[test]
fn the_table_has_a_direction() {
    let allowed = |user, used| may_use(place(user).unwrap(), place(used).unwrap());
    assert!(allowed("point", "rng") && !allowed("rng", "point"));
    assert!(allowed("nn", "point") && !allowed("point", "nn"));
    assert!(allowed("metric", "data") && !allowed("data", "metric"));
    assert!(!allowed("metric", "objective") && !allowed("kernel", "data"));
    assert!(allowed("train", "error") && allowed("point", "point"));
}

/// Row and column in the table.
fn place(module: &str) -> Option<(usize, usize)> {
    LAYERS.iter().enumerate().find_map(|(row, modules)| {
        modules.iter().position(|name| *name == module).map(|column| (row, column))
    })
}

fn may_use(from: (usize, usize), to: (usize, usize)) -> bool {
    from == to || to.0 < from.0 || (from.0 == 0 && to.0 == 0 && to.1 < from.1)
}

/// The top-level module a file belongs to; `None` for the root.
fn module_of(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.strip_suffix(".rs").unwrap_or(&first);
    (name != "lib").then(|| name.to_owned())
}

/// The first name of every path that starts with `crate::`, groups in braces taken apart.
fn used_names(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            None => names.push(identifier(rest)),
            Some(group) => {
                let mut depth = 0;
                let mut is_start = true;
                for (index, character) in group.char_indices() {
                    match character {
                        '}' if depth == 0 => break,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_start = true,
                        _ if is_start && depth == 0 && !character.is_whitespace() => {
                            names.push(identifier(&group[index..]));
                            is_start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Every source file below `src`, by its path there, without comments.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a readable source folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable source file");
                let name = path.strip_prefix(&root).expect("a file below the root");
                files.push((name.to_path_buf(), without_comments(&text)));
            }
        }
    }
    assert!(files.len() > 5, "found the sources");
    files
}

/// Drops everything from `//` to the end of a line, documentation included.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

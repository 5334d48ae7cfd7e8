//! The direction of dependencies, read from the source and compared with the table of
//! ARCHITECTURE.md. One crate cannot make the compiler enforce this.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that `lib.rs` re-exports at the root, and where they live.
const ROOT_NAMES: [(&str, &str); 5] = [
    ("Error", "error"),
    ("Result", "error"),
    ("IndexedSet", "set"),
    ("SetOffsets", "set"),
    ("Share", "share"),
];

/// Where unsafe code may stand: SIMD intrinsics, the driver of GPUs, files mapped into memory, and MPI.
const UNSAFE_PLACES: [&str; 4] =
    ["point/cpu", "point/cuda", "data/cache/map.rs", "exchange/mpi.rs"];

#[test]
fn modules_use_only_what_lies_below_them() {
    let layers = layers();
    let mut violations = Vec::new();
    for (path, code) in sources() {
        let Some(user) = module_of(&path) else { continue };
        let Some(from) = place(&layers, &user) else {
            violations.push(format!("{}: unknown module {user}", path.display()));
            continue;
        };
        for name in used_names(&code) {
            let used = ROOT_NAMES
                .iter()
                .find(|(root, _)| *root == name)
                .map_or(name.as_str(), |(_, module)| *module);
            match place(&layers, used) {
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

/// What learns or chooses cannot see the sets that are reported on: only a trained model hands them out,
/// and only experiments ask for them.
#[test]
fn only_experiments_see_report_sets() {
    let names = |(path, code): (PathBuf, String)| {
        let is_named = code.contains("ReportSets") || code.contains("report_sets");
        is_named.then(|| path.to_string_lossy().replace('\\', "/"))
    };
    let mut found: Vec<String> = sources().into_iter().filter_map(names).collect();
    found.sort();
    let expected = [
        "data/mod.rs",
        "data/parts.rs",
        "experiment/subject.rs",
        "experiment/table2.rs",
        "model/clouds/data.rs",
        "model/clouds/mod.rs",
    ];
    assert_eq!(found, expected);
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
    let layers = layers();
    let allowed =
        |user, used| may_use(place(&layers, user).unwrap(), place(&layers, used).unwrap());
    assert!(allowed("point", "rng") && !allowed("rng", "point"));
    assert!(allowed("nn", "point") && !allowed("point", "nn"));
    assert!(allowed("metric", "data") && !allowed("data", "metric"));
    assert!(allowed("process", "partition") && !allowed("energy", "posterior"));
    assert!(!allowed("train", "figure") && !allowed("kernel", "data"));
    assert!(allowed("train", "error") && allowed("point", "point"));
}

#[test]
fn every_module_of_the_table_exists() {
    let found: BTreeSet<String> =
        sources().iter().filter_map(|(path, _)| module_of(path)).collect();
    let named: BTreeSet<String> = layers().into_iter().flatten().collect();
    assert_eq!(named, found);
}

/// No module inside `process` leads back to itself.
#[test]
fn modules_inside_process_do_not_go_in_circles() {
    let steps = steps_inside("process");
    assert!(steps.len() > 10, "found the modules: {steps:?}");
    if let Some(circle) = circle(&steps) {
        panic!("see ARCHITECTURE.md: process goes in a circle, {}", circle.join(" → "));
    }
}

#[test]
fn circles_are_found() {
    let steps = |pairs: &[(&str, &str)]| -> BTreeSet<(String, String)> {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    };
    assert_eq!(circle(&steps(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = circle(&steps(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
    // `super` from a file and from a folder below, and names that `mod.rs` hands on.
    let code = "use super::b::X;\nuse super::{Y, c::Z};\nuse super::super::d::W;";
    assert_eq!(super_names(code, 1), ["b", "Y", "c"]);
    assert_eq!(super_names(code, 2), ["d"]);
    assert_eq!(
        re_exports("pub use b::{X, Y as V};\npub(crate) use self::c::Z;"),
        [("X", "b"), ("Y", "b"), ("V", "b"), ("Z", "c")]
            .map(|(name, module)| (name.to_owned(), module.to_owned()))
            .into()
    );
}

/// The rows of ARCHITECTURE.md's first table below "Direction", lowest first. A module may use every
/// lower row. Within row 0, whose modules build on each other, it may also use those to its left;
/// within other rows, nobody.
fn layers() -> Vec<Vec<String>> {
    let mut rows: Vec<(usize, Vec<String>)> = table("| row | modules |")
        .into_iter()
        // The binary is no module of the library.
        .filter(|[_, modules]| !modules.contains('`'))
        .map(|[row, modules]| {
            let names = modules.split(',').map(|name| name.trim().to_owned()).collect();
            (row.parse().expect("the number of a row"), names)
        })
        .collect();
    rows.sort();
    let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>(), "every row once");
    assert!(rows.len() > 5, "found the table");
    rows.into_iter().map(|(_, names)| names).collect()
}

/// The rows of the table of two columns in ARCHITECTURE.md that begins so.
fn table(heading: &str) -> Vec<[String; 2]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(path).expect("ARCHITECTURE.md");
    let (_, below) = text.split_once(heading).expect("the table of ARCHITECTURE.md");
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        <[&str; 2]>::try_from(cells).ok().map(|cells| cells.map(str::to_owned))
    })
    .collect()
}

/// Which module of a folder uses which other one.
fn steps_inside(folder: &str) -> BTreeSet<(String, String)> {
    let sources: Vec<(PathBuf, String)> = sources()
        .into_iter()
        .filter_map(|(path, code)| Some((path.strip_prefix(folder).ok()?.to_owned(), code)))
        .collect();
    let modules: BTreeSet<String> = sources
        .iter()
        .filter_map(|(path, _)| module_of(path))
        .filter(|name| name != "mod")
        .collect();
    let root = sources.iter().find(|(path, _)| path == Path::new("mod.rs"));
    let handed_on = root.map(|(_, code)| re_exports(code)).unwrap_or_default();
    let mut steps = BTreeSet::new();
    for (path, code) in &sources {
        let Some(user) = module_of(path).filter(|name| name != "mod") else { continue };
        let is_mod = path.file_name().is_some_and(|name| name == "mod.rs");
        let depth = path.components().count() - usize::from(is_mod);
        // What only tests use is no step.
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let marker = format!("crate::{folder}::");
        let direct = names_after(code, &marker);
        for name in direct.into_iter().chain(super_names(code, depth)) {
            let used = if modules.contains(&name) { Some(&name) } else { handed_on.get(&name) };
            if let Some(used) = used.filter(|used| **used != user) {
                steps.insert((user.clone(), used.clone()));
            }
        }
    }
    steps
}

/// The first name after exactly `depth` times `super::`.
fn super_names(code: &str, depth: usize) -> Vec<String> {
    let marker = "super::".repeat(depth);
    let mut names = Vec::new();
    for (start, _) in code.match_indices(&marker) {
        let is_deeper = code[..start].ends_with("super::");
        let rest = &code[start + marker.len()..];
        if !is_deeper && !rest.starts_with("super::") {
            names.extend(names_at(rest));
        }
    }
    names
}

/// Names that a module hands on from the modules inside of it.
fn re_exports(code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in code.split(';').filter_map(|part| part.trim_start().strip_prefix("pub")) {
        let Some((_, path)) = statement.split_once("use ") else { continue };
        let path = path.strip_prefix("self::").unwrap_or(path);
        let Some((module, names)) = path.split_once("::") else { continue };
        let words = names.split(|c: char| !c.is_alphanumeric() && c != '_');
        for word in words.filter(|word| !word.is_empty() && *word != "as") {
            found.insert(word.to_owned(), module.to_owned());
        }
    }
    found
}

/// A way from a module back to itself, if there is one.
fn circle(steps: &BTreeSet<(String, String)>) -> Option<Vec<String>> {
    fn walk(steps: &BTreeSet<(String, String)>, way: &mut Vec<String>) -> bool {
        let last = way[way.len() - 1].clone();
        for (_, to) in steps.iter().filter(|(from, _)| *from == last) {
            let is_back = way[0] == *to;
            if !is_back && way.contains(to) {
                continue;
            }
            way.push(to.clone());
            if is_back || walk(steps, way) {
                return true;
            }
            way.pop();
        }
        false
    }
    let starts: BTreeSet<&String> = steps.iter().map(|(from, _)| from).collect();
    starts.into_iter().find_map(|start| {
        let mut way = vec![start.clone()];
        walk(steps, &mut way).then_some(way)
    })
}

/// Row and column in the table.
fn place(layers: &[Vec<String>], module: &str) -> Option<(usize, usize)> {
    layers.iter().enumerate().find_map(|(row, modules)| {
        modules.iter().position(|name| name == module).map(|column| (row, column))
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
    names_after(code, "crate::")
}

fn names_after(code: &str, marker: &str) -> Vec<String> {
    code.split(marker).skip(1).flat_map(names_at).collect()
}

/// The name that a path begins with, or those of a group in braces.
fn names_at(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else { return vec![identifier(rest)] };
    let mut names = Vec::new();
    let (mut depth, mut is_start) = (0, true);
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

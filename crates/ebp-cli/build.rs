//! Embeds the presets, which are the files of `configs/`, and the commit.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    embed_presets(&manifest.join("../../configs"))?;
    embed_commit();
    Ok(())
}

/// Writes a list of (name, text) to `presets.rs`; a file `paper/cloud.toml` is called `paper/cloud`.
fn embed_presets(folder: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                for entry in fs::read_dir(&path)? {
                    files.push(entry?.path());
                }
            } else {
                files.push(path);
            }
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let entries: Vec<_> = files
        .iter()
        .filter_map(|path| {
            let name = path.strip_prefix(folder).ok()?.with_extension("");
            let path = path.canonicalize().ok()?;
            Some((name.to_str()?.replace('\\', "/"), path.to_str()?.to_owned()))
        })
        .map(|(name, path)| format!("    ({name:?}, include_str!({path:?})),"))
        .collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("presets.rs"), format!("&[\n{}\n]\n", entries.join("\n")))
}

/// Sets `EBP_COMMIT` if the source lies in a git repository and git is there.
fn embed_commit() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // The log of HEAD grows with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo::rustc-env=EBP_COMMIT={commit}");
    }
}

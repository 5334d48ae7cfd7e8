//! The presets: every file of `configs/`, compiled in. The crate's own `configs` is a link to the
//! repository's, which `cargo package` follows, so that a published crate has them too.

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../configs/", $name, ".toml")))),*]
    };
}

/// Name and text of every preset, sorted by name. A name with a slash is a file in a folder.
pub const PRESETS: &[(&str, &str)] = presets![
    "arcs",
    "area",
    "bruno",
    "celeba",
    "celeba-ade",
    "celeba-grid",
    "celeba-large",
    "chairs-64",
    "circle",
    "circle-ade",
    "cloud",
    "cloud-ade",
    "ctm",
    "deepsets",
    "digits",
    "dpp",
    "geyer",
    "gp",
    "gplvm",
    "hardcore",
    "hawkes",
    "lda",
    "lines",
    "lines-ade",
    "mnist",
    "mnist-ade",
    "mnist-grid",
    "mnist-large",
    "pairwise",
    "paper-literal",
    "paper/cloud",
    "paper/cloud-annealed",
    "paper/cloud-literal",
    "paper/rings",
    "paper/sticks",
    "phase",
    "phase-ade",
    "plsi",
    "poisson",
    "rings",
    "rival/anp",
    "rival/cnp",
    "rival/gp",
    "rival/np",
    "rival/pictures/anp",
    "rival/pictures/cnp",
    "rival/pictures/convcnp",
    "rival/pictures/convnp",
    "rival/pictures/np",
    "rival/tp",
    "rival/vip",
    "rsm",
    "shapes",
    "sine",
    "sines",
    "sines-ade",
    "statistician",
    "sticks",
    "sticks-attention",
    "strauss",
    "table",
    "topics",
];

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn names(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                names(&path, &format!("{prefix}{stem}/"), found);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(format!("{prefix}{stem}"));
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_a_preset() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let mut found = Vec::new();
        names(&folder, "", &mut found);
        found.sort();
        let known: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, found);
    }
}

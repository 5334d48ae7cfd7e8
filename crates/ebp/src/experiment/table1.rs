//! Table 1 of the paper: generation of airplanes, chairs and cars.

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::generation::all_rows;
use super::text::{cells, table};
use super::{CloudSource, Findings, GenerationRow, Laboratory, generation_table};
use crate::model::{PriorKind, write_clouds};
use crate::process::PointMethod;
use crate::{Error, Result};

/// What is asked for: a model for each class. `source.data` is a folder that holds the classes as
/// folders, files or caches; without it built-in shapes stand in, and published numbers, which are of ShapeNet, are not comparable.
#[derive(Clone, Debug)]
pub struct Table1Experiment {
    /// The models.
    pub source: CloudSource,
    /// The classes.
    pub classes: Vec<String>,
}

impl Default for Table1Experiment {
    fn default() -> Self {
        let classes = ["airplane", "chair", "car"].map(String::from).to_vec();
        Self { source: CloudSource::default(), classes }
    }
}

/// What the paper reports for a class, on ShapeNet with EMD by `approxmatch`: JSD ×10², MMD-CD ×10³,
/// MMD-EMD ×10², COV-CD %, COV-EMD %.
pub const PUBLISHED: [(&str, &str, [f64; 5]); 12] = [
    ("airplane", "EBP (paper)", [3.92, 0.240, 3.22, 49.38, 51.60]),
    ("airplane", "PointFlow", [4.92, 0.217, 3.24, 46.91, 48.40]),
    ("airplane", "l-GAN (best)", [3.61, 0.239, 3.29, 47.90, 50.62]),
    ("airplane", "PC-GAN", [4.63, 0.287, 3.57, 36.46, 40.94]),
    ("chair", "EBP (paper)", [1.53, 2.59, 7.92, 47.73, 49.84]),
    ("chair", "PointFlow", [1.74, 2.42, 7.87, 46.83, 46.98]),
    ("chair", "l-GAN (best)", [2.27, 2.46, 7.85, 41.39, 41.69]),
    ("chair", "PC-GAN", [3.90, 2.75, 8.20, 36.50, 38.98]),
    ("car", "EBP (paper)", [0.78, 0.95, 5.24, 51.99, 51.70]),
    ("car", "PointFlow", [0.87, 0.91, 5.22, 44.03, 46.59]),
    ("car", "l-GAN (best)", [2.21, 1.48, 5.43, 39.20, 39.77]),
    ("car", "PC-GAN", [5.85, 1.12, 5.83, 23.56, 30.29]),
];

/// All classes.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Table1Report(pub Vec<Table1Class>);

/// One class.
#[derive(Clone, Debug, Serialize)]
pub struct Table1Class {
    /// Its name.
    pub class: String,
    /// Where its clouds come from.
    pub data: String,
    /// What was measured.
    pub rows: Vec<GenerationRow>,
}

impl Table1Experiment {
    /// Trains and measures; samples and held-out clouds are written beside the models.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if the folder lacks a class.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<Table1Report>> {
        let classes = self.classes.iter().map(|class| self.class(laboratory, class));
        let report = Table1Report(classes.collect::<Result<_>>()?);
        Ok(Findings { report, pictures: Vec::new() })
    }

    fn class(&self, laboratory: &mut Laboratory<'_>, class: &str) -> Result<Table1Class> {
        let data = Some(match &self.source.data {
            None => class.to_owned(),
            Some(folder) => find(Path::new(folder), class)?,
        });
        let source = CloudSource { data, ..self.source.clone() };
        let subject = source.subject(laboratory, class, &[])?;
        let folder = laboratory.file(class);
        let samples = subject.samples(PriorKind::Kernel, PointMethod::Annealed)?;
        let dim = subject.model()?.dim();
        write_clouds(&folder.join("samples.npy"), &samples, dim, "npy")?;
        let held_out = subject.raw(&subject.held_out()?)?;
        write_clouds(&folder.join("held_out"), &held_out, dim, "npy")?;
        Ok(Table1Class {
            class: class.to_owned(),
            data: subject.settings()?.data.source.clone(),
            rows: all_rows(&subject)?,
        })
    }
}

/// The entry of a folder whose name without ending is the class.
fn find(folder: &Path, class: &str) -> Result<String> {
    let entries = std::fs::read_dir(folder).map_err(Error::io("list", folder))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_stem().is_some_and(|stem| stem == class))
        .collect();
    found.sort();
    let path = found.first().and_then(|path| path.to_str()).ok_or_else(|| {
        Error::refused(format!("there is no `{class}` in `{}`", folder.display()))
            .with_help("choose others with `--classes`")
    })?;
    Ok(path.to_owned())
}

impl Display for Table1Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.0 {
            write!(f, "{}, {}\n{}", class.class, class.data, generation_table(&class.rows))?;
            let head = ["as published, ShapeNet", "JSD ×10²", "MMD-CD ×10³"];
            let mut lines = vec![cells(head)];
            lines[0].extend(["MMD-EMD ×10²", "COV-CD %", "COV-EMD %"].map(String::from));
            for (_, name, values) in PUBLISHED.iter().filter(|row| row.0 == class.class) {
                let mut line = vec![(*name).to_owned()];
                line.extend(values.iter().map(f64::to_string));
                lines.push(line);
            }
            f.write_str(&table(&lines))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

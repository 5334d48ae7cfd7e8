//! Table 1 of the paper: generation of airplanes, chairs and cars, beside the published rows.
//!
//! Every row has the paper's columns: the divergence, and minimum matching distance and coverage by
//! Chamfer (mean of squares) and by the earth mover's distance, `approxmatch`, the soft matching that the
//! published numbers are by. Published rows are ShapeNet's: PointFlow and the paper call its validation
//! folder the test split, so `data.report_on=validation` is what is comparable with them, and which of
//! the two was measured on is said with every class.

use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::generated::maybe;
use super::generation::rows_with_emd;
use super::text::{cells, table};
use super::{CloudSource, Findings, GenerationRow, Laboratory, PartSizes};
use crate::metric::distance::EmdMethod;
use crate::model::{PriorKind, write_clouds};
use crate::process::PointMethod;
use crate::{Error, Result};

/// What is asked for: a model for each class. `source.data` is a folder that holds the classes as
/// folders, files or caches; for a class that it lacks, and without it, built-in shapes stand in, with
/// which published numbers, which are of ShapeNet, are not comparable.
#[derive(Clone, Debug)]
pub struct Table1Experiment {
    /// The models.
    pub source: CloudSource,
    /// The classes.
    pub classes: Vec<String>,
    /// Laws of θ to draw from.
    pub priors: Vec<PriorKind>,
}

impl Default for Table1Experiment {
    fn default() -> Self {
        let classes = ["airplane", "chair", "car"].map(String::from).to_vec();
        Self { source: CloudSource::default(), classes, priors: vec![PriorKind::Kernel] }
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
pub struct Table1Report {
    /// In the order asked for.
    pub classes: Vec<Table1Class>,
}

/// One class.
#[derive(Clone, Debug, Serialize)]
pub struct Table1Class {
    /// Its name.
    pub class: String,
    /// Where its clouds come from.
    pub data: String,
    /// How many were learned from, chosen by and measured on.
    pub parts: PartSizes,
    /// What was measured.
    pub rows: Vec<GenerationRow>,
    /// How the earth mover's distance was computed.
    pub emd: &'static str,
}

impl Table1Experiment {
    /// Trains and measures; samples and the clouds measured on are written beside the models.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such class.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<Table1Report>> {
        let classes = self.classes.iter().map(|class| self.class(laboratory, class));
        let report = Table1Report { classes: classes.collect::<Result<_>>()? };
        Ok(Findings { report, pictures: Vec::new() })
    }

    fn class(&self, laboratory: &mut Laboratory<'_>, class: &str) -> Result<Table1Class> {
        let found = self.source.data.as_ref().map(|folder| find(Path::new(folder), class));
        let data = if let Some(path) = found.transpose()?.flatten() {
            path
        } else {
            laboratory.watch.note(&format!("{class}: built-in shapes stand in"));
            class.to_owned()
        };
        let source = CloudSource { data: Some(data), ..self.source.clone() };
        let subject = source.subject(laboratory, class, &[])?;
        let folder = laboratory.file(class);
        let dim = subject.model()?.dim();
        for &prior in &self.priors {
            let samples = subject.samples(prior, PointMethod::Annealed)?;
            let name = format!("samples-{}.npy", prior.name());
            write_clouds(&folder.join(name), &samples, dim, "npy")?;
        }
        let references = subject.raw(&subject.references()?)?;
        write_clouds(&folder.join("references"), &references, dim, "npy")?;
        let emd = EmdMethod::Approxmatch;
        laboratory.watch.begin(&format!("{class}: distances"));
        Ok(Table1Class {
            class: class.to_owned(),
            data: subject.settings()?.data.source.clone(),
            parts: subject.sizes()?,
            rows: rows_with_emd(&subject, &self.priors, emd)?,
            emd: emd.name(),
        })
    }
}

/// The entry of a folder whose name without ending is the class, if there is one.
fn find(folder: &Path, class: &str) -> Result<Option<String>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io("list", folder))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_stem().is_some_and(|stem| stem == class))
        .collect();
    found.sort();
    Ok(found.first().and_then(|path| path.to_str()).map(str::to_owned))
}

impl Display for Table1Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in &self.classes {
            let head = ["", "JSD ×10²", "MMD-CD ×10³", "MMD-EMD ×10²", "COV-CD %", "COV-EMD %"];
            let mut lines = vec![cells(head)];
            lines[0].extend(["1-NNA-CD %", "1-NNA-EMD %"].map(String::from));
            for GenerationRow { name, scores } in &class.rows {
                let emd = |get: fn(&super::generated::GenerationEmd) -> [f64; 2], factor| {
                    let found = scores.emd.as_ref().map(get);
                    maybe(found.map(|[value, _]| value), found.map(|[_, error]| error), factor)
                };
                let cd = |value, error, factor| maybe(Some(value), Some(error), factor);
                lines.push(vec![
                    format!("{name} (ours)"),
                    maybe(scores.jsd, scores.jsd_error, 100.0),
                    cd(scores.mmd_cd, scores.mmd_cd_error, 1e3),
                    emd(|emd| [emd.mmd, emd.mmd_error], 100.0),
                    cd(scores.cov_cd, scores.cov_cd_error, 100.0),
                    emd(|emd| [emd.cov, emd.cov_error], 100.0),
                    cd(scores.nna_cd, scores.nna_cd_error, 100.0),
                    emd(|emd| [emd.nna, emd.nna_error], 100.0),
                ]);
            }
            for (_, name, values) in PUBLISHED.iter().filter(|row| row.0 == class.class) {
                let mut line = vec![format!("{name}, theirs, ShapeNet")];
                line.extend(values.iter().map(f64::to_string));
                line.extend(["–", "–"].map(String::from));
                lines.push(line);
            }
            let Table1Class { class, data, parts, emd, .. } = class;
            writeln!(f, "{class}, {data}: {parts}; EMD by {emd}\n{}", table(&lines))?;
        }
        writeln!(f, "± is half of a 95 % interval over clouds")
    }
}

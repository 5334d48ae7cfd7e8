//! Table 1 of the paper: airplanes, chairs and cars.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::clouds::{CloudExperiment, keep_json};
use super::generation::rows;
use crate::command::cloud_model::{GenerationRow, PriorName, generation_table, write_clouds};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

const HELP: &str = "\
A model is trained for each class. `--data` is a folder that holds `airplane`, `chair` and `car` as
folders, files (.npy, .h5, …) or caches of `ebp data import`, which keep ShapeNet's own splits; without
it built-in shapes stand in, and only the oracle is comparable. Published values (JSD ×10², MMD-CD
×10³, COV-CD %) are those of ShapeNet. Samples and held-out clouds are written beside the models:
`ebp metrics` adds the earth mover's distances.

Examples:
  ebp reproduce table1
  ebp reproduce table1 --preset cloud --data shapenet/ --classes chair";

/// Arguments of `ebp reproduce table1`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Table1Arguments {
    #[command(flatten)]
    experiment: CloudExperiment,

    /// Classes, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "airplane,chair,car")]
    classes: Vec<String>,
}

/// What the paper reports for a class: JSD ×10², MMD-CD ×10³, COV-CD %.
const PUBLISHED: [(&str, &str, [f64; 3]); 6] = [
    ("airplane", "EBP (paper)", [3.92, 0.240, 49.38]),
    ("airplane", "PointFlow", [4.92, 0.217, 46.91]),
    ("chair", "EBP (paper)", [1.53, 2.59, 47.73]),
    ("chair", "PointFlow", [1.74, 2.42, 46.83]),
    ("car", "EBP (paper)", [0.78, 0.95, 51.99]),
    ("car", "PointFlow", [0.87, 0.91, 44.03]),
];

#[derive(Debug, Serialize)]
struct ClassReport {
    class: String,
    data: String,
    rows: Vec<GenerationRow>,
}

/// Trains, measures and prints.
pub(super) fn run(arguments: &Table1Arguments) -> Result<(), Failure> {
    let reports = start_threads(arguments.experiment.threads)?.install(|| {
        arguments.classes.iter().map(|class| one(arguments, class)).collect::<Result<Vec<_>, _>>()
    })?;
    keep_json(&arguments.experiment.file("table1.json")?, &reports)?;
    if arguments.experiment.json {
        return output::print_json(&reports);
    }
    let mut text = String::new();
    for report in &reports {
        let _ =
            write!(text, "{}, {}\n{}", report.class, report.data, generation_table(&report.rows));
        for (class, name, [jsd, mmd, cov]) in PUBLISHED {
            if class == report.class {
                let _ = writeln!(
                    text,
                    "published, ShapeNet: {name}: COV-CD {cov}, MMD-CD {mmd}, JSD {jsd}"
                );
            }
        }
        text.push('\n');
    }
    output::print(&text)
}

fn one(arguments: &Table1Arguments, class: &str) -> Result<ClassReport, Failure> {
    let mut experiment = arguments.experiment.clone();
    experiment.data = Some(match &arguments.experiment.data {
        None => class.to_owned(),
        Some(folder) => find(Path::new(folder), class)?,
    });
    let subject = experiment.subject(class, &[])?;
    let folder = experiment.file(class)?;
    let samples = subject.samples(PriorName::Kernel, ebp::process::PointMethod::Annealed)?;
    let dim = subject.trained.dim();
    write_clouds(&folder.join("samples.npy"), &samples, dim, "npy")?;
    let held_out = subject.raw(&subject.held_out());
    write_clouds(&folder.join("held_out"), &held_out, dim, "npy")?;
    Ok(ClassReport {
        class: class.to_owned(),
        data: subject.trained.settings.data.source.clone(),
        rows: rows(&subject)?,
    })
}

/// The entry of a folder whose name without ending is the class.
fn find(folder: &Path, class: &str) -> Result<String, Failure> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| Failure::cannot("list", folder, &error))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_stem().is_some_and(|stem| stem == class))
        .collect();
    found.sort();
    let path = found.first().and_then(|path| path.to_str()).ok_or_else(|| {
        Failure::Usage(miette::miette!(
            help = "choose others with `--classes`",
            "there is no `{class}` in `{}`",
            folder.display()
        ))
    })?;
    Ok(path.to_owned())
}

//! Figure 1: all models on all built-in curves, one cell at a time, then tables and a picture.
//!
//! Every model is trained with every seed, then told 5, 15 and 30 elements of sets that it has not
//! seen and asked about fresh ones. Results are in nats per element. All models of a dataset see as many
//! training elements.

mod budget;
mod cell;
mod report;

use serde::{Deserialize, Serialize};

use self::budget::{elements_seen, settings};
pub use self::cell::{ContextScore, Figure1Cell};
use self::cell::{DRAWN_SET, evaluation_stream, window};
pub use self::report::{DatasetReport, Figure1Report, ModelReport};
use super::{Findings, Laboratory};
use crate::data::CurveFamily;
use crate::figure::Drawing;
use crate::figure::density::points;
use crate::figure::density_grid::{DensityGrid, GridRow};
use crate::figure::heat_map::Panel;
use crate::files::{read_json, write_json};
use crate::{Error, Result, Share};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Figure1Experiment {
    /// Built-in curves by name.
    pub datasets: Vec<String>,
    /// Names among [`MODELS`].
    pub models: Vec<String>,
    /// How many seeds.
    pub seeds: usize,
    /// Training elements of every model; without it as many as the dataset's preset sees.
    pub elements: Option<u64>,
}

/// The models of Figure 1.
pub const MODELS: [&str; 8] = ["ebp-importance", "ebp-ade", "gp", "tp", "cnp", "np", "anp", "vip"];

/// The datasets of Figure 1.
pub const DATASETS: [&str; 4] = ["sines", "lines", "circle", "phase"];

impl Default for Figure1Experiment {
    /// All of it, three seeds.
    fn default() -> Self {
        Self {
            datasets: DATASETS.map(String::from).to_vec(),
            models: MODELS.map(String::from).to_vec(),
            seeds: 3,
            elements: None,
        }
    }
}

impl Figure1Experiment {
    /// Trains what is missing, and reports.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such dataset or model.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<Figure1Report>> {
        let families = self.families()?;
        let cells = self.cells(laboratory, &families)?;
        let mut report = Figure1Report::new(&families, &self.models, &cells)?;
        let picture = draw(&families, &self.models, &cells)?;
        let path = laboratory.file("figure1.png");
        report.picture = path.display().to_string();
        Ok(Findings { report, pictures: vec![(path, picture.into())] })
    }

    /// Trains and measures a share of what [`run`](Self::run) asks for, in the same folder, and says
    /// what it has done. Once all shares are done `run` has nothing left to train.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn run_share(&self, laboratory: &mut Laboratory<'_>, share: Share) -> Result<Vec<String>> {
        let places = self.places(&self.families()?);
        let mut done = Vec::new();
        for number in (0..places.len()).filter(|number| share.has(*number)) {
            self.cell(laboratory, &places, number)?;
            done.push(places[number].name());
        }
        Ok(done)
    }

    fn families(&self) -> Result<Vec<CurveFamily>> {
        if let Some(unknown) = self.models.iter().find(|name| !MODELS.contains(&name.as_str())) {
            return Err(Error::refused(format!("there is no model `{unknown}`"))
                .with_help(format!("known are: {}", MODELS.join(", "))));
        }
        self.datasets.iter().map(|name| CurveFamily::parse(name)).collect()
    }

    /// Every cell, from its file or trained now.
    fn cells(
        &self,
        laboratory: &mut Laboratory<'_>,
        families: &[CurveFamily],
    ) -> Result<Vec<Figure1Cell>> {
        let places = self.places(families);
        (0..places.len()).map(|number| self.cell(laboratory, &places, number)).collect()
    }

    /// The cells in their order.
    fn places(&self, families: &[CurveFamily]) -> Vec<Place> {
        let mut places = Vec::new();
        for &family in families {
            for model in &self.models {
                let of_seed = |seed| Place { family, model: model.clone(), seed };
                places.extend((1..=self.seeds as u64).map(of_seed));
            }
        }
        places
    }

    /// Cell `number`, from its file or trained now.
    fn cell(
        &self,
        laboratory: &mut Laboratory<'_>,
        places: &[Place],
        number: usize,
    ) -> Result<Figure1Cell> {
        let place = &places[number];
        let Place { family, model, seed } = place;
        let (name, total) = (place.name(), places.len());
        let path = laboratory.file("results").join(format!("{name}.json"));
        let settings = settings((family.name(), model, *seed), self.elements)?;
        let config = settings.text()?;
        if let Some(Kept { config: known, cell }) = read_json(&path)
            && known == config
        {
            return Ok(cell);
        }
        laboratory.watch.begin(&format!("{} of {total}: {name}", number + 1));
        let (trained, _) = laboratory.model(&format!("models/{name}"), settings)?;
        let seconds = trained.seconds().unwrap_or(0.0);
        let process = trained.curves()?;
        let spent = (seconds, elements_seen(process, trained.step()));
        let cell = Figure1Cell::measure(process, *family, (model, *seed), spent)?;
        write_json(&path, &Kept { config, cell: cell.clone() })?;
        let excess: Vec<_> =
            cell.scores.iter().map(|score| format!("{:.3}", score.excess)).collect();
        let excess = excess.join(" ");
        laboratory.watch.note(&format!("{name}: {seconds:.0} s, excess {excess}"));
        Ok(cell)
    }
}

/// Which cell it is.
#[derive(Clone, Debug)]
struct Place {
    family: CurveFamily,
    model: String,
    seed: u64,
}

impl Place {
    fn name(&self) -> String {
        format!("{}-{}-{}", self.family.name(), self.model, self.seed)
    }
}

/// A cell as it is kept, with the settings that it was trained with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    config: String,
    cell: Figure1Cell,
}

/// What a reader calls a model.
fn title_of(model: &str) -> &str {
    match model {
        "ebp-importance" => "EBP (importance)",
        "ebp-ade" => "EBP (sampler)",
        "gp" => "Gaussian process",
        "tp" => "Student-t process",
        "cnp" => "Conditional neural process",
        "np" => "Neural process",
        "anp" => "Attentive neural process",
        "vip" => "Implicit process",
        other => other,
    }
}

/// A row of panels per dataset: the truth, then every model of seed 1.
fn draw(families: &[CurveFamily], models: &[String], cells: &[Figure1Cell]) -> Result<Drawing> {
    let mut rows = Vec::new();
    for family in families {
        let window = window(*family);
        let drawn = family.draw(evaluation_stream(), DRAWN_SET, 30)?;
        let law = drawn.law;
        let truth = window.panel("", points(&drawn.set), |t, x| law.log_density(t, x).exp());
        // The truth is the brightest: a spike of a model must not darken the others.
        let brightest = truth.values.iter().copied().fold(0.0, f64::max);
        let num_columns = truth.num_columns;
        let of_model = |model: &String| {
            let is_it = |cell: &&Figure1Cell| {
                cell.dataset == family.name() && cell.model == *model && cell.seed == 1
            };
            let values = cells.iter().find(is_it).and_then(|cell| cell.picture.clone())?;
            Some(Panel { title: String::new(), values, num_columns, points: Vec::new() })
        };
        let of_models: Vec<Option<Panel>> = models.iter().map(of_model).collect();
        rows.push(GridRow {
            name: family.name().to_owned(),
            panels: std::iter::once(Some(truth)).chain(of_models).collect(),
            y_range: window.values,
            brightest,
        });
    }
    let truth = "Truth, 30 elements told";
    let titles = models.iter().map(|model| title_of(model));
    let figure = DensityGrid {
        columns: std::iter::once(truth).chain(titles).map(str::to_owned).collect(),
        x_range: families.first().map_or((0.0, 1.0), |family| window(*family).locations),
        rows,
        x_label: "location t".into(),
        y_label: "value x".into(),
        value_label: "p(x | t)".into(),
    };
    figure.draw()
}

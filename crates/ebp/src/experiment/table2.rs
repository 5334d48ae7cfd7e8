//! Table 2 of the paper: a linear classifier on features that were learned without labels.
//!
//! All sets, training and held-out ones, are encoded; a linear support vector machine (squared hinge,
//! no scaling) is judged by cross-validation. The class of a set is the folder or file it comes
//! from. An untrained encoder of the same shape stands beside it.

use std::fmt::{self, Display};

use serde::Serialize;

use super::text::table;
use super::{CloudSource, Findings, Laboratory};
use crate::figure::confusion::ConfusionPicture;
use crate::metric::classify::{
    Cost, CrossValidation, Features, Labelled, SvmConfig, cross_validate,
};
use crate::model::class_of;
use crate::process::LatentCodes;
use crate::rng::Stream;
use crate::{Result, data};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Table2Experiment {
    /// The model; all built-in shapes if no data are named.
    pub source: CloudSource,
    /// Folds of cross-validation.
    pub folds: usize,
    /// Prices of violated margins; `None` is chosen by cross-validation within each fold.
    pub costs: Vec<Option<f64>>,
}

impl Default for Table2Experiment {
    fn default() -> Self {
        Self { source: CloudSource::default(), folds: 5, costs: vec![Some(1.0), None] }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Table2Report {
    /// Where the clouds come from.
    pub data: String,
    /// How many.
    pub sets: usize,
    /// The names of the classes.
    pub classes: Vec<String>,
    /// Folds of cross-validation.
    pub folds: usize,
    /// One per kind of features.
    pub rows: Vec<Table2Row>,
    /// Where the confusion matrix belongs.
    pub picture: String,
}

/// A kind of features.
#[derive(Clone, Debug, Serialize)]
pub struct Table2Row {
    /// Which.
    pub features: &'static str,
    /// How many numbers of each set.
    pub width: usize,
    /// One per price asked for.
    pub results: Vec<Table2Result>,
}

/// What came of one choice of C.
#[derive(Clone, Debug, Serialize)]
pub struct Table2Result {
    /// `None` if every fold chose its own.
    pub c: Option<f64>,
    /// The C of each fold.
    pub costs: Vec<f64>,
    /// The share that was found.
    pub accuracy: f64,
    /// Its standard error.
    pub std_error: f64,
    /// How much smaller the objective can still become, as a share.
    pub gap: f64,
}

impl Table2Result {
    fn new(c: Option<f64>, found: CrossValidation) -> Self {
        Self {
            c,
            accuracy: found.confusion.accuracy(),
            std_error: found.confusion.accuracy_std_error(),
            gap: found.gap,
            costs: found.costs,
        }
    }
}

impl Table2Experiment {
    /// Trains if need be, and classifies.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`] and [`cross_validate`].
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<Table2Report>> {
        let mut source = self.source.clone();
        if source.model.is_none() && source.data.is_none() {
            source.data = Some("all".into());
        }
        let subject = source.subject(laboratory, "all", &[])?;
        let parts = [&subject.data.train, &subject.data.held_out];
        let class = |sets: &data::CloudSource, set: usize| class_of(&sets.name(set)).to_owned();
        let of_sets: Vec<String> = parts
            .into_iter()
            .flat_map(|sets| (0..sets.num_sets()).map(move |set| class(sets, set)))
            .collect();
        let mut classes = of_sets.clone();
        classes.sort();
        classes.dedup();
        let place = |class: &String| classes.iter().position(|known| known == class);
        let labels: Vec<usize> = of_sets.iter().filter_map(place).collect();
        let model = subject.model()?;
        let (mut codes, mut untrained) =
            (model.encode_standardised(parts[0])?, model.encode_untrained(parts[0])?);
        codes.append(model.encode_standardised(parts[1])?);
        untrained.append(model.encode_untrained(parts[1])?);
        let count = of_sets.len();
        let picture = laboratory.file("table2.png");
        let parts: [(&'static str, &LatentCodes, bool); 3] = [
            ("pooled", &codes, true),
            ("μ", &codes, false),
            ("pooled, untrained encoder", &untrained, true),
        ];
        let (mut rows, mut pictures) = (Vec::new(), Vec::new());
        for (name, codes, is_pooled) in parts {
            let values = if is_pooled { &codes.pooled } else { &codes.mean };
            let width = values.len() / count;
            let features = Features::new(width, values)?;
            let labelled = Labelled::new(&features, &labels, classes.len())?;
            let mut results = Vec::new();
            for &c in &self.costs {
                laboratory.watch.begin(&format!("classifying: {name}"));
                let cost = c.map_or(Cost::CrossValidated(self.folds), Cost::Fixed);
                let (config, stream) = (SvmConfig::default(), Stream::new(0, "table 2"));
                let found = cross_validate(&labelled, self.folds, cost, &config, stream)?;
                // The picture shows the first features with the last C.
                if rows.is_empty() {
                    let confusion = &found.confusion;
                    let title = format!("pooled features: {:.1} %", 100.0 * confusion.accuracy());
                    let drawn = ConfusionPicture { title, names: &classes, confusion, scale: 2 };
                    pictures = vec![(picture.clone(), drawn.draw())];
                }
                results.push(Table2Result::new(c, found));
            }
            rows.push(Table2Row { features: name, width, results });
        }
        let report = Table2Report {
            data: model.settings().data.source.clone(),
            sets: count,
            classes,
            folds: self.folds,
            rows,
            picture: picture.display().to_string(),
        };
        Ok(Findings { report, pictures })
    }
}

impl Display for Table2Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut heading = vec!["features".to_owned(), "width".to_owned()];
        let first = self.rows.first().map_or(&[][..], |row| &row.results);
        heading.extend(first.iter().map(|result| match result.c {
            Some(c) => format!("C = {c}"),
            None => "C chosen".to_owned(),
        }));
        let mut lines = vec![heading];
        for row in &self.rows {
            let mut line = vec![row.features.to_owned(), row.width.to_string()];
            line.extend(row.results.iter().map(|result| {
                // ± is half of a 95 % interval over sets.
                format!("{:.2} ± {:.2}", 100.0 * result.accuracy, 196.0 * result.std_error)
            }));
            lines.push(line);
        }
        writeln!(
            f,
            "{}: {} sets of {} classes, {} folds, accuracy in %, ± half of a 95 % interval over sets\n\n{}\npicture: {}",
            self.data,
            self.sets,
            self.classes.len(),
            self.folds,
            table(&lines),
            self.picture
        )
    }
}

//! Table 2 of the paper: a linear classifier on features that were learned without labels.
//!
//! A linear support vector machine (squared hinge, no scaling) learns from the codes of the sets that
//! the encoder learned from and those that its settings were chosen by, and is judged on sets that
//! neither has seen. C is 1, or chosen by cross-validation of what the machine learns from. The class
//! of a set is the folder or file it comes from. An untrained encoder of the same shape stands beside
//! it.
//!
//! The paper learns the encoder from one collection and classifies another, with shapes turned about
//! the axis of gravity: `classified` and `turn_axis`.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::PathBuf;

use serde::Serialize;

use super::subject::ReportShare;
use super::text::{cells, table};
use super::{CloudSource, Findings, Laboratory, MeasuredOn};
use crate::data::normalise::turn_about;
use crate::data::{self, Parts, ReportSets};
use crate::figure::confusion::ConfusionPicture;
use crate::metric::classify::{Confusion, Cost, Features, Labelled, SvmConfig, fit_choosing};
use crate::model::{CloudModel, class_of};
use crate::process::LatentCodes;
use crate::rng::Stream;
use crate::{Error, Result};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Table2Experiment {
    /// The model; all built-in shapes if no data are named.
    pub source: CloudSource,
    /// Other clouds than the encoder's to classify, by their own test split where they have one.
    pub classified: Option<PathBuf>,
    /// The axis of gravity: the encoder learns from shapes turned about it at random, and each shape
    /// to be classified is turned once.
    pub turn_axis: Option<usize>,
    /// Folds of the cross-validation that chooses C.
    pub folds: usize,
    /// Prices of violated margins; `None` is chosen by cross-validation of what is learned from.
    pub costs: Vec<Option<f64>>,
}

impl Default for Table2Experiment {
    fn default() -> Self {
        Self {
            source: CloudSource::default(),
            classified: None,
            turn_axis: None,
            folds: 5,
            costs: vec![Some(1.0), None],
        }
    }
}

/// Published accuracies in %: encoders learned on ShapeNet, ModelNet40 classified.
pub const PUBLISHED: [(&str, f64); 10] = [
    ("EBP (paper)", 88.3),
    ("FoldingNet", 88.4),
    ("PC-GAN", 87.8),
    ("PointFlow", 86.8),
    ("MRTNet-VAE", 86.4),
    ("PointGrow", 85.7),
    ("l-GAN (CD)", 84.5),
    ("l-GAN (EMD)", 84.0),
    ("3D-GAN", 83.3),
    ("VConv-DAE", 75.5),
];

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Table2Report {
    /// Where the encoder's clouds come from.
    pub data: String,
    /// Where the classified clouds come from.
    pub classified: String,
    /// How many the encoder learned from, and how many its settings were chosen by.
    pub encoder_sets: [usize; 2],
    /// What the classifier is judged on.
    pub measured_on: MeasuredOn,
    /// How many the classifier learns from.
    pub training: usize,
    /// How many it is judged on.
    pub judged: usize,
    /// The axis shapes were turned about.
    pub turn_axis: Option<usize>,
    /// The names of the classes.
    pub classes: Vec<String>,
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
    /// The C asked for; `None` if it was chosen.
    pub asked: Option<f64>,
    /// The C that the machine was fitted with.
    pub c: f64,
    /// The share that was found.
    pub accuracy: f64,
    /// Half of its 95 % interval over sets.
    pub error: f64,
    /// How much smaller the objective can still become, as a share.
    pub gap: f64,
}

/// Sets to classify: with codes by both encoders.
struct Classified {
    names: Vec<String>,
    trained: LatentCodes,
    untrained: LatentCodes,
}

impl Table2Experiment {
    /// Trains if need be, and classifies.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`] and [`fit_choosing`]; [`Error::Refused`] if there is nothing to report
    /// on.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<Table2Report>> {
        let mut source = self.source.clone();
        if source.model.is_none() && source.data.is_none() {
            source.data = Some("all".into());
        }
        let further: Vec<String> = match self.turn_axis {
            Some(axis) => vec![
                "model.augmentation.turns=any".to_owned(),
                format!("model.augmentation.turn_axis={axis}"),
            ],
            None => Vec::new(),
        };
        if self.classified.is_some() {
            // No report of the encoder's own data is asked for.
            source.on = MeasuredOn::Choose;
        }
        let name = if self.turn_axis.is_some() { "turned" } else { "all" };
        let subject = source.subject_with(laboratory, name, &further, ReportShare::Fifth)?;
        let model = subject.model()?;
        laboratory.watch.begin("features");
        let (training, report) = match &self.classified {
            None => {
                let data = &subject.data;
                self.both(model, [&data.train, &data.choose], subject.report_sets())?
            }
            Some(path) => {
                let size = data::CloudSource::open(path)?.num_sets();
                let Parts { train, choose, report } = model.parts_of(path, size.div_ceil(5))?;
                let message = || format!("`{}` has no test split to report on", path.display());
                let report = report.as_ref().ok_or_else(|| Error::refused(message()));
                self.both(model, [&train, &choose], report)?
            }
        };
        let own = model.settings().data.source.clone();
        let classified = self.classified.as_ref().map_or(own, |path| path.display().to_string());
        let mut classes = training.names.clone();
        classes.sort();
        classes.dedup();
        let (mut rows, mut pictures) = (Vec::new(), Vec::new());
        let picture = laboratory.file("table2.png");
        let of = |name: &'static str, is_trained: bool, is_pooled: bool| {
            let codes = |sets: &Classified| {
                let codes = if is_trained { &sets.trained } else { &sets.untrained };
                (if is_pooled { &codes.pooled } else { &codes.mean }).clone()
            };
            (name, codes(&training), codes(&report))
        };
        for (name, known, asked) in [
            of("pooled", true, true),
            of("μ", true, false),
            of("pooled, untrained encoder", false, true),
        ] {
            laboratory.watch.begin(&format!("classifying: {name}"));
            let width = known.len() / training.names.len();
            let features = [Features::new(width, &known)?, Features::new(width, &asked)?];
            let labels = [places(&training.names, &classes)?, places(&report.names, &classes)?];
            let mut results = Vec::new();
            for &asked in &self.costs {
                let (confusion, result) = self.judged(&features, &labels, classes.len(), asked)?;
                // The picture shows the first features with the last C.
                if rows.is_empty() {
                    let title = format!("pooled features: {:.1} %", 100.0 * confusion.accuracy());
                    let names = &classes;
                    let drawn = ConfusionPicture { title, names, confusion: &confusion }.draw();
                    pictures = vec![(picture.clone(), drawn.into())];
                }
                results.push(result);
            }
            rows.push(Table2Row { features: name, width, results });
        }
        let report = Table2Report {
            data: model.settings().data.source.clone(),
            classified,
            encoder_sets: [subject.data.train.num_sets(), subject.data.choose.num_sets()],
            measured_on: self.source.on,
            training: training.names.len(),
            judged: report.names.len(),
            turn_axis: self.turn_axis,
            classes,
            rows,
            picture: picture.display().to_string(),
        };
        Ok(Findings { report, pictures })
    }

    /// A machine of the first features and labels, judged on the second.
    fn judged(
        &self,
        [known, asked]: &[Features; 2],
        labels: &[Vec<usize>; 2],
        num_classes: usize,
        c: Option<f64>,
    ) -> Result<(Confusion, Table2Result)> {
        let training = Labelled::new(known, &labels[0], num_classes)?;
        let rows: Vec<usize> = (0..known.len()).collect();
        let cost = c.map_or(Cost::CrossValidated(self.folds), Cost::Fixed);
        let stream = Stream::new(0, "table 2");
        let found = fit_choosing(&training, &rows, cost, &SvmConfig::default(), stream)?;
        let rows: Vec<usize> = (0..asked.len()).collect();
        let mut confusion = Confusion::new(num_classes);
        confusion.add(labels[1].iter().copied().zip(found.svm.predict(asked, &rows)?))?;
        let result = Table2Result {
            asked: c,
            c: found.cost,
            accuracy: confusion.accuracy(),
            error: 1.96 * confusion.accuracy_std_error(),
            gap: found.svm.gap(),
        };
        Ok((confusion, result))
    }

    /// What the classifier learns from and what it is judged on: sets that no choice has seen or,
    /// where choices are to be made, those that they are made by.
    fn both(
        &self,
        model: &CloudModel,
        [train, choose]: [&data::CloudSource; 2],
        report: Result<&ReportSets>,
    ) -> Result<(Classified, Classified)> {
        let of = |sets: &data::CloudSource, part: &str| {
            self.codes(model, part, sets.num_sets(), |set| sets.name(set), |set| sets.set(set))
        };
        let (mut training, chosen) = (of(train, "train")?, of(choose, "choose")?);
        if self.source.on == MeasuredOn::Choose {
            return Ok((training, chosen));
        }
        training.names.extend(chosen.names);
        training.trained.append(chosen.trained);
        training.untrained.append(chosen.untrained);
        let sets = report?;
        let count = sets.num_sets();
        let judged =
            self.codes(model, "report", count, |set| sets.name(set), |set| sets.set(set))?;
        Ok((training, judged))
    }

    fn codes<'a>(
        &self,
        model: &CloudModel,
        part: &str,
        count: usize,
        name: impl Fn(usize) -> String,
        points: impl Fn(usize) -> Cow<'a, [f32]>,
    ) -> Result<Classified> {
        let stream = Stream::new(0, &format!("turns of {part}"));
        let turned = |set: usize| {
            let mut points = points(set);
            if let Some(axis) = self.turn_axis {
                let mut share = [0.0];
                stream.child(set as u64).fill_uniform(0, 0, &mut share);
                turn_about(points.to_mut(), (3, axis), std::f32::consts::TAU * share[0]);
            }
            points
        };
        let [trained, untrained] = model.encode_both(count, turned)?;
        let names = (0..count).map(|set| class_of(&name(set)).to_owned()).collect();
        Ok(Classified { names, trained, untrained })
    }
}

/// The numbers of names among the classes.
fn places(names: &[String], classes: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        classes.binary_search(name).map_err(|_place| {
            Error::refused(format!("the class `{name}` is reported on and was not learned from"))
        })
    };
    names.iter().map(place).collect()
}

impl Display for Table2Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut heading = vec!["features".to_owned(), "width".to_owned()];
        let first = self.rows.first().map_or(&[][..], |row| &row.results);
        heading.extend(first.iter().map(|result| match result.asked {
            Some(c) => format!("C = {c}"),
            None => "C chosen".to_owned(),
        }));
        let mut lines = vec![heading];
        for row in &self.rows {
            let mut line = vec![row.features.to_owned(), row.width.to_string()];
            line.extend(row.results.iter().map(|result| {
                let chosen = match result.asked {
                    Some(_) => String::new(),
                    None => format!(" (C = {})", result.c),
                };
                format!("{:.2} ± {:.2}{chosen}", 100.0 * result.accuracy, 100.0 * result.error)
            }));
            lines.push(line);
        }
        let mut published =
            vec![cells(["as published: ShapeNet learned, ModelNet40 classified", "%"])];
        published.extend(PUBLISHED.map(|(name, value)| vec![name.to_owned(), value.to_string()]));
        let turned = match self.turn_axis {
            Some(axis) => format!(", shapes turned about axis {axis}"),
            None => String::new(),
        };
        writeln!(
            f,
            "encoder: {}, learned from {} sets, chosen by {}\n\
             classifier: {}, {} classes, learned from {} sets, judged on {} {}{turned}\n\
             accuracy in %, ± half of a 95 % interval over sets\n\n{}\n{}\npicture: {}",
            self.data,
            self.encoder_sets[0],
            self.encoder_sets[1],
            self.classified,
            self.classes.len(),
            self.training,
            self.judged,
            match self.measured_on {
                MeasuredOn::Report => "that no choice has seen",
                MeasuredOn::Choose => "that settings are chosen by: not for reports",
            },
            table(&lines),
            table(&published),
            self.picture
        )
    }
}

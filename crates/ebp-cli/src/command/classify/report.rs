//! The result of `ebp classify`, as a table or as JSON.

use std::fmt::Write;

use ebp::experiment::with_interval;
use ebp::metric::classify::{Confusion, Features};
use serde::Serialize;

use super::ClassifyArguments;

/// Everything that was found, and how.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    features: String,
    labels: String,
    dim: usize,
    items: u64,
    /// Printed with the head of the object.
    #[serde(skip)]
    seed: u64,
    #[serde(flatten)]
    protocol: Protocol,
    accuracy: f64,
    /// Of independent items.
    std_error: f64,
    classes: Vec<ClassReport>,
    /// Rows are true classes, columns predicted ones.
    confusion: Vec<Vec<u64>>,
    pub(super) picture: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "protocol", rename_all = "kebab-case")]
pub(super) enum Protocol {
    CrossValidation { folds: usize, fold_accuracies: Vec<f64>, costs: Vec<f64>, gap: f64 },
    Test { training_items: usize, cost: f64, gap: f64 },
}

#[derive(Debug, Serialize)]
struct ClassReport {
    name: String,
    items: u64,
    recall: f64,
    precision: f64,
}

impl Report {
    pub(super) fn new(
        arguments: &ClassifyArguments,
        features: &Features,
        names: &[String],
        confusion: &Confusion,
        protocol: Protocol,
    ) -> Self {
        let count = |truth: usize| (0..names.len()).map(move |p| confusion.count(truth, p));
        let class = |(number, name): (usize, &String)| ClassReport {
            name: name.clone(),
            items: count(number).sum(),
            recall: confusion.recall(number),
            precision: confusion.precision(number),
        };
        Self {
            features: arguments.features.display().to_string(),
            labels: arguments.labels.display().to_string(),
            dim: features.dim(),
            items: confusion.total(),
            seed: arguments.seed,
            protocol,
            accuracy: confusion.accuracy(),
            std_error: confusion.accuracy_std_error(),
            classes: names.iter().enumerate().map(class).collect(),
            confusion: (0..names.len()).map(|truth| count(truth).collect()).collect(),
            picture: None,
        }
    }

    pub(super) fn table(&self) -> String {
        let percent = |share: f64| {
            if share.is_nan() { "-".to_owned() } else { format!("{:.1} %", 100.0 * share) }
        };
        let num_classes = self.classes.len();
        let Self { features, dim, items, .. } = self;
        let (how, gap) = self.protocol.words(self.seed);
        let mut text = format!(
            "{features}: {items} items predicted from {dim} features, {num_classes} classes\n\
             linear SVM (squared hinge, one against the rest), {how}, gap {gap:.0e}\n\n\
             accuracy in %  {}",
            with_interval(100.0 * self.accuracy, 100.0 * self.std_error, 2)
        );
        if let Protocol::CrossValidation { fold_accuracies, .. } = &self.protocol {
            let worst = fold_accuracies.iter().copied().fold(1.0, f64::min);
            let best = fold_accuracies.iter().copied().fold(0.0, f64::max);
            let _ = write!(text, " (folds {:.1} to {:.1} %)", 100.0 * worst, 100.0 * best);
        }
        text += "\n\n";
        let mut rows = vec![["class", "items", "found", "precision"].map(str::to_owned).to_vec()];
        rows.extend(self.classes.iter().map(|class| {
            let items = class.items.to_string();
            vec![class.name.clone(), items, percent(class.recall), percent(class.precision)]
        }));
        text += &ebp::experiment::table(&rows);
        if let Some(picture) = &self.picture {
            let _ = write!(text, "\npicture  {picture}\n");
        }
        text
    }
}

impl Protocol {
    /// How the items were predicted, and the gap.
    fn words(&self, seed: u64) -> (String, f64) {
        match self {
            Self::CrossValidation { folds, costs, gap, .. } => {
                let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
                let highest = costs.iter().copied().fold(0.0, f64::max);
                let cost = if lowest < highest {
                    format!("C = {lowest} to {highest}")
                } else {
                    format!("C = {lowest}")
                };
                (format!("{cost}, {folds}-fold cross-validation with seed {seed}"), *gap)
            }
            Self::Test { training_items, cost, gap } => {
                (format!("C = {cost}, fitted on {training_items} items"), *gap)
            }
        }
    }
}

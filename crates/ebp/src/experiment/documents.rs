//! Models of documents, chosen on one part of a corpus and judged by another that no choice has seen.
//!
//! Document i belongs to part i mod `num_parts`. Candidates of every family learn from all parts but the last
//! two and are compared by completion on the last but one; the best of each learns again, from all parts but the
//! last, with every seed, and is judged by the last.

use std::fmt::{self, Display};

use serde::Serialize;

use super::{Findings, Laboratory, table};
use crate::model::{Data, Settings};
use crate::topic::held_out::{bound_perplexity, completion_perplexity};
use crate::{Error, Result};

/// A family of models, and what may be chosen.
struct Family {
    name: &'static str,
    preset: &'static str,
    candidates: &'static [&'static [&'static str]],
}

/// The process for few long documents: θ acts on words without a hidden layer.
const FEW_DOCUMENTS: [&str; 7] = [
    "energy_based.model.latent_dim=100",
    "energy_based.model.energy_widths=[]",
    "energy_based.model.weight_decay=1.0",
    "energy_based.model.hidden_share=0.9",
    "energy_based.model.input_scale=0.5",
    "energy_based.model.learning_rate=3e-3",
    "train.num_steps=1000",
];

/// The same with an urn.
const fn few_documents(urn: &'static str) -> [&'static str; 8] {
    let [a, b, c, d, e, f, g] = FEW_DOCUMENTS;
    [a, b, c, d, e, f, g, urn]
}

const FAMILIES: [Family; 3] = [
    Family {
        name: "lda",
        preset: "lda",
        candidates: &[
            &["lda.num_topics=20", "train.num_steps=400"],
            &["lda.num_topics=50", "train.num_steps=400"],
            &["lda.num_topics=100", "train.num_steps=400"],
        ],
    },
    Family {
        name: "energy-based, no urn",
        preset: "topics",
        candidates: &[&["energy_based.model.urn=0"], &few_documents("energy_based.model.urn=0")],
    },
    Family {
        name: "energy-based",
        preset: "topics",
        candidates: &[
            &["energy_based.model.urn=300"],
            &["energy_based.model.urn=1000"],
            &few_documents("energy_based.model.urn=300"),
            &few_documents("energy_based.model.urn=1000"),
        ],
    },
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct DocumentExperiment {
    /// Documents, as `data.source`.
    pub source: String,
    /// Names of families; empty: all.
    pub families: Vec<String>,
    /// Seeds of the last judgement.
    pub seeds: Vec<u64>,
    /// Parts of the corpus.
    pub num_parts: usize,
    /// Further settings of every model.
    pub changes: Vec<String>,
}

/// What was chosen and what it reaches.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentReport {
    /// Where the documents come from.
    pub data: String,
    /// By family.
    pub rows: Vec<DocumentRow>,
}

/// A family.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentRow {
    /// Its name.
    pub family: &'static str,
    /// Perplexity by completion of each candidate on the choosing part.
    pub candidates: Vec<CandidateRow>,
    /// The best candidate's settings.
    pub chosen: String,
    /// Perplexity by completion on the last part, by seed.
    pub completion: Vec<f64>,
    /// Standard error over documents, of the first seed.
    pub completion_error: f64,
    /// Perplexity by the bound on the last part, by seed.
    pub bound: Vec<f64>,
    /// Of training, of the first seed.
    pub seconds: f64,
}

/// A candidate.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateRow {
    /// What it changes of the preset.
    pub settings: String,
    /// On the choosing part.
    pub completion: f64,
}

impl DocumentExperiment {
    /// Trains what is missing, chooses and judges.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such family or are too few parts.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<DocumentReport>> {
        if self.num_parts < 3 || self.seeds.is_empty() {
            return Err(Error::refused("choosing and judging need three parts and a seed"));
        }
        let is_known = |name: &&String| FAMILIES.iter().any(|family| family.name == **name);
        if let Some(name) = self.families.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
            return Err(Error::refused(format!("there is no family `{name}`"))
                .with_help(format!("there are {}", known.join("; "))));
        }
        let is_asked = |family: &&Family| {
            self.families.is_empty() || self.families.iter().any(|name| name == family.name)
        };
        let rows = FAMILIES.iter().filter(is_asked);
        let rows = rows.map(|family| self.row(laboratory, family)).collect::<Result<Vec<_>>>()?;
        let report = DocumentReport { data: self.source.clone(), rows };
        Ok(Findings { report, pictures: Vec::new() })
    }

    fn row(&self, laboratory: &mut Laboratory<'_>, family: &Family) -> Result<DocumentRow> {
        let last = self.num_parts - 1;
        let mut candidates = Vec::new();
        for (number, changes) in family.candidates.iter().enumerate() {
            let choosing = [
                format!("data.held_out_part={}", last - 1),
                format!("data.left_out_part={last}"),
                format!("seed={}", self.seeds[0]),
            ];
            let name = format!("{}/choice-{number}", folder(family));
            let found = self.judge(laboratory, family, &name, changes, &choosing)?;
            candidates
                .push(CandidateRow { settings: changes.join(" "), completion: found.completion });
        }
        let best = (0..candidates.len())
            .min_by(|&a, &b| candidates[a].completion.total_cmp(&candidates[b].completion))
            .unwrap_or(0);
        let mut judged = Vec::new();
        for seed in &self.seeds {
            let judging = [format!("data.held_out_part={last}"), format!("seed={seed}")];
            let name = format!("{}/seed-{seed}", folder(family));
            let changes = family.candidates[best];
            judged.push(self.judge(laboratory, family, &name, changes, &judging)?);
        }
        Ok(DocumentRow {
            family: family.name,
            chosen: candidates[best].settings.clone(),
            candidates,
            completion: judged.iter().map(|found| found.completion).collect(),
            completion_error: judged[0].completion_error,
            bound: judged.iter().map(|found| found.bound).collect(),
            seconds: judged[0].seconds,
        })
    }

    fn judge(
        &self,
        laboratory: &mut Laboratory<'_>,
        family: &Family,
        name: &str,
        changes: &[&str],
        further: &[String],
    ) -> Result<Judged> {
        laboratory.watch.begin(name);
        let data = [
            format!("data.source={}", toml::Value::String(self.source.clone())),
            format!("data.num_parts={}", self.num_parts),
        ];
        let own = changes.iter().map(|&change| change.to_owned());
        let all = own.chain(data).chain(further.iter().cloned()).chain(self.changes.clone());
        let settings = Settings::preset(family.preset, &all.collect::<Vec<_>>())?;
        let (model, data) = laboratory.model(name, settings)?;
        let Data::Topics(data) = data else {
            return Err(Error::invalid("data", "documents", "data of another kind"));
        };
        let documents = model.topics()?;
        let (law, seed) = (documents.model(), documents.settings().evaluation.seed);
        let completion = completion_perplexity(law, &data.held_out, seed)?;
        let bound = bound_perplexity(law, &data.held_out, seed)?;
        laboratory.watch.note(&format!("{name}: perplexity {:.1}", completion.value));
        Ok(Judged {
            completion: completion.value,
            completion_error: completion.std_error,
            bound: bound.value,
            seconds: model.seconds().unwrap_or(0.0),
        })
    }
}

/// A model on its held-out part.
struct Judged {
    completion: f64,
    completion_error: f64,
    bound: f64,
    seconds: f64,
}

fn folder(family: &Family) -> String {
    family.name.replace(", ", "-").replace(' ', "-")
}

impl Display for DocumentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let each = |values: &[f64]| {
            values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "{}\n", self.data)?;
        for row in &self.rows {
            for candidate in &row.candidates {
                writeln!(
                    f,
                    "{}: {:.1} with {}",
                    row.family, candidate.completion, candidate.settings
                )?;
            }
        }
        let header = ["model", "completion", "±", "seeds", "bound", "below the first", "s"];
        let mut lines = vec![header.map(str::to_owned).to_vec()];
        let first = self.rows.first().map_or(0.0, |row| mean(&row.completion));
        for row in &self.rows {
            let completion = mean(&row.completion);
            lines.push(vec![
                row.family.to_owned(),
                format!("{completion:.1}"),
                format!("{:.1}", row.completion_error),
                each(&row.completion),
                format!("{:.1}", mean(&row.bound)),
                format!("{:.1} %", 100.0 * (1.0 - completion / first)),
                format!("{:.0}", row.seconds),
            ]);
        }
        writeln!(f, "\non the last part, which no choice has seen:\n{}", table(&lines))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;
    use crate::figure::Theme;
    use crate::model::Device;
    use crate::train::Program;

    /// On the built-in bars in seconds: the last part is left out of every choice, and what was trained is found
    /// again.
    #[test]
    fn choices_do_not_see_what_they_are_judged_by() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = DocumentExperiment {
            source: "bars".to_owned(),
            families: vec!["lda".to_owned()],
            seeds: vec![1, 2],
            num_parts: 4,
            changes: ["data.num_documents=60", "data.document_length=20", "train.num_steps=6"]
                .map(str::to_owned)
                .to_vec(),
        };
        let mut watch = Unwatched::default();
        let mut run = |experiment: &DocumentExperiment| {
            let mut laboratory = Laboratory {
                folder: folder.path().to_owned(),
                device: Device::cpu(),
                program: Program::default(),
                watch: &mut watch,
                stop: None,
                theme: Theme::default(),
            };
            experiment.run(&mut laboratory).map(|findings| findings.report)
        };
        let report = run(&experiment).unwrap();
        let row = &report.rows[0];
        assert_eq!((row.candidates.len(), row.completion.len()), (3, 2));
        let best = row.candidates.iter().map(|c| c.completion).fold(f64::INFINITY, f64::min);
        let chosen = row.candidates.iter().find(|c| c.settings == row.chosen).unwrap();
        assert!((chosen.completion - best).abs() < 1e-12);
        assert!(report.to_string().contains("no choice has seen"));
        let again = run(&experiment).unwrap();
        assert_eq!(again.rows[0].completion, row.completion);
        assert!(run(&DocumentExperiment { num_parts: 2, ..experiment.clone() }).is_err());
        let other = DocumentExperiment { families: vec!["x".to_owned()], ..experiment };
        assert!(run(&other).unwrap_err().to_string().contains("no family"));
    }
}

//! The settings of topic models.

use serde::{Deserialize, Serialize};

use crate::topic::ctm::CtmConfig;
use crate::topic::energy_based::EnergyBasedTopicsConfig;
use crate::topic::lda::LdaConfig;
use crate::topic::plsi::PlsiConfig;
use crate::topic::rsm::RsmConfig;
use crate::train::TrainerConfig;
use crate::{Error, Result};

/// Which law of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopicProcess {
    /// Latent Dirichlet allocation.
    #[default]
    Lda,
    /// Probabilistic latent semantic indexing.
    Plsi,
    /// The correlated topic model.
    Ctm,
    /// Replicated softmax.
    Rsm,
    /// The energy-based process.
    EnergyBased,
}

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopicSettings {
    /// Which law of documents; only its own section below is read.
    pub process: TopicProcess,
    /// Seed of all random numbers.
    pub seed: u64,
    /// How it is judged.
    pub evaluation: TopicEvaluation,
    /// Where the documents come from.
    pub data: TopicDataSettings,
    /// Latent Dirichlet allocation.
    pub lda: LdaConfig,
    /// pLSI.
    pub plsi: PlsiConfig,
    /// Correlated topics.
    pub ctm: CtmConfig,
    /// Replicated softmax.
    pub rsm: RsmConfig,
    /// The energy-based process.
    pub energy_based: EnergyBasedTopicsConfig,
    /// The loop.
    pub train: TrainerConfig,
}

/// How a model is judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopicEvaluation {
    /// Held-out perplexity by completion is measured after so many steps.
    pub every: u64,
    /// Seed of the halves of held-out documents, and of draws.
    pub seed: u64,
    /// Words that are shown of each topic, and whose coherence is measured.
    pub num_top_words: usize,
}

impl Default for TopicEvaluation {
    fn default() -> Self {
        Self { every: 50, seed: 0, num_top_words: 10 }
    }
}

/// Where the documents come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TopicDataSettings {
    /// `bars`, or a file or folder of svmlight counts (`label id:count …`), UCI's `docword…`, or a cache of
    /// either.
    pub source: String,
    /// A file with a word a line; empty: the file beside the source that ends in `.vocab`, or UCI's
    /// `vocab…`, or numbers.
    pub vocabulary: String,
    /// Document i is held out if i mod `num_parts` is `held_out_part`.
    pub num_parts: usize,
    /// Which of the parts is held out.
    pub held_out_part: usize,
    /// A further part that is neither learned from nor judged by, where settings are chosen on the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_part: Option<usize>,
    /// Documents of the built-in corpus.
    pub num_documents: usize,
    /// Words of each of them.
    pub document_length: usize,
}

impl TopicDataSettings {
    /// That what is held out and what is left out are parts.
    pub(super) fn check_parts(&self) -> Result<()> {
        if self.num_parts < 2 || self.held_out_part >= self.num_parts {
            let found = format!("part {} of {}", self.held_out_part, self.num_parts);
            return Err(Error::invalid("data.held_out_part", "one of at least 2 parts", found));
        }
        let is_other = |part: usize| part < self.num_parts && part != self.held_out_part;
        if let Some(part) = self.left_out_part.filter(|&part| !is_other(part)) {
            let expected = "one of the parts, and not the one that is held out";
            return Err(Error::invalid("data.left_out_part", expected, part));
        }
        Ok(())
    }
}

impl Default for TopicDataSettings {
    fn default() -> Self {
        Self {
            source: "bars".into(),
            vocabulary: String::new(),
            num_parts: 10,
            held_out_part: 9,
            left_out_part: None,
            num_documents: 2000,
            document_length: 100,
        }
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            process: TopicProcess::default(),
            seed: 1,
            evaluation: TopicEvaluation::default(),
            data: TopicDataSettings::default(),
            lda: LdaConfig::default(),
            plsi: PlsiConfig::default(),
            ctm: CtmConfig::default(),
            rsm: RsmConfig::default(),
            energy_based: EnergyBasedTopicsConfig::default(),
            train: TrainerConfig { num_steps: 200, ..TrainerConfig::default() },
        }
    }
}

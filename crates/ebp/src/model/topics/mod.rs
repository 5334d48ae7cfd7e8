//! Models of documents as bags of words.
//!
//! The path: [`TopicSettings`] → [`TopicData`] → `learn` → [`TopicDocuments`]. A process is an arm of
//! `learner` and one of `model_of`.

mod bars;
mod data;
mod settings;

use std::fmt::Debug;

pub(super) use self::data::Collected;
pub use self::data::TopicData;
pub use self::settings::{TopicDataSettings, TopicEvaluation, TopicProcess, TopicSettings};
use super::{Device, Lesson};
use crate::Result;
use crate::checkpoint::Checkpoint;
use crate::tape;
use crate::tensor::Tensors;
use crate::topic::held_out::completion_perplexity;
use crate::topic::{TopicLearner, TopicModel, ctm, energy_based, lda, plsi, rsm};
use crate::train::{Evaluation, Finished, Step, TopicTraining};

/// A trained model of documents.
#[derive(Debug)]
pub struct TopicDocuments {
    settings: TopicSettings,
    model: Box<dyn TopicModel>,
}

/// The untrained process that the settings name.
fn learner(
    settings: &TopicSettings,
    data: &TopicData,
    device: &tape::Device,
) -> Result<Box<dyn TopicLearner>> {
    let (corpus, seed) = (data.training.clone(), settings.seed);
    Ok(match settings.process {
        TopicProcess::Lda => lda::learner(corpus, &settings.lda, seed)?,
        TopicProcess::Plsi => Box::new(plsi::Plsi::new(corpus, &settings.plsi, seed)?),
        TopicProcess::Ctm => Box::new(ctm::Ctm::new(corpus, &settings.ctm, seed)?),
        TopicProcess::Rsm => Box::new(rsm::Rsm::new(corpus, &settings.rsm, seed)?),
        TopicProcess::EnergyBased => {
            let config = settings.energy_based.clone();
            Box::new(energy_based::EnergyBasedTopics::new(config, corpus, (seed, device))?)
        }
    })
}

/// What such a process had learned when it gave `state`; no documents are needed.
fn model_of(
    settings: &TopicSettings,
    state: &Tensors,
    device: &tape::Device,
) -> Result<Box<dyn TopicModel>> {
    match settings.process {
        TopicProcess::Lda => lda::model(&settings.lda, state),
        TopicProcess::Plsi => plsi::model(state),
        TopicProcess::Ctm => ctm::model(&settings.ctm, state),
        TopicProcess::Rsm => rsm::model(&settings.rsm, state),
        TopicProcess::EnergyBased => {
            energy_based::model(&settings.energy_based.model, state, device)
        }
    }
}

/// Trains the process that the settings name.
pub(super) fn learn(
    settings: &TopicSettings,
    data: &TopicData,
    lesson: Lesson<'_>,
) -> Result<Finished> {
    let mut training = TopicTraining::new(learner(settings, data, lesson.device.tape())?);
    let seed = settings.evaluation.seed;
    let look = move |training: &mut TopicTraining, _: &Step| {
        let found = completion_perplexity(&*training.model()?, &data.held_out, seed)?;
        Ok(vec![("perplexity".to_owned(), found.value)])
    };
    let evaluation = Evaluation::new(settings.evaluation.every, look)?;
    lesson.run(&mut training, evaluation, [].into())
}

impl TopicDocuments {
    /// The model that a checkpoint holds.
    pub(super) fn restore(
        settings: &TopicSettings,
        checkpoint: &Checkpoint,
        device: &Device,
    ) -> Result<Self> {
        let model = model_of(settings, &checkpoint.model_state()?, device.tape())?;
        Ok(Self { settings: settings.clone(), model })
    }

    /// The settings it was trained with.
    pub fn settings(&self) -> &TopicSettings {
        &self.settings
    }

    /// The law of documents.
    pub fn model(&self) -> &dyn TopicModel {
        &*self.model
    }
}

//! The loop: step, evaluate, record, save; and back, if a number is not finite.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::loop_state::{Divergence, LoopState, first_non_finite};
use super::{
    Event, Observer, OnDivergence, Replicas, Shardable, Step, StepNumbers, Trainable, TrainerConfig,
};
use crate::checkpoint::{Checkpoint, CheckpointMeta, CheckpointStore};
use crate::exchange::Ranks;
use crate::rng::Stream;
use crate::{Error, Result};

/// Numbers by name, as an evaluation gives them.
type Numbers = Vec<(String, f64)>;

/// A function that is called every so often and says how good the model is.
///
/// It must leave the model as it found it (averages swapped in are to be swapped out), and depend
/// on nothing but the model and the step it is given, whose stream is its own.
pub struct Evaluation<'a, T: ?Sized> {
    every: u64,
    #[expect(clippy::type_complexity, reason = "it is written down here only")]
    function: Box<dyn FnMut(&mut T, &Step) -> Result<Numbers> + 'a>,
}

impl<T: ?Sized> Debug for Evaluation<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Evaluation {{ every: {} }}", self.every)
    }
}

impl<'a, T: ?Sized> Evaluation<'a, T> {
    /// Calls `function` after every `every` steps and after the last one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if `every` is 0.
    pub fn new(
        every: u64,
        function: impl FnMut(&mut T, &Step) -> Result<Numbers> + 'a,
    ) -> Result<Self> {
        if every == 0 {
            return Err(Error::invalid("every", "at least 1", every));
        }
        Ok(Self { every, function: Box::new(function) })
    }
}

impl<'a, T: Shardable + 'a> Evaluation<'a, Replicas<T>> {
    /// Asks the first shard's model, which is as good as any.
    pub fn of_first(mut evaluation: Evaluation<'a, T>) -> Self {
        Self {
            every: evaluation.every,
            function: Box::new(move |model, step| (evaluation.function)(model.first_mut(), step)),
        }
    }
}

/// What the first process measured, on its way to the others. Numbers as bits, because they may be NaN.
#[derive(Debug, Serialize, Deserialize)]
enum Measured {
    Numbers(Vec<(String, u64)>),
    /// What every process takes for a step that diverged.
    Diverged {
        quantity: String,
        found: String,
    },
}

impl Measured {
    /// An error that is no divergence is the first process's own, who leaves with it.
    fn of(measured: &Result<Numbers>) -> Option<Self> {
        match measured {
            Ok(numbers) => {
                let bits = numbers.iter().map(|(name, number)| (name.clone(), number.to_bits()));
                Some(Self::Numbers(bits.collect()))
            }
            Err(error) => {
                let (quantity, found) = error.divergence()?;
                Some(Self::Diverged { quantity, found })
            }
        }
    }

    fn numbers(self) -> Result<Numbers> {
        match self {
            Self::Numbers(numbers) => {
                Ok(numbers.into_iter().map(|(name, bits)| (name, f64::from_bits(bits))).collect())
            }
            Self::Diverged { quantity, found } => Err(Error::Peer {
                who: "rank 0".into(),
                message: format!("`{quantity}` must be finite, found {found}"),
                help: None,
                divergence: Some((quantity, found)),
            }),
        }
    }
}

/// What surrounds a run.
#[derive(Debug)]
pub struct Session<'a, T: ?Sized> {
    /// Where checkpoints go. If it holds any, the run goes on from the newest.
    pub store: Option<&'a CheckpointStore>,
    /// What to measure on the way.
    pub evaluations: Vec<Evaluation<'a, T>>,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
    /// Read before every step: once it is true, the run saves its state and ends.
    pub stop: Option<&'a AtomicBool>,
    /// The processes that train together, if there are several. They begin with what the first one has, decide
    /// by what it measures, and stop when any of them is asked to.
    pub ranks: Option<&'a Ranks>,
    /// The configuration as text, for the checkpoints.
    pub config: String,
    /// Numbers that belong to the model, for the checkpoints.
    pub numbers: BTreeMap<String, Vec<f64>>,
}

impl<'a, T: ?Sized> Session<'a, T> {
    /// Nothing but an observer.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Self {
            store: None,
            evaluations: Vec::new(),
            observer,
            stop: None,
            ranks: None,
            config: String::new(),
            numbers: BTreeMap::new(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are taken.
    Finished {
        /// How many.
        step: u64,
    },
    /// It was asked to stop.
    Interrupted {
        /// After how many steps.
        step: u64,
    },
}

/// Takes the steps of a [`Trainable`].
///
/// Step number i draws from the stream `train` of the seed, child i. After the r-th rollback the
/// stream is `train after rollback r`, so that the same misfortune is not drawn again.
#[derive(Clone, Debug)]
pub struct Trainer {
    config: TrainerConfig,
    seed: u64,
}

impl Trainer {
    /// A trainer with checked settings.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a setting outside its range.
    pub fn new(config: TrainerConfig, seed: u64) -> Result<Self> {
        config.check()?;
        Ok(Self { config, seed })
    }

    /// Trains until all steps are taken or `session.stop` is set, starting from the session's
    /// newest checkpoint if it has one.
    ///
    /// # Errors
    ///
    /// [`Error::Diverged`] if a number is not finite and no rollback is wanted or left; the model
    /// is then in its last good state. [`Error::InvalidValue`] if the checkpoint is of another
    /// seed or model, or holds weights only. Otherwise whatever the model, the store or the observer says.
    pub fn run<T>(&self, model: &mut T, mut session: Session<'_, T>) -> Result<Outcome>
    where
        T: Trainable + ?Sized,
    {
        self.check_cut(model)?;
        let mut state = match session.ranks.filter(|ranks| ranks.size() > 1) {
            Some(ranks) => self.begin_together(model, &mut session, ranks)?,
            None => self.begin(model, &mut session)?,
        };
        while state.meta.step < self.config.num_steps {
            let is_wished = session.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if session.ranks.map_or(Ok(is_wished), |ranks| ranks.any(is_wished))? {
                if !state.is_saved() {
                    state.save(model.state()?, &self.config, &mut session)?;
                }
                let step = state.meta.step;
                session.observer.observe(&Event::Interrupted { step })?;
                return Ok(Outcome::Interrupted { step });
            }
            if let Err(divergence) = self.advance(model, &mut state, &mut session)? {
                self.go_back(model, &mut state, &mut session, &divergence)?;
            }
        }
        let step = state.meta.step;
        session.observer.observe(&Event::Finished { step })?;
        Ok(Outcome::Finished { step })
    }

    /// That the model's steps are cut as the settings say.
    pub(super) fn check_cut<T: Trainable + ?Sized>(&self, model: &T) -> Result<()> {
        let expected = match model.num_shards() {
            count if count == self.config.shards => return Ok(()),
            1 => "1, as steps of this kind of model cannot be cut".to_owned(),
            count => format!("{count}, as the model was made"),
        };
        Err(Error::invalid("train.shards", expected, self.config.shards))
    }

    /// Every process begins with what the first one has.
    fn begin_together<T>(
        &self,
        model: &mut T,
        session: &mut Session<'_, T>,
        ranks: &Ranks,
    ) -> Result<LoopState>
    where
        T: Trainable + ?Sized,
    {
        if ranks.rank() == 0 {
            let state = self.begin(model, session)?;
            let newest = Checkpoint { state: model.state()?, meta: state.meta.clone() };
            ranks.share(Some(state.milestone.pack()?))?;
            ranks.share(Some(newest.pack()?))?;
            return Ok(state);
        }
        let milestone = Checkpoint::unpack(&ranks.share(None)?)?;
        let newest = Checkpoint::unpack(&ranks.share(None)?)?;
        model.restore(&newest.state)?;
        Ok(LoopState::new(newest.meta, milestone))
    }

    /// Restores the newest checkpoint, or saves the first one: if the disk cannot be written to,
    /// better now than after a night.
    fn begin<T>(&self, model: &mut T, session: &mut Session<'_, T>) -> Result<LoopState>
    where
        T: Trainable + ?Sized,
    {
        let loaded = session.store.map_or(Ok(None), CheckpointStore::load_newest)?;
        let Some(loaded) = loaded else {
            let meta = CheckpointMeta {
                seed: self.seed,
                config: session.config.clone(),
                numbers: session.numbers.clone(),
                ..CheckpointMeta::default()
            };
            let tensors = model.state()?;
            if let Some((name, found)) = first_non_finite(&tensors) {
                return Err(Error::invalid(name, "finite before the first step", found));
            }
            let mut state =
                LoopState::new(meta.clone(), Checkpoint { state: tensors.clone(), meta });
            self.announce(&state, session)?;
            state.save(tensors, &self.config, session)?;
            return Ok(state);
        };
        for error in &loaded.damaged {
            session.observer.observe(&Event::Damaged(error))?;
        }
        let checkpoint = loaded.checkpoint;
        checkpoint.check_resumable()?;
        if checkpoint.meta.seed != self.seed {
            return Err(Error::invalid("seed", checkpoint.meta.seed.to_string(), self.seed));
        }
        model.restore(&checkpoint.state)?;
        let milestone = match session.store {
            Some(store) => store.load_milestone(&checkpoint, self.config.checkpoint_every)?,
            None => None,
        };
        let mut meta = checkpoint.meta.clone();
        meta.config.clone_from(&session.config);
        meta.numbers.clone_from(&session.numbers);
        let mut state = LoopState::new(meta, milestone.unwrap_or(checkpoint));
        state.mark_saved();
        self.announce(&state, session)?;
        Ok(state)
    }

    fn announce<T: ?Sized>(&self, state: &LoopState, session: &mut Session<'_, T>) -> Result<()> {
        session.observer.observe(&Event::Started {
            step: state.meta.step,
            num_steps: self.config.num_steps,
            num_rollbacks: state.num_rollbacks(),
        })
    }

    /// One step and what follows from it. The inner result says whether it diverged.
    fn advance<T>(
        &self,
        model: &mut T,
        state: &mut LoopState,
        session: &mut Session<'_, T>,
    ) -> Result<std::result::Result<(), Divergence>>
    where
        T: Trainable + ?Sized,
    {
        let number = state.meta.step;
        let num_steps = self.config.num_steps;
        if number + 1 < num_steps {
            model.foresee(&self.step(state, "train", number + 1));
        }
        let record = match model.step(&self.step(state, "train", number)) {
            Ok(record) => record,
            Err(error) => return Divergence::from_error(error, number).map(Err),
        };
        if let Some((name, value)) = record.iter().find(|(_, value)| !value.is_finite()) {
            return Ok(Err(Divergence::new(*name, value, number)));
        }
        state.meta.step = number + 1;
        let evaluation = match self.evaluate(model, state, session) {
            Ok(evaluation) => evaluation,
            Err(error) => return Divergence::from_error(error, number).map(Err),
        };
        let is_best = self.update_best(state, &evaluation, session.evaluations.len())?;
        let is_milestone = state.meta.step.is_multiple_of(self.config.checkpoint_every);
        let is_last = state.meta.step == num_steps;
        let is_saved = is_best || is_milestone || is_last;
        let tensors = if is_saved { Some(model.state()?) } else { None };
        if let Some((name, found)) = tensors.as_ref().and_then(first_non_finite) {
            return Ok(Err(Divergence::new(name, found, number)));
        }
        // Before the checkpoint, so that no checkpoint knows a step that the metrics lack.
        let numbers =
            StepNumbers { step: number, num_steps, record: &record, evaluation: &evaluation };
        session.observer.observe(&Event::Step(numbers))?;
        if let Some(tensors) = tensors {
            if is_milestone {
                let meta = state.meta.clone();
                state.milestone = Checkpoint { state: tensors.clone(), meta };
            }
            state.save(tensors, &self.config, session)?;
        }
        Ok(Ok(()))
    }

    fn step(&self, state: &LoopState, purpose: &str, number: u64) -> Step {
        let stream = match state.num_rollbacks() {
            0 => Stream::new(self.seed, purpose),
            count => Stream::new(self.seed, &format!("{purpose} after rollback {count}")),
        };
        Step {
            number,
            num_steps: self.config.num_steps,
            stream: stream.child(number),
            learning_rate_factor: state.meta.learning_rate_factor,
        }
    }

    fn evaluate<T>(
        &self,
        model: &mut T,
        state: &LoopState,
        session: &mut Session<'_, T>,
    ) -> Result<Numbers>
    where
        T: Trainable + ?Sized,
    {
        let step = self.step(state, "evaluate", state.meta.step);
        let is_due =
            |every: u64| step.number.is_multiple_of(every) || step.number == step.num_steps;
        let mut measure = |evaluations: &mut [Evaluation<'_, T>]| {
            let mut numbers = Vec::new();
            for evaluation in evaluations.iter_mut().filter(|evaluation| is_due(evaluation.every)) {
                numbers.extend((evaluation.function)(model, &step)?);
            }
            Ok(numbers)
        };
        let is_any_due = session.evaluations.iter().any(|evaluation| is_due(evaluation.every));
        match session.ranks.filter(|ranks| ranks.size() > 1 && is_any_due) {
            // What is decided by must be the same to the last bit, whatever the processors.
            Some(ranks) if ranks.rank() == 0 => {
                let measured = measure(&mut session.evaluations);
                let Some(told) = Measured::of(&measured) else { return measured };
                let text = serde_json::to_vec(&told);
                let text = text.map_err(|error| Error::failed(format!("{error}")))?;
                ranks.share(Some(text))?;
                measured
            }
            Some(ranks) => {
                let told = ranks.share(None)?;
                let told: Measured = serde_json::from_slice(&told)
                    .map_err(|error| Error::failed(format!("an evaluation is garbled: {error}")))?;
                told.numbers()
            }
            None => measure(&mut session.evaluations),
        }
    }

    fn update_best(
        &self,
        state: &mut LoopState,
        evaluation: &[(String, f64)],
        num_evaluations: usize,
    ) -> Result<bool> {
        let Some(quantity) = &self.config.best_quantity else { return Ok(false) };
        let value = evaluation.iter().find(|(name, _)| name == quantity).map(|(_, value)| *value);
        // Everything is evaluated after the last step; with a single evaluation, every time.
        let is_complete = state.meta.step == self.config.num_steps
            || (num_evaluations == 1 && !evaluation.is_empty());
        match value {
            Some(value) => Ok(state.update_best(value, self.config.best_is)),
            None if is_complete => {
                let names: Vec<_> = evaluation.iter().map(|(name, _)| name.as_str()).collect();
                let expected = format!("one of the evaluated quantities ({})", names.join(", "));
                Err(Error::invalid("best_quantity", expected, format!("`{quantity}`")))
            }
            None => Ok(false),
        }
    }

    /// Puts the last good state back, and gives up if that is not wanted or no longer allowed.
    fn go_back<T>(
        &self,
        model: &mut T,
        state: &mut LoopState,
        session: &mut Session<'_, T>,
        divergence: &Divergence,
    ) -> Result<()>
    where
        T: Trainable + ?Sized,
    {
        model.restore(&state.milestone.state)?;
        let is_allowed = self.config.on_divergence == OnDivergence::Rollback
            && state.num_rollbacks() < self.config.max_rollbacks;
        if !is_allowed {
            return Err(self.give_up(state, session.store, divergence));
        }
        let rollback = state.roll_back(divergence);
        let num_rollbacks = state.num_rollbacks();
        // The metrics first: whoever dies in between comes by here again.
        session.observer.observe(&Event::RolledBack { rollback: &rollback, num_rollbacks })?;
        let tensors = state.milestone.state.clone();
        state.save(tensors, &self.config, session)
    }

    fn give_up(
        &self,
        state: &LoopState,
        store: Option<&CheckpointStore>,
        divergence: &Divergence,
    ) -> Error {
        let kept = match store {
            Some(_) => format!("the checkpoint of step {} is kept", state.milestone.meta.step),
            None => format!("the model is back at step {}", state.milestone.meta.step),
        };
        let advice = match self.config.on_divergence {
            OnDivergence::Stop => {
                "lower the learning rate, or set `on_divergence` to `rollback`".into()
            }
            OnDivergence::Rollback => format!(
                "all {} rollbacks are spent, learning rates are down to {} of what was asked for: \
                 start again with lower ones",
                self.config.max_rollbacks, state.meta.learning_rate_factor
            ),
        };
        Error::Diverged {
            step: divergence.step,
            quantity: divergence.quantity.clone(),
            found: divergence.found.clone(),
            remedy: format!("{kept}; {advice}"),
        }
    }
}

//! A fit as something that trains: its one step goes from the data to the maximum.

use super::data::PatternData;
use super::extras::{Extra, extras};
use super::settings::{LikelihoodEffort, PatternMethod, PatternProcess, PatternSettings};
use crate::pattern::{
    DeepSetsLaw, Gibbs, Hawkes, Interaction, Jackknife, LikelihoodFit, LikelihoodSettings,
    NetworkLaw, PairLaw, StationaryDpp, climb_likelihood, fit, fit_network, log_partition,
    maximum_likelihood, simulated_errors,
};
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::train::{Record, Step, Trainable};
use crate::{Error, Result};

/// Names of the tensors of a fit.
const PARTS: [&str; 3] = ["coefficients", "errors", "numbers"];

/// What a fit has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fitted {
    /// None before the fit.
    pub(crate) coefficients: Vec<f64>,
    /// Standard errors; −1 where there is none.
    pub(crate) errors: Vec<f64>,
    /// What was maximised, its Monte Carlo error, and the points that counted; then further numbers of a
    /// network and their errors, a pair each.
    pub(crate) numbers: Vec<f64>,
}

impl Fitted {
    /// What was maximised.
    pub(crate) fn objective(&self) -> f64 {
        self.numbers.first().copied().unwrap_or(0.0)
    }

    /// The points that counted.
    pub(crate) fn num_points(&self) -> f64 {
        self.numbers.get(2).copied().unwrap_or(0.0)
    }

    /// Further numbers of a network, and their standard errors.
    pub(crate) fn extras(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.numbers.get(3..).unwrap_or_default().chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    pub(crate) fn from_tensors(state: &Tensors) -> Result<Self> {
        let part = |name: &str| match state.get(name).filter(|_| state.len() == PARTS.len()) {
            Some(tensor) => match tensor.values() {
                TensorValues::F64(values) => Ok(values.clone()),
                _ => Err(Error::invalid("state", format!("`{name}` in f64"), "another type")),
            },
            None => Err(Error::invalid("state", format!("{PARTS:?}"), "something else")),
        };
        let (coefficients, errors, numbers) = (part(PARTS[0])?, part(PARTS[1])?, part(PARTS[2])?);
        Ok(Self { coefficients, errors, numbers })
    }

    fn tensors(&self) -> Result<Tensors> {
        let tensor = |values: &Vec<f64>| {
            Tensor::from_values(vec![values.len()], TensorValues::F64(values.clone()))
        };
        Ok(Tensors::from([
            (PARTS[0].to_owned(), tensor(&self.coefficients)?),
            (PARTS[1].to_owned(), tensor(&self.errors)?),
            (PARTS[2].to_owned(), tensor(&self.numbers)?),
        ]))
    }
}

/// Data on their way to a fit.
#[derive(Debug)]
pub(super) struct Fitting<'a> {
    settings: &'a PatternSettings,
    data: &'a PatternData,
    fitted: Fitted,
}

impl<'a> Fitting<'a> {
    pub(super) fn new(settings: &'a PatternSettings, data: &'a PatternData) -> Self {
        Self { settings, data, fitted: Fitted::default() }
    }

    /// −objective per point that counted.
    pub(super) fn nats(&self) -> f64 {
        -self.fitted.objective() / self.fitted.num_points().max(1.0)
    }

    fn fit(&self, step: &Step) -> Result<Fitted> {
        let (settings, data) = (self.settings, self.data);
        let count = data.num_points() as f64;
        match settings.process {
            PatternProcess::Hawkes => {
                let events =
                    data.events.as_ref().ok_or_else(|| Error::refused("there are no events"))?;
                let found = Hawkes::fit(events)?;
                let Hawkes { background, branching, decay } = found.model;
                Ok(Fitted {
                    coefficients: vec![background, branching, decay],
                    errors: found.standard_errors.to_vec(),
                    numbers: vec![found.log_likelihood, 0.0, count],
                })
            }
            PatternProcess::Dpp => {
                let (kernel, shape) = (settings.dpp.kernel.kernel(), settings.dpp.shape);
                let found = StationaryDpp::fit(kernel, shape, &data.patterns)?;
                Ok(Fitted {
                    coefficients: found.model.parameters().to_vec(),
                    errors: vec![found.intensity_error, found.scale_error.unwrap_or(-1.0)],
                    numbers: vec![found.log_likelihood, 0.0, count],
                })
            }
            PatternProcess::Pairwise => {
                let shape = (settings.interaction.radius, settings.interaction.num_knots);
                let (width, decay) = (settings.interaction.width, settings.interaction.decay);
                self.fit_network(&PairLaw::new(shape, width, decay, &data.patterns)?, step)
            }
            PatternProcess::Deepsets => {
                let (shape, decay) = (settings.deep_sets(), settings.interaction.decay);
                self.fit_network(&DeepSetsLaw::new(shape, decay, &data.patterns)?, step)
            }
            _ => self.fit_gibbs(step),
        }
    }

    /// A network's potential: errors by the jackknife, or of a likelihood by its information.
    fn fit_network(&self, law: &dyn NetworkLaw, step: &Step) -> Result<Fitted> {
        let (settings, patterns) = (self.settings, &self.data.patterns);
        let found = fit_network(law, step.stream)?;
        let extras = extras(settings);
        let is_deep = settings.process == PatternProcess::Deepsets;
        let mut fitted = if settings.method == PatternMethod::MaximumLikelihood {
            let effort = self.effort();
            let stream = step.stream.child(0);
            let best = climb_likelihood(law, &found.parameters, patterns, &effort, stream)?;
            let mut fitted = self.with_likelihood(&best, &effort, step)?;
            for Extra { number, .. } in &extras {
                let (value, error) = best.number(law, number)?;
                fitted.numbers.extend([value, error]);
            }
            if !is_deep {
                let number = best.model.coefficients().len();
                let error = |j: usize| Ok(best.number(law, |model| model.coefficients()[j])?.1);
                fitted.errors = (0..number).map(error).collect::<Result<_>>()?;
                fitted.coefficients = best.model.coefficients().to_vec();
            }
            fitted
        } else {
            let number = found.model.coefficients().len();
            let parts = Jackknife::new(law, &found)?;
            let error = |j: usize| parts.error(|model| model.coefficients()[j]);
            let mut fitted = Fitted {
                coefficients: found.model.coefficients().to_vec(),
                errors: (0..number).map(error).collect(),
                numbers: vec![found.log_pseudolikelihood, 0.0, found.num_points as f64],
            };
            for Extra { number, .. } in &extras {
                fitted.numbers.extend([number(&found.model), parts.error(number)]);
            }
            if is_deep {
                fitted.coefficients.clone_from(&found.parameters);
            }
            fitted
        };
        // Weights of Deep Sets have no errors of their own: what they make together has.
        if is_deep {
            fitted.errors.truncate(1);
            fitted.errors.resize(fitted.coefficients.len(), -1.0);
        }
        Ok(fitted)
    }

    fn effort(&self) -> LikelihoodSettings {
        let LikelihoodEffort { num_patterns, num_chains, num_rounds } = self.settings.likelihood;
        let moves = self.settings.sampler.moves();
        LikelihoodSettings { num_patterns, num_chains, num_rounds, moves }
    }

    fn mean_points(&self) -> usize {
        self.data.num_points().div_ceil(self.data.patterns.len().max(1))
    }

    /// What maximum likelihood has found, with the likelihood itself.
    fn with_likelihood(
        &self,
        best: &LikelihoodFit,
        effort: &LikelihoodSettings,
        step: &Step,
    ) -> Result<Fitted> {
        let (model, patterns): (&Gibbs, _) = (&best.model, &self.data.patterns);
        let stream = step.stream.child(1);
        let (log_z, error) = log_partition(model, self.mean_points(), effort, stream)?;
        let sum: f64 = patterns.iter().map(|p| model.log_density_up_to_constant(p) - log_z).sum();
        Ok(Fitted {
            coefficients: best.parameters.clone(),
            errors: best.standard_errors.clone(),
            numbers: vec![sum, error * patterns.len() as f64, self.data.num_points() as f64],
        })
    }

    fn fit_gibbs(&self, step: &Step) -> Result<Fitted> {
        let (settings, data) = (self.settings, self.data);
        let (family, patterns) = (settings.family(data.hard_core), &data.patterns);
        let regression = settings.method.regression();
        let found = fit(&family, patterns, regression)?;
        if settings.method == PatternMethod::MaximumLikelihood
            && family.interaction != Interaction::None
        {
            let effort = self.effort();
            let best = maximum_likelihood(&found.model, patterns, &effort, step.stream.child(0))?;
            return self.with_likelihood(&best, &effort, step);
        }
        let chain = super::chain(settings, self.mean_points());
        let stream = step.stream.child(2);
        // Repeats of all patterns together, so that the effort does not grow with their number.
        let repeats = settings.evaluation.num_errors.max(2).div_ceil(patterns.len());
        let errors =
            simulated_errors(&found, patterns.len(), regression, repeats, (&chain, stream));
        // A process that cannot be simulated is still fitted; its errors are then not known.
        let errors = errors.unwrap_or_else(|_| vec![-1.0; found.model.coefficients().len()]);
        Ok(Fitted {
            coefficients: found.model.coefficients().to_vec(),
            errors,
            numbers: vec![found.objective, 0.0, found.num_points as f64],
        })
    }
}

impl Trainable for Fitting<'_> {
    fn step(&mut self, step: &Step) -> Result<Record> {
        self.fitted = self.fit(step)?;
        Ok(vec![("nats", self.nats())])
    }

    fn state(&self) -> Result<Tensors> {
        self.fitted.tensors()
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        self.fitted = Fitted::from_tensors(state)?;
        Ok(())
    }
}

/// Whether what is maximised is a likelihood.
pub(crate) fn is_likelihood(settings: &PatternSettings) -> bool {
    match settings.process {
        PatternProcess::Dpp | PatternProcess::Hawkes => true,
        PatternProcess::Poisson => settings.method != PatternMethod::Logistic,
        _ => settings.method == PatternMethod::MaximumLikelihood,
    }
}

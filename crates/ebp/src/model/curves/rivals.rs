//! Rivals of the energy-based process on curves: their settings, and how they are built.

use serde::{Deserialize, Serialize};

use super::settings::{CurveProcess, CurveSettings};
use crate::kernel::Rbf;
use crate::model::Device;
use crate::nn::{Record, Step};
use crate::process::neural::{Likelihood, NeuralProcess, NeuralProcessConfig};
use crate::process::{
    ExactProcessConfig, FitConfig, FitReport, GaussianProcess, Learner, Predictive, Process,
    StudentTProcess, Task, VariationalImplicitProcess, VariationalImplicitProcessConfig,
};
use crate::rng::Stream;
use crate::tensor::{Tensor, TensorValues, Tensors};
use crate::{Error, IndexedSet, Result};

/// Settings of the variational implicit process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImplicitSettings {
    /// Widths of the hidden layers of the Bayesian network.
    pub hidden_widths: Vec<usize>,
    /// How many functions are drawn.
    pub num_functions: usize,
    /// The learning rate at the start.
    pub learning_rate: f64,
}

impl Default for ImplicitSettings {
    fn default() -> Self {
        let config = VariationalImplicitProcessConfig::default();
        Self {
            hidden_widths: config.hidden_widths,
            num_functions: config.num_functions,
            learning_rate: config.learning_rate,
        }
    }
}

/// Where the fit of a Gaussian or Student-t process starts, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExactSettings {
    /// Of the signal.
    pub signal_variance: f64,
    /// Of the RBF kernel: the hyperparameter that matters.
    pub length_scale: f64,
    /// Of the measurements.
    pub noise_variance: f64,
    /// ν of the Student-t process, above 2.
    pub degrees_of_freedom: f64,
    /// Further starts of the fit.
    pub num_restarts: usize,
}

impl Default for ExactSettings {
    fn default() -> Self {
        Self {
            signal_variance: 1.0,
            length_scale: 0.5,
            noise_variance: 0.1,
            degrees_of_freedom: 5.0,
            num_restarts: 3,
        }
    }
}

/// The untrained rival that the settings name, for d_t and d_x; `None` if they name no rival.
pub(super) fn build(
    settings: &CurveSettings,
    (location_dim, value_dim): (usize, usize),
    device: &Device,
) -> Result<Option<Box<dyn Learner>>> {
    let neural = |kind: NeuralProcessConfig| -> Result<Option<Box<dyn Learner>>> {
        if settings.neural.likelihood != Likelihood::Gaussian {
            let expected = "`gaussian`: curves have no levels";
            let found = settings.neural.likelihood.name();
            return Err(Error::invalid("neural.likelihood", expected, found));
        }
        let config = settings.neural.config(kind, location_dim, value_dim);
        Ok(Some(Box::new(NeuralProcess::new(config, settings.seed, device.tape())?)))
    };
    let exact = &settings.exact;
    let kernel = || Ok::<_, Error>(Box::new(Rbf::new(exact.signal_variance, exact.length_scale)?));
    let config =
        ExactProcessConfig { location_dim, value_dim, noise_variance: exact.noise_variance };
    let fit = FitConfig { num_restarts: exact.num_restarts, ..FitConfig::default() };
    Ok(match settings.process {
        CurveProcess::EnergyBased => None,
        CurveProcess::Cnp => neural(NeuralProcessConfig::conditional())?,
        CurveProcess::Np => neural(NeuralProcessConfig::latent())?,
        CurveProcess::Anp => neural(NeuralProcessConfig::attentive())?,
        CurveProcess::Vip => {
            let implicit = &settings.implicit;
            let config = VariationalImplicitProcessConfig {
                location_dim,
                value_dim,
                hidden_widths: implicit.hidden_widths.clone(),
                num_functions: implicit.num_functions,
                learning_rate: implicit.learning_rate,
                ..VariationalImplicitProcessConfig::default()
            };
            Some(Box::new(VariationalImplicitProcess::new(config, settings.seed, device.tape())?))
        }
        CurveProcess::Gp => {
            let process = GaussianProcess::new(kernel()?, &config)?;
            Some(Box::new(Fitted { process, fit, evaluations: 0.0 }))
        }
        CurveProcess::Tp => {
            let degrees = exact.degrees_of_freedom;
            let process = StudentTProcess::new(kernel()?, &config, degrees)?;
            Some(Box::new(Fitted { process, fit, evaluations: 0.0 }))
        }
    })
}

/// A process whose hyperparameters are fitted to sets all at once.
trait Fit: Process + Sized {
    fn fit_to(
        &self,
        sets: &[IndexedSet],
        fit: &FitConfig,
        stream: Stream,
    ) -> Result<(Self, FitReport)>;
    fn hyperparameters(&self) -> Vec<(&'static str, f64)>;
    fn numbers(&self) -> Vec<f64>;
    fn with_numbers(&self, numbers: &[f64]) -> Result<Self>;
}

macro_rules! fit_by_likelihood {
    ($process:ty) => {
        impl Fit for $process {
            fn fit_to(
                &self,
                sets: &[IndexedSet],
                fit: &FitConfig,
                stream: Stream,
            ) -> Result<(Self, FitReport)> {
                self.fit(sets, fit, stream)
            }

            fn hyperparameters(&self) -> Vec<(&'static str, f64)> {
                self.hyperparameters()
            }

            fn numbers(&self) -> Vec<f64> {
                self.fitted_numbers()
            }

            fn with_numbers(&self, numbers: &[f64]) -> Result<Self> {
                self.with_fitted_numbers(numbers)
            }
        }
    };
}

fit_by_likelihood!(GaussianProcess);
fit_by_likelihood!(StudentTProcess);

/// An exact process as a learner: a step maximises the likelihood of its sets, to the end, so that
/// one step is all it takes.
#[derive(Debug)]
struct Fitted<P> {
    process: P,
    fit: FitConfig,
    /// How often the fit went through its sets.
    evaluations: f64,
}

/// The tensors of its state.
const FITTED: &str = "fitted";
const EVALUATIONS: &str = "evaluations";

impl<P: Fit> Process for Fitted<P> {
    fn name(&self) -> &'static str {
        self.process.name()
    }

    fn condition<'a>(&'a self, context: &IndexedSet) -> Result<Box<dyn Predictive + 'a>> {
        self.process.condition(context)
    }
}

impl<P: Fit> Learner for Fitted<P> {
    fn learn(&mut self, tasks: &[Task], step: &Step) -> Result<Record> {
        let sets = tasks.iter().map(Task::union).collect::<Result<Vec<_>>>()?;
        let count: usize = sets.iter().map(|set| set.values().len()).sum();
        let (process, report) = self.process.fit_to(&sets, &self.fit, step.stream)?;
        self.process = process;
        self.evaluations = report.num_evaluations as f64;
        Ok(vec![("nats", -report.log_marginal / count as f64), (EVALUATIONS, self.evaluations)])
    }

    fn fitted(&self) -> Vec<(&'static str, f64)> {
        let mut fitted = self.process.hyperparameters();
        fitted.push((EVALUATIONS, self.evaluations));
        fitted
    }

    fn state(&self) -> Result<Tensors> {
        let numbers = |numbers: Vec<f64>| {
            Tensor::from_values(vec![numbers.len()], TensorValues::F64(numbers))
        };
        Ok(Tensors::from([
            (FITTED.to_owned(), numbers(self.process.numbers())?),
            (EVALUATIONS.to_owned(), numbers(vec![self.evaluations])?),
        ]))
    }

    fn restore(&mut self, state: &Tensors) -> Result<()> {
        let numbers = |name: &str| match state.get(name).map(Tensor::values) {
            Some(TensorValues::F64(numbers)) if state.len() == 2 => Ok(numbers),
            _ => {
                let expected = format!("`{FITTED}` and `{EVALUATIONS}`, numbers of a fit");
                Err(Error::invalid("state", expected, "something else"))
            }
        };
        self.process = self.process.with_numbers(numbers(FITTED)?)?;
        self.evaluations = numbers(EVALUATIONS)?.iter().sum();
        Ok(())
    }
}

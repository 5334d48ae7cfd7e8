//! What a device computes, and the checks around it that are the same on every device.
//!
//! A device implements [`Operations`], which may rely on checked arguments; everybody else calls
//! [`PointBackend`], which checks what goes in and what comes out.

use std::fmt::Debug;

use super::checks::{
    OVERFLOW, check_critical, check_dynamics_cotangent, check_dynamics_gradients, check_gradients,
    check_rows, check_scalar,
};
use super::{
    Backward, Candidates, Cotangent, DynamicsCotangent, DynamicsGradients, Gradients, Langevin,
    LangevinRun, Leapfrog, LeapfrogRun, Likelihood, LogPartition, PointBackend, PointBatch,
    PointMlp, Pooled, Pooling, Score, ScoreCotangent, Wanted, likelihood,
};
use crate::error::check_finite;
use crate::{Error, Result};

const NO_WEIGHT: &str =
    "every candidate of that anchor has weight zero: give one a finite log weight";

/// The operations of [`PointBackend`] on checked arguments.
pub trait Operations: Debug + Send + Sync {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>>;

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>>;

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward>;

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score>;

    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients>;

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun>;

    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients>;

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun>;

    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients>;

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition>;

    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients>;

    fn likelihood(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        candidates: &Candidates<'_>,
        wanted: Wanted,
    ) -> Result<Likelihood> {
        likelihood::composed(self, mlp, batch, candidates, wanted)
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled>;

    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients>;
}

impl<O: Operations> PointBackend for O {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        batch.check(mlp.shape())?;
        let values = Operations::values(self, mlp, batch)?;
        check_finite("values", &values, OVERFLOW)?;
        Ok(values)
    }

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        batch.check(mlp.shape())?;
        let sums = Operations::set_sums(self, mlp, batch)?;
        check_finite("set sums", &sums, OVERFLOW)?;
        Ok(sums)
    }

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward> {
        batch.check(mlp.shape())?;
        let (given, rows) = match cotangent {
            Cotangent::PerElement(given) => (given, batch.offsets.num_elements()),
            Cotangent::PerSet(given) => (given, batch.offsets.num_sets()),
        };
        check_rows("cotangent", given, rows, mlp.shape().config().output_dim)?;
        let mut result = Operations::backward(self, mlp, batch, cotangent, wanted)?;
        check_finite("values", &result.values, OVERFLOW)?;
        result.gradients = check_gradients(result.gradients)?;
        Ok(result)
    }

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let score = Operations::score(self, mlp, batch)?;
        check_finite("values", &score.values, OVERFLOW)?;
        check_finite("score", &score.score, OVERFLOW)?;
        Ok(score)
    }

    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        let dims = mlp.shape().config().value_dim;
        check_rows("cotangent.score", cotangent.score, num_elements, dims)?;
        if let Some(values) = cotangent.values {
            check_rows("cotangent.values", values, num_elements, 1)?;
        }
        check_gradients(Operations::score_backward(self, mlp, batch, cotangent, wanted)?)
    }

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        langevin.check(batch.offsets.num_elements())?;
        let run = Operations::langevin(self, mlp, batch, langevin)?;
        check_finite("Langevin elements", &run.elements, OVERFLOW)?;
        check_finite("Langevin values", &run.values, OVERFLOW)?;
        check_finite("Langevin score", &run.score, OVERFLOW)?;
        for sums in [&run.kinetic, &run.final_alignment, &run.kinetic_alignment] {
            check_finite("Langevin sums", sums, OVERFLOW)?;
        }
        Ok(run)
    }

    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        langevin.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, mlp.shape().config().value_dim)?;
        if cotangent.momentum.is_some() {
            return Err(Error::invalid("cotangent.momentum", "None for Langevin steps", "a value"));
        }
        check_dynamics_gradients(Operations::langevin_backward(
            self, mlp, batch, langevin, cotangent,
        )?)
    }

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        check_rows("momentum", momentum, num_elements, mlp.shape().config().value_dim)?;
        leapfrog.check(num_elements)?;
        let run = Operations::leapfrog(self, mlp, batch, momentum, leapfrog)?;
        check_finite("leapfrog elements", &run.elements, OVERFLOW)?;
        check_finite("leapfrog momentum", &run.momentum, OVERFLOW)?;
        check_finite("leapfrog values", &run.values, OVERFLOW)?;
        check_finite("leapfrog score", &run.score, OVERFLOW)?;
        check_finite("leapfrog kinetic", &run.kinetic, OVERFLOW)?;
        Ok(run)
    }

    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        let num_elements = batch.offsets.num_elements();
        let dims = mlp.shape().config().value_dim;
        check_rows("momentum", momentum, num_elements, dims)?;
        leapfrog.check(num_elements)?;
        check_dynamics_cotangent(&cotangent, num_elements, dims)?;
        if cotangent.kinetic.is_some() {
            return Err(Error::invalid("cotangent.kinetic", "None for leapfrog steps", "a value"));
        }
        check_dynamics_gradients(Operations::leapfrog_backward(
            self, mlp, batch, momentum, leapfrog, cotangent,
        )?)
    }

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition> {
        check_scalar(mlp)?;
        candidates.check(mlp)?;
        let result = Operations::log_partition(self, mlp, candidates)?;
        check_finite("candidate values", &result.values, OVERFLOW)?;
        check_finite("log partition", &result.log_partition, NO_WEIGHT)?;
        Ok(result)
    }

    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        check_scalar(mlp)?;
        candidates.check(mlp)?;
        let num_anchors = candidates.num_anchors();
        check_rows("log_partition", log_partition, num_anchors, 1)?;
        check_rows("cotangent", cotangent, num_anchors, 1)?;
        check_gradients(Operations::log_partition_backward(
            self,
            mlp,
            candidates,
            log_partition,
            cotangent,
            wanted,
        )?)
    }

    fn likelihood(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        candidates: &Candidates<'_>,
        wanted: Wanted,
    ) -> Result<Likelihood> {
        check_scalar(mlp)?;
        batch.check(mlp.shape())?;
        candidates.check(mlp)?;
        likelihood::check(batch, candidates)?;
        let wanted = Wanted { elements: false, locations: false, ..wanted };
        let mut result = Operations::likelihood(self, mlp, batch, candidates, wanted)?;
        check_finite("candidate values", &result.candidate_values, OVERFLOW)?;
        check_finite("log partition", &result.log_partition, NO_WEIGHT)?;
        check_finite("mean values", &result.means, OVERFLOW)?;
        result.gradients = check_gradients(result.gradients)?;
        Ok(result)
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled> {
        batch.check(mlp.shape())?;
        let pooled = Operations::pool(self, mlp, batch, pooling)?;
        check_finite("pooled values", &pooled.values, OVERFLOW)?;
        Ok(pooled)
    }

    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        batch.check(mlp.shape())?;
        let outputs = mlp.shape().config().output_dim;
        check_rows("cotangent", cotangent, batch.offsets.num_sets(), outputs)?;
        if pooled.pooling == Pooling::Max {
            check_critical(&pooled.critical, batch, outputs)?;
        }
        check_gradients(Operations::pool_backward(self, mlp, batch, pooled, cotangent, wanted)?)
    }
}

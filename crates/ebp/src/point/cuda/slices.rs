//! The operations on arrays of the host: upload, compute, download.

use super::{
    Buffer, CudaBackend, Device, DeviceBatch, DeviceCandidateValues, DeviceCandidates,
    DeviceCotangent, DeviceLangevin, DeviceLeapfrog, DeviceLogWeights, DeviceMlp, DeviceMotion,
    DevicePooled, Sets,
};
use crate::Result;
use crate::point::operations::Operations;
use crate::point::{
    Backward, CandidateValues, Candidates, Cotangent, DynamicsCotangent, DynamicsGradients,
    Gradients, Langevin, LangevinRun, Leapfrog, LeapfrogRun, Likelihood, LogPartition, LogWeights,
    PointBatch, PointMlp, Pooled, Pooling, Score, ScoreCotangent, Wanted,
};

/// A network and a batch that were sent.
struct Sent<'a> {
    mlp: &'a PointMlp,
    parameters: Buffer,
    elements: Buffer,
    sets: Sets,
    context: Buffer,
}

impl<'a> Sent<'a> {
    fn new(device: &Device, mlp: &'a PointMlp, batch: &PointBatch<'_>) -> Result<Self> {
        Ok(Self {
            mlp,
            parameters: device.upload(mlp.parameters())?,
            elements: device.upload(batch.elements)?,
            sets: Sets::new(device, batch.offsets)?,
            context: device.upload(batch.context)?,
        })
    }

    fn network(&self) -> DeviceMlp<'_> {
        DeviceMlp { shape: self.mlp.shape(), parameters: &self.parameters, gradient: None }
    }

    fn all(&self) -> DeviceBatch<'_> {
        DeviceBatch { elements: &self.elements, sets: &self.sets, context: &self.context }
    }
}

/// Candidates that were sent.
struct SentCandidates<'a> {
    given: &'a Candidates<'a>,
    values: Buffer,
    locations: Buffer,
    sets: Sets,
    context: Buffer,
    log_weights: Buffer,
}

impl<'a> SentCandidates<'a> {
    fn new(device: &Device, given: &'a Candidates<'a>) -> Result<Self> {
        let (CandidateValues::PerAnchor(values) | CandidateValues::Shared(values)) = given.values;
        let log_weights: &[f32] = match given.log_weights {
            LogWeights::Zero => &[],
            LogWeights::PerAnchor(weights) | LogWeights::Shared(weights) => weights,
        };
        Ok(Self {
            given,
            values: device.upload(values)?,
            locations: device.upload(given.locations)?,
            sets: Sets::new(device, given.offsets)?,
            context: device.upload(given.context)?,
            log_weights: device.upload(log_weights)?,
        })
    }

    fn all(&self) -> DeviceCandidates<'_> {
        DeviceCandidates {
            values: match self.given.values {
                CandidateValues::PerAnchor(_) => DeviceCandidateValues::PerAnchor(&self.values),
                CandidateValues::Shared(_) => DeviceCandidateValues::Shared(&self.values),
            },
            num_candidates: self.given.num_candidates,
            locations: &self.locations,
            sets: &self.sets,
            context: &self.context,
            log_weights: match self.given.log_weights {
                LogWeights::Zero => DeviceLogWeights::Zero,
                LogWeights::PerAnchor(_) => DeviceLogWeights::PerAnchor(&self.log_weights),
                LogWeights::Shared(_) => DeviceLogWeights::Shared(&self.log_weights),
            },
        }
    }
}

fn fetch(device: &Device, found: &Gradients<Buffer>) -> Result<Gradients> {
    let array =
        |array: &Option<Buffer>| array.as_ref().map(|array| device.download(array)).transpose();
    Ok(Gradients {
        parameters: array(&found.parameters)?,
        context: array(&found.context)?,
        elements: array(&found.elements)?,
        locations: array(&found.locations)?,
    })
}

fn fetch_dynamics(device: &Device, found: &DynamicsGradients<Buffer>) -> Result<DynamicsGradients> {
    Ok(DynamicsGradients {
        values: device.download(&found.values)?,
        momentum: device.download(&found.momentum)?,
        step_sizes: device.download(&found.step_sizes)?,
        context: device.download(&found.context)?,
    })
}

impl Operations for CudaBackend {
    fn values(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        device.download(&device.values(&sent.network(), &sent.all())?)
    }

    fn set_sums(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Vec<f32>> {
        Ok(Operations::pool(self, mlp, batch, Pooling::Sum)?.values)
    }

    fn backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: Cotangent<'_>,
        wanted: Wanted,
    ) -> Result<Backward> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let (Cotangent::PerElement(given) | Cotangent::PerSet(given)) = cotangent;
        let given = device.upload(given)?;
        let cotangent = match cotangent {
            Cotangent::PerElement(_) => DeviceCotangent::PerElement(&given),
            Cotangent::PerSet(_) => DeviceCotangent::PerSet(&given),
        };
        let found = device.backward(&sent.network(), &sent.all(), cotangent, wanted)?;
        Ok(Backward {
            values: device.download(&found.values)?,
            gradients: fetch(&device, &found.gradients)?,
        })
    }

    fn score(&self, mlp: &PointMlp, batch: &PointBatch<'_>) -> Result<Score> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let found = device.score(&sent.network(), &sent.all())?;
        Ok(Score { values: device.download(&found.values)?, score: device.download(&found.score)? })
    }

    fn score_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        cotangent: ScoreCotangent<'_>,
        wanted: Wanted,
    ) -> Result<Gradients> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let v = device.upload(cotangent.score)?;
        let u = cotangent.values.map(|values| device.upload(values)).transpose()?;
        let given = (&v, u.as_ref());
        fetch(&device, &device.score_backward(&sent.network(), &sent.all(), given, wanted)?)
    }

    fn langevin(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
    ) -> Result<LangevinRun> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let settings = DeviceLangevin {
            step_sizes: &device.upload(langevin.step_sizes)?,
            noise_scales: langevin.noise_scales,
            noise: langevin.noise,
            motion: &DeviceMotion::new(&device, &langevin.motion)?,
        };
        let found = device.langevin(&sent.network(), &sent.all(), &settings)?;
        Ok(LangevinRun {
            elements: device.download(&found.elements)?,
            values: device.download(&found.values)?,
            score: device.download(&found.score)?,
            kinetic: device.download(&found.kinetic)?,
            element_kinetic: device.download(&found.element_kinetic)?,
            element_noise: device.download(&found.element_noise)?,
            final_alignment: device.download(&found.final_alignment)?,
            kinetic_alignment: device.download(&found.kinetic_alignment)?,
        })
    }

    fn langevin_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        langevin: &Langevin<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let settings = DeviceLangevin {
            step_sizes: &device.upload(langevin.step_sizes)?,
            noise_scales: langevin.noise_scales,
            noise: langevin.noise,
            motion: &DeviceMotion::new(&device, &langevin.motion)?,
        };
        let values = device.upload(cotangent.values)?;
        let kinetic = cotangent.kinetic.map(|kinetic| device.upload(kinetic)).transpose()?;
        let given = (&values, kinetic.as_ref());
        let found = device.langevin_backward(&sent.network(), &sent.all(), &settings, given)?;
        fetch_dynamics(&device, &found)
    }

    fn leapfrog(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
    ) -> Result<LeapfrogRun> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let settings = DeviceLeapfrog {
            step_sizes: &device.upload(leapfrog.step_sizes)?,
            motion: &DeviceMotion::new(&device, &leapfrog.motion)?,
        };
        let momentum = device.upload(momentum)?;
        let found = device.leapfrog(&sent.network(), &sent.all(), &momentum, &settings)?;
        Ok(LeapfrogRun {
            elements: device.download(&found.elements)?,
            momentum: device.download(&found.momentum)?,
            values: device.download(&found.values)?,
            score: device.download(&found.score)?,
            kinetic: device.download(&found.kinetic)?,
        })
    }

    fn leapfrog_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        momentum: &[f32],
        leapfrog: &Leapfrog<'_>,
        cotangent: DynamicsCotangent<'_>,
    ) -> Result<DynamicsGradients> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let settings = DeviceLeapfrog {
            step_sizes: &device.upload(leapfrog.step_sizes)?,
            motion: &DeviceMotion::new(&device, &leapfrog.motion)?,
        };
        let values = device.upload(cotangent.values)?;
        let of_momentum = cotangent.momentum.map(|momentum| device.upload(momentum)).transpose()?;
        let (momentum, given) = (device.upload(momentum)?, (&values, of_momentum.as_ref()));
        let (network, all) = (sent.network(), sent.all());
        let found = device.leapfrog_backward(&network, &all, &momentum, &settings, given)?;
        fetch_dynamics(&device, &found)
    }

    fn log_partition(&self, mlp: &PointMlp, candidates: &Candidates<'_>) -> Result<LogPartition> {
        let device = self.lock()?;
        let parameters = device.upload(mlp.parameters())?;
        let network = DeviceMlp { shape: mlp.shape(), parameters: &parameters, gradient: None };
        let sent = SentCandidates::new(&device, candidates)?;
        let found = device.log_partition(&network, &sent.all())?;
        Ok(LogPartition {
            log_partition: device.download(&found.log_partition)?,
            values: device.download(&found.values)?,
        })
    }

    fn log_partition_backward(
        &self,
        mlp: &PointMlp,
        candidates: &Candidates<'_>,
        log_partition: &[f32],
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        let device = self.lock()?;
        let parameters = device.upload(mlp.parameters())?;
        let network = DeviceMlp { shape: mlp.shape(), parameters: &parameters, gradient: None };
        let sent = SentCandidates::new(&device, candidates)?;
        let given = (&device.upload(log_partition)?, &device.upload(cotangent)?);
        fetch(&device, &device.log_partition_backward(&network, &sent.all(), given, wanted)?)
    }

    fn likelihood(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        candidates: &Candidates<'_>,
        wanted: Wanted,
    ) -> Result<Likelihood> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let others = SentCandidates::new(&device, candidates)?;
        let found = device.likelihood(&sent.network(), &sent.all(), &others.all(), wanted)?;
        Ok(Likelihood {
            log_partition: device.download(&found.log_partition)?,
            candidate_values: device.download(&found.candidate_values)?,
            means: device.download(&found.means)?,
            gradients: fetch(&device, &found.gradients)?,
        })
    }

    fn pool(&self, mlp: &PointMlp, batch: &PointBatch<'_>, pooling: Pooling) -> Result<Pooled> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        let found = device.pool(&sent.network(), &sent.all(), pooling, false)?;
        Ok(Pooled {
            pooling,
            values: device.download(&found.values)?,
            critical: device.download(&found.critical)?,
        })
    }

    fn pool_backward(
        &self,
        mlp: &PointMlp,
        batch: &PointBatch<'_>,
        pooled: &Pooled,
        cotangent: &[f32],
        wanted: Wanted,
    ) -> Result<Gradients> {
        let device = self.lock()?;
        let sent = Sent::new(&device, mlp, batch)?;
        // The values are not needed on the way back.
        let found = DevicePooled {
            pooling: pooled.pooling,
            values: Buffer::none(),
            critical: device.upload(&pooled.critical)?,
            rows: None,
        };
        let given = device.upload(cotangent)?;
        let (network, all) = (sent.network(), sent.all());
        fetch(&device, &device.pool_backward(&network, &all, &found, &given, wanted)?)
    }
}

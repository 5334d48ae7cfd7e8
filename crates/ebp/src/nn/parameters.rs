//! Named parameters: what is trained, saved and restored.
//!
//! The starting value of a parameter is a function of the seed and its full name, so equal seeds
//! give equal bytes whatever the order in which modules are built.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use candle_core::{DType, Device, Shape, Tensor, Var};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};

use super::Initialiser;
use super::host::{from_candle, to_candle};
use crate::point::{MlpShape, PointMlp};
use crate::rng::Stream;
use crate::tensor::Tensors;
use crate::{Error, Result};

/// What a stored tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Moved by an optimiser along its gradient.
    Trained,
    /// Saved with the rest, but changed only by the module that owns it: running statistics,
    /// power iterations.
    Buffer,
}

#[derive(Clone, Debug)]
struct Entry {
    variable: Var,
    role: Role,
}

/// A store of named variables, or a group of it.
///
/// Clones and groups share the store. Names are dotted paths; the group `energy` holds every name
/// that begins with `energy.`.
///
/// ```
/// use ebp::nn::{Initialiser, Parameters};
///
/// let parameters = Parameters::new(7);
/// let energy = parameters.group("energy");
/// energy.trained("weight", &[4, 3], Initialiser::He)?;
/// parameters.group("encoder").trained("weight", &[2, 3], Initialiser::He)?;
/// assert_eq!(energy.names(), ["energy.weight"]);
/// assert_eq!(parameters.names(), ["encoder.weight", "energy.weight"]);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parameters {
    seed: u64,
    /// Empty, or ending with a dot.
    prefix: String,
    store: Arc<RwLock<BTreeMap<String, Entry>>>,
}

impl Parameters {
    /// An empty store whose starting values derive from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, prefix: String::new(), store: Arc::default() }
    }

    /// Where starting values of a name come from.
    pub(crate) fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed, &format!("{}{name}", self.prefix))
    }

    /// The group called `name` within this one; what is created in it gets the prefix `name.`.
    #[must_use]
    pub fn group(&self, name: &str) -> Self {
        Self { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// The trained variable called `name`, created if it is not there yet.
    ///
    /// # Shapes
    ///
    /// The variable has shape `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if it is there with another shape or role, or if the initialiser
    /// does not fit the shape.
    pub fn trained(&self, name: &str, shape: &[usize], initialiser: Initialiser) -> Result<Var> {
        let draw = |stream| initialiser.draw(shape, stream);
        self.find_or_create(name, shape, Role::Trained, draw)
    }

    /// The buffer called `name`, created if it is not there yet.
    ///
    /// # Errors
    ///
    /// As [`trained`](Self::trained).
    pub fn buffer(&self, name: &str, shape: &[usize], initialiser: Initialiser) -> Result<Var> {
        let draw = |stream| initialiser.draw(shape, stream);
        self.find_or_create(name, shape, Role::Buffer, draw)
    }

    /// The flat parameters of a [`PointMlp`], created by [`PointMlp::random`] if not there yet.
    ///
    /// # Shapes
    ///
    /// `[num_parameters]`, laid out as [`MlpShape`] says; see
    /// [`layer_tensors`](super::layer_tensors) for a view by layer.
    ///
    /// # Errors
    ///
    /// As [`trained`](Self::trained).
    pub fn point_mlp(&self, name: &str, shape: &MlpShape) -> Result<Var> {
        self.find_or_create(name, &[shape.num_parameters()], Role::Trained, |stream| {
            Ok(PointMlp::random(shape.clone(), stream).parameters().to_vec())
        })
    }

    fn find_or_create(
        &self,
        name: &str,
        shape: &[usize],
        role: Role,
        draw: impl FnOnce(Stream) -> Result<Vec<f32>>,
    ) -> Result<Var> {
        let name = format!("{}{name}", self.prefix);
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = store.get(&name) {
            if entry.variable.dims() == shape && entry.role == role {
                return Ok(entry.variable.clone());
            }
            return Err(Error::invalid(
                name,
                format!("{:?} of shape {:?}, as created before", entry.role, entry.variable.dims()),
                format!("a request for {role:?} of shape {shape:?}"),
            ));
        }
        let values = draw(Stream::new(self.seed, &name))?;
        let variable = Var::from_vec(values, shape, &Device::Cpu)?;
        store.insert(name, Entry { variable: variable.clone(), role });
        Ok(variable)
    }

    /// A builder for candle-nn's layers. What they create lands here, initialised from our
    /// streams; candle's own random numbers are never used.
    pub fn builder(&self) -> VarBuilder<'static> {
        VarBuilder::from_backend(Box::new(self.clone()), DType::F32, Device::Cpu)
    }

    /// The variable of this group called `name`.
    pub fn get(&self, name: &str) -> Option<Var> {
        self.read().get(&format!("{}{name}", self.prefix)).map(|entry| entry.variable.clone())
    }

    /// The full names in this group, in order.
    pub fn names(&self) -> Vec<String> {
        self.select(|_| true).into_iter().map(|(name, _)| name).collect()
    }

    /// The trained variables of this group with their full names, in order.
    pub fn trained_variables(&self) -> Vec<(String, Var)> {
        self.select(|role| role == Role::Trained)
    }

    /// How many numbers are trained in this group.
    pub fn num_trained(&self) -> usize {
        self.trained_variables().iter().map(|(_, variable)| variable.elem_count()).sum()
    }

    /// A copy of every tensor of this group, buffers included, by full name.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if a copy fails.
    pub fn export(&self) -> Result<Tensors> {
        let all = self.select(|_| true).into_iter();
        all.map(|(name, variable)| Ok((name, from_candle(&variable)?))).collect()
    }

    /// Overwrites every tensor of this group by the one of the same full name.
    ///
    /// Either all are overwritten or, on an error, none.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] naming a tensor that is missing from `tensors`, has another shape
    /// or dtype, or is not part of this group.
    pub fn import(&self, tensors: &Tensors) -> Result<()> {
        let variables: BTreeMap<_, _> = self.select(|_| true).into_iter().collect();
        check_matching(&variables, tensors)?;
        for (name, variable) in &variables {
            variable.set(&to_candle(&tensors[name])?)?;
        }
        Ok(())
    }

    fn select(&self, is_chosen: impl Fn(Role) -> bool) -> Vec<(String, Var)> {
        self.read()
            .range(self.prefix.clone()..)
            .take_while(|(name, _)| name.starts_with(&self.prefix))
            .filter(|(_, entry)| is_chosen(entry.role))
            .map(|(name, entry)| (name.clone(), entry.variable.clone()))
            .collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Entry>> {
        // The map is whole after every statement, so a panic elsewhere cannot have broken it.
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that `tensors` holds exactly the names, shapes and dtype of `variables`.
pub(super) fn check_matching(variables: &BTreeMap<String, Var>, tensors: &Tensors) -> Result<()> {
    for (name, variable) in variables {
        let expected = || format!("a saved f32 tensor of shape {:?}", variable.dims());
        let Some(tensor) = tensors.get(name) else {
            return Err(Error::invalid(name, expected(), "none"));
        };
        if tensor.dims() != variable.dims() || tensor.as_f32().is_none() {
            return Err(Error::invalid(name, expected(), format!("{tensor:?}")));
        }
    }
    match tensors.iter().find(|(name, _)| !variables.contains_key(*name)) {
        Some((name, tensor)) => Err(Error::invalid(
            name,
            "absent, since this model has no such parameter",
            format!("a saved tensor of shape {:?}", tensor.dims()),
        )),
        None => Ok(()),
    }
}

impl SimpleBackend for Parameters {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        init: Init,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        check_kind(name, dtype, device)?;
        // A module may have registered the name as a buffer before it called candle's constructor.
        if let Some(variable) = Parameters::get(self, name) {
            if variable.shape() != &shape {
                candle_core::bail!(
                    "`{}{name}` must be of shape {:?}, as created before, found a request for {shape:?}",
                    self.prefix,
                    variable.shape()
                )
            }
            return Ok(variable.into_inner());
        }
        self.trained(name, shape.dims(), Initialiser::from_candle(init, &shape))
            .map(Var::into_inner)
            .map_err(candle_core::Error::wrap)
    }

    fn get_unchecked(
        &self,
        name: &str,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        check_kind(name, dtype, device)?;
        match Parameters::get(self, name) {
            Some(variable) => Ok(variable.into_inner()),
            None => candle_core::bail!("`{}{name}` must be a parameter, found none", self.prefix),
        }
    }

    fn contains_tensor(&self, name: &str) -> bool {
        Parameters::get(self, name).is_some()
    }
}

fn check_kind(name: &str, dtype: DType, device: &Device) -> candle_core::Result<()> {
    if dtype == DType::F32 && device.is_cpu() {
        return Ok(());
    }
    candle_core::bail!(
        "`{name}` must be f32 on the CPU, found {dtype:?} on {:?}",
        device.location()
    )
}

#[cfg(test)]
mod tests {
    use candle_nn::LSTMConfig;

    use super::*;
    use crate::point::MlpConfig;

    fn bytes(parameters: &Parameters) -> Vec<(String, Vec<u32>)> {
        parameters
            .export()
            .unwrap()
            .into_iter()
            .map(|(name, tensor)| {
                (name, tensor.as_f32().unwrap().iter().map(|x| x.to_bits()).collect())
            })
            .collect()
    }

    #[test]
    fn starting_values_do_not_depend_on_the_order_of_creation() {
        let shape = MlpShape::new(MlpConfig::default()).unwrap();
        let first = Parameters::new(3);
        first.point_mlp("energy", &shape).unwrap();
        candle_nn::linear(3, 5, first.builder().pp("head")).unwrap();
        candle_nn::lstm(3, 4, LSTMConfig::default(), first.builder().pp("cell")).unwrap();
        let second = Parameters::new(3);
        candle_nn::lstm(3, 4, LSTMConfig::default(), second.builder().pp("cell")).unwrap();
        candle_nn::linear(3, 5, second.group("head").builder()).unwrap();
        second.point_mlp("energy", &shape).unwrap();
        assert_eq!(bytes(&first), bytes(&second));
        let other = Parameters::new(4);
        candle_nn::linear(3, 5, other.builder().pp("head")).unwrap();
        assert_ne!(bytes(&first.group("head")), bytes(&other.group("head")));
    }

    #[test]
    fn a_group_is_a_whole_word_of_the_path() {
        let parameters = Parameters::new(1);
        for name in ["energy.a", "energy_two.a", "energy", "encoder.a"] {
            parameters.trained(name, &[2], Initialiser::Zeros).unwrap();
        }
        parameters.buffer("energy.u", &[7], Initialiser::Zeros).unwrap();
        let group = parameters.group("energy");
        assert_eq!(group.names(), ["energy.a", "energy.u"]);
        assert_eq!(group.num_trained(), 2);
        assert_eq!(parameters.num_trained(), 8);
    }

    #[test]
    fn a_second_request_shares_the_variable_or_fails() {
        let parameters = Parameters::new(1);
        let first = parameters.trained("a", &[2], Initialiser::He).unwrap();
        let second = parameters.trained("a", &[2], Initialiser::Zeros).unwrap();
        assert_eq!(first.id(), second.id());
        let message = parameters.trained("a", &[3], Initialiser::He).unwrap_err().to_string();
        assert!(message.starts_with("`a` must be Trained of shape [2]"), "{message}");
        assert!(parameters.buffer("a", &[2], Initialiser::He).is_err());
    }

    #[test]
    fn import_restores_the_exported_bytes_or_changes_nothing() {
        let parameters = Parameters::new(1);
        let a = parameters.trained("a", &[2, 3], Initialiser::He).unwrap();
        let u = parameters.buffer("u", &[2], Initialiser::Ones).unwrap();
        let saved = parameters.export().unwrap();
        let before = bytes(&parameters);
        a.set(&a.zeros_like().unwrap()).unwrap();
        u.set(&u.zeros_like().unwrap()).unwrap();
        let zeroed = bytes(&parameters);

        let mut missing = saved.clone();
        let moved = missing.remove("u").unwrap();
        let message = parameters.import(&missing).unwrap_err().to_string();
        assert_eq!(message, "`u` must be a saved f32 tensor of shape [2], found none");
        missing.insert("v".into(), moved.clone());
        missing.insert("u".into(), moved);
        assert!(parameters.import(&missing).unwrap_err().to_string().starts_with("`v` must be"));
        assert_eq!(bytes(&parameters), zeroed);

        parameters.import(&saved).unwrap();
        assert_eq!(bytes(&parameters), before);
    }

    #[test]
    fn the_flat_parameters_are_those_of_the_primitive() {
        let shape = MlpShape::new(MlpConfig::default()).unwrap();
        let parameters = Parameters::new(9);
        let flat = parameters.group("model").point_mlp("energy", &shape).unwrap();
        let expected = PointMlp::random(shape, Stream::new(9, "model.energy"));
        assert_eq!(flat.to_vec1::<f32>().unwrap(), expected.parameters());
    }
}

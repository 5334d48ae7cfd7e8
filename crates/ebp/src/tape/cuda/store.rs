//! What stays with a GPU between operations: compiled kernels, and copies of what the host knows.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Gpu;
use super::kernels::Kernels;
use crate::point::cuda::{Device, Sets};
use crate::{Result, SetOffsets};

/// A GPU that is this thread's for one operation.
pub(super) struct Open<'a> {
    device: MutexGuard<'a, Device>,
    store: Arc<Store>,
}

impl Deref for Open<'_> {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

struct Store {
    kernels: Kernels,
    sent: Mutex<Vec<Sent>>,
}

/// Something of the host and its copy on the GPU.
struct Sent {
    /// Keeps the address from being used again while this entry lives.
    owner: Weak<dyn Any + Send + Sync>,
    kind: TypeId,
    copy: Arc<dyn Any + Send + Sync>,
}

/// Stores by the number of the GPU. Kernels are compiled once for all backends of a GPU, when the
/// first tape computes there.
static STORES: Mutex<BTreeMap<usize, Arc<Store>>> = Mutex::new(BTreeMap::new());

/// Takes the GPU for one operation.
pub(super) fn open(gpu: &Gpu) -> Result<Open<'_>> {
    let device = gpu.lock()?;
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    let number = device.context.ordinal();
    if let Some(store) = stores.get(&number) {
        return Ok(Open { device, store: Arc::clone(store) });
    }
    let kernels = Kernels::load(&device.context, &[])?;
    let store = Arc::new(Store { kernels, sent: Mutex::default() });
    stores.insert(number, Arc::clone(&store));
    Ok(Open { device, store })
}

impl Open<'_> {
    /// The tape's kernels.
    pub(super) fn kernels(&self) -> &Kernels {
        &self.store.kernels
    }

    /// The copy of something that the host shares: sent when it is met for the first time, kept as
    /// long as the host has it.
    pub(super) fn copy_of<T, S>(
        &self,
        host: &Arc<T>,
        send: impl FnOnce(&Device, &T) -> Result<S>,
    ) -> Result<Arc<S>>
    where
        T: Any + Send + Sync,
        S: Any + Send + Sync,
    {
        let mut sent = self.store.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let (address, kind) = (Arc::as_ptr(host).cast::<()>(), TypeId::of::<S>());
        let is_it =
            |entry: &&Sent| entry.kind == kind && std::ptr::addr_eq(entry.owner.as_ptr(), address);
        let known = sent.iter().find(is_it).map(|entry| Arc::clone(&entry.copy));
        if let Some(copy) = known.and_then(|copy| copy.downcast::<S>().ok()) {
            return Ok(copy);
        }
        // Others are let go when the host has let them go.
        sent.retain(|entry| entry.owner.strong_count() > 0);
        let copy = Arc::new(send(&self.device, host)?);
        let shared: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(host);
        let owner = Arc::downgrade(&shared);
        sent.push(Sent { owner, kind, copy: Arc::<S>::clone(&copy) });
        Ok(copy)
    }

    /// Which rows belong to which set.
    pub(super) fn sets(&self, offsets: &Arc<SetOffsets>) -> Result<Arc<Sets>> {
        self.copy_of(offsets, Sets::new)
    }
}

//! The lock of what conversations share.

use std::any::type_name;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::thread;

use parking_lot::{Mutex, MutexGuard};

use super::confine::{abort, last_source, panic_point};

/// A lock of what conversations share. A panic while it is held ends the process.
#[derive(Debug, Default)]
pub struct SharedMutex<T>(Mutex<T>);

/// Holds a [`SharedMutex`] until it is dropped. It stays on its thread, and so is not held while a
/// task waits.
#[derive(Debug)]
pub struct SharedGuard<'l, T> {
    guard: MutexGuard<'l, T>,
    /// It was locked by a destructor that a panic runs.
    unwinds: bool,
    stays: PhantomData<*const ()>,
}

impl<T> SharedMutex<T> {
    /// A lock of this value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> SharedGuard<'_, T> {
        let guard = SharedGuard {
            guard: self.0.lock(),
            unwinds: thread::panicking(),
            stays: PhantomData,
        };
        panic_point("lock", type_name::<T>().as_bytes());
        guard
    }
}

impl<'l, T> SharedGuard<'l, T> {
    /// What a condition variable waits with.
    pub const fn inner(&mut self) -> &mut MutexGuard<'l, T> {
        &mut self.guard
    }
}

impl<T> Drop for SharedGuard<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() && !self.unwinds {
            let (source, what) = (last_source(), type_name::<T>());
            abort(&format!("{source}, with the lock of {what} held"));
        }
    }
}

impl<T> Deref for SharedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for SharedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

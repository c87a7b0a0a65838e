//! The traits of `jsonptr` for the lazy tree: resolve, delete, assign.

use jsonptr::{Pointer, PointerBuf};

use super::look::Look;
use super::pointer::Place;
use super::tree::Node;

/// An assignment met a scalar on its path; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` leads through a value that is neither an object nor an array")]
pub struct Blocked(pub PointerBuf);

impl<'a> jsonptr::resolve::ResolveMut for Node<'a> {
    type Value = Self;
    type Error = Blocked;

    fn resolve_mut(&mut self, ptr: &Pointer) -> Result<&mut Self::Value, Self::Error> {
        let place = Place::from(ptr.to_buf());
        self.at(place.names()).ok_or_else(|| Blocked(ptr.to_buf()))
    }
}

impl<'a> jsonptr::delete::Delete for Node<'a> {
    type Value = Self;

    fn delete(&mut self, ptr: &Pointer) -> Option<Self::Value> {
        self.take(Place::from(ptr.to_buf()).names())
    }
}

impl<'a> jsonptr::assign::Assign for Node<'a> {
    type Value = Self;
    type Error = Blocked;

    fn assign<V>(&mut self, ptr: &Pointer, value: V) -> Result<Option<Self::Value>, Self::Error>
    where
        V: Into<Self::Value>,
    {
        let place = Place::from(ptr.to_buf());
        let old = self.look(&place).map(Look::keep);
        match self.put(place.names(), value.into()) {
            Ok(()) => Ok(old),
            Err(_) => Err(Blocked(ptr.to_buf())),
        }
    }
}

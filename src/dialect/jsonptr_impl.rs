//! The traits of `jsonptr` for the lazy tree: resolve, delete, assign.

use jsonptr::{Pointer, PointerBuf};

use super::pointer::JsonPointer;
use super::tree::{Node, ValueRef};

/// An assignment met a scalar on its path; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` leads through a value that is neither an object nor an array")]
pub struct BlockedPath(pub PointerBuf);

impl<'a> jsonptr::resolve::ResolveMut for Node<'a> {
    type Value = Self;
    type Error = BlockedPath;

    fn resolve_mut(&mut self, ptr: &Pointer) -> Result<&mut Self::Value, Self::Error> {
        let place = JsonPointer::from(ptr.to_buf());
        self.get_mut(place.names())
            .ok_or_else(|| BlockedPath(ptr.to_buf()))
    }
}

impl<'a> jsonptr::delete::Delete for Node<'a> {
    type Value = Self;

    fn delete(&mut self, ptr: &Pointer) -> Option<Self::Value> {
        self.take(JsonPointer::from(ptr.to_buf()).names())
    }
}

impl<'a> jsonptr::assign::Assign for Node<'a> {
    type Value = Self;
    type Error = BlockedPath;

    fn assign<V>(&mut self, ptr: &Pointer, value: V) -> Result<Option<Self::Value>, Self::Error>
    where
        V: Into<Self::Value>,
    {
        let place = JsonPointer::from(ptr.to_buf());
        let old = self.get(&place).map(ValueRef::to_node);
        match self.put(place.names(), value.into()) {
            Ok(()) => Ok(old),
            Err(_) => Err(BlockedPath(ptr.to_buf())),
        }
    }
}

//! The source and target sides of names, guards and rows, for a way of translation.

use super::case::{Case, Guard, Row};
use super::types::MethodPair;
use super::way::Way;
use crate::dialect::pointer::JsonPointer;

impl MethodPair {
    /// The same name in both columns.
    #[must_use]
    pub fn same(name: &str) -> Self {
        Self {
            dialect: Some(name.to_owned()),
            canonical: Some(name.to_owned()),
        }
    }

    /// The name a message has before it is translated.
    #[must_use]
    pub fn before(&self, way: Way) -> Option<&str> {
        way.pick(self.dialect.as_deref(), self.canonical.as_deref())
    }

    /// The name it has afterwards.
    #[must_use]
    pub fn after(&self, way: Way) -> Option<&str> {
        self.before(way.reverse())
    }
}

impl Case {
    /// The guard on the source side.
    #[must_use]
    pub fn before(&self, way: Way) -> &Guard {
        way.pick(&self.when.dialect, &self.when.canonical)
    }

    /// The guard on the target side.
    #[must_use]
    pub fn after(&self, way: Way) -> &Guard {
        self.before(way.reverse())
    }

    /// Whether the case applies in that way.
    #[must_use]
    pub fn applies(&self, way: Way) -> bool {
        self.only.is_none_or(|only| only == way)
    }
}

impl Row {
    /// The place on the source side.
    #[must_use]
    pub fn before(&self, way: Way) -> Option<&JsonPointer> {
        way.pick(self.dialect.as_ref(), self.canonical.as_ref())
    }

    /// The place on the target side.
    #[must_use]
    pub fn after(&self, way: Way) -> Option<&JsonPointer> {
        self.before(way.reverse())
    }

    /// Whether the row applies in that way.
    #[must_use]
    pub fn applies(&self, way: Way) -> bool {
        self.only.is_none_or(|only| only == way)
    }
}

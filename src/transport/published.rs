//! Whether packages of this version may be named.

/// Whether this version is in the registries of npm, PyPI and crates.io, as `.release/build` is told.
/// Otherwise nothing names its packages, because anybody could publish one of that name.
pub(crate) const IS_PUBLISHED: bool = option_env!("RELEASE_PUBLISHED").is_some();

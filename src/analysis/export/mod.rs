//! Writes conversations in formats of other programs, and for people.
//!
//! Each format is a `Format`.

mod exporter;
mod format;
mod json;
mod text;

pub use exporter::{ExportCounts, ExportFormat, Exporter};
use format::{Exported, Format};

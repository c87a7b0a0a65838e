//! Writes test results for CI.

use std::path::Path;
use std::process::ExitCode;

use super::console::uncreatable;
use super::log_redaction::clean;
use analysis::junit::{Suite, report};

/// Writes JUnit XML. An error is printed, and the exit code is returned.
pub(super) fn write(path: &Path, suites: &[Suite]) -> Result<(), ExitCode> {
    std::fs::write(path, &*clean(&report(suites))).map_err(|error| uncreatable(path, &error))
}

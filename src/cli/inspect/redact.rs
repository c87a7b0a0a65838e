//! The options for redacting a recording that is written.

use std::process::ExitCode;

use clap::Args;

use crate::cli::exit;
use crate::cli::random::random;
use crate::cli::variant::variant_of;
use recording::redact::{Mode, PointerPattern, Redactor};

/// What is redacted.
#[derive(Debug, Args)]
pub(super) struct RedactArgs {
    /// What is redacted
    #[arg(long, value_parser = variant_of::<Mode>(), default_value_t)]
    redact: Mode,
    /// Also redact this place in messages; `*` is any one step
    #[arg(long, value_name = "POINTER")]
    redact_pointer: Vec<PointerPattern>,
}

impl RedactArgs {
    /// What redacts, with a key of its own. Errors are printed, and the exit code is returned.
    pub(super) fn redactor(&self) -> Result<Redactor, ExitCode> {
        let key = random().map_err(|error| exit::fail(exit::SYSTEM, &error))?;
        Ok(Redactor::new(self.redact, self.redact_pointer.clone(), key))
    }
}

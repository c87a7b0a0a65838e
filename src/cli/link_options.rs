//! `--no-link`, also a key of the configuration file.

use std::sync::Arc;

use clap::Args;

use transport::Links;

/// The option of resumable links.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct LinkArgs {
    /// End a conversation with another relay when their connection breaks, in place of connecting
    /// again
    #[arg(long, id = "no-link", help_heading = "Framing and limits")]
    no_link: bool,
}

impl LinkArgs {
    /// The resumable links of a relay, unless there are to be none.
    pub(super) fn links(&self) -> Option<Arc<Links>> {
        (!self.no_link).then(Arc::default)
    }
}

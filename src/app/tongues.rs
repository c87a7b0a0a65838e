//! What the two sides are told to speak: `--client-dialect`, `--agent-dialect`, `--table`.
//!
//! The tables are read once, when the program starts. Not here: what is done with a dialect (see
//! `core::speech`).

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::core::{Choice, Speech};
use crate::dialect::{Library, Unknown};
use crate::wire::framing::Framing;

/// The dialects of the two sides.
#[derive(Debug, Default, Args)]
pub(super) struct TonguesArgs {
    /// What clients speak: canonical, auto, or a dialect's name
    #[arg(long, value_name = "DIALECT", default_value = "canonical", value_parser = choice)]
    client_dialect: Choice,
    /// What the agent speaks: canonical, auto, or a dialect's name
    #[arg(long, value_name = "DIALECT", default_value = "canonical", value_parser = choice)]
    agent_dialect: Choice,
    /// A table of your own; may be given several times
    #[arg(long, value_name = "FILE")]
    table: Vec<PathBuf>,
}

/// The dialects of the two sides, with the tables behind them.
#[derive(Debug)]
pub(super) struct Tongues {
    library: Arc<Library>,
    client: Choice,
    agent: Choice,
}

impl Tongues {
    /// Reads the tables that are needed.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub(super) fn new(args: TonguesArgs) -> Result<Self, String> {
        let plain = |choice: &Choice| *choice == Choice::Canonical;
        let idle =
            plain(&args.client_dialect) && plain(&args.agent_dialect) && args.table.is_empty();
        let library = if idle {
            Library::default()
        } else {
            library(&args.table)?
        };
        let tongues = Self {
            library: Arc::new(library),
            client: args.client_dialect,
            agent: args.agent_dialect,
        };
        tongues.try_speech().map_err(|fault| format!("{fault}"))?;
        Ok(tongues)
    }

    /// The speech of one conversation.
    pub(super) fn speech(&self) -> Speech {
        self.try_speech()
            .expect("both dialects were found when the program started")
    }

    /// The framing that the client's dialect comes in.
    pub(super) fn client_framing(&self) -> Option<Framing> {
        self.framing(&self.client)
    }

    /// The framing that the agent's dialect comes in.
    pub(super) fn agent_framing(&self) -> Option<Framing> {
        self.framing(&self.agent)
    }

    fn try_speech(&self) -> Result<Speech, Unknown> {
        Speech::new(&self.library, &self.client, &self.agent)
    }

    fn framing(&self, choice: &Choice) -> Option<Framing> {
        let Choice::Named(name) = choice else {
            return None;
        };
        match self.library.table(name).ok()?.framing.as_deref() {
            Some("content-length") => Some(Framing::ContentLength),
            _ => None,
        }
    }
}

/// The built-in tables and those of the user.
fn library(files: &[PathBuf]) -> Result<Library, String> {
    let mut library = Library::builtin().map_err(|faults| faults.to_string())?;
    for file in files {
        let name = file.display().to_string();
        let text =
            std::fs::read_to_string(file).map_err(|error| format!("--table {name}: {error}"))?;
        library
            .add(&name, &text)
            .map_err(|faults| faults.to_string())?;
    }
    Ok(library)
}

fn choice(text: &str) -> Result<Choice, std::convert::Infallible> {
    Ok(match text {
        "canonical" => Choice::Canonical,
        "auto" => Choice::Auto,
        name => Choice::Named(name.to_owned()),
    })
}

//! What the two sides are told to speak: `--client-dialect`, `--agent-dialect`.
//!
//! The user's tables are read once, when the program starts; those built in when they are needed.
//! Not here: what is done with a dialect (see `core::speech`).

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::dialect::Tables;
use super::{cli, exit};
use crate::core::{Choice, Speech};
use crate::dialect::{Library, Unknown};
use crate::wire::framing::Framing;

/// The dialects of the two sides.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Dialects")]
pub(super) struct TonguesArgs {
    /// What clients speak: auto (recognised by what they say; the default), canonical, or a
    /// dialect's name
    #[arg(long = "client-dialect", id = "client-dialect", value_name = "DIALECT")]
    #[arg(value_parser = choice)]
    client: Option<Choice>,
    /// What the agent speaks: auto (recognised by what it says; the default), canonical, or a
    /// dialect's name
    #[arg(long = "agent-dialect", id = "agent-dialect", value_name = "DIALECT")]
    #[arg(value_parser = choice)]
    agent: Option<Choice>,
    #[command(flatten)]
    tables: Tables,
}

/// The dialects of the two sides, with the tables behind them.
#[derive(Debug)]
pub(super) struct Tongues {
    library: Arc<Library>,
    client: Choice,
    agent: Choice,
}

impl TonguesArgs {
    /// Nothing is translated on a side of which nothing was said.
    pub(super) fn or_canonical(&mut self) {
        for side in [&mut self.client, &mut self.agent] {
            side.get_or_insert(Choice::Canonical);
        }
    }
}

impl Tongues {
    /// Reads the tables that are needed. What is wrong with them is said, and the exit code
    /// returned.
    pub(super) fn new(args: TonguesArgs) -> Result<Self, ExitCode> {
        let client = args.client.unwrap_or(Choice::Auto);
        let agent = args.agent.unwrap_or(Choice::Auto);
        let plain = |choice: &Choice| *choice == Choice::Canonical;
        let idle = plain(&client) && plain(&agent) && args.tables.is_empty();
        let library = if idle {
            Arc::<Library>::default()
        } else {
            let library = args.tables.library();
            Arc::new(library.map_err(|trouble| trouble.fail())?)
        };
        let tongues = Self {
            library,
            client,
            agent,
        };
        match tongues.try_speech() {
            Ok(_) => Ok(tongues),
            Err(unknown) => Err(cli::fail(exit::USAGE, &unknown)),
        }
    }

    /// What the client and the agent are told to speak, in words.
    pub(super) fn names(&self) -> [String; 2] {
        [&self.client, &self.agent].map(|choice| match choice {
            Choice::Canonical => "canonical".to_owned(),
            Choice::Auto => "auto".to_owned(),
            Choice::Named(name) => name.clone(),
        })
    }

    /// The speech of one conversation.
    pub(super) fn speech(&self) -> Speech {
        let speech = self
            .try_speech()
            .expect("both dialects were found when the program started");
        // A folder that is gone is not one to open a session in.
        let folder = std::env::current_dir().unwrap_or_default();
        speech.in_folder(&folder.to_string_lossy())
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

/// What a name on the command line chooses.
pub(super) fn choice(text: &str) -> Result<Choice, std::convert::Infallible> {
    Ok(match text {
        "canonical" => Choice::Canonical,
        "auto" => Choice::Auto,
        name => Choice::Named(name.to_owned()),
    })
}

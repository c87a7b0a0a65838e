//! What the two sides are told to speak: `--client-dialect`, `--agent-dialect`.
//!
//! The user's tables are read once, when the program starts; those built in when they are needed.
//! Not here: what is done with a dialect (see `conversation::speech`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::dialect::Tables;
use super::{cli, exit};
use crate::conversation::{Choice, Speech};
use crate::dialect::{Library, Unknown};
use crate::jsonrpc::framing::Framing;
use crate::transport::{Peer, PeerKind};

/// The dialects of the two sides.
#[derive(Clone, Debug, Default, Args)]
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
#[derive(Clone, Debug)]
pub(super) struct Tongues {
    library: Arc<Library>,
    /// The digest of the tables.
    tables: String,
    /// What was said of them; `Auto` when nothing was.
    client: Option<Choice>,
    agent: Option<Choice>,
    /// Where the agent works, unless that is where we do.
    folder: Option<PathBuf>,
}

impl TonguesArgs {
    /// Nothing is translated on a side of which nothing was said.
    pub(super) fn or_canonical(&mut self) {
        for side in [&mut self.client, &mut self.agent] {
            side.get_or_insert(Choice::Canonical);
        }
    }

    /// What was said of clients.
    pub(super) const fn client(&self) -> Option<&Choice> {
        self.client.as_ref()
    }

    /// What was said of the agent.
    pub(super) const fn agent(&self) -> Option<&Choice> {
        self.agent.as_ref()
    }

    /// The user's tables, and folders of them.
    pub(super) fn paths(self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        self.tables.paths()
    }

    /// The same, with more of the user's tables, which those named here may replace.
    pub(super) fn over(&self, tables: &[PathBuf], folders: &[PathBuf]) -> Self {
        Self {
            tables: self.tables.over(tables, folders),
            ..self.clone()
        }
    }
}

impl Tongues {
    /// Reads the tables that are needed. What is wrong with them is said, and the exit code
    /// returned.
    pub(super) fn new(args: TonguesArgs) -> Result<Self, ExitCode> {
        let plain = |choice: &Option<Choice>| *choice == Some(Choice::Canonical);
        let builtin = args.tables.is_empty();
        let idle = plain(&args.client) && plain(&args.agent) && builtin;
        let tables = args.tables.digest().map_err(|trouble| trouble.fail())?;
        let library = if idle {
            Arc::<Library>::default()
        } else {
            let library = args.tables.library();
            Arc::new(library.map_err(|trouble| trouble.fail())?)
        };
        let tongues = Self {
            library,
            tables,
            client: args.client,
            agent: args.agent,
            folder: None,
        };
        // What is built in holds together, and is read when the first client comes: that is half of
        // the memory the program would have at its start.
        let known = match builtin {
            true => tongues.check_names(),
            false => tongues.try_speech().map(drop),
        };
        match known {
            Ok(()) => Ok(tongues),
            Err(unknown) => Err(cli::fail(exit::USAGE, &unknown)),
        }
    }

    /// With what is said of one agent, where the command line says nothing.
    ///
    /// # Errors
    /// There is no such dialect.
    pub(super) fn of_agent(
        &self,
        agent: Option<&Choice>,
        folder: Option<&Path>,
    ) -> Result<Self, Unknown> {
        let tongues = Self {
            agent: self.agent.clone().or_else(|| agent.cloned()),
            folder: folder.map(Path::to_owned),
            ..self.clone()
        };
        tongues.check_names().map(|()| tongues)
    }

    /// With what is said of the clients of one listener, as above.
    ///
    /// # Errors
    /// There is no such dialect.
    pub(super) fn of_client(&self, client: Option<&Choice>) -> Result<Self, Unknown> {
        let tongues = Self {
            client: self.client.clone().or_else(|| client.cloned()),
            ..self.clone()
        };
        tongues.check_names().map(|()| tongues)
    }

    /// With this client. One that we are ourselves speaks canonical, whatever is said of others.
    pub(super) fn of(&self, client: &Peer) -> Cow<'_, Self> {
        match client.kind {
            PeerKind::Ours => Cow::Owned(Self {
                client: Some(Choice::Canonical),
                ..self.clone()
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// What the client and the agent are told to speak, in words.
    pub(super) fn names(&self) -> [String; 2] {
        self.choices().map(|choice| match choice {
            Choice::Canonical => "canonical".to_owned(),
            Choice::Auto => "auto".to_owned(),
            Choice::Named(name) => name,
        })
    }

    /// The digest of the tables there are.
    pub(super) fn tables(&self) -> &str {
        &self.tables
    }

    /// The speech of one conversation.
    pub(super) fn speech(&self) -> Speech {
        let speech = self
            .try_speech()
            .expect("both dialects were found when the program started");
        // A folder that is gone is not one to open a session in.
        let ours = || std::env::current_dir().unwrap_or_default();
        let folder = self.folder.clone().unwrap_or_else(ours);
        speech.in_folder(&folder.to_string_lossy())
    }

    /// The framing that the client's dialect comes in.
    pub(super) fn client_framing(&self) -> Option<Framing> {
        self.framing(self.client.as_ref())
    }

    /// The framing that the agent's dialect comes in.
    pub(super) fn agent_framing(&self) -> Option<Framing> {
        self.framing(self.agent.as_ref())
    }

    /// Finds the dialects that are named.
    fn check_names(&self) -> Result<(), Unknown> {
        for choice in self.choices() {
            if let Choice::Named(name) = choice {
                self.library.program(&name)?;
            }
        }
        Ok(())
    }

    fn try_speech(&self) -> Result<Speech, Unknown> {
        let [client, agent] = self.choices();
        Speech::new(&self.library, &client, &agent)
    }

    fn choices(&self) -> [Choice; 2] {
        [&self.client, &self.agent].map(|choice| choice.clone().unwrap_or(Choice::Auto))
    }

    fn framing(&self, choice: Option<&Choice>) -> Option<Framing> {
        let Some(Choice::Named(name)) = choice else {
            return None;
        };
        match self.library.table(name).ok()?.framing.as_deref() {
            Some("content-length") => Some(Framing::ContentLength),
            _ => None,
        }
    }
}

/// All that a side may be told to speak, of what is built in: a table's file has its name.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let tables = Library::builtin_files().filter_map(|(file, _)| file.strip_suffix(".json"));
    ["auto", "canonical"].into_iter().chain(tables)
}

/// What a name on the command line chooses.
pub(super) fn choice(text: &str) -> Result<Choice, std::convert::Infallible> {
    Ok(match text {
        "canonical" => Choice::Canonical,
        "auto" => Choice::Auto,
        name => Choice::Named(name.to_owned()),
    })
}

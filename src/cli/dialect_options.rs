//! The dialects of the two sides: `--client-dialect`, `--agent-dialect`.
//!
//! The user's tables are read once, when the program starts; built-in ones when they are needed.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use clap::Args;

use super::dialect::Tables;
use super::exit;
use conversation::{DialectChoice, DialectOptions};
use dialect::versions::{Version, VersionPolicies};
use dialect::{DialectError, Library};
use jsonrpc::Limits;
use jsonrpc::framing::Framing;
use transport::{Peer, PeerKind};

/// Options of dialects.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Dialects")]
pub(super) struct DialectArgs {
    /// The clients' dialect: auto (recognised by their messages; the default), canonical, or a
    /// dialect's name
    #[arg(long = "client-dialect", id = "client-dialect", value_name = "DIALECT")]
    #[arg(value_parser = choice)]
    pub(super) client: Option<DialectChoice>,
    /// The agent's dialect: auto (recognised by its messages; the default), canonical, or a
    /// dialect's name
    #[arg(long = "agent-dialect", id = "agent-dialect", value_name = "DIALECT")]
    #[arg(value_parser = choice)]
    pub(super) agent: Option<DialectChoice>,
    /// The protocol version that the clients speak: auto (from `initialize`; the default), 1 or 2
    #[arg(long, value_name = "VERSION", value_parser = protocol)]
    client_protocol: Option<ProtocolChoice>,
    /// The protocol version that the agent speaks: auto (from `initialize`; the default), 1 or 2
    #[arg(long, value_name = "VERSION", value_parser = protocol)]
    agent_protocol: Option<ProtocolChoice>,
    /// What to do where v1 and v2 leave a choice, when a client of one talks with an agent of the
    /// other: `acp-relay help versions` has the policies
    #[arg(long = "version-policy", value_name = "NAME=VALUE", value_parser = policy)]
    policies: Vec<(String, String)>,
    #[command(flatten)]
    tables: Tables,
}

/// A configured protocol version; `None`: the `initialize` exchange shows it.
#[derive(Clone, Copy, Debug)]
struct ProtocolChoice(Option<Version>);

/// The dialects of the two sides, with their tables.
#[derive(Clone, Debug)]
pub(super) struct Dialects {
    /// The user's tables with the built-in ones; none if the user has none.
    library: Option<Arc<Library>>,
    /// The digest of the tables.
    tables: String,
    /// The configured choices; none means `Auto`.
    client: Option<DialectChoice>,
    agent: Option<DialectChoice>,
    /// The configured protocol versions of both, and whether any is.
    versions: [Option<Version>; 2],
    policies: VersionPolicies,
    /// The agent's working directory, unless it is ours.
    folder: Option<PathBuf>,
}

impl DialectArgs {
    /// Disables translation on each side whose dialect is not given.
    pub(super) fn or_canonical(&mut self) {
        for side in [&mut self.client, &mut self.agent] {
            side.get_or_insert(DialectChoice::Canonical);
        }
    }

    /// Uses these tables, unless the command line has some.
    pub(super) fn or_tables(&mut self, tables: Tables) {
        if self.tables.is_empty() {
            self.tables = tables;
        }
    }
}

impl Dialects {
    /// Reads the tables that are needed. Errors are printed, and the exit code is returned.
    pub(super) fn new(args: DialectArgs) -> Result<Self, ExitCode> {
        let tables = args.tables.digest().map_err(|error| error.fail())?;
        let library = (!args.tables.is_empty()).then(|| args.tables.load());
        let library = library.transpose()?.map(Arc::new);
        let mut policies = VersionPolicies::default();
        for (name, value) in &args.policies {
            // The value was checked when it was parsed.
            let _ = policies.set(name, value);
        }
        // A recording of other choices than these cannot be repeated.
        let versions = [args.client_protocol, args.agent_protocol];
        let versions = versions.map(|choice| choice.and_then(|choice| choice.0));
        let is_usual = versions == [None; 2] && policies == VersionPolicies::default();
        let tables = tables + if is_usual { "" } else { "+versions" };
        let dialects = Self {
            library,
            tables,
            client: args.client,
            agent: args.agent,
            versions,
            policies,
            folder: None,
        };
        // The built-in tables are valid. They are read when the first client connects, because they
        // are half of the program's memory at its start.
        let known = match dialects.library {
            None => dialects.check_names(),
            Some(_) => dialects.try_options().map(drop),
        };
        known.map_err(|unknown| exit::fail(exit::USAGE, &unknown))?;
        Ok(dialects)
    }

    /// With the dialects of one listener's clients and of one agent in `folder`, where the command
    /// line gives none.
    ///
    /// # Errors
    /// There is no such dialect.
    pub(super) fn over(
        &self,
        client: Option<&DialectChoice>,
        agent: Option<&DialectChoice>,
        folder: Option<&Path>,
    ) -> Result<Self, DialectError> {
        let dialects = Self {
            client: self.client.clone().or_else(|| client.cloned()),
            agent: self.agent.clone().or_else(|| agent.cloned()),
            folder: folder.map(Path::to_owned).or_else(|| self.folder.clone()),
            ..self.clone()
        };
        dialects.check_names().map(|()| dialects)
    }

    /// For this client. Another acp-relay always speaks canonical.
    pub(super) fn for_client(&self, client: &Peer) -> Cow<'_, Self> {
        match client.kind {
            PeerKind::Internal => Cow::Owned(Self {
                client: Some(DialectChoice::Canonical),
                ..self.clone()
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// The configured dialects of the client and the agent.
    pub(super) fn names(&self) -> [String; 2] {
        self.choices().map(|choice| match choice {
            DialectChoice::Canonical => "canonical".to_owned(),
            DialectChoice::Auto => "auto".to_owned(),
            DialectChoice::Named(name) => name,
        })
    }

    /// The digest of the tables.
    pub(super) fn tables(&self) -> &str {
        &self.tables
    }

    /// Reads the tables that the first conversation needs.
    pub(super) fn prepare(&self) {
        let _ = self.options(&Arc::default());
    }

    /// The dialect options of one conversation.
    pub(super) fn options(&self, limits: &Arc<Limits>) -> DialectOptions {
        let mut options = self
            .try_options()
            .expect("both dialects were found when the program started");
        if self.converts_versions() {
            options = options.with_versions(Arc::clone(limits), self.policies, self.versions);
        }
        // A deleted folder is not passed on.
        let ours = || std::env::current_dir().unwrap_or_default();
        let folder = self.folder.clone().unwrap_or_else(ours);
        options.in_folder(&folder.to_string_lossy())
    }

    /// Whether the relay converts between v1 and v2: not where messages are to pass unchanged.
    fn converts_versions(&self) -> bool {
        let is_canonical = |choice: DialectChoice| choice == DialectChoice::Canonical;
        self.versions != [None; 2] || !self.choices().into_iter().any(is_canonical)
    }

    /// The framing that the client's dialect uses.
    pub(super) fn client_framing(&self) -> Option<Framing> {
        self.framing(self.client.as_ref())
    }

    /// The framing that the agent's dialect uses.
    pub(super) fn agent_framing(&self) -> Option<Framing> {
        self.framing(self.agent.as_ref())
    }

    /// Checks that the named dialects exist.
    fn check_names(&self) -> Result<(), DialectError> {
        for choice in self.choices() {
            if let DialectChoice::Named(name) = choice {
                self.library().program(&name)?;
            }
        }
        Ok(())
    }

    fn try_options(&self) -> Result<DialectOptions, DialectError> {
        match self.choices() {
            [DialectChoice::Canonical, DialectChoice::Canonical] if !self.converts_versions() => {
                Ok(DialectOptions::canonical())
            }
            [client, agent] => DialectOptions::new(self.library(), &client, &agent),
        }
    }

    fn library(&self) -> &Arc<Library> {
        static BUILTIN: LazyLock<Arc<Library>> = LazyLock::new(|| Arc::new(Library::builtin()));
        self.library.as_ref().unwrap_or(&BUILTIN)
    }

    fn choices(&self) -> [DialectChoice; 2] {
        [&self.client, &self.agent].map(|choice| choice.clone().unwrap_or(DialectChoice::Auto))
    }

    fn framing(&self, choice: Option<&DialectChoice>) -> Option<Framing> {
        let Some(DialectChoice::Named(name)) = choice else {
            return None;
        };
        match self.library().table(name).ok()?.framing.as_deref() {
            Some("content-length") => Some(Framing::ContentLength),
            _ => None,
        }
    }
}

/// The names of the built-in dialects, and of the other choices. A table's file has its name.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let tables = Library::builtin_files()
        .filter_map(|(file, _)| file.strip_prefix("mappings/")?.strip_suffix(".json"));
    ["auto", "canonical"].into_iter().chain(tables)
}

/// Parses a choice of dialect.
pub(super) fn choice(text: &str) -> Result<DialectChoice, std::convert::Infallible> {
    Ok(match text {
        "canonical" => DialectChoice::Canonical,
        "auto" => DialectChoice::Auto,
        name => DialectChoice::Named(name.to_owned()),
    })
}

/// Parses `auto`, `1` or `2`.
fn protocol(text: &str) -> Result<ProtocolChoice, &'static str> {
    Ok(ProtocolChoice(match text {
        "auto" => None,
        "1" => Some(Version::One),
        "2" => Some(Version::Two),
        _ => return Err("expected auto, 1 or 2"),
    }))
}

/// Parses `NAME=VALUE` of a policy.
fn policy(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("expected NAME=VALUE, such as idle-grace=500ms")?;
    let checked = VersionPolicies::default().set(name, value);
    checked.map_err(|error| error.0)?;
    Ok((name.to_owned(), value.to_owned()))
}

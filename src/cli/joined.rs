//! Remote agents that this user has joined with the line of `token new NAME --link URL`: the address,
//! the token and the certificate's hash of each, in private files of the state directory.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};

use super::agents::{check_name, profile};
use super::config::{self, AgentPart, ConfigFile};
use super::state::{self, StateDir, StateError};
use super::{console, endpoints, exit};
use auth::Token;
use transport::{Endpoint, Pin};

/// The prefix of a line, so that secret scanners and people find it.
const PREFIX: &str = "acpr_join_";

/// The beginning of the names of files in the state directory.
const FILES: &str = "joined-";

/// The name of an agent whose address has none.
const REMOTE: &str = "remote";

/// Largest line, in bytes; its token has at most 4096.
const MAX_LINE: usize = 16 << 10;

/// Why an address is not accepted beside a line.
pub(super) const NEEDS_NAME: &str = "--join takes a name, and reads the address from stdin";

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Invitation {
    /// Where the agent is.
    url: String,
    token: String,
    /// The certificate's hash, if it is not signed by a public authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<String>,
}

/// What is kept of an invitation beside its token.
#[derive(Deserialize, Serialize)]
struct Kept {
    url: String,
    pin: Option<String>,
}

/// Runs `connect --join`: keeps the invitation on stdin under the name that was given.
pub(super) fn join(name: Option<&str>) -> Result<ExitCode, ExitCode> {
    let name = receive(name)?;
    let text = format!("Joined. `acp-relay connect {name}` reaches the agent.\n");
    Ok(console::print(&text, exit::SUCCESS))
}

/// Reads an invitation from stdin, keeps it, and returns its name. Errors are printed, and the exit
/// code is returned.
pub(super) fn receive(name: Option<&str>) -> Result<String, ExitCode> {
    if console::input_is_terminal() {
        console::note("Paste the line that begins with acpr_join_, then press Enter:");
    }
    let mut line = String::new();
    let read = console::input().take(MAX_LINE as u64).read_line(&mut line);
    read.map_err(|fault| exit::fail(exit::NO_INPUT, &format!("stdin: {fault}")))?;
    let invitation = Invitation::read(&line);
    let invitation = invitation.map_err(|fault| exit::fail(exit::USAGE, &fault))?;
    let file = ConfigFile::find().as_ref().map(config::load).transpose()?;
    let agents = file.unwrap_or_default().agents;
    let is_taken = |name: &str| agents.iter().any(|part| part.name.as_deref() == Some(name));
    let name = name.map_or_else(|| invitation.name(is_taken), str::to_owned);
    if is_taken(&name) {
        let fault = format!(
            "the configuration file has another agent called `{name}`; choose a name: acp-relay \
             connect --join NAME"
        );
        return Err(exit::fail(exit::USAGE, &fault));
    }
    invitation.keep(&name).map_err(|fault| fault.fail())?;
    Ok(name)
}

/// Whether a text is such a line, valid or not.
pub(super) fn is_join_line(text: &str) -> bool {
    text.trim_start().starts_with(PREFIX)
}

/// The agent that was joined under this name, if one was.
///
/// # Errors
/// Its files cannot be used.
pub(super) fn read(name: &str) -> Result<Option<AgentPart>, StateError> {
    let [about, token] = files(&StateDir::find()?, name);
    let Some(text) = state::read(&about)? else {
        return Ok(None);
    };
    let damaged = |fault: &dyn std::fmt::Display| {
        let path = about.display();
        StateError::Unsafe(format!(
            "{path}: {fault}; join again: acp-relay connect --join {name}"
        ))
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|fault| damaged(&fault))?;
    if state::read(&token)?.is_none() {
        return Err(damaged(&"its token is missing"));
    }
    let token = token.display().to_string();
    let mut keys = vec![
        ("agents.endpoint", kept.url.as_str()),
        ("agents.bearer-file", token.as_str()),
    ];
    keys.extend(kept.pin.as_deref().map(|pin| ("agents.pin-sha256", pin)));
    let part = AgentPart::with(name, &keys);
    part.map(Some).map_err(|fault| damaged(&fault))
}

/// The names of all, in order.
pub(super) fn names() -> Vec<String> {
    let entries = StateDir::find().map(|state| fs::read_dir(state.file("")));
    let entries = entries.into_iter().flatten().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_prefix(FILES)?.strip_suffix(".json")?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

impl Invitation {
    /// An invitation to the agent at `url`.
    ///
    /// # Errors
    /// The URL is none of an agent that takes tokens.
    pub(super) fn new(url: &str, token: &Token, pin: Option<Pin>) -> Result<Self, String> {
        let new = Self {
            url: url.to_owned(),
            token: token.reveal().to_owned(),
            pin: pin.map(|pin| pin.to_string()),
        };
        new.check().map(|()| new)
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, as text for the user; it does not repeat the line.
    pub(super) fn read(line: &str) -> Result<Self, String> {
        let incomplete = "the line is damaged or not complete; copy it whole, with all that \
                          `acp-relay token new NAME --link URL` printed";
        let line = line.trim();
        if line.is_empty() {
            return Err(
                "nothing was pasted; paste the line that begins with acpr_join_".to_owned(),
            );
        }
        let coded = line.strip_prefix(PREFIX).ok_or(
            "this is not a line of `acp-relay token new NAME --link URL`, which begins with \
             acpr_join_",
        )?;
        let text = Some(coded).filter(|coded| coded.len() <= MAX_LINE);
        let text = text.and_then(|coded| BASE64URL_NOPAD.decode(coded.as_bytes()).ok());
        let read: Option<Self> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let read = read.ok_or(incomplete)?;
        read.check().map(|()| read)
    }

    /// The line.
    pub(super) fn line(&self) -> String {
        let text = serde_json::json!(self).to_string();
        format!("{PREFIX}{}", BASE64URL_NOPAD.encode(text.as_bytes()))
    }

    /// The name for it: the agent's in the address, with the host's if that is the name of a
    /// well-known agent or taken, or the host's alone.
    fn name(&self, is_taken: impl Fn(&str) -> bool) -> String {
        let Ok(Endpoint::Http(web)) = self.endpoint() else {
            return REMOTE.to_owned();
        };
        let host = web.host.split('.').next().unwrap_or_default();
        let agent = web.path.strip_prefix("/agents/");
        let agent = agent.and_then(|path| path.split('/').next());
        let name = match agent {
            Some(agent) if profile(agent).is_some() || is_taken(agent) => format!("{agent}-{host}"),
            Some(agent) => agent.to_owned(),
            None => host.to_owned(),
        };
        match check_name(&name) {
            Ok(()) => name,
            Err(_) => REMOTE.to_owned(),
        }
    }

    /// Keeps it under this name, in files that only this user can read.
    ///
    /// # Errors
    /// The name belongs to another address, or the files cannot be written.
    pub(super) fn keep(&self, name: &str) -> Result<(), StateError> {
        let state = StateDir::find()?;
        let _lock = state.lock()?;
        let [about, token] = files(&state, name);
        let before = state::read(&about)?.and_then(|text| serde_json::from_str(&text).ok());
        if before.is_some_and(|before: Kept| before.url != self.url) {
            return Err(StateError::Unsafe(format!(
                "`{name}` is another agent already; choose a name: acp-relay connect --join NAME"
            )));
        }
        let kept = Kept {
            url: self.url.clone(),
            pin: self.pin.clone(),
        };
        state::write(&token, &format!("{}\n", self.token))?;
        state::write(&about, &format!("{}\n", serde_json::json!(kept)))
    }

    fn endpoint(&self) -> Result<Endpoint, String> {
        endpoints::read_agent(&self.url)
    }

    /// Checks each part as the option would that it stands for.
    fn check(&self) -> Result<(), String> {
        let endpoint = self.endpoint()?;
        if !matches!(endpoint, Endpoint::Http(_)) {
            let form = "a token is for agents behind HTTP: wss://HOST/acp or https://HOST/acp";
            return Err(format!("{}: {form}", self.url));
        }
        if self.pin.is_some() && !endpoint.is_tls() {
            return Err(format!(
                "{}: a certificate's hash is for wss:// and https://",
                self.url
            ));
        }
        Token::read(&self.token)?;
        let pin = self
            .pin
            .as_deref()
            .map_or(Ok(()), |pin| pin.parse().map(|_: Pin| ()));
        pin.map_err(str::to_owned)
    }
}

/// The file with what is not secret, and that of the token.
fn files(state: &StateDir, name: &str) -> [PathBuf; 2] {
    ["json", "token"].map(|ending| state.file(&format!("{FILES}{name}.{ending}")))
}

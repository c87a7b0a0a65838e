//! What is remembered of a conversation so that its agent can be started again, and how far that is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::session_id::SessionId;
use jsonrpc::{Frame, IdBuf, member, text};

/// Starts of an agent within [`WITHIN`]; after them the conversation ends.
pub(super) const MAX_STARTS: usize = 3;

/// The time that those starts are counted in.
pub(super) const WITHIN: Duration = Duration::from_secs(300);

/// The most options of a session, and the longest value of one, that are remembered.
const MAX_OPTIONS: usize = 64;
const MAX_VALUE: usize = 1024;

/// How long a loaded session has to be silent: some agents answer `session/load` before they have sent
/// all of the history (Gemini CLI 0.61).
pub(super) const QUIET: Duration = Duration::from_millis(500);

/// Sessions that are remembered. Of more, the oldest is forgotten.
const MAX_SESSIONS: usize = 32;

/// The longest parameters of a session, or text of an `initialize`, that are remembered, in bytes.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// What is remembered, and how far a restart is.
#[derive(Debug)]
pub(super) struct Restart {
    pub(super) step: Step,
    pub(super) agreed: Agreed,
    /// The parameters of an `authenticate` that has succeeded without a person.
    pub(super) authenticate: Option<Box<[u8]>>,
    pub(super) sessions: Vec<KnownSession>,
    /// What the client has sent meanwhile, canonical.
    pub(super) held: VecDeque<Frame>,
    /// The last starts.
    pub(super) starts: VecDeque<Instant>,
    /// Requests of the relay to the agent so far.
    pub(super) asked: u64,
    /// When the agent has to have answered.
    pub(super) due: Option<Instant>,
    /// The agent was started again, or a session is brought back, for what is held.
    pub(super) is_restoring: bool,
    /// The agent is not started again: it has come back as another one, or too often.
    pub(super) is_over: bool,
}

/// How far a restart is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    /// There is an agent. It may not know all sessions yet.
    #[default]
    Running,
    /// The agent is ending; it is not known yet how.
    Ending,
    /// There is none.
    Down,
    /// The agent owes the answer to a request of the relay.
    Asked(IdBuf, Asked),
    /// The session is loaded, and more of its history may come, until then at most; these settings of
    /// it are to be made again.
    Settling(SessionId, Vec<Setting>, Instant),
}

/// A request of the relay to an agent that was started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Initialize,
    Authenticate,
    /// The session is to be loaded or resumed.
    Session(SessionId),
    /// One of its settings is to be made again, and then these, the last one first.
    Setting(SessionId, Vec<Setting>),
}

/// A setting of a session: the method that makes it, and its parameters besides the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) method: &'static str,
    /// Members, as in an object.
    pub(super) members: String,
}

/// What the two sides have agreed in `initialize`.
#[derive(Debug)]
pub(super) struct Agreed {
    /// The parameters of the client.
    pub(super) params: Box<[u8]>,
    /// The version and the capabilities of the agent.
    pub(super) version: Box<[u8]>,
    pub(super) capabilities: Box<[u8]>,
    /// The method that brings a session back.
    pub(super) method: &'static str,
}

/// A session, and what the client saw of its settings last.
#[derive(Debug)]
pub(super) struct KnownSession {
    pub(super) id: SessionId,
    /// The parameters that it was made, loaded or resumed with last.
    pub(super) params: Box<[u8]>,
    /// The agent that runs now knows it.
    pub(super) is_live: bool,
    /// The mode and the model, as JSON.
    pub(super) mode: Option<Box<[u8]>>,
    pub(super) model: Option<Box<[u8]>>,
    pub(super) options: Vec<SetOption>,
}

/// An option of a session and its value, both as JSON.
#[derive(Debug)]
pub(super) struct SetOption {
    id: Box<[u8]>,
    value: Box<[u8]>,
    category: Category,
}

/// What an option stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    Mode,
    Model,
    Other,
}

impl Restart {
    /// Of an agent that runs.
    pub(super) const fn new(agreed: Agreed) -> Self {
        Self {
            step: Step::Running,
            agreed,
            authenticate: None,
            sessions: Vec::new(),
            held: VecDeque::new(),
            starts: VecDeque::new(),
            asked: 0,
            due: None,
            is_restoring: false,
            is_over: false,
        }
    }

    /// Whether the agent can be started again and given its sessions.
    pub(super) fn is_possible(&self) -> bool {
        !self.is_over && !self.sessions.is_empty()
    }

    /// Whether each message has to be looked at.
    pub(super) fn attends(&self) -> bool {
        let of_session = |session: &KnownSession| !session.is_live || session.has_settings();
        self.step != Step::Running || self.sessions.iter().any(of_session)
    }

    pub(super) fn session(&mut self, id: &SessionId) -> Option<&mut KnownSession> {
        self.sessions.iter_mut().find(|session| session.id == *id)
    }

    /// Remembers a session that was made, loaded or resumed with these parameters.
    pub(super) fn learn(&mut self, id: SessionId, params: Box<[u8]>, result: &[u8]) {
        self.sessions.retain(|session| session.id != id);
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.remove(0);
        }
        let mut session = KnownSession {
            id,
            params,
            is_live: true,
            mode: None,
            model: None,
            options: Vec::new(),
        };
        session.read_state(result);
        self.sessions.push(session);
    }

    pub(super) fn forget(&mut self, id: &SessionId) {
        self.sessions.retain(|session| session.id != *id);
    }
}

impl KnownSession {
    /// Reads the settings in the answer of an agent, or in an update.
    pub(super) fn read_state(&mut self, object: &[u8]) {
        self.set_mode(current(object, "modes", "currentModeId"));
        self.set_model(current(object, "models", "currentModelId"));
        let Some(list) = member(object, "configOptions") else {
            return;
        };
        let is_short = list.len() <= MAX_BYTES;
        let options = text::items(list).filter(|_| is_short).take(MAX_OPTIONS);
        self.options = options.filter_map(SetOption::read).collect();
        // An agent that has both says the same in them, and what was said last counts.
        if self
            .options
            .iter()
            .any(|option| option.category == Category::Mode)
        {
            self.mode = None;
        }
        if self
            .options
            .iter()
            .any(|option| option.category == Category::Model)
        {
            self.model = None;
        }
    }

    /// Sets the mode, if there is one, in place of an option that stands for it.
    pub(super) fn set_mode(&mut self, mode: Option<&[u8]>) {
        if let Some(mode) = mode.filter(|mode| mode.len() <= MAX_VALUE) {
            self.mode = Some(mode.into());
            self.options
                .retain(|option| option.category != Category::Mode);
        }
    }

    /// Sets the model in the same way.
    pub(super) fn set_model(&mut self, model: Option<&[u8]>) {
        if let Some(model) = model.filter(|model| model.len() <= MAX_VALUE) {
            self.model = Some(model.into());
            self.options
                .retain(|option| option.category != Category::Model);
        }
    }

    pub(super) fn set_option(&mut self, id: &[u8], value: &[u8]) {
        let option = self.options.iter_mut().find(|option| *option.id == *id);
        if let Some(option) = option.filter(|_| value.len() <= MAX_VALUE) {
            option.value = value.into();
        }
    }

    fn has_settings(&self) -> bool {
        self.mode.is_some() || self.model.is_some() || !self.options.is_empty()
    }

    /// What differs in the answer of an agent that has loaded it, the last one first.
    pub(super) fn settings_for(&self, result: &[u8]) -> Vec<Setting> {
        let offered = member(result, "configOptions").unwrap_or_default();
        let differs = |option: &&SetOption| {
            let mut offered = text::items(offered).filter_map(SetOption::read);
            let now = offered.find(|now| now.id == option.id);
            now.is_none_or(|now| now.value != option.value)
        };
        let options = self.options.iter().filter(differs).map(|option| {
            let kind = match &*option.value {
                b"true" | b"false" => r#","type":"boolean""#,
                _ => "",
            };
            let [id, value] = [&option.id, &option.value].map(|text| String::from_utf8_lossy(text));
            Setting {
                method: "session/set_config_option",
                members: format!(r#""configId":{id}{kind},"value":{value}"#),
            }
        });
        let named = [
            (
                &self.mode,
                "modes",
                "currentModeId",
                "session/set_mode",
                "modeId",
            ),
            (
                &self.model,
                "models",
                "currentModelId",
                "session/set_model",
                "modelId",
            ),
        ];
        let named = named
            .into_iter()
            .filter_map(|(wanted, group, name, method, member)| {
                let wanted = wanted.as_deref()?;
                let differs = current(result, group, name) != Some(wanted);
                let members = format!(r#""{member}":{}"#, String::from_utf8_lossy(wanted));
                differs.then_some(Setting { method, members })
            });
        let mut settings: Vec<Setting> = named.chain(options).collect();
        settings.reverse();
        settings
    }
}

/// The current value in a group of an answer.
fn current<'a>(object: &'a [u8], group: &str, name: &str) -> Option<&'a [u8]> {
    member(member(object, group)?, name).filter(|value| value.starts_with(b"\""))
}

impl SetOption {
    /// The option that a list of an agent has; `None` when it cannot be remembered.
    fn read(option: &[u8]) -> Option<Self> {
        let value = |name| member(option, name).filter(|value| value.len() <= MAX_VALUE);
        Some(Self {
            id: value("id")?.into(),
            value: value("currentValue")?.into(),
            category: match value("category") {
                Some(b"\"mode\"") => Category::Mode,
                Some(b"\"model\"") => Category::Model,
                _ => Category::Other,
            },
        })
    }
}

/// What an agent has lost between two results of `initialize`, as the name of a capability.
pub(super) fn lost_capability(before: &[u8], now: &[u8]) -> Option<String> {
    for (name, value) in text::members(before) {
        let shown = || text::unescaped(name).into_owned();
        if name == b"_meta" {
            continue;
        }
        let now = member(now, &shown()).unwrap_or(b"null");
        let is_lost = match value {
            b"true" => now != b"true",
            _ => value.starts_with(b"{") && !now.starts_with(b"{"),
        };
        if is_lost {
            return Some(shown());
        }
        if value.starts_with(b"{")
            && let Some(lost) = lost_capability(value, now)
        {
            return Some(format!("{}.{lost}", shown()));
        }
    }
    None
}

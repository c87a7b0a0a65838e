//! A session of a v1 agent, as the v2 client sees it.

use super::options::Options;
use super::tools::Tools;
use super::turns::Turns;
use crate::memory::Remembered;
use crate::message::Message;
use crate::object::{Json, object};
use crate::tree::Node;
use crate::versions::content::drop_odd_date;
use crate::versions::out::Out;

/// The longest value that is remembered for lists of sessions, in bytes.
const MAX_VALUE: usize = 4096;

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: Box<str>,
    pub(super) turns: Turns,
    pub(super) tools: Tools,
    pub(super) options: Options,
    /// What the agent replays is not shown.
    pub(super) quiet: bool,
    directories: Option<Json>,
    /// Its `title` and `updatedAt`.
    about: [Option<String>; 2],
}

impl Remembered for Session {
    fn weight(&self) -> usize {
        self.turns.weight() + self.tools.weight() + self.options.weight()
    }

    fn forget(&mut self) {
        self.tools.forget();
        self.turns.messages.forget();
    }
}

impl Session {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            turns: Turns::new(id),
            ..Self::default()
        }
    }

    /// Takes the folders out of the request that opens the session.
    pub(super) fn place(&mut self, params: &Node<'_>) {
        self.tools.cwd = params.id("cwd").or_else(|| self.tools.cwd.take());
        let directories = params.value("additionalDirectories");
        let directories = directories.filter(|all| all.size() <= MAX_VALUE);
        self.directories = directories.or_else(|| self.directories.take());
    }

    /// Notices a tool call, and shows the terminals that it states. Returns whether it states any.
    pub(super) fn see(&mut self, call: &mut Node<'_>, out: &mut Out<'_>) -> bool {
        if self.tools.see(call) {
            self.turns.messages.split();
        }
        let Some(updates) = self.tools.terminals(call) else {
            return false;
        };
        for update in updates {
            out.rule("terminal");
            out.peer(Message::update(Node::string(&self.id), update));
        }
        true
    }

    /// Takes what the agent states about the session.
    pub(super) fn describe(&mut self, update: &mut Node<'_>) -> bool {
        drop_odd_date(update, "updatedAt");
        for (name, known) in ["title", "updatedAt"].into_iter().zip(&mut self.about) {
            if update.member(name).is_some() {
                *known = update.text(name).filter(|text| text.len() <= MAX_VALUE);
            }
        }
        true
    }

    /// The session as an entry of a list; none when it is closed or its folder is not known.
    pub(super) fn entry(&self, folder: Option<&str>) -> Option<Json> {
        let cwd = self.tools.cwd.as_deref()?;
        let is_listed = !self.turns.is_closing() && folder.is_none_or(|folder| folder == cwd);
        let [title, updated_at] = &self.about;
        is_listed.then(|| {
            object! {
                "sessionId": &*self.id,
                "cwd": cwd,
                "additionalDirectories": self.directories.clone(),
                "title": title.as_deref(),
                "updatedAt": updated_at.as_deref(),
            }
        })
    }
}

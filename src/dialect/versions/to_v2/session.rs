//! A session of a v1 agent, as the v2 client sees it.

use super::options::Options;
use super::parts::drop_odd_date;
use super::tools::Tools;
use super::turns::Turns;
use crate::dialect::message::Message;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{member, text as text_of, value};

/// The longest text that is remembered for lists of sessions, in bytes.
const MAX_TEXT: usize = 4096;

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) id: Box<str>,
    pub(super) turns: Turns,
    pub(super) tools: Tools,
    pub(super) options: Options,
    /// What the agent replays is not shown.
    pub(super) quiet: bool,
    directories: Option<Node<'static>>,
    title: Option<String>,
    updated_at: Option<String>,
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
        self.tools.cwd = text_of(params, "cwd").or_else(|| self.tools.cwd.take());
        let directories = value(params, "additionalDirectories");
        self.directories = directories.or_else(|| self.directories.take());
    }

    /// Notices a tool call, and shows the terminals that it states. Returns whether it states any.
    pub(super) fn see(&mut self, call: &mut Node<'_>, out: &mut Exchange<'_>) -> bool {
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
        let title = ("title", &mut self.title);
        for (name, known) in [title, ("updatedAt", &mut self.updated_at)] {
            if member(update, name).is_some() {
                *known = text_of(update, name).filter(|text| text.len() <= MAX_TEXT);
            }
        }
        true
    }

    /// The session as an entry of a list; none when it is closed or its folder is not known.
    pub(super) fn entry(&self, folder: Option<&str>) -> Option<Node<'static>> {
        let cwd = self.tools.cwd.as_deref()?;
        if self.turns.is_closing() || folder.is_some_and(|folder| folder != cwd) {
            return None;
        }
        let text = |text: &Option<String>| text.as_deref().map(Node::string);
        let made = [
            ("sessionId", Some(Node::string(&self.id))),
            ("cwd", Some(Node::string(cwd))),
            ("additionalDirectories", self.directories.clone()),
            ("title", text(&self.title)),
            ("updatedAt", text(&self.updated_at)),
        ];
        let made = made
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Some(Node::object(made.collect()))
    }
}

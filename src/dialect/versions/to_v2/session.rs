//! A session of a v1 agent, as the v2 client sees it.

use super::options::Options;
use super::parts::{drop_odd_date, member, text_of};
use super::tools::Tools;
use super::turns::Turns;
use crate::dialect::tree::Node;

/// The longest text that is remembered for lists of sessions, in bytes.
const MAX_TEXT: usize = 4096;

/// A session.
#[derive(Debug)]
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
            tools: Tools::default(),
            options: Options::default(),
            quiet: false,
            directories: None,
            title: None,
            updated_at: None,
        }
    }

    /// Takes the folders out of the request that opens the session.
    pub(super) fn place(&mut self, params: &Node<'_>) {
        if let Some(cwd) = text_of(params, "cwd") {
            self.tools.cwd = Some(cwd);
        }
        if let Some(directories) = member(params, "additionalDirectories") {
            self.directories = Some(directories.to_static());
        }
    }

    /// Takes what the agent states about the session.
    pub(super) fn describe(&mut self, update: &mut Node<'_>) {
        drop_odd_date(update, "updatedAt");
        let title = ("title", &mut self.title);
        for (name, known) in [title, ("updatedAt", &mut self.updated_at)] {
            let is_stated = update.members().is_some_and(|members| {
                let mut names = members.iter().map(|(raw, _)| &**raw);
                names.any(|raw| raw == name.as_bytes())
            });
            if is_stated {
                *known = text_of(update, name).filter(|text| text.len() <= MAX_TEXT);
            }
        }
    }

    /// The session as an entry of a list; none when it is closed or its folder is not known.
    pub(super) fn entry(&self, folder: Option<&str>) -> Option<Node<'static>> {
        let cwd = self.tools.cwd.as_deref()?;
        if self.turns.is_closing() || folder.is_some_and(|folder| folder != cwd) {
            return None;
        }
        let mut made = vec![
            ("sessionId", Node::string(&self.id)),
            ("cwd", Node::string(cwd)),
        ];
        let directories = self.directories.clone();
        made.extend(directories.map(|all| ("additionalDirectories", all)));
        for (name, text) in [("title", &self.title), ("updatedAt", &self.updated_at)] {
            made.extend(text.as_deref().map(|text| (name, Node::string(text))));
        }
        Some(Node::object(made))
    }
}

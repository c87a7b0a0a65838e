//! One session of a v2 agent, as its v1 client knows it.

use super::messages::Messages;
use super::options::{self, Options};
use super::plans::Plans;
use super::tools::Tools;
use super::turns::{Ended, Turns};
use crate::memory::Remembered;
use crate::message::Message;
use crate::object::{Json, object};
use crate::text::JsonType;
use crate::tree::Node;
use crate::versions::content;
use crate::versions::initialize::ClientTraits;
use crate::versions::out::Out;
use crate::versions::waiting::Waiting;

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: Box<str>,
    client: ClientTraits,
    pub(super) turns: Turns,
    pub(super) tables: Tables,
    pub(super) options: Options,
    /// The tables before a history that is being replayed.
    saved: Option<Box<Tables>>,
    /// How many requests to replay the history are open.
    replays: u32,
    pub(super) is_closed: bool,
    /// It is a subagent's: the client has no turn in it.
    pub(super) is_child: bool,
    /// Updates between turns that wait for the next prompt.
    waiting: Waiting<Message<'static>, 1024, { 1 << 20 }>,
}

/// What the client was shown.
#[derive(Debug, Default)]
pub(super) struct Tables {
    messages: Messages,
    pub(super) tools: Tools,
    plans: Plans,
}

impl Session {
    pub(super) fn new(id: &str, client: ClientTraits) -> Self {
        let mut session = Self {
            id: id.into(),
            client,
            tables: Tables::new(client),
            ..Self::default()
        };
        session.options.booleans = client.boolean_options;
        session
    }

    /// The history is replayed: it begins with empty tables.
    pub(super) fn begin_replay(&mut self) {
        let tables = std::mem::replace(&mut self.tables, Tables::new(self.client));
        self.saved.get_or_insert_with(|| Box::new(tables));
        self.replays += 1;
    }

    /// The history was replayed, or could not be.
    pub(super) fn end_replay(&mut self, is_done: bool) {
        self.replays = self.replays.saturating_sub(1);
        if let Some(saved) = self.saved.take().filter(|_| !is_done) {
            self.tables = *saved;
        }
    }

    /// Applies an update of the agent.
    pub(super) fn update(&mut self, update: &Json, out: &mut Out<'_>) {
        let kind = update.word("sessionUpdate");
        let tables = &mut self.tables;
        let made = match &*kind {
            "state_update" => {
                let ended = self.turns.state(update, out);
                return self.finish(ended, out);
            }
            "user_message" | "user_message_chunk" => self.user(&kind, update, out),
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                tables.messages.update(update, out)
            }
            "tool_call_update" => tables.tools.update(update, out),
            "tool_call_content_chunk" => tables.tools.append(update, out),
            "terminal_update" | "terminal_output_chunk" => tables.tools.terminal(update, out),
            "plan_update" => tables.plans.update(update, self.client.plans, out),
            "plan_removed" => tables.plans.remove(update, self.client.plans, out),
            "config_option_update" => self.replace_options(update),
            // The answer of v1's request says the same.
            "replay_complete" => return out.rule("load"),
            _ => Vec::from_iter(plain(&kind, update, self.client, out)),
        };
        let work = ["user_", "agent_", "tool_", "terminal_", "plan_"];
        let is_work = work.iter().any(|work| kind.starts_with(work));
        self.show(made, is_work, out);
    }

    /// An update that tells the client another mode than the one before.
    pub(super) fn mode_update(&self, before: Option<String>) -> Option<Json> {
        let mode = self.options.mode();
        let mode = mode.filter(|mode| before.is_some_and(|before| *mode != before))?;
        Some(object! { "sessionUpdate": "current_mode_update", "currentModeId": mode })
    }

    /// Sends updates to the client. Work between turns may wait for the next prompt.
    pub(super) fn show(&mut self, updates: Vec<Json>, is_work: bool, out: &mut Out<'_>) {
        let is_between = !self.turns.is_open() && self.replays == 0 && !self.is_child;
        let waits = is_work && is_between && out.policies.buffer_out_of_turn;
        for update in updates {
            let size = if waits { update.size() } else { 0 };
            let message = Message::update(Node::string(&self.id), update);
            if !waits {
                out.other(message);
            } else if let Err(message) = self.waiting.push(message, size) {
                self.flush(out);
                out.other(message);
            }
        }
    }

    /// Sends what has waited for a prompt.
    pub(super) fn flush(&mut self, out: &mut Out<'_>) {
        while let Some(message) = self.waiting.pop() {
            out.other(message);
        }
    }

    /// Sends what has come of an event of a turn.
    pub(super) fn finish(&mut self, ended: Ended, out: &mut Out<'_>) {
        for update in &ended.shown {
            for made in self.tables.messages.update(update, out) {
                out.other(Message::update(Node::string(&self.id), made));
            }
        }
        for answer in ended.answers {
            out.other(answer);
        }
    }

    /// A message of the user: it may be the client's own prompt.
    fn user(&mut self, kind: &str, update: &Json, out: &mut Out<'_>) -> Vec<Json> {
        let content = match kind {
            "user_message" => update.list("content"),
            _ => Vec::from_iter(update.value("content")),
        };
        let shown = match self.replays {
            0 => self.turns.echo(update, &content),
            _ => vec![update.clone()],
        };
        if shown.is_empty() {
            out.rule("echo");
        }
        let messages = &mut self.tables.messages;
        let made = shown.iter().flat_map(|update| messages.update(update, out));
        made.collect()
    }

    fn replace_options(&mut self, update: &Json) -> Vec<Json> {
        let before = self.options.mode();
        let list = options::list(update).unwrap_or_default();
        let list = self.options.take(list);
        let mut shown = update.only("sessionUpdate");
        shown.set("configOptions", list);
        let mode = self.mode_update(before);
        [Some(shown), mode].into_iter().flatten().collect()
    }
}

impl Remembered for Session {
    fn weight(&self) -> usize {
        let tables = |tables: &Tables| {
            tables.messages.0.bytes + tables.tools.weight() + tables.plans.0.bytes
        };
        let saved = self.saved.as_ref().map_or(0, |saved| tables(saved));
        let shown = tables(&self.tables) + saved;
        shown + self.turns.weight() + self.options.bytes + self.waiting.bytes
    }

    fn forget(&mut self) {
        self.tables = Tables::new(self.client);
        self.saved = None;
    }
}

impl Tables {
    fn new(client: ClientTraits) -> Self {
        Self {
            tools: Tools::new(client.terminals),
            ..Self::default()
        }
    }
}

/// An update that both versions have, or that v1 lacks.
fn plain(kind: &str, update: &Json, client: ClientTraits, out: &mut Out<'_>) -> Option<Json> {
    let names = match kind {
        "available_commands_update" => {
            let mut made = commands_update(&update.list("availableCommands"));
            made.add_meta(update.value("_meta"));
            return Some(made);
        }
        "session_info_update" => "sessionUpdate title updatedAt",
        "usage_update" => "sessionUpdate used size cost",
        "notice" if client.notices => "sessionUpdate severity title description",
        "compaction_update" if client.compaction => {
            "sessionUpdate compactionId status summary error"
        }
        "compaction_summary_chunk" if client.compaction => "sessionUpdate compactionId content",
        "subagent_update" if client.subagents => {
            "sessionUpdate sessionId title description capabilities state cwd \
             additionalDirectories _meta"
        }
        "session_message" if client.subagents => {
            "sessionUpdate messageId senderSessionId recipientSessionId senderMessageId \
             recipientMessageId content _meta"
        }
        "session_message_chunk" if client.subagents => "sessionUpdate messageId content _meta",
        _ => {
            let what = format!("v1 has no update {kind}, or the client does not read it");
            out.dropped("updates", what);
            return None;
        }
    };
    let mut made = update.only(names);
    made.change("cost", |cost| cost.keep_only("amount currency"));
    made.change_each("summary", |block| *block = content::shown(block));
    match made.part("content").kind() {
        Some(JsonType::Array) => {
            made.change_each("content", |block| *block = content::shown(block));
        }
        _ => made.change("content", |block| *block = content::shown(block)),
    }
    Some(made)
}

/// An update of these commands.
pub(super) fn commands_update(all: &[Json]) -> Json {
    let shown = all.iter().map(|command| {
        let mut shown = command.only("name description input");
        if shown.is_null("input") {
            shown.remove("input");
        }
        shown.change("input", |input| input.keep_only("hint"));
        shown
    });
    let all: Vec<_> = shown.collect();
    object! { "sessionUpdate": "available_commands_update", "availableCommands": all }
}

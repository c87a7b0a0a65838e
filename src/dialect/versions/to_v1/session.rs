//! One session of a v2 agent, as its v1 client knows it.

use super::content::{block, blocks};
use super::messages::Messages;
use super::options::{self, Options};
use super::plans::Plans;
use super::terminals::{Display, Terminals};
use super::tools::Tools;
use super::turns::{Echo, Ended, Turns};
use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::Exchange;
use crate::dialect::versions::json::{add_meta, array, is_null, only, set, text, value};
use crate::dialect::versions::policies::TerminalDisplay;
use crate::dialect::versions::traits::ClientTraits;

/// How many updates wait for the next prompt, and how many bytes they have.
const WAITING: (usize, usize) = (1024, 1 << 20);

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) turns: Turns,
    pub(super) tables: Tables,
    pub(super) options: Options,
    /// The tables before a history that is being replayed.
    saved: Option<Box<Tables>>,
    /// How many requests to replay the history are open.
    replays: u32,
    pub(super) is_closed: bool,
    /// Updates between turns that wait for the next prompt.
    waiting: Vec<Message<'static>>,
    waiting_bytes: usize,
}

/// What the client was shown.
#[derive(Debug)]
pub(super) struct Tables {
    messages: Messages,
    pub(super) tools: Tools,
    pub(super) terminals: Terminals,
    plans: Plans,
}

impl Session {
    pub(super) fn new(display: Display) -> Self {
        Self {
            turns: Turns::default(),
            tables: Tables::new(display),
            options: Options::default(),
            saved: None,
            replays: 0,
            is_closed: false,
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }

    /// The history is replayed: it begins with empty tables.
    pub(super) fn begin_replay(&mut self, display: Display) {
        let tables = std::mem::replace(&mut self.tables, Tables::new(display));
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
    pub(super) fn update(
        &mut self,
        id: &Node<'static>,
        update: &Node<'static>,
        client: &ClientTraits,
        out: &mut Exchange<'_>,
    ) {
        let kind = text(update, "sessionUpdate").unwrap_or_default();
        let mut made = Vec::new();
        let tables = &mut self.tables;
        match &*kind {
            "state_update" => {
                let ended = self.turns.state(update, out);
                return self.finish(id, ended, out);
            }
            "user_message" | "user_message_chunk" => self.user(&kind, update, out, &mut made),
            "agent_message" | "agent_message_chunk" | "agent_thought" | "agent_thought_chunk" => {
                tables.messages.update(&kind, update, out, &mut made);
            }
            "tool_call_update" | "tool_call_content_chunk" => {
                let is_chunk = kind == "tool_call_content_chunk";
                let terminals = &mut tables.terminals;
                tables
                    .tools
                    .update(update, is_chunk, terminals, out, &mut made);
            }
            "terminal_update" | "terminal_output_chunk" => {
                let is_chunk = kind == "terminal_output_chunk";
                let terminals = &mut tables.terminals;
                tables
                    .tools
                    .terminal(update, is_chunk, terminals, out, &mut made);
            }
            "plan_update" => tables.plans.update(update, client.plans, out, &mut made),
            "plan_removed" => tables.plans.remove(update, client.plans, out, &mut made),
            "config_option_update" => {
                let before = self.options.mode();
                let list = options::list(update).unwrap_or_default();
                let list = self.options.take(list, client.boolean_options);
                let mut shown = only(update, &["sessionUpdate", "_meta"]);
                set(&mut shown, "configOptions", list);
                made.push(shown);
                made.extend(self.mode_update(before));
            }
            _ => made.extend(plain(&kind, update, client, out)),
        }
        let work = ["user_", "agent_", "tool_", "terminal_", "plan_"];
        let is_work = work.iter().any(|work| kind.starts_with(work));
        self.show(id, made, is_work, out);
    }

    /// An update that tells the client another mode than the one before.
    pub(super) fn mode_update(&self, before: Option<String>) -> Option<Node<'static>> {
        let mode = self
            .options
            .mode()
            .filter(|mode| before.is_some_and(|before| *mode != before))?;
        Some(Node::object(vec![
            ("sessionUpdate", Node::string("current_mode_update")),
            ("currentModeId", Node::string(&mode)),
        ]))
    }

    /// Sends updates to the client. Work between turns may wait for the next prompt.
    pub(super) fn show(
        &mut self,
        id: &Node<'static>,
        updates: Vec<Node<'static>>,
        is_work: bool,
        out: &mut Exchange<'_>,
    ) {
        let is_between = !self.turns.is_open() && self.replays == 0;
        let waits = is_work && is_between && out.policies.buffer_out_of_turn;
        for update in updates {
            let message = Message::update(id.clone(), update);
            if !waits {
                out.other(message);
                continue;
            }
            self.waiting_bytes += message.body.json().len();
            self.waiting.push(message);
            if self.waiting.len() > WAITING.0 || self.waiting_bytes > WAITING.1 {
                self.flush(out);
            }
        }
    }

    /// Sends what has waited for a prompt.
    pub(super) fn flush(&mut self, out: &mut Exchange<'_>) {
        self.waiting_bytes = 0;
        for message in self.waiting.drain(..) {
            out.other(message);
        }
    }

    /// Sends what has come of an event of a turn.
    pub(super) fn finish(&mut self, id: &Node<'static>, ended: Ended, out: &mut Exchange<'_>) {
        let mut made = Vec::new();
        for update in &ended.shown {
            let kind = text(update, "sessionUpdate").unwrap_or_default();
            self.tables.messages.update(&kind, update, out, &mut made);
        }
        for update in made {
            out.other(Message::update(id.clone(), update));
        }
        for answer in ended.answers {
            out.other(answer);
        }
    }

    /// A message of the user: it may be the client's own prompt.
    fn user(
        &mut self,
        kind: &str,
        update: &Node<'static>,
        out: &mut Exchange<'_>,
        made: &mut Vec<Node<'static>>,
    ) {
        let content = match kind {
            "user_message" => array(update, "content").unwrap_or_default(),
            _ => value(update, "content").into_iter().collect(),
        };
        let echo = match self.replays {
            0 => self.turns.echo(update, &content),
            _ => Echo::Show,
        };
        let held = match echo {
            Echo::Hide => return out.rule("echo"),
            Echo::Show => Vec::new(),
            Echo::ShowAfter(held) => held,
        };
        for update in held.iter().chain([update]) {
            let kind = text(update, "sessionUpdate").unwrap_or_default();
            self.tables.messages.update(&kind, update, out, made);
        }
    }
}

impl Tables {
    fn new(display: Display) -> Self {
        Self {
            messages: Messages::default(),
            tools: Tools::new(display),
            terminals: Terminals::default(),
            plans: Plans::default(),
        }
    }
}

/// How the client is shown terminals.
pub(super) const fn display(client: &ClientTraits, policy: TerminalDisplay) -> Display {
    match policy {
        TerminalDisplay::Auto if client.terminal_output => Display::Extension,
        TerminalDisplay::Auto | TerminalDisplay::Text => Display::Text,
        TerminalDisplay::Off => Display::Off,
    }
}

/// An update that both versions have, or that v1 lacks.
fn plain(
    kind: &str,
    update: &Node<'static>,
    client: &ClientTraits,
    out: &mut Exchange<'_>,
) -> Option<Node<'static>> {
    let names: &[&str] = match kind {
        "available_commands_update" => {
            let all = array(update, "availableCommands").unwrap_or_default();
            let mut made = commands(&all);
            value(update, "_meta")
                .into_iter()
                .for_each(|meta| add_meta(&mut made, meta));
            return Some(made);
        }
        "session_info_update" => &["title", "updatedAt"],
        "usage_update" => &["used", "size", "cost"],
        "notice" if client.notices => &["severity", "title", "description"],
        "compaction_update" if client.compaction => &["compactionId", "status", "summary", "error"],
        "compaction_summary_chunk" if client.compaction => &["compactionId", "content"],
        _ => {
            let what = format!("v1 has no update {kind}, or the client does not read it");
            out.note(DialectEvent::Dropped, "updates", what);
            return None;
        }
    };
    let mut made = only(update, &[names, &["sessionUpdate", "_meta"]].concat());
    if let Some(cost) = value(&made, "cost") {
        set(
            &mut made,
            "cost",
            only(&cost, &["amount", "currency", "_meta"]),
        );
    }
    if let Some(summary) = array(&made, "summary") {
        set(&mut made, "summary", Node::Array(blocks(&summary)));
    }
    if let Some(content) = value(&made, "content") {
        set(&mut made, "content", block(&content));
    }
    Some(made)
}

/// An update of these commands.
pub(super) fn commands(all: &[Node<'static>]) -> Node<'static> {
    let shown = all.iter().map(|command| {
        let mut shown = only(command, &["name", "description", "input", "_meta"]);
        if is_null(&shown, "input") {
            crate::dialect::versions::json::remove(&mut shown, "input");
        } else if let Some(input) = value(&shown, "input") {
            set(&mut shown, "input", only(&input, &["hint", "_meta"]));
        }
        shown
    });
    Node::object(vec![
        ("sessionUpdate", Node::string("available_commands_update")),
        ("availableCommands", Node::Array(shown.collect())),
    ])
}

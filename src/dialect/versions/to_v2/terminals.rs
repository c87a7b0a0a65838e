//! Terminals that agents of v1 describe under `_meta` of their tool calls.

use data_encoding::BASE64;
use hashlink::LinkedHashMap;

use super::parts::{MAX_ID, absolute};
use crate::dialect::text;
use crate::dialect::tree::Node;
use crate::dialect::versions::json::{remove, set, text as text_of, value};

/// How many terminals of a session are remembered.
const MAX_TERMINALS: usize = 1024;
/// What agents state, in the order in which it is shown.
const STATED: [&str; 4] = [
    "terminal_info",
    "terminal_output",
    "terminal_output_delta",
    "terminal_exit",
];

/// The terminals of a session, each with its tool call.
#[derive(Debug, Default)]
pub(super) struct Terminals(LinkedHashMap<Box<str>, Box<str>>);

impl Terminals {
    /// Whether the client knows a terminal.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Takes out of a tool call what it states about terminals, as updates; none when it states
    /// nothing.
    pub(super) fn take(
        &mut self,
        call: &mut Node<'_>,
        cwd: Option<&str>,
    ) -> Option<Vec<Node<'static>>> {
        let mut meta = value(call, "_meta")?;
        let mut updates = None;
        for name in STATED {
            let Some(stated) = value(&meta, name) else {
                continue;
            };
            remove(&mut meta, name);
            let updates = updates.get_or_insert_with(Vec::new);
            let Some(id) = self.terminal(&stated, call) else {
                continue;
            };
            let kind = match name {
                "terminal_info" | "terminal_exit" => "terminal_update",
                _ => "terminal_output_chunk",
            };
            let mut update = vec![
                ("sessionUpdate", Node::string(kind)),
                ("terminalId", Node::string(&id)),
            ];
            match name {
                "terminal_info" => {
                    let input = value(call, "rawInput");
                    let command = input.and_then(|input| text_of(&input, "command"));
                    update.extend(command.map(|command| ("command", Node::string(&command))));
                    let place = text_of(&stated, "cwd").map(|place| absolute(&place, cwd));
                    update.extend(place.map(|place| ("cwd", Node::string(&place))));
                }
                "terminal_exit" => {
                    let code = value(&stated, "exit_code");
                    let code = code.and_then(|code| text::integer(&code.json()));
                    let code = code.map(|code| ("exitCode", Node::owned(code.into_bytes())));
                    let signal = text_of(&stated, "signal");
                    let signal = signal.map(|signal| ("signal", Node::string(&signal)));
                    let status = code.into_iter().chain(signal).collect();
                    update.push(("exitStatus", Node::object(status)));
                }
                _ => {
                    // Some agents write Base64 here; it is shown as it is.
                    let data = text_of(&stated, "data").unwrap_or_default();
                    update.push(("data", Node::string(&BASE64.encode(data.as_bytes()))));
                }
            }
            updates.push(Node::object(update));
        }
        if updates.is_some() {
            match meta.members().is_some_and(|members| members.is_empty()) {
                true => remove(call, "_meta"),
                false => set(call, "_meta", meta),
            }
        }
        updates
    }

    /// The terminal that is meant, which is known from now on. Some agents leave the id out.
    fn terminal(&mut self, stated: &Node<'_>, call: &Node<'_>) -> Option<String> {
        let tool = text_of(call, "toolCallId").unwrap_or_default();
        let Some(id) = text_of(stated, "terminal_id").filter(|id| id.len() <= MAX_ID) else {
            let mut all = self.0.iter().rev();
            return all.find_map(|(id, of)| (**of == *tool).then(|| id.to_string()));
        };
        self.0.insert(id.as_str().into(), tool.into());
        if self.0.len() > MAX_TERMINALS {
            self.0.pop_front();
        }
        Some(id)
    }
}

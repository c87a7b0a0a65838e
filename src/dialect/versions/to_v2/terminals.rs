//! Terminals that agents of v1 describe under `_meta` of their tool calls.

use data_encoding::BASE64;
use hashlink::LinkedHashMap;

use super::parts::{absolute, drop_nulls, member, put, remove, text_of};
use crate::dialect::text;
use crate::dialect::tree::Node;

/// How many terminals of a session are remembered.
const MAX_TERMINALS: usize = 1024;

/// The terminals of a session, each with its tool call.
#[derive(Debug, Default)]
pub(super) struct Terminals(LinkedHashMap<Box<str>, Box<str>>);

impl Terminals {
    /// Whether the client knows a terminal.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Takes out of a tool call what it states about a terminal, as updates in their order.
    pub(super) fn take(&mut self, call: &mut Node<'_>, cwd: Option<&str>) -> Vec<Node<'static>> {
        let Some(mut meta) = member(call, "_meta") else {
            return Vec::new();
        };
        let tool = text_of(call, "toolCallId").unwrap_or_default();
        let mut updates = Vec::new();
        if let Some(info) = take(&mut meta, "terminal_info")
            && let Some(id) = self.terminal(&info, &tool)
        {
            let mut update = vec![
                ("sessionUpdate", Node::string("terminal_update")),
                ("terminalId", Node::string(&id)),
            ];
            let input = member(call, "rawInput");
            let command = input.and_then(|input| text_of(&input, "command"));
            update.extend(command.map(|command| ("command", Node::string(&command))));
            let place = text_of(&info, "cwd").map(|place| absolute(&place, cwd));
            update.extend(place.map(|place| ("cwd", Node::string(&place))));
            updates.push(Node::object(update));
        }
        for name in ["terminal_output", "terminal_output_delta"] {
            let Some(output) = take(&mut meta, name) else {
                continue;
            };
            // Some agents write Base64 here; it is shown as it is.
            if let (Some(id), Some(data)) =
                (self.terminal(&output, &tool), text_of(&output, "data"))
            {
                updates.push(Node::object(vec![
                    ("sessionUpdate", Node::string("terminal_output_chunk")),
                    ("terminalId", Node::string(&id)),
                    ("data", Node::string(&BASE64.encode(data.as_bytes()))),
                ]));
            }
        }
        if let Some(exit) = take(&mut meta, "terminal_exit")
            && let Some(id) = self.terminal(&exit, &tool)
        {
            let code = member(&exit, "exit_code");
            let code = code.and_then(|code| text::integer(&code.json()));
            let mut status = Vec::new();
            status.extend(code.map(|code| ("exitCode", Node::owned(code.into_bytes()))));
            let signal = text_of(&exit, "signal");
            status.extend(signal.map(|signal| ("signal", Node::string(&signal))));
            updates.push(Node::object(vec![
                ("sessionUpdate", Node::string("terminal_update")),
                ("terminalId", Node::string(&id)),
                ("exitStatus", Node::object(status)),
            ]));
        }
        match meta.members().is_some_and(|members| members.is_empty()) && !updates.is_empty() {
            true => drop(remove(call, "_meta")),
            false => put(call, "_meta", meta.to_static()),
        }
        drop_nulls(call);
        updates
    }

    /// The id of the terminal that is meant, which is known from now on. Some agents leave it out.
    fn terminal(&mut self, stated: &Node<'_>, tool: &str) -> Option<String> {
        let Some(id) = text_of(stated, "terminal_id") else {
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

fn take<'a>(meta: &mut Node<'a>, name: &str) -> Option<Node<'a>> {
    let found = member(meta, name);
    remove(meta, name);
    found
}

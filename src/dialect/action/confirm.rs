//! `ask_confirmation`: permission requests of the original protocol.
//!
//! Reading, the whole `confirmation` becomes `rawInput`, the options are the dialect's own
//! outcomes, and a `tool_call` update is sent before the request. Writing, a `confirmation` is
//! built from the tool call, and the outcome of the answer is mapped to one of the options that the
//! agent offered. `permission` decides whether that answer is allowed.

use crate::message::Message;
use crate::object::object;
use crate::pending::PendingRequest;
use crate::permission::{OfferedOptions, PermissionAnswer};
use crate::pointer::own_pointer;
use crate::step::Step;
use crate::table::Way;
use crate::translator::Translator;
use crate::tree::Node;
use jsonrpc::Kind;

/// The slot that holds the number of the confirmation's tool call.
const NUMBER: &str = "acp-relay.number";

/// The slot that holds the id of the tool call that a confirmation is about.
const CALL: &str = "acp-relay.call";

/// The kinds of confirmations.
const TYPES: [&str; 5] = ["edit", "execute", "mcp", "fetch", "other"];

impl Translator {
    pub(super) fn ask_confirmation(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        match (step.way, message.kind) {
            (Way::Read, Kind::Request) => self.read_confirmation(message, step),
            (Way::Write, Kind::Request) => write_confirmation(message, step.pending),
            (Way::Read, Kind::Result) => {
                let number = step.original.json_at("/id");
                if let (Some(call), Some(number)) = (step.pending.slot(CALL), number) {
                    let call = String::from_utf8_lossy(call);
                    self.confirmed_number(&call, &String::from_utf8_lossy(&number));
                }
                read_outcome(message, step.pending);
            }
            (Way::Write, Kind::Result) => write_outcome(message, step.pending),
            _ => {}
        }
    }

    fn read_confirmation(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        self.actions.last += 1;
        let number = self.actions.last.to_string();
        let slot = (NUMBER.into(), number.as_bytes().into());
        step.pending.slots.push(slot);
        message.set_text("/toolCall/toolCallId", &number);
        let input = |name: &str| {
            let text = message.text_at(&format!("/toolCall/rawInput/{name}"));
            text.unwrap_or_default()
        };
        let words = ["description", "command", "toolDisplayName"].map(input);
        let words = words.into_iter().find(|words| !words.is_empty());
        let words = words.unwrap_or_else(|| "Tool call".into());
        let always = |name: String| {
            let words = format!("Always allow {name}");
            words.trim_end().to_owned()
        };
        let mut options = match &*input("type") {
            "edit" => vec![("alwaysAllow", always("edits".into()))],
            "execute" => vec![("alwaysAllow", always(input("rootCommand")))],
            "mcp" => vec![
                ("alwaysAllowMcpServer", always(input("serverName"))),
                ("alwaysAllowTool", always(input("toolDisplayName"))),
            ],
            _ => vec![("alwaysAllow", always(String::new()))],
        };
        options.extend([("allow", "Allow".into()), ("reject", "Reject".into())]);
        let option = |(id, name): (&str, String)| {
            let kind = match id {
                "allow" => "allow_once",
                "reject" => "reject_once",
                _ => "allow_always",
            };
            object! { "optionId": id, "name": name, "kind": kind }
        };
        let options: Vec<_> = options.into_iter().map(option).collect();
        message.set("/options", options.into());

        let [session, update] = ["/sessionId", "/toolCall"].map(|at| message.json_at(at));
        let (Some(session), Some(update)) = (session, update) else {
            return;
        };
        let mut update = Node::owned(update);
        let [variant, title] = ["/sessionUpdate", "/title"].map(own_pointer);
        // A tool call is an object, so `put` cannot be blocked.
        let _ = update.put(variant.names(), Node::string("tool_call"));
        if update.get(&title).is_none() {
            // A tool call needs a title, other than what a permission request shows of it.
            let _ = update.put(title.names(), Node::string(&words));
        }
        let made = Message::update(Node::owned(session), update);
        step.before.push(made);
    }
}

fn write_confirmation(message: &mut Message<'_>, pending: &mut PendingRequest) {
    if let Some(call) = message.text_at("/toolCall/toolCallId") {
        pending.slots.push((CALL.into(), call.into_bytes().into()));
    }
    let input = |name: &str| message.text_at(&format!("/toolCall/rawInput/{name}"));
    if input("type").is_some_and(|known| TYPES.contains(&&*known)) {
        return;
    }
    let kind = message.text_at("/toolCall/kind").unwrap_or_default();
    let made = match (&*kind, input("command"), input("url")) {
        ("edit", ..) => object! { "type": "edit" },
        ("execute", Some(command), _) => {
            let root = command.split_whitespace().next().unwrap_or_default();
            object! { "type": "execute", "command": &*command, "rootCommand": root }
        }
        ("fetch", _, Some(url)) => object! { "type": "fetch", "urls": vec![Node::from(url)] },
        _ => {
            let title = message.text_at("/toolCall/title");
            let title = title.unwrap_or_else(|| "Tool call".into());
            object! { "type": "other", "description": title }
        }
    };
    message.set("/toolCall/rawInput", made);
}

/// `{"id": 1, "outcome": "allow"}` → a canonical outcome.
fn read_outcome(message: &mut Message<'_>, pending: &PendingRequest) {
    let Some(outcome) = message.text_at("/outcome") else {
        return;
    };
    let offered = pending.offered.clone().unwrap_or_default();
    let answer = match &*outcome {
        "cancel" => PermissionAnswer::Cancelled,
        _ => PermissionAnswer::Selected(meant_option(outcome, &offered)),
    };
    message.body = Node::owned(answer.result());
    message.changed = true;
}

/// The id of the option that a word of the dialect means.
fn meant_option(outcome: String, offered: &OfferedOptions) -> String {
    // These words belong to the dialect; an option id of the same spelling may mean something else.
    let kinds: &[&str] = match &*outcome {
        "allow" => &["allow_once"],
        "reject" => &["reject_once", "reject_always"],
        // Where no option or several options allow permanently, the call is allowed once.
        other if other.starts_with("alwaysAllow") => &["allow_always", "allow_once"],
        _ => &[],
    };
    let of = |kind: &&str| {
        let mut found = offered.0.iter().filter(|offer| offer.kind == **kind);
        let named = found.clone().find(|offer| offer.id == outcome);
        named.or_else(|| found.next().filter(|_| found.next().is_none()))
    };
    match kinds.iter().find_map(of) {
        Some(offer) => offer.id.clone(),
        // The permission checks handle the rest, and never widen an answer.
        None => kinds.first().map_or(outcome, |kind| (*kind).to_owned()),
    }
}

/// A canonical outcome → `{"id": 1, "outcome": "allow"}`.
fn write_outcome(message: &mut Message<'_>, pending: &PendingRequest) {
    let is_selected = message.text_at("/outcome/outcome").as_deref() == Some("selected");
    let outcome = message.text_at("/outcome/optionId").filter(|_| is_selected);
    let number = pending.slot(NUMBER).unwrap_or(b"0").to_vec();
    let outcome = outcome.as_deref().unwrap_or("cancel");
    message.body = object! { "id": Node::owned(number), "outcome": outcome };
    message.changed = true;
}

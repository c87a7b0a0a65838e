//! `ask_confirmation`: permission requests of the original protocol.
//!
//! Reading, the whole `confirmation` becomes `rawInput`, the options are the dialect's own
//! outcomes, and a `tool_call` update is sent before the request. Writing, a `confirmation` is
//! built from the tool call, and the outcome of the answer is mapped to one of the options that the
//! agent offered. `permission` decides whether that answer is allowed.

use super::context::ActionContext;
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::permission::{OfferedOptions, PermissionAnswer};
use crate::dialect::pointer::own_pointer;
use crate::dialect::table::Way;
use crate::dialect::text;
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;
use crate::jsonrpc::Kind;

/// The slot that holds the number of the confirmation's tool call.
const NUMBER: &str = "acp-relay.number";

/// The slot that holds the id of the tool call that a confirmation is about.
const CALL: &str = "acp-relay.call";

impl Translator {
    pub(super) fn ask_confirmation<'a>(
        &mut self,
        message: &mut Message<'a>,
        pending: &mut PendingRequest,
        context: &mut ActionContext<'_, 'a>,
    ) {
        match (context.way, message.kind) {
            (Way::Read, Kind::Request) => self.confirmation_read(message, pending, context),
            (Way::Write, Kind::Request) => self.confirmation_written(message, pending),
            (Way::Read, Kind::Result) => {
                let number = context.original.get("/id");
                if let (Some(call), Some(number)) = (pending.slot(CALL), number) {
                    let call = String::from_utf8_lossy(call);
                    self.confirmed_number(&call, &String::from_utf8_lossy(&number.json()));
                }
                outcome_read(message, pending);
            }
            (Way::Write, Kind::Result) => outcome_written(message, pending),
            _ => {}
        }
    }

    fn confirmation_read<'a>(
        &mut self,
        message: &mut Message<'a>,
        pending: &mut PendingRequest,
        context: &mut ActionContext<'_, 'a>,
    ) {
        self.legacy.last += 1;
        let number = self.legacy.last.to_string();
        pending
            .slots
            .push((NUMBER.into(), number.as_bytes().into()));
        message.set("/toolCall/toolCallId", Node::string(&number));
        let text_at = |at: &str| message.text_at(at).unwrap_or_default();
        let kind = text_at("/toolCall/rawInput/type");
        let root = text_at("/toolCall/rawInput/rootCommand");
        let server = text_at("/toolCall/rawInput/serverName");
        let tool = text_at("/toolCall/rawInput/toolDisplayName");
        let words = ["description", "command", "toolDisplayName"]
            .map(|name| text_at(&format!("/toolCall/rawInput/{name}")));
        let words = words.into_iter().find(|words| !words.is_empty());
        let words = words.unwrap_or_else(|| "Tool call".into());
        let named = |name: &str| {
            if name.is_empty() {
                String::new()
            } else {
                format!(" {name}")
            }
        };
        let always = match &*kind {
            "edit" => vec![("alwaysAllow", "Always allow edits".to_owned())],
            "execute" => vec![("alwaysAllow", format!("Always allow{}", named(&root)))],
            "mcp" => vec![
                (
                    "alwaysAllowMcpServer",
                    format!("Always allow{}", named(&server)),
                ),
                ("alwaysAllowTool", format!("Always allow{}", named(&tool))),
            ],
            _ => vec![("alwaysAllow", "Always allow".to_owned())],
        };
        let option = |id: &str, name: &str, kind: &'static [u8]| {
            Node::object(vec![
                ("optionId", Node::string(id)),
                ("name", Node::string(name)),
                ("kind", Node::raw(kind)),
            ])
        };
        let mut options: Vec<_> = always
            .iter()
            .map(|(id, name)| option(id, name, b"\"allow_always\""))
            .collect();
        options.push(option("allow", "Allow", b"\"allow_once\""));
        options.push(option("reject", "Reject", b"\"reject_once\""));
        message.set("/options", Node::Array(options));

        let mut update = message.get("/toolCall").map(|look| look.to_node());
        if let Some(update) = &mut update {
            let variant = own_pointer("/sessionUpdate");
            // A tool call is an object, so `put` cannot be blocked.
            let _ = update.put(variant.names(), Node::raw(b"\"tool_call\""));
            let title = own_pointer("/title");
            if update.get(&title).is_none() {
                // A tool call needs a title, other than what a permission request shows of it.
                let _ = update.put(title.names(), Node::string(&words));
            }
        }
        let session = message.get("/sessionId").map(|look| look.to_node());
        if let (Some(session), Some(update)) = (session, update) {
            context.before.push(Message::update(session, update));
        }
    }

    fn confirmation_written(&mut self, message: &mut Message<'_>, pending: &mut PendingRequest) {
        let text_at = |at: &str| message.text_at(at);
        if let Some(call) = text_at("/toolCall/toolCallId") {
            pending.slots.push((CALL.into(), call.into_bytes().into()));
        }
        let own = message
            .get("/toolCall/rawInput")
            .map(|look| look.json().into_owned());
        let types = ["edit", "execute", "mcp", "fetch", "other"];
        let typed = own
            .as_deref()
            .and_then(|own| text::string(text::member(own, "type")?));
        if typed.is_some_and(|typed| types.contains(&&*typed)) {
            return;
        }
        let title = text_at("/toolCall/title").unwrap_or_else(|| "Tool call".into());
        let command = text_at("/toolCall/rawInput/command");
        let url = text_at("/toolCall/rawInput/url");
        let made = match (text_at("/toolCall/kind").as_deref(), command, url) {
            (Some("edit"), ..) => Node::object(vec![("type", Node::raw(b"\"edit\""))]),
            (Some("execute"), Some(command), _) => {
                let root = command
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                Node::object(vec![
                    ("type", Node::raw(b"\"execute\"")),
                    ("command", Node::string(&command)),
                    ("rootCommand", Node::string(&root)),
                ])
            }
            (Some("fetch"), _, Some(url)) => Node::object(vec![
                ("type", Node::raw(b"\"fetch\"")),
                ("urls", Node::Array(vec![Node::string(&url)])),
            ]),
            _ => Node::object(vec![
                ("type", Node::raw(b"\"other\"")),
                ("description", Node::string(&title)),
            ]),
        };
        message.set("/toolCall/rawInput", made);
    }
}

/// `{"id": 1, "outcome": "allow"}` → a canonical outcome.
fn outcome_read(message: &mut Message<'_>, pending: &PendingRequest) {
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
fn outcome_written(message: &mut Message<'_>, pending: &PendingRequest) {
    let outcome = match message.text_at("/outcome/outcome").as_deref() {
        Some("selected") => message.text_at("/outcome/optionId"),
        _ => None,
    };
    let number = pending.slot(NUMBER).unwrap_or(b"0").to_vec();
    let outcome = outcome.unwrap_or_else(|| "cancel".into());
    message.body = Node::object(vec![
        ("id", Node::owned(number)),
        ("outcome", Node::string(&outcome)),
    ]);
    message.changed = true;
}

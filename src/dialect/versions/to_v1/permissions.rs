//! Permission requests: v2 asks about a tool call, a command or nothing in particular, v1 always
//! about a tool call.

use super::answers::has_code;
use super::content::{fenced, text_item};
use super::session::Session;
use super::tools::call;
use crate::dialect::message::Message;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;
use crate::dialect::versions::exchange::{CANCELLED, Exchange};
use crate::dialect::versions::json::{array, only, set, text, value};
use crate::jsonrpc::Kind;

/// The kinds of options that v1 has, and whether they allow something.
const KINDS: [(&str, bool); 4] = [
    ("allow_once", true),
    ("allow_always", true),
    ("reject_once", false),
    ("reject_always", false),
];

/// A permission that the client was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) session: String,
    /// The ids of the options, and whether they allow something.
    offered: Vec<(String, bool)>,
    after: After,
}

/// What follows the answer.
#[derive(Debug)]
enum After {
    /// Nothing.
    Nothing,
    /// The tool call gets back its own content.
    Restore(String),
    /// The stand-in is closed.
    Close(String),
}

/// The question for the client: updates that come before it, its params, and what is kept of it.
pub(super) struct Question {
    pub(super) before: Vec<Node<'static>>,
    /// Absent when there is no option that v1 has: the agent is told that it was cancelled.
    pub(super) asked: Option<(Node<'static>, Asked)>,
}

/// Converts a request; `stand_in` is the id of a tool call that may stand for its subject.
pub(super) fn ask(
    request: &Message<'_>,
    session: &mut Session,
    stand_in: &str,
    out: &mut Exchange<'_>,
) -> Question {
    out.rule("permissions");
    let mut before = Vec::new();
    let title = text(&request.body, "title").unwrap_or_else(|| "Permission required".to_owned());
    let description = text(&request.body, "description").filter(|text| !text.is_empty());
    let subject = value(&request.body, "subject").unwrap_or(Node::Absent);
    let kind = text(&subject, "type");
    let call_of = value(&subject, "toolCall").filter(|_| kind.as_deref() == Some("tool_call"));
    let tables = &mut session.tables;
    if let Some(subject) = &call_of {
        tables
            .tools
            .update(subject, false, &mut tables.terminals, out, &mut before);
    }
    let options = array(&request.body, "options").unwrap_or_default();
    let offered: Vec<_> = options.iter().filter_map(offer).collect();
    if offered.len() < options.len() {
        let what = "options of a permission whose kinds v1 lacks";
        out.note(DialectEvent::Dropped, "permissions", what);
    }
    if offered.is_empty() {
        return Question {
            before,
            asked: None,
        };
    }
    let known = call_of
        .as_ref()
        .and_then(|subject| text(subject, "toolCallId"));
    let known = known.and_then(|id| Some((tables.tools.shown(&id, &tables.terminals)?, id)));
    let (shown, after) = match known {
        Some(((own, mut shown), id)) if own != title || description.is_some() => {
            let asked = [Some(title), description].into_iter().flatten();
            let asked = asked.collect::<Vec<_>>().join("\n\n");
            let mut content = vec![text_item(&asked)];
            content.extend(array(&shown, "content").unwrap_or_default());
            set(&mut shown, "content", Node::Array(content));
            (shown, After::Restore(id))
        }
        Some(((_, shown), _)) => (shown, After::Nothing),
        None => {
            out.note(
                DialectEvent::Emulated,
                "permissions",
                "a tool call stands for what a permission is about",
            );
            let fields = || stand_in_fields(&title, description.as_deref(), &subject);
            before.push(call("tool_call", stand_in, fields()));
            let mut shown = Node::object(vec![("toolCallId", Node::string(stand_in))]);
            for (name, field) in fields() {
                set(&mut shown, name, field);
            }
            (shown, After::Close(stand_in.to_owned()))
        }
    };
    let (options, ids) = offered.into_iter().unzip();
    let mut params = only(&request.body, &["sessionId", "_meta"]);
    set(&mut params, "toolCall", shown);
    set(&mut params, "options", Node::Array(options));
    let asked = Asked {
        session: text(&request.body, "sessionId").unwrap_or_default(),
        offered: ids,
        after,
    };
    Question {
        before,
        asked: Some((params, asked)),
    }
}

/// The client's answer as the agent gets it, and what the client is shown after it.
pub(super) fn answered<'a>(
    mut answer: Message<'a>,
    asked: &Asked,
    session: Option<&Session>,
) -> (Message<'a>, Option<Node<'static>>) {
    let mut allowed = false;
    if answer.kind == Kind::Result || has_code(&answer, CANCELLED) {
        let outcome = value(&answer.body, "outcome").unwrap_or(Node::Absent);
        let chosen = text(&outcome, "optionId")
            .filter(|_| text(&outcome, "outcome").as_deref() == Some("selected"));
        let chosen = chosen.and_then(|id| asked.offered.iter().find(|(offered, _)| *offered == id));
        let mut body = match answer.kind {
            Kind::Result => only(&answer.body, &["_meta"]),
            _ => Node::Object(Vec::new()),
        };
        if body.members().is_none() {
            body = Node::Object(Vec::new());
        }
        let outcome = match chosen {
            Some((_, allows)) => {
                allowed = *allows;
                only(&outcome, &["outcome", "optionId", "_meta"])
            }
            None => cancelled(),
        };
        set(&mut body, "outcome", outcome);
        answer.kind = Kind::Result;
        answer.body = body;
    }
    let after = match &asked.after {
        After::Nothing => None,
        After::Restore(id) => session.and_then(|session| {
            let tables = &session.tables;
            tables.tools.restored(id, &tables.terminals)
        }),
        After::Close(id) => {
            let status = if allowed { "completed" } else { "failed" };
            let status = ("status", Node::string(status));
            Some(call("tool_call_update", id, vec![status]))
        }
    };
    (answer, after)
}

/// The outcome of a request without a decision.
pub(super) fn cancelled() -> Node<'static> {
    Node::raw(br#"{"outcome":"cancelled"}"#)
}

/// An option in v1, its id, and whether it allows something.
fn offer(option: &Node<'static>) -> Option<(Node<'static>, (String, bool))> {
    let kind = text(option, "kind")?;
    let (_, allows) = KINDS.into_iter().find(|(known, _)| *known == kind)?;
    let shown = only(option, &["optionId", "name", "kind", "_meta"]);
    Some((shown, (text(option, "optionId")?, allows)))
}

/// What a stand-in says.
fn stand_in_fields(
    title: &str,
    description: Option<&str>,
    subject: &Node<'_>,
) -> Vec<(&'static str, Node<'static>)> {
    let command =
        text(subject, "command").filter(|_| text(subject, "type").as_deref() == Some("command"));
    let cwd = text(subject, "cwd");
    let shown = command.as_ref().map(|command| {
        let fenced = fenced("console", &format!("$ {command}\n"));
        match &cwd {
            Some(cwd) => format!("{fenced}\nin {cwd}"),
            None => fenced,
        }
    });
    let kind = if command.is_some() {
        "execute"
    } else {
        "other"
    };
    let mut fields = vec![
        ("title", Node::string(title)),
        ("kind", Node::string(kind)),
        ("status", Node::string("pending")),
    ];
    let parts = [description.map(str::to_owned), shown];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        let content = vec![text_item(&parts.join("\n\n"))];
        fields.push(("content", Node::Array(content)));
    }
    if let Some(command) = command {
        let mut input = vec![("command", Node::string(&command))];
        input.extend(cwd.map(|cwd| ("cwd", Node::string(&cwd))));
        fields.push(("rawInput", Node::object(input)));
    }
    fields
}

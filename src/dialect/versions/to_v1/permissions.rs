//! Permission requests: v2 asks about a tool call, a command or nothing in particular, v1 always
//! about a tool call.

use super::session::Session;
use super::tools::call;
use crate::message::Message;
use crate::object::{Json, object};
use crate::tree::Node;
use crate::versions::content::{fenced, text_item};
use crate::versions::methods::no_decision;
use crate::versions::out::{CANCELLED, Out, error_code};
use jsonrpc::Kind;

/// The kinds of options that v1 has, and whether they allow something.
const KINDS: [(&str, bool); 4] = [
    ("allow_once", true),
    ("allow_always", true),
    ("reject_once", false),
    ("reject_always", false),
];

/// A permission that the client was asked for.
#[derive(Debug)]
pub(super) struct Permission {
    pub(super) session: String,
    /// The ids of the options, and whether they allow something.
    offered: Vec<(String, bool)>,
    after: After,
}

/// What follows the answer.
#[derive(Debug)]
enum After {
    Nothing,
    /// The tool call gets back its own content.
    Restore(String),
    /// The stand-in is closed.
    Close(String),
}

/// Converts a request; `stand_in` is the id of a tool call that may stand for its subject. Returns
/// the updates that come before it, and its params with what is kept of it: none when there is no
/// option that v1 has.
pub(super) fn ask(
    request: &Message<'_>,
    session: &mut Session,
    stand_in: &str,
    out: &mut Out<'_>,
) -> (Vec<Json>, Option<(Json, Permission)>) {
    out.rule("permissions");
    let body = &request.body;
    let title = body.text("title");
    let title = title.unwrap_or_else(|| "Permission required".to_owned());
    let description = body.text("description").filter(|text| !text.is_empty());
    let subject = body.part("subject");
    let is_call = subject.says("type", "tool_call");
    let subject_call = subject.value("toolCall").filter(|_| is_call);
    let tools = &mut session.tables.tools;
    let mut before = match &subject_call {
        Some(subject) => tools.update(subject, out),
        None => Vec::new(),
    };
    let options = body.list("options").into_iter();
    let options = options.filter_map(|option| offer(&option, out));
    let (options, offered): (Vec<_>, Vec<_>) = options.unzip();
    if options.is_empty() {
        return (before, None);
    }
    let id = subject_call.and_then(|subject| subject.text("toolCallId"));
    let known = id.and_then(|id| Some((tools.shown(&id)?, id)));
    let (shown, after) = match known {
        Some(((own, mut shown), id)) if own != title || description.is_some() => {
            let asked: Vec<_> = [Some(title), description].into_iter().flatten().collect();
            let mut content = vec![text_item(&asked.join("\n\n"))];
            content.extend(shown.list("content"));
            shown.set("content", content);
            (shown, After::Restore(id))
        }
        Some(((_, shown), _)) => (shown, After::Nothing),
        None => {
            let what = "a tool call stands for what a permission is about";
            out.emulated("permissions", what);
            let shown = stood_in(stand_in, title, description, &subject);
            let mut announced = shown.clone();
            announced.set("sessionUpdate", "tool_call");
            before.push(announced);
            (shown, After::Close(stand_in.to_owned()))
        }
    };
    let mut params = body.only("sessionId");
    params.set("toolCall", shown);
    params.set("options", options);
    let permission = Permission {
        session: body.word("sessionId"),
        offered,
        after,
    };
    (before, Some((params, permission)))
}

/// The client's answer as the agent gets it, and what the client is shown after it.
pub(super) fn answered<'a>(
    mut answer: Message<'a>,
    asked: &Permission,
    session: Option<&Session>,
) -> (Message<'a>, Vec<Json>) {
    let mut allowed = false;
    if answer.kind == Kind::Result || error_code(&answer) == Some(CANCELLED) {
        let outcome = answer.body.part("outcome");
        let is_selected = outcome.says("outcome", "selected");
        let chosen = outcome.text("optionId");
        let chosen = chosen.filter(|id| is_selected && !id.is_empty());
        let mut offered = asked.offered.iter();
        let chosen = chosen.and_then(|id| offered.find(|(offered, _)| *offered == id));
        let mut body = no_decision();
        if let Some((_, allows)) = chosen {
            allowed = *allows;
            body.set("outcome", outcome.only("outcome optionId"));
        }
        if answer.kind == Kind::Result {
            body.add_meta(answer.body.value("_meta"));
        }
        answer.kind = Kind::Result;
        answer.body = body;
    }
    let after = match &asked.after {
        After::Nothing => None,
        After::Restore(id) => session.and_then(|session| session.tables.tools.restored(id)),
        After::Close(id) => {
            let status = if allowed { "completed" } else { "failed" };
            let fields = vec![("status", status.into())];
            Some(call("tool_call_update", id, fields))
        }
    };
    (answer, after.into_iter().collect())
}

/// An option in v1, with its id and whether it allows something.
fn offer(option: &Json, out: &mut Out<'_>) -> Option<(Json, (String, bool))> {
    let kind = option.word("kind");
    let known = KINDS.into_iter().find(|(known, _)| *known == kind);
    let (Some((_, allows)), Some(id)) = (known, option.text("optionId")) else {
        let what = format!("the option of a permission of kind {kind}, which v1 lacks");
        out.dropped("permissions", what);
        return None;
    };
    Some((option.only("optionId name kind"), (id, allows)))
}

/// The tool call that stands for the subject of a permission.
fn stood_in(id: &str, title: String, description: Option<String>, subject: &Node<'_>) -> Json {
    let is_command = subject.says("type", "command");
    let command = subject.text("command").filter(|_| is_command);
    let cwd = subject.text("cwd");
    let shown = command.as_ref().map(|command| {
        let fenced = fenced("console", &format!("$ {command}\n"));
        match &cwd {
            Some(cwd) => format!("{fenced}\nin {cwd}"),
            None => fenced,
        }
    });
    let parts: Vec<String> = [description, shown].into_iter().flatten().collect();
    object! {
        "toolCallId": id,
        "title": title,
        "kind": if command.is_some() { "execute" } else { "other" },
        "status": "pending",
        "content": (!parts.is_empty()).then(|| vec![text_item(&parts.join("\n\n"))]),
        "rawInput": command.map(|command| object! { "command": command, "cwd": cwd }),
    }
}

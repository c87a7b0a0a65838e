//! The members of `initialize` and its result, in both versions.

use std::borrow::Cow;

use super::exchange::{Exchange, Hop};
use super::traits::{AgentTraits, ClientTraits, NewAgentTraits, NewClientTraits, Version};
use crate::dialect::message::Message;
use crate::dialect::pointer::own_pointer;
use crate::dialect::text::JsonType;
use crate::dialect::translation::DialectEvent;
use crate::dialect::tree::Node;

/// What the agent is offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    version: Version,
    /// The members of v1 and of v2, so that the agent can use what it understands.
    both: bool,
}

/// Members of v2's capabilities of an agent that have the same shape in v1.
const SAME_OF_AGENT: [&str; 4] = ["providers", "nes", "positionEncoding", "_meta"];
/// Members of the capabilities of a client that have the same shape in both.
const SAME_OF_CLIENT: [&str; 3] = ["elicitation", "nes", "positionEncodings"];
/// Markers of a session's capabilities that have the same shape in both.
const SAME_OF_SESSION: [&str; 4] = ["delete", "additionalDirectories", "fork", "_meta"];
/// The members of the capabilities of a prompt.
const PROMPT: [&str; 3] = ["image", "audio", "embeddedContext"];

impl Offered {
    /// The version of v1 alone.
    pub(super) const PLAIN_V1: Self = Self {
        version: Version::One,
        both: false,
    };

    /// That version, with the members of both.
    pub(super) const fn hybrid(version: Version) -> Self {
        Self {
            version,
            both: true,
        }
    }
}

/// The params of a client's `initialize` as they are offered to the agent.
pub(super) fn offer(params: &Node<'static>, client: Version, offered: Offered) -> Node<'static> {
    let mut made = params.clone();
    let number: &[u8] = match offered.version {
        Version::One => b"1",
        Version::Two => b"2",
    };
    put(&mut made, "/protocolVersion", Node::raw(number));
    match client {
        Version::One => {
            let info = at(params, "/clientInfo")
                .unwrap_or_else(|| Node::raw(br#"{"name":"acp-v1-client","version":"unknown"}"#));
            put(&mut made, "/info", info);
            put(&mut made, "/capabilities", new_client_capabilities(params));
        }
        Version::Two => {
            put(
                &mut made,
                "/clientInfo",
                at(params, "/info").unwrap_or_else(|| Node::raw(b"null")),
            );
            put(
                &mut made,
                "/clientCapabilities",
                client_capabilities(params),
            );
            if !offered.both {
                made.take(own_pointer("/info").names());
                made.take(own_pointer("/capabilities").names());
            }
        }
    }
    made
}

/// The capabilities of a v1 client in v2.
fn new_client_capabilities(params: &Node<'static>) -> Node<'static> {
    let mut made = Vec::new();
    if is_true(params, "/clientCapabilities/auth/terminal") {
        made.push(("auth", Node::object(vec![("terminal", empty())])));
    }
    for name in SAME_OF_CLIENT {
        if let Some(value) = at(params, &format!("/clientCapabilities/{name}")) {
            made.push((name, value));
        }
    }
    Node::object(made)
}

/// The capabilities of a v2 client in v1: the relay shows boolean options and terminals, and hosts
/// neither files nor terminals.
fn client_capabilities(params: &Node<'static>) -> Node<'static> {
    let terminal = match at(params, "/capabilities/auth/terminal") {
        Some(value) if value.kind() == Some(JsonType::Object) => Node::raw(b"true"),
        _ => Node::raw(b"false"),
    };
    let mut made = vec![
        (
            "fs",
            Node::raw(br#"{"readTextFile":false,"writeTextFile":false}"#),
        ),
        ("terminal", Node::raw(b"false")),
        ("session", Node::raw(br#"{"configOptions":{"boolean":{}}}"#)),
        ("auth", Node::object(vec![("terminal", terminal)])),
    ];
    for name in SAME_OF_CLIENT {
        if let Some(value) = at(params, &format!("/capabilities/{name}")) {
            made.push((name, value));
        }
    }
    made.push(("_meta", Node::raw(br#"{"terminal_output":true}"#)));
    Node::object(made)
}

/// The result of a v2 agent in v1; the table has spelled the methods of authentication. `dropped` is
/// what the client offers in vain.
pub(super) fn result_to_v1<'a>(mut message: Message<'a>, dropped: &[&str], out: &mut Exchange<'a>) {
    let body = message.body.to_static();
    let has = |place: &str| marker(&body, place);
    let flag = |place: &str| match has(place) {
        true => Node::raw(b"true"),
        false => Node::raw(b"false"),
    };
    let prompt = PROMPT.map(|name| (name, flag(&format!("/capabilities/session/prompt/{name}"))));
    let mut mcp = vec![
        ("http", flag("/capabilities/session/mcp/http")),
        ("sse", Node::raw(b"false")),
    ];
    if has("/capabilities/session/mcp/acp") {
        mcp.push(("acp", Node::raw(b"true")));
    }
    let mut sessions = vec![("list", empty()), ("resume", empty()), ("close", empty())];
    sessions.extend(copies(&body, "/capabilities/session", &SAME_OF_SESSION));
    let methods = at(&body, "/authMethods").unwrap_or_else(|| Node::raw(b"[]"));
    let mut auth = Vec::new();
    if methods
        .clone()
        .items()
        .is_some_and(|items| !items.is_empty())
    {
        auth.push(("logout", empty()));
    }
    auth.extend(copies(&body, "/capabilities/auth", &["_meta"]));
    let mut capabilities = vec![
        ("loadSession", Node::raw(b"true")),
        ("promptCapabilities", Node::object(prompt.into())),
        ("mcpCapabilities", Node::object(mcp)),
        ("sessionCapabilities", Node::object(sessions)),
        ("auth", Node::object(auth)),
    ];
    capabilities.extend(copies(&body, "/capabilities", &SAME_OF_AGENT));
    let mut made = vec![
        ("protocolVersion", Node::raw(b"1")),
        ("agentCapabilities", Node::object(capabilities)),
        ("authMethods", methods),
    ];
    made.extend(at(&body, "/info").map(|info| ("agentInfo", info)));
    made.extend(at(&body, "/_meta").map(|meta| ("_meta", meta)));
    message.body = Node::object(made);
    report(&mut message, (1, 2), dropped, &[]);
    out.note(
        DialectEvent::Emulated,
        "initialize",
        "the client speaks v1 and the agent v2: messages are converted",
    );
    out.send(Hop::Other, message);
}

/// The result of a v1 agent in v2.
pub(super) fn result_to_v2<'a>(mut message: Message<'a>, out: &mut Exchange<'a>) {
    let body = message.body.to_static();
    let traits = traits_of_agent(&body);
    let mut session = Vec::new();
    let shown = |name: &&str| {
        is_true(
            &body,
            &format!("/agentCapabilities/promptCapabilities/{name}"),
        )
    };
    let prompt: Vec<_> = PROMPT
        .into_iter()
        .filter(shown)
        .map(|name| (name, empty()))
        .collect();
    if !prompt.is_empty() {
        session.push(("prompt", Node::object(prompt)));
    }
    let mut mcp = vec![("stdio", empty())];
    for name in ["http", "acp"] {
        let place = format!("/agentCapabilities/mcpCapabilities/{name}");
        if is_true(&body, &place) || marker(&body, &place) {
            mcp.push((name, empty()));
        }
    }
    session.push(("mcp", Node::object(mcp)));
    session.extend(copies(
        &body,
        "/agentCapabilities/sessionCapabilities",
        &SAME_OF_SESSION,
    ));
    let mut capabilities = vec![("session", Node::object(session))];
    if let Some(meta) = at(&body, "/agentCapabilities/auth/_meta") {
        capabilities.push(("auth", Node::object(vec![("_meta", meta)])));
    }
    capabilities.extend(copies(&body, "/agentCapabilities", &SAME_OF_AGENT));
    let info = at(&body, "/agentInfo").filter(|info| info.kind() == Some(JsonType::Object));
    let mut made = vec![
        ("protocolVersion", Node::raw(b"2")),
        (
            "info",
            info.unwrap_or_else(|| Node::raw(br#"{"name":"acp-v1-agent","version":"unknown"}"#)),
        ),
        ("capabilities", Node::object(capabilities)),
        (
            "authMethods",
            at(&body, "/authMethods").unwrap_or_else(|| Node::raw(b"[]")),
        ),
    ];
    made.extend(at(&body, "/_meta").map(|meta| ("_meta", meta)));
    message.body = Node::object(made);
    let mut emulated = Vec::new();
    for (is_there, method) in [
        (traits.list, "session/list"),
        (traits.resume, "session/resume"),
        (traits.close, "session/close"),
    ] {
        if !is_there {
            emulated.push(method);
        }
    }
    let sse = is_true(&body, "/agentCapabilities/mcpCapabilities/sse");
    let dropped: &[&str] = if sse { &["mcpCapabilities.sse"] } else { &[] };
    report(&mut message, (2, 1), dropped, &emulated);
    out.note(
        DialectEvent::Emulated,
        "initialize",
        "the client speaks v2 and the agent v1: messages are converted",
    );
    out.send(Hop::Peer, message);
}

/// States under `_meta` what the client gets.
fn report(message: &mut Message<'_>, versions: (u8, u8), dropped: &[&str], emulated: &[&str]) {
    let list = |names: &[&str]| Node::Array(names.iter().map(|name| Node::string(name)).collect());
    let number = |version: u8| Node::owned(version.to_string().into_bytes());
    let report = Node::object(vec![
        ("clientVersion", number(versions.0)),
        ("agentVersion", number(versions.1)),
        ("dropped", list(dropped)),
        ("emulated", list(emulated)),
    ]);
    message.set("/_meta/acp-relay", report);
}

/// What a v1 client has stated in its `initialize`.
pub(super) fn traits_of_client(params: &Node<'_>) -> ClientTraits {
    let has = |place: &str| marker(params, place);
    let tools = ["fs/readTextFile", "fs/writeTextFile", "terminal"].into_iter();
    let is_offered = |name: &&str| is_true(params, &format!("/clientCapabilities/{name}"));
    ClientTraits {
        boolean_options: has("/clientCapabilities/session/configOptions/boolean"),
        terminal_output: is_true(params, "/clientCapabilities/_meta/terminal_output"),
        plans: has("/clientCapabilities/plan"),
        notices: has("/clientCapabilities/session/notices"),
        compaction: has("/clientCapabilities/session/compaction"),
        // One that names no mode shows forms.
        elicitation_form: has("/clientCapabilities/elicitation/form")
            || has("/clientCapabilities/elicitation")
                && !has("/clientCapabilities/elicitation/url"),
        elicitation_url: has("/clientCapabilities/elicitation/url"),
        tools: tools.filter(is_offered).collect(),
    }
}

/// What a v2 agent has stated in its result.
pub(super) fn traits_of_new_agent(result: &Node<'_>) -> NewAgentTraits {
    NewAgentTraits {
        mcp_stdio: marker(result, "/capabilities/session/mcp/stdio"),
    }
}

/// What a v2 client has stated in its `initialize`.
pub(super) fn traits_of_new_client(params: &Node<'_>) -> NewClientTraits {
    NewClientTraits {
        forms: marker(params, "/capabilities/elicitation/form"),
        urls: marker(params, "/capabilities/elicitation/url"),
    }
}

/// What a v1 agent has stated in its result.
pub(super) fn traits_of_agent(result: &Node<'_>) -> AgentTraits {
    let session = |name: &str| {
        marker(
            result,
            &format!("/agentCapabilities/sessionCapabilities/{name}"),
        )
    };
    AgentTraits {
        load: is_true(result, "/agentCapabilities/loadSession"),
        resume: session("resume"),
        list: session("list"),
        close: session("close"),
        delete: session("delete"),
        fork: session("fork"),
        logout: marker(result, "/agentCapabilities/auth/logout"),
    }
}

/// The members of the object at `place` with these names.
fn copies(
    body: &Node<'_>,
    place: &str,
    names: &[&'static str],
) -> Vec<(&'static str, Node<'static>)> {
    let found = names
        .iter()
        .map(|name| Some((*name, at(body, &format!("{place}/{name}"))?)));
    found.flatten().collect()
}

fn at(node: &Node<'_>, place: &str) -> Option<Node<'static>> {
    let found = node.get(&own_pointer(place))?;
    match found.kind() {
        JsonType::Null => None,
        _ => Some(Node::Raw(Cow::Owned(found.json().into_owned()))),
    }
}

fn put(node: &mut Node<'static>, place: &str, value: Node<'static>) {
    // Nothing at the top of an object blocks it.
    let _ = node.put(own_pointer(place).names(), value);
}

fn is_true(node: &Node<'_>, place: &str) -> bool {
    let found = node.get(&own_pointer(place));
    found.is_some_and(|value| &*value.json() == b"true")
}

/// Whether there is an object, as a mark that something is supported.
fn marker(node: &Node<'_>, place: &str) -> bool {
    let found = node.get(&own_pointer(place));
    found.is_some_and(|value| value.kind() == JsonType::Object)
}

fn empty() -> Node<'static> {
    Node::raw(b"{}")
}

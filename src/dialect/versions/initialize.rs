//! `initialize` and its result in both versions, and what the peers have stated there as far as the
//! conversion depends on it.

use super::out::{Hop, Out};
use super::policies::{TerminalDisplay, VersionPolicies};
use crate::message::Message;
use crate::object::{Json, object};
use crate::pointer::own_pointer;
use crate::text::JsonType;
use crate::tree::Node;

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// ACP v1.
    One = 1,
    /// The draft of ACP v2.
    Two,
}

impl Version {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::One => Self::Two,
            Self::Two => Self::One,
        }
    }
}

/// The client of v1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientTraits {
    /// It shows boolean config options.
    pub(super) boolean_options: bool,
    pub(super) terminals: Display,
    /// It reads `plan_update`.
    pub(super) plans: bool,
    /// It reads `notice` updates.
    pub(super) notices: bool,
    /// It reads `compaction_*` updates.
    pub(super) compaction: bool,
    /// It reads `subagent_update`, and messages between sessions.
    pub(super) subagents: bool,
    pub(super) elicitation: Elicitation,
}

/// How a client is shown terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Display {
    /// Under `_meta`, if the terminal came with the tool call; else as text.
    Extension,
    /// As text.
    #[default]
    Text,
    /// Not at all.
    Off,
}

/// What a client asks the user for the agent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Elicitation {
    forms: bool,
    urls: bool,
}

/// The methods of a v1 agent that it may lack.
#[derive(Clone, Debug)]
pub(super) struct AgentMethods(Vec<&'static str>);

/// Capabilities: the objects in v1's and v2's that have them, how they are said, and their names.
type Capabilities = [(&'static str, &'static str, Said, &'static str)];

/// How the two versions say a capability.
#[derive(Clone, Copy)]
enum Said {
    /// In the same way.
    Same,
    /// `true` or `false` in v1, an object or nothing in v2.
    Flag,
    /// The same, but v1 may leave it out, or say it by an object.
    Mark,
}

/// Those of a client.
const OF_CLIENT: &Capabilities = &[
    ("/auth", "/auth", Said::Flag, "terminal"),
    ("", "", Said::Same, "elicitation nes positionEncodings"),
];

/// Those of an agent.
const OF_AGENT: &Capabilities = &[
    (
        "/promptCapabilities",
        "/session/prompt",
        Said::Flag,
        "image audio embeddedContext",
    ),
    ("/mcpCapabilities", "/session/mcp", Said::Flag, "http"),
    ("/mcpCapabilities", "/session/mcp", Said::Mark, "acp"),
    (
        "/sessionCapabilities",
        "/session",
        Said::Same,
        "delete additionalDirectories systemPrompt fork _meta",
    ),
    ("/auth", "/auth", Said::Same, "_meta"),
    ("", "", Said::Same, "providers nes positionEncoding _meta"),
];

/// Methods that an agent of v1 may lack, with the places of the capabilities that state them.
const OPTIONAL: [(&str, &str); 7] = [
    ("session/load", "/loadSession"),
    ("session/resume", "/sessionCapabilities/resume"),
    ("session/list", "/sessionCapabilities/list"),
    ("session/close", "/sessionCapabilities/close"),
    ("session/delete", "/sessionCapabilities/delete"),
    ("session/fork", "/sessionCapabilities/fork"),
    ("logout", "/auth/logout"),
];

/// What the relay says of itself to an agent of v1: it shows boolean options and terminals, and
/// hosts neither files nor terminals.
const RELAY: &[u8] = br#"{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false,"session":{"configOptions":{"boolean":{}}},"auth":{},"_meta":{"terminal_output":true}}"#;
/// What every agent of v2 does that has sessions.
const EVERY_AGENT: &[u8] = br#"{"loadSession":true,"promptCapabilities":{},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{"list":{},"resume":{},"close":{}},"auth":{}}"#;

impl ClientTraits {
    /// What a v1 client has stated in its `initialize`.
    pub(super) fn read(params: &Node<'_>, policies: &VersionPolicies) -> Self {
        let stated = params.part("clientCapabilities");
        let reads_terminals = is_true(&stated, "/_meta/terminal_output");
        Self {
            boolean_options: is_marked(&stated, "/session/configOptions/boolean"),
            terminals: match policies.terminals {
                TerminalDisplay::Auto if reads_terminals => Display::Extension,
                TerminalDisplay::Auto | TerminalDisplay::Text => Display::Text,
                TerminalDisplay::Off => Display::Off,
            },
            plans: is_marked(&stated, "/plan"),
            notices: is_marked(&stated, "/session/notices"),
            compaction: is_marked(&stated, "/session/compaction"),
            subagents: is_marked(&stated, "/subagents"),
            elicitation: Elicitation::read(&stated),
        }
    }
}

impl Elicitation {
    /// What the capabilities of a client state.
    pub(super) fn read(capabilities: &Node<'_>) -> Self {
        let urls = is_marked(capabilities, "/elicitation/url");
        let is_bare = is_marked(capabilities, "/elicitation") && !urls;
        Self {
            // One that names no mode shows forms.
            forms: is_bare || is_marked(capabilities, "/elicitation/form"),
            urls,
        }
    }

    /// Whether the client shows that one.
    pub(super) fn shows(self, request: &Message<'_>) -> bool {
        match request.body.text("mode").as_deref() {
            Some("form") | None => self.forms,
            Some("url") => self.urls,
            Some(_) => true,
        }
    }
}

impl AgentMethods {
    /// What a v1 agent has stated in its result.
    pub(super) fn read(result: &Node<'_>) -> Self {
        let stated = result.part("agentCapabilities");
        let known = OPTIONAL
            .into_iter()
            .filter(|(_, place)| is_there(&stated, place));
        Self(known.map(|(method, _)| method).collect())
    }

    /// Whether the agent has that method.
    pub(super) fn has(&self, method: &str) -> bool {
        self.0.contains(&method)
    }
}

/// The tools that a v1 client lets the agent use, and v2 does not have: its files and terminals.
pub(super) fn client_tools(params: &Node<'_>) -> Vec<&'static str> {
    let stated = params.part("clientCapabilities");
    let is_offered = |name: &&str| is_true(&stated, &format!("/{name}"));
    let tools = ["fs/readTextFile", "fs/writeTextFile", "terminal"];
    tools.into_iter().filter(is_offered).collect()
}

/// Whether a v2 agent has stated that it starts MCP servers by a command.
pub(super) fn starts_servers(result: &Node<'_>) -> bool {
    is_marked(result, "/capabilities/session/mcp/stdio")
}

/// The params of a client's `initialize` for an offer of that version, with the members of both so
/// that the agent can use what it understands: v1 comes alone from a client of v2.
pub(super) fn offer(params: &Json, client: Version, version: Version) -> Json {
    let mut made = params.clone();
    put(&mut made, "/protocolVersion", Some((version as i32).into()));
    match client {
        Version::One => {
            let unknown = || object! { "name": "acp-v1-client", "version": "unknown" };
            made.set("info", params.value("clientInfo").unwrap_or_else(unknown));
            let stated = params.part("clientCapabilities");
            made.set("capabilities", to_v2(OF_CLIENT, &stated, object! {}));
        }
        Version::Two => {
            let info = params.value("info");
            made.set("clientInfo", info.unwrap_or_else(|| Node::raw(b"null")));
            let stated = to_v1(OF_CLIENT, &params.part("capabilities"), Node::raw(RELAY));
            made.set("clientCapabilities", stated);
            if version == Version::One {
                made.remove("info");
                made.remove("capabilities");
            }
        }
    }
    made
}

/// The result of a v2 agent in v1; the table has spelled the methods of authentication. `dropped` is
/// what the client offers in vain.
pub(super) fn result_to_v1<'a>(mut message: Message<'a>, dropped: &[&str], out: &mut Out<'a>) {
    let body = &message.body;
    let stated = body.part("capabilities");
    let mut capabilities = to_v1(OF_AGENT, &stated, Node::raw(EVERY_AGENT));
    let methods = body.list("authMethods");
    let logout = (!methods.is_empty()).then_some(object! {});
    put(&mut capabilities, "/auth/logout", logout);
    message.body = object! {
        "protocolVersion": 1,
        "agentCapabilities": capabilities,
        "authMethods": methods,
        "agentInfo": body.value("info"),
        "_meta": body.value("_meta"),
    };
    report(&mut message, (1, 2), dropped, &[]);
    let what = "the client speaks v1 and the agent v2: messages are converted";
    out.emulated("initialize", what);
    out.sent.push((Hop::Other, message));
}

/// The result of a v1 agent in v2.
pub(super) fn result_to_v2<'a>(mut message: Message<'a>, out: &mut Out<'a>) {
    let body = &message.body;
    let known = AgentMethods::read(body);
    let stated = body.part("agentCapabilities");
    let base = Node::raw(br#"{"session":{"mcp":{"stdio":{}}}}"#);
    let info = body.value("agentInfo");
    let info = info.filter(|info| info.kind() == Some(JsonType::Object));
    let unknown = || object! { "name": "acp-v1-agent", "version": "unknown" };
    message.body = object! {
        "protocolVersion": 2,
        "info": info.unwrap_or_else(unknown),
        "capabilities": to_v2(OF_AGENT, &stated, base),
        "authMethods": body.list("authMethods"),
        "_meta": body.value("_meta"),
    };
    let mut emulated = vec!["session/list", "session/resume", "session/close"];
    emulated.retain(|method| !known.has(method));
    let mut dropped = vec!["mcpCapabilities.sse"];
    dropped.retain(|_| is_true(&stated, "/mcpCapabilities/sse"));
    report(&mut message, (2, 1), &dropped, &emulated);
    let what = "the client speaks v2 and the agent v1: messages are converted";
    out.emulated("initialize", what);
    out.sent.push((Hop::Peer, message));
}

/// Capabilities of v2 in v1, beside those in `made`.
fn to_v1(all: &Capabilities, v2: &Node<'_>, mut made: Json) -> Json {
    for (old, new, said) in places(all) {
        let has = is_marked(v2, &new);
        let value = match said {
            Said::Same => at(v2, &new),
            Said::Flag => Some(has.into()),
            Said::Mark => has.then(|| has.into()),
        };
        put(&mut made, &old, value);
    }
    made
}

/// Capabilities of v1 in v2, beside those in `made`.
fn to_v2(all: &Capabilities, v1: &Node<'_>, mut made: Json) -> Json {
    for (old, new, said) in places(all) {
        let value = match said {
            Said::Same => at(v1, &old),
            Said::Flag => is_true(v1, &old).then_some(object! {}),
            Said::Mark => is_there(v1, &old).then_some(object! {}),
        };
        put(&mut made, &new, value);
    }
    made
}

/// The place of each capability in v1's and v2's.
fn places(all: &Capabilities) -> impl Iterator<Item = (String, String, Said)> {
    all.iter().flat_map(|(old, new, said, names)| {
        let place = move |name| (format!("{old}/{name}"), format!("{new}/{name}"), *said);
        names.split(' ').map(place)
    })
}

/// States under `_meta` what the client gets.
fn report(message: &mut Message<'_>, versions: (i32, i32), dropped: &[&str], emulated: &[&str]) {
    let report = object! {
        "clientVersion": versions.0,
        "agentVersion": versions.1,
        "dropped": dropped,
        "emulated": emulated,
    };
    message.set("/_meta/acp-relay", report);
}

fn at(node: &Node<'_>, place: &str) -> Option<Json> {
    let found = node.get(&own_pointer(place))?;
    (found.kind() != JsonType::Null).then(|| Node::owned(found.json().into_owned()))
}

fn put(node: &mut Json, place: &str, value: Option<Json>) {
    if let Some(value) = value {
        // Nothing in our own objects blocks it.
        let _ = node.put(own_pointer(place).names(), value);
    }
}

fn is_true(node: &Node<'_>, place: &str) -> bool {
    let found = node.get(&own_pointer(place));
    found.is_some_and(|value| &*value.json() == b"true")
}

/// Whether something is supported, in either spelling of v1.
fn is_there(node: &Node<'_>, place: &str) -> bool {
    is_true(node, place) || is_marked(node, place)
}

/// Whether there is an object, as a mark that something is supported.
fn is_marked(node: &Node<'_>, place: &str) -> bool {
    let found = node.get(&own_pointer(place));
    found.is_some_and(|value| value.kind() == JsonType::Object)
}

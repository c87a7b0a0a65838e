//! Who speaks which version, from the `initialize` exchange.
//!
//! The client keeps what it has negotiated: a v1 client gets 1, a v2 client 2. The agent is asked
//! once, with the members of both versions, and once more on a new connection if it refuses the
//! first offer, as agents that speak only v2 do. A `2` in the answer is no proof: agents of v1 echo
//! whatever they are offered, and only those of v2 answer with an object `info`.

use std::sync::Arc;
use std::time::Instant;

use super::bridge::VersionBridge;
use super::initialize::{
    AgentMethods, ClientTraits, Elicitation, Version, client_tools, offer, starts_servers,
};
use super::out::{INTERNAL_ERROR, INVALID_PARAMS, State, error};
use super::policies::{HybridInitialize, VersionPolicies};
use super::to_v1::ToV1;
use super::to_v2::ToV2;
use crate::library::Library;
use crate::message::Message;
use crate::methods::method_of;
use crate::object::Json;
use crate::text::JsonType;
use crate::tree::Node;
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits};

/// The negotiation of one conversation.
#[derive(Debug)]
pub struct Negotiation {
    library: Arc<Library>,
    limits: Arc<Limits>,
    policies: VersionPolicies,
    /// The versions that are configured for the client and the agent.
    configured: [Option<Version>; 2],
    state: Stage,
}

/// How far it is.
#[derive(Debug)]
enum Stage {
    /// No `initialize` was seen.
    Before,
    /// The agent has been asked.
    Asked(Asked),
    /// The agent speaks no version that can be used.
    Failed,
    /// The versions of the client and the agent are known.
    Done([Version; 2]),
}

/// The open `initialize`.
#[derive(Debug)]
struct Asked {
    client: Version,
    id: IdBuf,
    params: Json,
    /// The answer to the first offer, once there was a second.
    refused: Option<Frame>,
}

/// What is done with the client's `initialize`, or with the agent's answer to it.
#[derive(Debug)]
pub enum Step {
    /// It passes.
    Pass,
    /// This passes instead.
    Send(Frame),
    /// The client gets this error.
    Refuse(Frame),
    /// The agent is started or connected anew, and this is sent to it.
    Retry(Frame),
    /// Everything passes through this from now on, beginning with the answer.
    Bridge(Box<VersionBridge>),
}

impl Negotiation {
    /// A negotiation; `configured` overrules what the client and the agent show.
    #[must_use]
    pub fn new(
        library: Arc<Library>,
        limits: Arc<Limits>,
        policies: VersionPolicies,
        configured: [Option<Version>; 2],
    ) -> Self {
        Self {
            library,
            limits,
            policies,
            configured,
            state: Stage::Before,
        }
    }

    /// Whether the agent's answer is awaited.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, Stage::Asked(_))
    }

    /// Whether the agent speaks no version that can be used.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, Stage::Failed)
    }

    /// The versions of the client and the agent, once they are known.
    #[must_use]
    pub const fn spoken(&self) -> Option<[Version; 2]> {
        match self.state {
            Stage::Done(versions) => Some(versions),
            _ => None,
        }
    }

    /// Takes the client's `initialize`.
    pub fn ask(&mut self, frame: &Frame, at: &Envelope) -> Step {
        if matches!(self.state, Stage::Asked(_) | Stage::Done(_)) {
            return Step::Pass;
        }
        let message = Message::parse(frame, at, method_of(frame, at));
        let number = version_number(&message);
        let Some(number) = number else {
            let what = "initialize needs a whole number as its protocolVersion";
            return Step::Refuse(error(&message.id, INVALID_PARAMS, what).frame(true));
        };
        let shown = match number >= 2 && is_object(&message, "/info") {
            true => Version::Two,
            false => Version::One,
        };
        let client = self.configured[0].unwrap_or(shown);
        let asked = Asked {
            client,
            id: message.id.clone(),
            params: message.body.to_static(),
            refused: None,
        };
        if self.configured[1] == Some(client) {
            self.state = Stage::Done([client; 2]);
            return Step::Pass;
        }
        let version = self.configured[1].unwrap_or(client);
        let has_both = match self.policies.hybrid_initialize {
            HybridInitialize::V2 => client == Version::Two,
            HybridInitialize::On => true,
            HybridInitialize::Off => false,
        };
        let is_plain = !has_both && version == client;
        let sent = match is_plain {
            true => Step::Pass,
            false => Step::Send(asked.frame(version)),
        };
        self.state = Stage::Asked(asked);
        sent
    }

    /// Takes an answer of the agent; `may_retry`: it can be started or connected again.
    pub fn answered(
        &mut self,
        frame: &Frame,
        at: &Envelope,
        may_retry: bool,
        now: Instant,
    ) -> Step {
        let Stage::Asked(asked) = &mut self.state else {
            return Step::Pass;
        };
        if at.id(frame) != asked.id.as_id() {
            return Step::Pass;
        }
        let message = Message::parse(frame, at, "initialize".into());
        let spoken = spoken_version(&message, self.configured[1]);
        if at.kind == Kind::Error || asked.refused.is_some() && spoken != Some(asked.client.other())
        {
            // One retry, and only where both versions are possible.
            let retry = may_retry && asked.refused.is_none() && self.configured[1].is_none();
            let (answer, stage) = match (retry, asked.refused.take()) {
                (true, _) => {
                    asked.refused = Some(frame.clone());
                    return Step::Retry(asked.frame(asked.client.other()));
                }
                (false, Some(first)) => (Step::Send(first), Stage::Failed),
                (false, None) => (Step::Pass, Stage::Before),
            };
            self.state = stage;
            return answer;
        }
        let Some(spoken) = spoken else {
            let number = message.json_at("/protocolVersion").unwrap_or_default();
            let number = String::from_utf8_lossy(&number).into_owned();
            let why = format!("the agent answers protocol version {number}");
            let id = asked.id.clone();
            return self.fail(&id, INTERNAL_ERROR, &why);
        };
        let (client, id, params) = (asked.client, asked.id.clone(), asked.params.clone());
        self.state = Stage::Done([client, spoken]);
        let state: Box<dyn State> = match (client, spoken) {
            (Version::One, Version::One) => return pass_v1(message),
            (Version::Two, Version::Two) => return Step::Pass,
            (Version::One, Version::Two) => {
                if !is_object(&message, "/capabilities/session") {
                    let why = "the agent speaks v2 and has no sessions";
                    return self.fail(&id, INTERNAL_ERROR, why);
                }
                let tools = client_tools(&params);
                if self.policies.refuse_client_tools && !tools.is_empty() {
                    let why = "the agent speaks v2 and cannot use the client's files and terminals";
                    return self.fail(&id, INVALID_PARAMS, why);
                }
                let client = ClientTraits::read(&params, &self.policies);
                Box::new(ToV1::new(client, tools, starts_servers(&message.body)))
            }
            (Version::Two, Version::One) => {
                let stated = params.part("capabilities");
                let agent = AgentMethods::read(&message.body);
                Box::new(ToV2::new(Elicitation::read(&stated), agent))
            }
        };
        let limits = Arc::clone(&self.limits);
        match VersionBridge::new(&self.library, state, self.policies, limits, &id, now) {
            Ok(bridge) => Step::Bridge(Box::new(bridge)),
            Err(fault) => {
                let why = format!("the table of v2 cannot be used: {fault}");
                self.fail(&id, INTERNAL_ERROR, &why)
            }
        }
    }

    fn fail(&mut self, id: &IdBuf, code: i32, what: &str) -> Step {
        self.state = Stage::Failed;
        Step::Send(error(id, code, what).frame(true))
    }
}

impl Asked {
    /// The client's `initialize` with an offer of that version.
    fn frame(&self, version: Version) -> Frame {
        let params = offer(&self.params, self.client, version);
        let id = self.id.clone();
        Message::new(Kind::Request, id, "initialize", params).frame(true)
    }
}

/// The `protocolVersion` that a message states.
fn version_number(message: &Message<'_>) -> Option<u64> {
    let text = message.json_at("/protocolVersion")?;
    std::str::from_utf8(&text).ok()?.parse().ok()
}

/// The version that an agent speaks, from its answer; `None` for one that cannot be used.
fn spoken_version(answer: &Message<'_>, configured: Option<Version>) -> Option<Version> {
    if configured.is_some() {
        return configured;
    }
    match version_number(answer) {
        Some(0) => None,
        Some(2..) if is_object(answer, "/info") => Some(Version::Two),
        // Some agents of v1 echo the number that they are offered, or leave it out.
        _ => Some(Version::One),
    }
}

fn is_object(message: &Message<'_>, at: &str) -> bool {
    let found = message.get(at);
    found.is_some_and(|value| value.kind() == JsonType::Object)
}

/// The answer of a v1 agent to a v1 client, which had not offered what such an agent echoes.
fn pass_v1(mut message: Message<'_>) -> Step {
    if version_number(&message).is_none_or(|number| number < 2) {
        return Step::Pass;
    }
    message.set("/protocolVersion", Node::raw(b"1"));
    Step::Send(message.frame(true))
}

//! The state of a conversation, on which `receive`, `send`, `shutdown` and the files of its parts work.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use super::batch::Batches;
use super::claims_state::Claims;
use super::dialect_options::DialectOptions;
use super::link_status::LinkStatus;
use super::login_state::Login;
use super::mcp_kinds::McpKinds;
use super::non_json::{LogRedaction, NonJsonOutput};
use super::own_answers::OwnAnswers;
use super::restart_state::Restart;
use super::session_id::SessionId;
use super::shutdown_state::Shutdown;
use super::silence_state::Silence;
use super::summary::{SessionHash, Topic, TraceAssigner};
use jsonrpc::{Frame, IdBuf, Limits, PendingRequests, Scanner, Side};
use policy::MessagePolicy;

/// One conversation: what each side may still do, and which requests are open.
#[derive(Debug)]
pub struct Conversation {
    /// When what is handled at present happened.
    pub(super) now: Instant,
    pub(super) limits: Arc<Limits>,
    pub(super) links: LinkTraits,
    /// The scanner of each side's messages.
    pub(super) scanners: [Scanner; 2],
    /// Open requests, by the side that sent them.
    pub(super) pending: [PendingRequests<OpenRequest>; 2],
    /// Requests that the relay has answered in place of a side.
    pub(super) own_answers: OwnAnswers,
    /// When each side was last heard.
    pub(super) heard: [Instant; 2],
    /// Requests whose answers do not come.
    pub(super) silence: Silence,
    pub(super) shutdown: Shutdown,
    /// The agent is started again if that is possible.
    pub(super) may_restart: bool,
    /// What is needed for that, once the agent has said that it can bring back sessions.
    pub(super) restart: Option<Box<Restart>>,
    /// Each message is looked at for that.
    pub(super) attends_restart: bool,
    pub(super) link_status: LinkStatus,
    /// The relay's part in logins of the agent.
    pub(super) login: Login,
    pub(super) dialects: DialectOptions,
    /// What the client sends before the agent has answered `initialize`, and when each was received.
    pub(super) held: VecDeque<(Frame, Instant)>,
    /// The claims of sessions, and what waits for them.
    pub(super) claims: Claims,
    /// Notifications for sessions that the client does not know yet.
    pub(super) early: EarlyUpdates,
    /// Batches of each side that wait for answers.
    pub(super) batches: [Batches; 2],
    /// Checks and changes the messages between the two; `None` when all pass unchanged.
    pub(super) policy: Option<Box<MessagePolicy>>,
    /// Chooses the trace of a request that belongs to none.
    pub(super) marker: Option<Box<dyn TraceAssigner>>,
    /// Requests of the agent may have been passed on under other ids.
    pub(super) renames_requests: bool,
    /// Requests so far, of both sides.
    pub(super) requests: u64,
    /// Answers that a translator gave in place of a side, and that are still to be handled.
    pub(super) returned: VecDeque<(Side, Frame)>,
    /// Errors of ours in place of a side, in its dialect, for requests that were too long for it.
    pub(super) refused: VecDeque<(Side, Frame)>,
    /// The longest message that each side takes, if it has announced that.
    pub(super) longest: [usize; 2],
    /// Stray lines since the agent's last JSON message.
    pub(super) strays: usize,
    /// Messages in lines with something else.
    pub(super) salvage: Salvage,
    /// What the agent printed before its first message.
    pub(super) printed: NonJsonOutput,
    /// Over-long messages, by side.
    pub(super) oversized: [usize; 2],
    /// Answers that matched no request, since that side's last answer that did.
    pub(super) unmatched: [usize; 2],
    /// What kinds of MCP servers the agent connects to, once it has said that.
    pub(super) mcp_kinds: Option<McpKinds>,
    /// The client has sent a request.
    pub(super) client_asked: bool,
    /// The agent has answered a request.
    pub(super) agent_answered: bool,
    /// The agent's address, if the client may know it.
    pub(super) agent_name: Option<String>,
}

/// A request in flight. Its answer carries no method.
#[derive(Debug)]
pub(super) struct OpenRequest {
    /// As spelled between its quotes.
    pub(super) method: SmallVec<[u8; 32]>,
    /// What it is about, for observers.
    pub(super) topic: Topic,
    pub(super) requested_at: Instant,
    /// It was never sent to the other side.
    pub(super) is_unsent: bool,
    /// An answer in a line with other text, and when it counts.
    pub(super) offered: Option<(Frame, Instant)>,
    /// An answer with the same id that was meanwhile sent to the side that owes this one's.
    pub(super) namesake: Option<Frame>,
    /// The session that a prompt, a permission, or a request about a terminal is of, or that is loaded.
    pub(super) session: Option<SessionId>,
    /// The client has cancelled it, and when.
    pub(super) cancelled: Option<(Cancelled, Instant)>,
    /// Its parameters, as far as an agent that is started again needs them.
    pub(super) kept: Option<Box<[u8]>>,
    /// The id that it had, if it was passed on under another one.
    pub(super) own_id: Option<Box<IdBuf>>,
}

/// How the client has cancelled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// The turn, by `session/cancel`.
    Turn,
    /// This request, by `$/cancel_request`.
    Request,
    /// The turn that a permission of the agent belongs to.
    Question,
}

/// The properties of the two links. By default they are network connections, both of whose
/// directions end together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTraits {
    /// The client is the program that has started the relay, on stdin and stdout. A relay that is
    /// stopped has no other one, and will not connect to the agent again.
    pub client_on_stdio: bool,
    /// The client can still receive after it has ended its stream.
    pub client_half_close: bool,
    /// We can end our stream to the agent and still receive from it.
    pub agent_half_close: bool,
    /// The agent is a process we started, whose exit we will see.
    pub agent_is_child: bool,
    /// The agent is a recording. Texts that are not messages are part of the replay and pass in
    /// both directions, and so do answers that match no request.
    pub agent_is_replayed: bool,
    /// The client cannot see the agent's exit in another way, so it is sent a notification.
    pub announce_exit: bool,
    /// The agent can be started, or connected to, once more.
    pub agent_restarts: bool,
    /// The agent is reached through another relay, whose own errors are not the agent's.
    pub agent_is_relay: bool,
}

/// The notifications that wait for the answer that names their session.
#[derive(Debug, Default)]
pub(super) struct EarlyUpdates {
    /// The sessions that the client has named, or has received the ids of.
    pub(super) known: HashSet<SessionHash>,
    /// Requests of the client that make a session and were open when it was last checked.
    pub(super) creating: Vec<IdBuf>,
    /// The sessions that answers to them have named; the client may not have been sent them yet.
    pub(super) created: Vec<SessionHash>,
    pub(super) held: Vec<(SessionHash, Frame)>,
    pub(super) bytes: usize,
    /// Until when the first of them waits.
    pub(super) until: Option<Instant>,
    /// Nothing is held any more while those requests are open.
    pub(super) passes: bool,
}

/// What was found in lines with something else and may still become messages.
#[derive(Debug, Default)]
pub(super) struct Salvage {
    /// An object that the end of a line has cut, by side: its lines so far, and until when the others
    /// are waited for.
    pub(super) cut: [Option<(Vec<u8>, Instant)>; 2],
    /// Such an object is being given up, and its lines are taken as they are.
    pub(super) gives_up: bool,
    /// When the answers in other text are due, which are kept with their requests, and their weights.
    pub(super) offers: Vec<(Instant, usize)>,
}

impl Conversation {
    /// A new conversation, which begins now.
    #[must_use]
    pub fn new(
        limits: Arc<Limits>,
        links: LinkTraits,
        dialects: DialectOptions,
        now: Instant,
    ) -> Self {
        Self {
            now,
            pending: [(); 2].map(|()| PendingRequests::new(limits.in_flight)),
            scanners: [(); 2].map(|()| Scanner::new(Arc::clone(&limits))),
            own_answers: OwnAnswers::default(),
            heard: [now; 2],
            silence: Silence::new(now),
            limits,
            links,
            shutdown: Shutdown::default(),
            may_restart: false,
            restart: None,
            attends_restart: false,
            link_status: LinkStatus::default(),
            login: Login::default(),
            dialects,
            held: VecDeque::new(),
            claims: Claims::default(),
            early: EarlyUpdates::default(),
            batches: Default::default(),
            policy: None,
            marker: None,
            renames_requests: false,
            requests: 0,
            returned: VecDeque::new(),
            refused: VecDeque::new(),
            longest: [usize::MAX; 2],
            strays: 0,
            salvage: Salvage::default(),
            printed: NonJsonOutput::default(),
            oversized: [0; 2],
            unmatched: [0; 2],
            mcp_kinds: None,
            client_asked: false,
            agent_answered: false,
            agent_name: None,
        }
    }

    /// Whether the agent has not answered `initialize` yet.
    #[must_use]
    pub fn awaits_version(&self) -> bool {
        self.dialects.awaits_version()
    }

    /// Notes whether the agent's link has proved to lead to another relay.
    pub const fn set_agent_is_relay(&mut self, is_relay: bool) {
        self.links.agent_is_relay = is_relay;
    }

    /// Sets the policy between the two sides.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Box<MessagePolicy>>) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the longest message that each side takes. A longer one is not sent, and the conversation
    /// goes on.
    #[must_use]
    pub const fn with_longest(mut self, longest: [usize; 2]) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the longest message that this side takes from now on.
    pub const fn set_longest(&mut self, to: Side, longest: usize) {
        self.longest[to as usize] = longest;
    }

    /// Sets the function that redacts secrets in what the agent printed, before it is quoted.
    #[must_use]
    pub fn with_log_redaction(mut self, redact: LogRedaction) -> Self {
        self.printed.redact = redact;
        self
    }

    /// Sets what adds a trace context to requests without one.
    #[must_use]
    pub fn with_marker(mut self, marker: Option<Box<dyn TraceAssigner>>) -> Self {
        self.marker = marker;
        self
    }

    /// Answers `initialize` with this address of the agent if the agent cannot answer it.
    #[must_use]
    pub fn with_agent_name(mut self, name: Option<String>) -> Self {
        self.agent_name = name;
        self
    }
}

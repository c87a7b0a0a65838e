//! What the client of `try` does: it introduces itself, opens a session, and sends prompts.

use std::io;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::cli::rpc_client::{ErrorAnswer, Failure, Interrupt, Performer, RpcClient};
use crate::cli::{console, exit};

/// ACP's code for a session that needs authentication first.
const AUTH_REQUIRED: i64 = -32000;

/// Time that an agent has to end a cancelled turn.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// How the last turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Outcome {
    /// `end_turn`, or there was no prompt.
    Ended,
    /// A limit of the agent.
    Limit,
    Refused,
    Cancelled,
    /// The agent wants its user to authenticate.
    LoginRequired,
}

/// How permission requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Permission {
    /// Ask the person at the terminal
    Ask,
    /// Allow each request once
    Allow,
    /// Reject each request
    Reject,
}

/// Something to show.
pub(in crate::cli) enum Shown<'a> {
    /// A method of the agent that is called.
    Call(&'a str),
    /// The result of `initialize`, the dialect that was recognised by it, and the framing that has to
    /// be chosen.
    Initialized(&'a Value, Option<&'a str>, Option<&'a str>),
    /// The agent's ways to authenticate, and its error.
    LoginRequired(&'a Value, &'a str),
    /// The result of `session/new`.
    Session(&'a Value),
    /// An update of the session.
    Update(&'a Value),
    /// The params of a permission request.
    Permission(&'a Value),
    /// A question to the person.
    Question(&'a str),
    /// The option that was chosen, if any.
    Answer(Option<&'a Value>),
    /// A method of the agent that this client does not have.
    Unsupported(&'a str),
    /// The stop reason of a turn.
    Stopped(&'a str),
}

/// What is particular to the program that runs a session.
pub(in crate::cli) trait Frontend {
    /// Shows something to the person.
    fn show(&mut self, shown: &Shown<'_>) -> io::Result<()>;

    /// Performs what no session does by itself; as that of [`Performer`].
    fn perform(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure>;
}

/// The client.
pub(in crate::cli) struct Session<'a, F> {
    frontend: &'a mut F,
    /// Cancelled when the person wants the turn to end.
    interrupted: &'a CancellationToken,
    permission: Permission,
    /// The method to log in by.
    login: Option<String>,
}

impl Outcome {
    /// The exit code.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Ended => exit::SUCCESS,
            Self::Limit => exit::VIOLATIONS,
            Self::Refused => 2,
            Self::Cancelled => 3,
            Self::LoginRequired => exit::FORBIDDEN,
        }
    }
}

impl<'a, F: Frontend> Session<'a, F> {
    pub(in crate::cli) fn new(
        frontend: &'a mut F,
        interrupted: &'a CancellationToken,
        permission: Permission,
        login: Option<String>,
    ) -> Self {
        Self {
            frontend,
            interrupted,
            permission,
            login,
        }
    }

    /// Introduces the agent, of which `about`, its dialect and its framing are known, and runs a turn
    /// with `prompt`, or turns until a person has no more.
    pub(in crate::cli) async fn run<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        mut client: RpcClient<R, W>,
        about: &Value,
        (dialect, framing): (Option<String>, Option<&str>),
        cwd: &Path,
        prompt: Option<String>,
        at_terminal: bool,
    ) -> Result<Outcome, Failure> {
        self.frontend
            .show(&Shown::Initialized(about, dialect.as_deref(), framing))?;
        if let Some(method) = self.login.take() {
            let login = json!({ "methodId": method });
            self.call(&mut client, "authenticate", login).await?;
        }
        if prompt.is_none() && !at_terminal {
            return Ok(Outcome::Ended);
        }
        let session = json!({ "cwd": cwd, "mcpServers": [] });
        let session = match self.call(&mut client, "session/new", session).await {
            Ok(session) => session,
            Err(failure) => match failure.downcast_ref::<ErrorAnswer>() {
                Some(answer) if answer.code == AUTH_REQUIRED => {
                    self.frontend.show(&Shown::LoginRequired(
                        &about["authMethods"],
                        &answer.message,
                    ))?;
                    return Ok(Outcome::LoginRequired);
                }
                _ => return Err(failure),
            },
        };
        self.frontend.show(&Shown::Session(&session))?;
        let mut next = prompt;
        let asks = next.is_none();
        let mut outcome = Outcome::Ended;
        loop {
            let Some(prompt) = next.take() else {
                match self.ask("prompt> ").await {
                    Some(text) if !text.trim().is_empty() => next = Some(text),
                    _ => return Ok(outcome),
                }
                continue;
            };
            let session = &session["sessionId"];
            outcome = self.turn(&mut client, session, &prompt).await?;
            if !asks || outcome == Outcome::Cancelled {
                return Ok(outcome);
            }
        }
    }

    /// A request before the first turn; it is given up when the person asks for that.
    pub(in crate::cli) async fn call<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        client: &mut RpcClient<R, W>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        self.frontend.show(&Shown::Call(method))?;
        let interrupted = self.interrupted;
        let answer = client.request(method, params, self, None);
        let answer = interrupted.run_until_cancelled(answer).await;
        answer.unwrap_or_else(|| Err(format!("stopped before the agent answered {method}").into()))
    }

    /// Runs one turn.
    async fn turn<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        client: &mut RpcClient<R, W>,
        session: &Value,
        prompt: &str,
    ) -> Result<Outcome, Failure> {
        self.frontend.show(&Shown::Call("session/prompt"))?;
        let content = json!([{ "type": "text", "text": prompt }]);
        let params = json!({ "sessionId": session, "prompt": content });
        let interrupt = Interrupt {
            token: self.interrupted,
            notification: ("session/cancel", json!({ "sessionId": session })),
        };
        let interrupted = self.interrupted;
        let unanswered = async {
            interrupted.cancelled().await;
            sleep(CANCEL_GRACE).await;
        };
        let done = tokio::select! {
            done = client.request("session/prompt", params, self, Some(interrupt)) => done?,
            // An agent that does not know `session/cancel` is stopped with its conversation.
            () = unanswered => json!({ "stopReason": "cancelled" }),
        };
        let reason = done["stopReason"].as_str().unwrap_or_default();
        self.frontend.show(&Shown::Stopped(reason))?;
        Ok(match reason {
            "end_turn" => Outcome::Ended,
            "refusal" => Outcome::Refused,
            "cancelled" => Outcome::Cancelled,
            _ => Outcome::Limit,
        })
    }

    /// A line of the person at the terminal; `None` at the end of the input, or if interrupted.
    async fn ask(&mut self, question: &str) -> Option<String> {
        self.frontend.show(&Shown::Question(question)).ok()?;
        let line = spawn_blocking(console::input_line);
        self.interrupted.run_until_cancelled(line).await?.ok()?
    }

    /// The answer to a permission request.
    async fn permit(&mut self, params: &Value) -> io::Result<Value> {
        let options: Vec<&Value> = params["options"].as_array().into_iter().flatten().collect();
        let of_kind = |kinds: [&str; 2]| {
            let mut found = kinds
                .iter()
                .filter_map(|kind| options.iter().find(|option| option["kind"] == *kind));
            found.next().copied()
        };
        self.frontend.show(&Shown::Permission(params))?;
        let chosen = match self.permission {
            Permission::Allow => of_kind(["allow_once", "allow_always"]),
            Permission::Reject => of_kind(["reject_once", "reject_always"]),
            Permission::Ask => loop {
                let question = format!("your answer (1-{}): ", options.len());
                let Some(line) = self.ask(&question).await else {
                    break None;
                };
                let number = line.trim().parse::<usize>().ok();
                if let Some(option) = number.and_then(|number| options.get(number.checked_sub(1)?))
                {
                    break Some(*option);
                }
            },
        };
        self.frontend.show(&Shown::Answer(chosen))?;
        Ok(match chosen {
            Some(option) => {
                json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
            }
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        })
    }
}

/// The params of `initialize`.
pub(super) fn introduction() -> Value {
    json!({
        "protocolVersion": 1,
        "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false } },
        "clientInfo": { "name": "acp-relay", "version": env!("CARGO_PKG_VERSION") },
    })
}

/// Has no methods.
impl Performer for () {
    async fn perform(&mut self, _method: &str, _params: &Value) -> Result<Option<Value>, Failure> {
        Ok(None)
    }
}

impl<F: Frontend> Performer for Session<'_, F> {
    async fn perform(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure> {
        match method {
            "session/update" => {
                self.frontend.show(&Shown::Update(&params["update"]))?;
                Ok(None)
            }
            "session/request_permission" => Ok(Some(self.permit(params).await?)),
            other => self.frontend.perform(other, params),
        }
    }
}

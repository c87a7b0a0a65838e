//! An ACP client over lines: it sends a request and waits for its result, and what the agent sends
//! meanwhile is performed by a [`Performer`].

use std::error::Error;
use std::io;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, Lines,
};
use tokio_util::sync::CancellationToken;

/// JSON-RPC's code for a method that the receiver does not have.
const METHOD_NOT_FOUND: i32 = -32601;

/// Why a client cannot continue.
pub(super) type Failure = Box<dyn Error>;

/// A client and its agent.
pub(super) struct RpcClient<R, W> {
    from: Lines<BufReader<R>>,
    to: W,
    next_id: u64,
}

/// Performs what an agent sends.
pub(super) trait Performer {
    /// The result of a request, or `None` for a method that this client does not have. The result
    /// of a notification is ignored.
    async fn perform(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Failure>;
}

/// What to send while a request is open, if a token is cancelled.
pub(super) struct Interrupt<'a> {
    pub(super) token: &'a CancellationToken,
    /// The method and the params of a notification.
    pub(super) notification: (&'static str, Value),
}

/// The error that answered a request.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {message} (error {code})")]
pub(super) struct ErrorAnswer {
    method: String,
    pub(super) code: i64,
    pub(super) message: String,
}

/// The agent's side has ended its stream.
#[derive(Debug, thiserror::Error)]
#[error("the agent's side closed before it answered {0}")]
pub(super) struct Closed(String);

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> RpcClient<R, W> {
    pub(super) fn new(from: R, to: W) -> Self {
        Self {
            from: BufReader::new(from).lines(),
            to,
            next_id: 0,
        }
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// [`ErrorAnswer`], [`Closed`], or that of the performer.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: Value,
        performer: &mut impl Performer,
        mut interrupt: Option<Interrupt<'_>>,
    ) -> Result<Value, Failure> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(json!({ "id": id, "method": method, "params": params }))
            .await?;
        loop {
            let cancelled = async {
                match &interrupt {
                    Some(interrupt) => interrupt.token.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let line = tokio::select! {
                line = self.from.next_line() => line?,
                () = cancelled => {
                    if let Some(Interrupt { notification: (method, params), .. }) = interrupt.take() {
                        self.send(json!({ "method": method, "params": params })).await?;
                    }
                    continue;
                }
            };
            let line = line.ok_or_else(|| Closed(method.to_owned()))?;
            let mut message: Value = serde_json::from_str(&line)?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), asked) => {
                    let done = performer.perform(method, &message["params"]).await?;
                    let error =
                        || json!({ "code": METHOD_NOT_FOUND, "message": "Method not found" });
                    match (asked, done) {
                        (Some(id), Some(done)) => {
                            self.send(json!({ "id": id, "result": done })).await?;
                        }
                        (Some(id), None) => {
                            self.send(json!({ "id": id, "error": error() })).await?;
                        }
                        (None, _) => {}
                    }
                }
                (None, Some(answered)) if *answered == id => match message.get_mut("result") {
                    Some(result) => return Ok(result.take()),
                    None => {
                        let error = &message["error"];
                        return Err(Box::new(ErrorAnswer {
                            method: method.to_owned(),
                            code: error["code"].as_i64().unwrap_or_default(),
                            message: error["message"].as_str().unwrap_or_default().to_owned(),
                        }));
                    }
                },
                _ => {}
            }
        }
    }

    async fn send(&mut self, mut message: Value) -> io::Result<()> {
        message["jsonrpc"] = json!("2.0");
        self.to.write_all(format!("{message}\n").as_bytes()).await?;
        self.to.flush().await
    }
}

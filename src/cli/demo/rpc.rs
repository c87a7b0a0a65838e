//! JSON-RPC over a link, one message at a time.

use std::future::poll_fn;

use serde_json::{Value, json};

use crate::jsonrpc::framing::Decoded;
use crate::jsonrpc::{CloseReason, Frame};
use crate::transport::Link;

/// Why a part of the demo cannot continue.
pub(super) type Failure = Box<dyn std::error::Error>;

/// One end of the link.
pub(super) struct RpcLink {
    link: Link,
    next_id: u64,
}

impl RpcLink {
    pub(super) fn new(link: Link) -> Self {
        Self { link, next_id: 0 }
    }

    /// The next message; `None` at the end of the stream.
    async fn receive(&mut self) -> Result<Option<Value>, Failure> {
        match poll_fn(|cx| self.link.rx.poll_next(cx)).await {
            None => Ok(None),
            Some(Ok(Decoded::Frame(frame))) => Ok(Some(serde_json::from_slice(frame.as_bytes())?)),
            Some(Ok(Decoded::Error(error))) => Err(error.to_string().into()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Sends a request and waits for its result. `perform` receives the messages of the other end
    /// meanwhile, and its value answers those that are requests.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: Value,
        perform: impl Fn(&str, &Value) -> Result<Value, Failure>,
    ) -> Result<Value, Failure> {
        let own = json!(self.next_id);
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": own, "method": method, "params": params }))
            .await?;
        loop {
            let message = self.receive().await?;
            let message = message.ok_or("the other end closed in the middle of a turn")?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), id) => {
                    let result = perform(method, &message["params"])?;
                    if let Some(id) = id {
                        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
                            .await?;
                    }
                }
                (None, Some(id)) if *id == own => {
                    return match message.get("result") {
                        Some(result) => Ok(result.clone()),
                        None => Err(format!("{method}: {}", message["error"]["message"]).into()),
                    };
                }
                _ => {}
            }
        }
    }

    /// Closes our stream and waits until the other end has exited.
    pub(super) async fn close(mut self) -> Result<crate::jsonrpc::Exit, Failure> {
        poll_fn(|cx| self.link.tx.poll_close(cx, CloseReason::Done)).await?;
        while self.receive().await?.is_some() {}
        Ok(poll_fn(|cx| self.link.guard.poll_exit(cx)).await)
    }

    async fn send(&mut self, message: &Value) -> Result<(), Failure> {
        poll_fn(|cx| self.link.tx.poll_ready(cx)).await?;
        self.link.tx.start_send(Frame::from(message.to_string()))?;
        poll_fn(|cx| self.link.tx.poll_flush(cx)).await?;
        Ok(())
    }
}

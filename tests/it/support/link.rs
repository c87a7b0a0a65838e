//! Links with async functions instead of polls.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use acp_relay::agent_connect::TRANSPORT;
use acp_relay::jsonrpc::framing::Decoded;
use acp_relay::jsonrpc::{Frame, Limits};
use acp_relay::replay;
use acp_relay::transport::{
    CloseReason, Endpoint, FrameSink, FrameStream, Link, LinkError, Listener, Setup, registry,
};
use tokio::time::timeout;

/// A test that takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `test` in a runtime of its own and fails when it hangs.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { timeout(PATIENCE, test).await.expect("the test hangs") })
}

pub(crate) fn setup() -> Setup {
    setup_with(Limits::default())
}

pub(crate) fn setup_with(limits: Limits) -> Setup {
    transport::process::set_watchdog(env!("CARGO_BIN_EXE_acp-relay").into());
    Setup {
        limits: Arc::new(limits),
        agent_connect: Some(TRANSPORT),
        replay: Some(replay::TRANSPORT),
        ..Setup::default()
    }
}

pub(crate) async fn next(rx: &mut dyn FrameStream) -> Option<Result<Decoded, LinkError>> {
    poll_fn(|cx| rx.poll_next(cx)).await
}

/// The next message, which has to be whole.
pub(crate) async fn received(rx: &mut dyn FrameStream) -> Frame {
    match next(rx).await {
        Some(Ok(Decoded::Frame(frame))) => frame,
        other => panic!("expected a message, received {other:?}"),
    }
}

pub(crate) async fn ready(tx: &mut dyn FrameSink) -> Result<(), LinkError> {
    poll_fn(|cx| tx.poll_ready(cx)).await
}

/// Sends a frame without flushing.
pub(crate) async fn feed(tx: &mut dyn FrameSink, frame: impl Into<Frame>) -> Result<(), LinkError> {
    ready(tx).await?;
    tx.start_send(frame.into())
}

pub(crate) async fn flush(tx: &mut dyn FrameSink) -> Result<(), LinkError> {
    poll_fn(|cx| tx.poll_flush(cx)).await
}

pub(crate) async fn send(tx: &mut dyn FrameSink, frame: impl Into<Frame>) -> Result<(), LinkError> {
    feed(tx, frame).await?;
    flush(tx).await
}

pub(crate) async fn close(tx: &mut dyn FrameSink, why: CloseReason) -> Result<(), LinkError> {
    poll_fn(|cx| tx.poll_close(cx, why)).await
}

pub(crate) async fn listen(at: &Endpoint, setup: &Setup) -> Box<dyn Listener> {
    match registry::listen(at, setup).await {
        Ok(listener) => listener,
        Err(fault) => panic!("{fault}"),
    }
}

pub(crate) async fn accept(listener: &mut dyn Listener) -> Link {
    let arrival = listener.accept().await.unwrap().unwrap();
    match arrival.finish.await {
        Ok(link) => link.unwrap(),
        Err(fault) => panic!("{fault}"),
    }
}

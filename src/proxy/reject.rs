//! Rejects a client for which there is no agent.
//!
//! A client that has connected sends `initialize` at once; that request is answered with the reason
//! before its link is closed, so that the editor's user sees it.

use std::time::Duration;

use tokio::time::timeout;

use jsonrpc::framing::Decoded;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{CloseReason, Envelope, Frame, Kind, Limits, Scanned, scan};
use transport::{Link, LinkError};

/// Time a client has to send its first request, and to take the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Answers the client's first request with `reason` and closes the link.
///
/// # Errors
/// When the client could not be answered.
pub async fn reject(mut client: Link, reason: &Reason, limits: &Limits) -> Result<(), LinkError> {
    let request = timeout(TIMEOUT, first_request(&mut client, limits)).await;
    let why = if reason.reason == reply::UNRECORDED {
        CloseReason::Unrecorded
    } else {
        CloseReason::PeerFailed
    };
    let answer = async {
        if let Ok(Some((frame, envelope))) = request {
            client
                .send(reply::error(envelope.id(&frame), reason))
                .await?;
        }
        client.close(why).await
    };
    let sent = timeout(TIMEOUT, answer).await.unwrap_or(Ok(()));
    // A socket that is closed with unread bytes is reset, and the answer could be lost.
    let rest = async { while let Some(Ok(_)) = client.receive().await {} };
    let _ = timeout(limits.close_grace, rest).await;
    sent
}

async fn first_request(client: &mut Link, limits: &Limits) -> Option<(Frame, Envelope)> {
    loop {
        if let Decoded::Frame(frame) = client.receive().await?.ok()?
            && let Scanned::Message(envelope) = scan(&frame, limits)
            && envelope.kind == Kind::Request
        {
            return Some((frame, envelope));
        }
    }
}

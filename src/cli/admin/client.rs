//! The HTTP client of an admin listener, for `status`, `health` and `top`.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tokio_util::either::Either;

use super::address::AdminAddress;
use super::address_file;
use crate::cli::http::Stream;

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest response that is read, in bytes.
const MAX_BODY: usize = 16 << 20;

/// A response.
pub(in crate::cli) struct AdminReply {
    pub(in crate::cli) status: u16,
    pub(in crate::cli) body: String,
}

/// The admin listener that was given, or else the only one of this user.
pub(in crate::cli) fn find(given: Option<&AdminAddress>) -> Result<AdminAddress, String> {
    if let Some(place) = given {
        return Ok(place.clone());
    }
    let found = address_file::find();
    match &found[..] {
        [] => Err(
            "no relay of yours with an admin listener is running here; start one with \
                   `acp-relay serve --admin 127.0.0.1:0 …`, or give its address: --admin ADDRESS"
                .to_owned(),
        ),
        [(_, place)] => Ok(place.clone()),
        several => {
            let list: Vec<_> = several
                .iter()
                .map(|(number, place)| format!("--admin {place} (process {number})"))
                .collect();
            Err(format!(
                "several relays are running; choose one: {}",
                list.join(", ")
            ))
        }
    }
}

/// Requests `path`.
///
/// # Errors
/// Why there is no response, as text for the user.
pub(in crate::cli) async fn fetch(place: &AdminAddress, path: &str) -> Result<AdminReply, String> {
    let reply = tokio::time::timeout(TIMEOUT, get(place, path)).await;
    let reply = reply.unwrap_or_else(|_| Err(format!("no answer within {TIMEOUT:?}")));
    reply.map_err(|why| format!("cannot query the admin listener at {place}: {why}"))
}

async fn get(place: &AdminAddress, path: &str) -> Result<AdminReply, String> {
    let describe = |error: &dyn std::fmt::Display| error.to_string();
    let (stream, host): (Stream, String) = match place {
        AdminAddress::Loopback(address) => {
            let stream = TcpStream::connect(address).await;
            (
                Either::Left(stream.map_err(|error| describe(&error))?),
                address.to_string(),
            )
        }
        AdminAddress::Unix(path) => {
            let stream = UnixStream::connect(path).await;
            (
                Either::Right(stream.map_err(|error| describe(&error))?),
                "localhost".to_owned(),
            )
        }
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| describe(&error))?;
    let request = Request::get(path)
        .header(HOST, host)
        .body(Empty::<Bytes>::new())
        .map_err(|error| describe(&error))?;
    let exchange = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| describe(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), MAX_BODY).collect().await;
        let body = body.map_err(|error| describe(&error))?.to_bytes();
        Ok(AdminReply {
            status,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        end = connection => match end {
            Ok(()) => exchange.await,
            Err(error) => Err(describe(&error)),
        },
    }
}

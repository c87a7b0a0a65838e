//! Connects to `http://`, `https://`, and elephant.ai's routes over either.

use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::halves::link;
use super::shared::{Api, Failure, Shared};
use super::stream::Stream;
use crate::transport::http::client::HttpClient;
use crate::transport::{Endpoint, HttpEndpoint, Link, OpenError, OpenErrorKind, Setup, open_error};

/// Opens a link over Streamable HTTP. The connection itself is opened by the client's `initialize`;
/// that the server is there is checked before.
pub(in crate::transport) async fn connect(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let client = HttpClient::new(to, setup)?;
    let url = client.url(&address.path)?;
    client.connect().await?;
    let connection = OnceLock::new();
    let api = Api::Streamable { url, connection };
    let shared = Shared::new(to, client, api);
    Ok(link(Arc::new(shared)))
}

/// Opens a link over elephant.ai's routes. The server drops messages for a client whose stream is
/// not open, so it is opened before anything is posted.
pub(in crate::transport) async fn connect_elephant(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let (name, path) = (client_id(to)?, address.path.trim_end_matches('/'));
    let client = HttpClient::new(to, setup)?;
    let api = Api::Elephant {
        posts: client.url(&format!("{path}/rpc?client_id={name}"))?,
        streams: client.url(&format!("{path}/sse?client_id={name}"))?,
    };
    client.connect().await?;
    let shared = Arc::new(Shared::new(to, client, api));
    let mut stream = Stream::new(&shared, None);
    let failed = |what: String| {
        OpenError::new(OpenErrorKind::Protocol, to, what)
            .with_remedy("Check the address; elephant.ai's routes are below /acp")
    };
    let answer = stream.open().await.map_err(|failure| match failure {
        Failure::Refused(refusal) if refusal.is_forbidden() => {
            OpenError::new(OpenErrorKind::Forbidden, to, refusal.text)
                .with_remedy(open_error::CHECK_TOKEN)
        }
        failure => failed(failure.to_string()),
    })?;
    let mut body = stream.events_of(answer).map_err(failed)?;
    let ready = stream.wait_ready(&mut body).await;
    ready.map_err(|why| failed(format!("its stream of messages broke off ({why})")))?;
    let ended = shared.ended.clone();
    tokio::spawn(async move { ended.run_until_cancelled_owned(stream.follow(body)).await });
    Ok(link(shared))
}

/// A unique name that cannot be guessed: a client that knows it receives the same messages.
fn client_id(to: &Endpoint) -> Result<String, OpenError> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).map_err(|_| {
        let what = "the system has no random numbers";
        OpenError::new(OpenErrorKind::System, to, what)
    })?;
    Ok(HEXLOWER.encode(&random))
}

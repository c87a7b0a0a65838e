//! Connects to `http://`, `https://`, and elephant.ai's routes over either.

use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use hyper::Uri;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::http_client::{HttpClient, Urls};
use super::link::link;
use super::shared::{Api, Shared};
use super::stream::{Opened, Stream};
use crate::transport::{
    Endpoint, HttpEndpoint, HttpProtocol, Link, OpenError, OpenErrorKind, Setup, open_error,
};

/// Opens a link to an agent behind HTTP.
pub(in crate::transport::http) async fn connect(
    to: &Endpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    match to {
        Endpoint::Http(web) if web.protocol == HttpProtocol::StreamableHttp => {
            streamable(to, web, setup).await
        }
        Endpoint::Http(web) if web.protocol == HttpProtocol::Elephant => {
            elephant(to, web, setup).await
        }
        _ => Err(OpenError::wrong_scheme(to)),
    }
}

/// The connection itself is opened by the client's `initialize`; that the server is there is
/// checked before.
async fn streamable(
    to: &Endpoint,
    address: &HttpEndpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    let url = uri(to, address, "")?;
    let urls = Urls {
        posts: url.clone(),
        streams: url,
    };
    let client = HttpClient::connect(to, address, urls, setup).await?;
    let connection = OnceLock::new();
    let shared = Shared::new(to, client, Api::Streamable { connection });
    Ok(link(Arc::new(shared)))
}

/// The server drops messages for a client whose stream is not open, so it is opened before anything
/// is posted.
async fn elephant(to: &Endpoint, address: &HttpEndpoint, setup: &Setup) -> Result<Link, OpenError> {
    let client = client_id(to)?;
    let urls = Urls {
        posts: uri(to, address, &format!("/rpc?client_id={client}"))?,
        streams: uri(to, address, &format!("/sse?client_id={client}"))?,
    };
    let http = HttpClient::connect(to, address, urls, setup).await?;
    let shared = Arc::new(Shared::new(to, http, Api::Elephant));
    let mut stream = Stream::new(&shared, None);
    let failed = |what: String| {
        OpenError::new(OpenErrorKind::Protocol, to, what)
            .with_remedy("Check the address; elephant.ai's routes are below /acp")
    };
    let mut body = match stream.open().await {
        Opened::Open(body) => body,
        Opened::Forbidden(refusal) => {
            return Err(OpenError::new(OpenErrorKind::Forbidden, to, refusal.text)
                .with_remedy(open_error::CHECK_TOKEN));
        }
        Opened::Absent(refusal) => return Err(failed(refusal.text)),
        Opened::Failed(why) | Opened::Later(why, _) | Opened::Refused(why) => {
            return Err(failed(why));
        }
    };
    let ready = stream.wait_ready(&mut body).await;
    ready.map_err(|why| failed(format!("its stream of messages broke off ({why})")))?;
    let ended = shared.ended.clone();
    tokio::spawn(async move { ended.run_until_cancelled_owned(stream.follow(body)).await });
    Ok(link(shared))
}

fn uri(to: &Endpoint, address: &HttpEndpoint, below: &str) -> Result<Uri, OpenError> {
    let scheme = if address.tls { "https" } else { "http" };
    let path = if below.is_empty() {
        &address.path
    } else {
        address.path.trim_end_matches('/')
    };
    let uri = format!("{scheme}://{}{path}{below}", address.authority());
    uri.parse().map_err(|fault| {
        let what = format!("that is not an HTTP address ({fault})");
        OpenError::new(OpenErrorKind::Usage, to, what)
    })
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

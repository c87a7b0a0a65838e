//! Connects to `http://`, `https://`, and elephant.ai's routes over either.

use std::sync::{Arc, OnceLock};

use data_encoding::HEXLOWER;
use hyper::Uri;
use ring::rand::{SecureRandom as _, SystemRandom};

use super::exchange::{Exchange, Way};
use super::link::link;
use super::site::{Places, Site};
use super::stream::{Opened, Stream};
use crate::transport::{Endpoint, Link, Manner, OpenError, OpenErrorKind, Setup, Web, failure};

/// Opens a link to an agent behind HTTP.
pub(in crate::transport::http) async fn connect(
    to: &Endpoint,
    setup: &Setup,
) -> Result<Link, OpenError> {
    match to {
        Endpoint::Web(web) if web.manner == Manner::StreamableHttp => {
            streamable(to, web, setup).await
        }
        Endpoint::Web(web) if web.manner == Manner::Elephant => elephant(to, web, setup).await,
        _ => Err(OpenError::misplaced(to)),
    }
}

/// The connection itself is opened by the client's `initialize`; that the server is there is
/// checked before.
async fn streamable(to: &Endpoint, web: &Web, setup: &Setup) -> Result<Link, OpenError> {
    let place = uri(to, web, "")?;
    let places = Places {
        posts: place.clone(),
        streams: place,
    };
    let site = Site::reach(to, web, places, setup).await?;
    let connection = OnceLock::new();
    let exchange = Exchange::new(to, site, Way::Streamable { connection });
    Ok(link(Arc::new(exchange)))
}

/// The server drops messages for a client whose stream is not open, so it is opened before anything
/// is posted.
async fn elephant(to: &Endpoint, web: &Web, setup: &Setup) -> Result<Link, OpenError> {
    let client = client_id(to)?;
    let places = Places {
        posts: uri(to, web, &format!("/rpc?client_id={client}"))?,
        streams: uri(to, web, &format!("/sse?client_id={client}"))?,
    };
    let site = Site::reach(to, web, places, setup).await?;
    let exchange = Arc::new(Exchange::new(to, site, Way::Elephant));
    let mut stream = Stream::new(&exchange, None);
    let failed = |what: String| {
        OpenError::new(OpenErrorKind::Protocol, to, what)
            .with_remedy("Check the address; elephant.ai's routes are below /acp")
    };
    let mut body = match stream.open().await {
        Opened::Open(body) => body,
        Opened::Barred(refusal) => {
            return Err(OpenError::new(OpenErrorKind::Forbidden, to, refusal.words)
                .with_remedy(failure::CHECK_TOKEN));
        }
        Opened::Absent(refusal) => return Err(failed(refusal.words)),
        Opened::Over(why) | Opened::Later(why, _) | Opened::Refused(why) => {
            return Err(failed(why));
        }
    };
    let greeted = stream.greeted(&mut body).await;
    greeted.map_err(|why| failed(format!("its stream of messages broke off ({why})")))?;
    let over = exchange.over.clone();
    tokio::spawn(async move { over.run_until_cancelled_owned(stream.follow(body)).await });
    Ok(link(exchange))
}

fn uri(to: &Endpoint, web: &Web, below: &str) -> Result<Uri, OpenError> {
    let scheme = if web.tls { "https" } else { "http" };
    let path = if below.is_empty() {
        &web.path
    } else {
        web.path.trim_end_matches('/')
    };
    let uri = format!("{scheme}://{}{path}{below}", web.authority());
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

//! Two handlers on one port, each for its own paths.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use tokio::net::TcpStream;

use super::answer::{Answer, Content, Telling};
use super::caller::Caller;
use super::listen::Served;
use crate::transport::{Setup, Worker, Workers};

/// Two handlers on one port.
pub(in crate::transport) struct Beside<A, B> {
    /// The owner of the port: it also refuses the paths that neither handler serves.
    pub(in crate::transport) host: Arc<A>,
    /// The second handler.
    pub(in crate::transport) lodger: Arc<B>,
    /// Whether a path belongs to the second handler.
    pub(in crate::transport) is_lodgers: fn(&A, &B, &str) -> bool,
}

/// The body stream of either handler.
#[derive(Debug)]
pub(in crate::transport) enum Either<A, B> {
    Host(A),
    Lodger(B),
}

impl<A: Served, B: Served> Served for Beside<A, B> {
    type Telling = Either<A::Telling, B::Telling>;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer<Self::Telling>, Infallible>> + Send + 'static {
        let for_lodger = (self.is_lodgers)(&self.host, &self.lodger, request.uri().path());
        // The handler is called at once, because requests have an order.
        let (hosts, lodgers) = if for_lodger {
            (None, Some(self.lodger.clone().answer(request, caller)))
        } else {
            (Some(self.host.clone().answer(request, caller)), None)
        };
        async move {
            match (hosts, lodgers) {
                (Some(answer), _) => Ok(answer.await?.map(|content| within(content, Either::Host))),
                (_, Some(answer)) => {
                    Ok(answer.await?.map(|content| within(content, Either::Lodger)))
                }
                (None, None) => unreachable!("one of them was asked"),
            }
        }
    }

    async fn seat(&self, stream: &TcpStream, workers: &Workers) -> Worker {
        self.host.seat(stream, workers).await
    }

    fn renew(&self, setup: &Setup) {
        self.host.renew(setup);
        self.lodger.renew(setup);
    }

    async fn ended(&self) {
        tokio::join!(self.host.ended(), self.lodger.ended());
    }
}

impl<A: Telling, B: Telling> Telling for Either<A, B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Host(telling) => telling.poll(cx),
            Self::Lodger(telling) => telling.poll(cx),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Host(telling) => telling.is_empty(),
            Self::Lodger(telling) => telling.is_empty(),
        }
    }
}

fn within<E, F>(content: Content<E>, wrap: impl FnOnce(E) -> F) -> Content<F> {
    match content {
        Content::Nothing => Content::Nothing,
        Content::Text(text) => Content::Text(text),
        Content::Told(telling) => Content::Told(wrap(telling)),
    }
}

//! Two handlers on one port, each for its own paths.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Request;
use hyper::body::Incoming;
use tokio::net::TcpStream;

use super::answer::{Answer, BodyStream, Content};
use super::caller::Caller;
use super::listen::Handler;
use crate::transport::{Setup, Worker, Workers};

/// Two handlers on one port.
pub(in crate::transport) struct EitherHandler<A, B> {
    /// The owner of the port: it also refuses the paths that neither handler serves.
    pub(in crate::transport) main: Arc<A>,
    /// The second handler.
    pub(in crate::transport) other: Arc<B>,
    /// Whether a path belongs to the second handler.
    pub(in crate::transport) is_for_other: fn(&A, &B, &str) -> bool,
}

/// The body stream of either handler.
#[derive(Debug)]
pub(in crate::transport) enum EitherStream<A, B> {
    Main(A),
    Other(B),
}

impl<A: Handler, B: Handler> Handler for EitherHandler<A, B> {
    type Stream = EitherStream<A::Stream, B::Stream>;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer<Self::Stream>, Infallible>> + Send + 'static {
        let for_other = (self.is_for_other)(&self.main, &self.other, request.uri().path());
        // The handler is called at once, because requests have an order.
        let (main, other) = if for_other {
            (None, Some(self.other.clone().answer(request, caller)))
        } else {
            (Some(self.main.clone().answer(request, caller)), None)
        };
        async move {
            match (main, other) {
                (Some(answer), _) => Ok(answer
                    .await?
                    .map(|content| map_content(content, EitherStream::Main))),
                (_, Some(answer)) => Ok(answer
                    .await?
                    .map(|content| map_content(content, EitherStream::Other))),
                (None, None) => unreachable!("one of them was asked"),
            }
        }
    }

    async fn pick_worker(&self, stream: &TcpStream, workers: &Workers) -> Worker {
        self.main.pick_worker(stream, workers).await
    }

    fn renew(&self, setup: &Setup) {
        self.main.renew(setup);
        self.other.renew(setup);
    }

    async fn ended(&self) {
        tokio::join!(self.main.ended(), self.other.ended());
    }
}

impl<A: BodyStream, B: BodyStream> BodyStream for EitherStream<A, B> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Main(stream) => stream.poll(cx),
            Self::Other(stream) => stream.poll(cx),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Main(stream) => stream.is_empty(),
            Self::Other(stream) => stream.is_empty(),
        }
    }
}

fn map_content<E, F>(content: Content<E>, wrap: impl FnOnce(E) -> F) -> Content<F> {
    match content {
        Content::Nothing => Content::Nothing,
        Content::Text(text) => Content::Text(text),
        Content::Stream(stream) => Content::Stream(wrap(stream)),
    }
}

//! How the client's end of a link gets its attachments.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep, sleep, timeout};
use uuid::Uuid;

use super::network::NetworkWatch;
use super::wire::{broken, encode};
use crate::{Link, LinkError, OpenError, OpenErrorKind};
use jsonrpc::framing::Decoded;
use jsonrpc::{Frame, Limits, printable};
use link::{
    Backoff, CLIENT_DIED, End, Header, Hello, Refusal, RefusalCode, ResumeKey, WINDOW, Welcome,
};

/// How much higher the numbers of attachments are that another process begins.
const LATER: u64 = 1 << 32;
/// Time to open one and be accepted.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two warnings of an outage that lasts.
const REMINDER: Duration = Duration::from_secs(60);

/// Opens a connection that carries a link, and may send this greeting with it; `None` if the server
/// does not know links.
pub type Dial =
    Arc<dyn Fn(Frame) -> BoxFuture<'static, Result<Option<Carrier>, OpenError>> + Send + Sync>;

/// A connection for a link.
#[derive(Debug)]
pub struct Carrier {
    /// The connection.
    pub link: Link,
    /// Whether the greeting was sent when it was opened.
    pub is_greeted: bool,
}

/// A connection, and the greeting on it.
type Greeted = (Link, Box<Welcome>);

/// Gets the next attachment of a link.
pub(super) struct Dialer {
    dial: Dial,
    limits: Arc<Limits>,
    pub(super) known: Known,
    backoff: Backoff,
    /// Why the last connection was lost, and when a warning was last logged.
    lost: String,
    warned: Instant,
    /// How long connections may be refused before the relay there counts as gone, and since when
    /// all were.
    refused_grace: Option<Duration>,
    refused_since: Option<Instant>,
    step: Step,
    network: NetworkWatch,
}

/// What the peer has said of the link.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Known {
    link: String,
    epoch: String,
    key: ResumeKey,
    /// The number of the last attempt.
    generation: u64,
}

enum Step {
    /// Nothing is due.
    Attached,
    Waiting(Pin<Box<Sleep>>),
    Attempt(BoxFuture<'static, Result<Greeted, Fault>>),
}

/// Why there is no attachment.
enum Fault {
    /// It is tried again, not before a time that the peer has asked for.
    Again(String, Option<Duration>),
    /// Nothing listens there; it is tried again.
    Refused(String),
    /// It is not tried again.
    Never(LinkError),
}

impl Dialer {
    /// Greets the server of a new link on its first connection; the next ones are opened by `dial`.
    pub(super) async fn begin_link(
        carrier: Carrier,
        dial: Dial,
        limits: &Arc<Limits>,
        refused_grace: Duration,
    ) -> Result<(Self, Link, Welcome), (OpenErrorKind, String)> {
        let greeted = greet(carrier, first_greeting(limits), true, limits.handshake).await;
        let (carrier, welcome) = greeted.map_err(|fault| match fault {
            // The server has asked to try again later.
            Fault::Again(what, Some(_)) => (OpenErrorKind::Overloaded, what),
            Fault::Again(what, None) | Fault::Refused(what) => (OpenErrorKind::Lost, what),
            Fault::Never(error) => (OpenErrorKind::Unavailable, error.to_string()),
        })?;
        let dialer = Self {
            dial,
            limits: Arc::clone(limits),
            known: Known {
                link: welcome.link.clone(),
                epoch: welcome.epoch.clone(),
                key: welcome.key.clone(),
                generation: 1,
            },
            backoff: Backoff::default(),
            lost: String::new(),
            warned: Instant::now(),
            refused_grace: welcome.direct.then_some(refused_grace),
            refused_since: None,
            step: Step::Attached,
            network: NetworkWatch::new(),
        };
        Ok((dialer, carrier, *welcome))
    }

    /// The attachment was lost: the next one is to be gotten, soon if it was good.
    pub(super) fn restart(&mut self, why: &str, was_good: bool) {
        self.lost = why.to_owned();
        self.warned = Instant::now();
        self.refused_since = None;
        if was_good {
            self.backoff.reset();
        }
        self.wait(None);
    }

    /// Gets the next attachment of an end that expects message `rx` next.
    pub(super) fn poll(
        &mut self,
        rx: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Greeted, LinkError>> {
        if self.poll_network(cx) && !matches!(self.step, Step::Attached) {
            self.begin(rx);
        }
        loop {
            match &mut self.step {
                Step::Attached => self.wait(None),
                Step::Waiting(timer) => {
                    ready!(timer.as_mut().poll(cx));
                    self.begin(rx);
                }
                Step::Attempt(attempt) => match ready!(attempt.as_mut().poll(cx)) {
                    Ok((link, welcome)) => {
                        self.step = Step::Attached;
                        self.known.key = welcome.key.clone();
                        return Poll::Ready(Ok((link, welcome)));
                    }
                    Err(Fault::Again(why, after)) => {
                        self.refused_since = None;
                        self.try_again(&why, after);
                    }
                    Err(Fault::Refused(why)) => {
                        let since = *self.refused_since.get_or_insert_with(Instant::now);
                        if self
                            .refused_grace
                            .is_some_and(|grace| since.elapsed() >= grace)
                        {
                            return Poll::Ready(Err(self.gone(&why)));
                        }
                        self.try_again(&why, None);
                    }
                    Err(Fault::Never(error)) => return Poll::Ready(Err(error)),
                },
            }
        }
    }

    /// Whether the network may have changed since the last call.
    pub(super) fn poll_network(&mut self, cx: &mut Context<'_>) -> bool {
        self.network.poll(cx)
    }

    fn try_again(&mut self, why: &str, after: Option<Duration>) {
        if self.warned.elapsed() >= REMINDER {
            self.warned = Instant::now();
            tracing::warn!("not connected again yet, and the agent is awaited: {why}");
        } else {
            tracing::info!("not connected again yet: {why}");
        }
        self.wait(after);
    }

    /// The relay there has ended, and with it the link.
    fn gone(&self, why: &str) -> LinkError {
        let grace = self.refused_grace.unwrap_or_default();
        let what = format!(
            "{why}, for {grace:?} (--limit refused-grace): the relay there has ended, and the agent \
             with it; it was lost before: {}",
            self.lost
        );
        let (context, source) = ("connecting again", io::Error::other(what));
        LinkError::Io { context, source }
    }

    fn wait(&mut self, after: Option<Duration>) {
        let mut wait = pause(&mut self.backoff, after);
        if let (Some(grace), Some(since)) = (self.refused_grace, self.refused_since) {
            wait = wait.min(grace.saturating_sub(since.elapsed()));
        }
        self.step = Step::Waiting(Box::pin(sleep(wait)));
    }

    fn begin(&mut self, rx: u64) {
        self.known.generation += 1;
        let hello = Hello {
            max: Some(self.limits.frame_from_network as u64),
            ..self.known.hello(rx, WINDOW)
        };
        let hello = encode(&Header::Hello(Box::new(hello)));
        let (connection, within) = ((self.dial)(hello.clone()), self.limits.handshake);
        let lost = self.lost.clone();
        self.step = Step::Attempt(Box::pin(async move {
            match connection.await {
                Ok(Some(carrier)) => {
                    let greeted = greet(carrier, hello, false, within).await;
                    greeted.map_err(|fault| match fault {
                        Fault::Never(LinkError::Io { context, source }) => {
                            let what = format!("{source}; it was lost before: {lost}");
                            let source = io::Error::other(what);
                            Fault::Never(LinkError::Io { context, source })
                        }
                        fault => fault,
                    })
                }
                Ok(None) => Err(Fault::Never(LinkError::Unavailable(
                    "the server there keeps no links any more".to_owned(),
                ))),
                Err(error) if error.kind == OpenErrorKind::Forbidden => {
                    Err(Fault::Never(LinkError::Forbidden(error.reason())))
                }
                Err(error) if error.is_refused() => Err(Fault::Refused(error.what)),
                Err(error) => Err(Fault::Again(error.to_string(), None)),
            }
        }));
    }
}

/// What the client of a new link sends first.
pub(crate) fn first_greeting(limits: &Limits) -> Frame {
    encode(&Header::Hello(Box::new(Hello {
        v: vec![1],
        generation: 1,
        rx: 1,
        window: WINDOW,
        max: Some(limits.frame_from_network as u64),
        ..Hello::default()
    })))
}

/// The time to the next attempt.
pub(crate) fn pause(backoff: &mut Backoff, after: Option<Duration>) -> Duration {
    let random = f64::from(Uuid::new_v4().as_bytes()[0]) / 255.0;
    backoff.next(random, after)
}

impl From<Link> for Carrier {
    fn from(link: Link) -> Self {
        Self {
            link,
            is_greeted: false,
        }
    }
}

impl Known {
    fn hello(&self, rx: u64, window: u64) -> Hello {
        Hello {
            v: vec![1],
            link: Some(self.link.clone()),
            epoch: Some(self.epoch.clone()),
            generation: self.generation,
            rx,
            key: Some(self.key.clone()),
            window,
            max: None,
        }
    }
}

/// Ends a link whose client was killed, over a new connection. Whether that is done, or cannot be.
pub(crate) async fn end_link(carrier: Link, known: &mut Known) -> bool {
    // The client may have begun attachments that it has not reported to this process.
    known.generation += LATER;
    let hello = encode(&Header::Hello(Box::new(known.hello(0, 0))));
    let (mut carrier, _) = match greet(carrier.into(), hello, false, END_TIMEOUT).await {
        Ok(greeted) => greeted,
        Err(Fault::Again(..) | Fault::Refused(_)) => return false,
        Err(Fault::Never(_)) => return true,
    };
    let (code, reason) = (1001, CLIENT_DIED.to_owned());
    let end = encode(&Header::End(Box::new(End { code, reason })));
    if carrier.send(end).await.is_err() {
        return false;
    }
    while let Some(Ok(Decoded::Frame(frame))) = carrier.receive().await {
        if matches!(Header::read(frame.as_bytes()), Ok((Header::End(_), _))) {
            return true;
        }
    }
    // Another attempt shows whether it has arrived.
    false
}

/// Greets the peer on a new connection, of a new link or of one that continues.
async fn greet(
    carrier: Carrier,
    hello: Frame,
    is_new: bool,
    within: Duration,
) -> Result<Greeted, Fault> {
    let Carrier {
        link: mut carrier,
        is_greeted,
    } = carrier;
    let lost = |error: LinkError| Fault::Again(error.to_string(), None);
    let greeting = async {
        if !is_greeted {
            carrier.send(hello).await.map_err(lost)?;
        }
        match carrier.receive().await {
            Some(Ok(Decoded::Frame(frame))) => Ok(frame),
            Some(Ok(Decoded::Error(error))) => Err(Fault::Again(error.to_string(), None)),
            Some(Err(error)) => Err(lost(error)),
            None => Err(Fault::Again("the connection has ended".to_owned(), None)),
        }
    };
    let silent = |_| {
        Err(Fault::Again(
            "no greeting has come in time".to_owned(),
            None,
        ))
    };
    let answer = timeout(within, greeting).await.unwrap_or_else(silent)?;
    match Header::read(answer.as_bytes()) {
        Ok((Header::Welcome(welcome), _)) if welcome.resumed != is_new => Ok((carrier, welcome)),
        Ok((Header::Refuse(refusal), _)) => Err(refused(*refusal)),
        Ok(_) => Err(Fault::Never(broken("the greeting was not answered"))),
        Err(error) => Err(Fault::Never(broken(error))),
    }
}

fn refused(refusal: Refusal) -> Fault {
    let Refusal {
        code,
        retry_after_ms,
        detail,
        ..
    } = refusal;
    let detail = printable(detail.as_bytes());
    let after = retry_after_ms.map(Duration::from_millis);
    match code {
        RefusalCode::Busy | RefusalCode::Limit => Fault::Again(detail, after),
        _ if after.is_some() => Fault::Again(detail, after),
        RefusalCode::Auth => Fault::Never(LinkError::Forbidden(detail)),
        _ => Fault::Never(LinkError::Io {
            context: "connecting again",
            source: io::Error::other(detail),
        }),
    }
}

jsonrpc::opaque_debug!(Dialer);

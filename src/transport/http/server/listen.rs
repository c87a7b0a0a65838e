//! Starts serving ACP at a port: the service that answers requests, and a task that applies the
//! time limits of connections.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::answer::{Answer, Behind};
use super::service::Service;
use super::{routes, seat};
use crate::transport::http::port::caller::Caller;
use crate::transport::http::port::{Port, Served};
use crate::transport::{Worker, Workers};

/// Serves ACP at a port until the port is done, and returns the service.
pub(in crate::transport::http) fn serve(port: &Arc<Port>) -> Arc<Service> {
    let service = Arc::new(Service::new(port));
    tokio::spawn(mend(service.clone()));
    service
}

impl Served for Service {
    type Telling = Behind;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer, Infallible>> + Send + 'static {
        routes::answer(self, request, caller)
    }

    async fn seat(&self, stream: &TcpStream, workers: &Workers) -> Worker {
        seat::seat(stream, &self.register, workers).await
    }

    async fn ended(&self) {
        loop {
            let gone = self.register.gone.notified();
            if self.register.is_empty() {
                return;
            }
            gone.await;
        }
    }
}

/// Applies the time limits of connections periodically.
async fn mend(service: Arc<Service>) {
    let limits = &service.port.limits;
    let shortest = limits
        .http_unopened
        .min(limits.http_stall)
        .min(limits.http_grace);
    let often = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut ticks = interval(often);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => service.register.mend(Instant::now()),
            () = service.port.done.cancelled() => return,
        }
    }
}

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

use super::answer::{Answer, ResponseStream};
use super::service::AcpService;
use super::{routes, worker_choice};
use crate::transport::http::port::caller::Caller;
use crate::transport::http::port::{Handler, Port};
use crate::transport::{Worker, Workers};

/// Serves ACP at a port until the port is done, and returns the service.
pub(in crate::transport::http) fn serve(port: &Arc<Port>) -> Arc<AcpService> {
    let service = Arc::new(AcpService::new(port));
    tokio::spawn(expire(service.clone()));
    service
}

impl Handler for AcpService {
    type Stream = ResponseStream;

    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> impl Future<Output = Result<Answer, Infallible>> + Send + 'static {
        routes::answer(self, request, caller)
    }

    async fn pick_worker(&self, stream: &TcpStream, workers: &Workers) -> Worker {
        worker_choice::choose_worker(stream, &self.connections, workers).await
    }

    async fn ended(&self) {
        loop {
            let removed = self.connections.removed.notified();
            if self.connections.is_empty() {
                return;
            }
            removed.await;
        }
    }
}

/// Applies the time limits of connections periodically.
async fn expire(service: Arc<AcpService>) {
    let limits = &service.port.limits;
    let shortest = limits
        .http_unopened
        .min(limits.http_stall)
        .min(limits.http_grace);
    let period = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => service.connections.expire(Instant::now()),
            () = service.port.done.cancelled() => return,
        }
    }
}

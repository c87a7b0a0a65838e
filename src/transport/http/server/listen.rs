//! Starts serving ACP at a port: the handler of its requests, and a task that applies the time
//! limits of connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::routes::AcpHandler;
use super::service::AcpService;
use crate::transport::http::port::{HttpService, Port};

/// Serves ACP at a port until the port is done, and returns the service that answers its requests.
pub(in crate::transport::http) fn serve(port: &Arc<Port>) -> Arc<dyn HttpService> {
    let service = Arc::new(AcpService::new(port));
    tokio::spawn(expire(service.clone()));
    Arc::new(AcpHandler::new(service))
}

/// Applies the time limits of connections periodically.
async fn expire(service: Arc<AcpService>) {
    let limits = &service.port.limits;
    let shortest = limits
        .http_stream_open
        .min(limits.http_write_timeout)
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

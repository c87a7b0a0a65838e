//! Serves ACP on an HTTP listener, and beside it the service of a module above this one where one is
//! configured; a task applies the time limits of connections.
//!
//! # Why
//!
//! **ACP's own paths go first.** Agent Connect may be served below `/`, and has `/agents/…` as
//! well; none of its paths ends as ACP's do.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::routes::AcpHandler;
use super::service::AcpService;
use crate::transport::http::port::{HttpService, ServeBeside, bind};
use crate::transport::{Endpoint, Listener, OpenError, Setup};

/// Binds an HTTP endpoint and serves ACP there.
pub(in crate::transport) async fn listen(
    at: &Endpoint,
    setup: &Setup,
) -> Result<Box<dyn Listener>, OpenError> {
    let bound = bind(at, setup).await?;
    let service = Arc::new(AcpService::new(&bound.port));
    let beside = match setup.extensions.get::<ServeBeside>() {
        Some(beside) => beside.0(&bound.port)?,
        None => None,
    };
    tokio::spawn(expire(service.clone()));
    let main: Arc<dyn HttpService> = Arc::new(AcpHandler::new(service));
    Ok(bound.serve_with([main].into_iter().chain(beside).collect()))
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

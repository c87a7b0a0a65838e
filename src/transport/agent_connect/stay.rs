//! Access of a client while it waits or streams: it ends when its credentials become invalid.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::agents::Asker;
use super::routes::Service;
use crate::agent_connect::fault::Fault;
use crate::auth::{Gate, Principal};
use crate::transport::moment;

/// The access of an authenticated client.
pub(super) struct Stay {
    gate: Gate,
    principal: Arc<Principal>,
    /// Interval between checks of the credentials.
    recheck: Duration,
    /// Interval between keep-alive comments.
    pub(super) sign_of_life: Duration,
}

impl Stay {
    pub(super) fn of(service: &Service, asker: &Asker) -> Self {
        Self {
            gate: service.port.rules().gate.clone(),
            principal: asker.principal.clone(),
            recheck: service.port.limits.recheck,
            sign_of_life: service.port.limits.http_keepalive,
        }
    }

    /// Waits until the access ends. Cancel-safe.
    pub(super) async fn over(&self) {
        if self.principal.key.is_none() && self.principal.expires.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(self.recheck).await;
            if !self.gate.still_admits(&self.principal, moment()) {
                return;
            }
        }
    }

    /// Runs `waiting` while the access lasts.
    pub(super) async fn during<T>(
        &self,
        waiting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::select! {
            waited = waiting => waited,
            () = self.over() => Err(Fault {
                status: 401,
                what: format!("{} is no longer authorized", self.principal).into(),
            }),
        }
    }
}

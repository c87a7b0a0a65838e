//! Access of a client while it waits or streams: it ends when its credentials become invalid.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::agents::Requester;
use crate::agent_connect::api::api_error::ApiError;
use crate::auth::{Gate, Principal};
use crate::transport::current_time;
use crate::transport::http::port::Port;

/// The access of an authenticated client.
pub(super) struct AccessPermit {
    gate: Gate,
    principal: Arc<Principal>,
    /// Interval between checks of the credentials.
    recheck: Duration,
    /// Interval between keep-alive comments.
    pub(super) keepalive: Duration,
}

impl AccessPermit {
    pub(super) fn new(port: &Port, requester: &Requester) -> Self {
        Self {
            gate: port.rules().gate.clone(),
            principal: requester.principal.clone(),
            recheck: port.limits.credential_check,
            keepalive: port.limits.http_keepalive,
        }
    }

    /// Waits until the access ends. Cancel-safe.
    pub(super) async fn expired(&self) {
        if self.principal.key.is_none() && self.principal.expires.is_none() {
            return std::future::pending().await;
        }
        loop {
            sleep(self.recheck).await;
            if !self.gate.is_still_valid(&self.principal, current_time()) {
                return;
            }
        }
    }

    /// Runs `waiting` while the access lasts.
    pub(super) async fn while_valid<T>(
        &self,
        waiting: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        tokio::select! {
            waited = waiting => waited,
            () = self.expired() => Err(ApiError {
                status: 401,
                message: format!("{} is no longer authorized", self.principal).into(),
            }),
        }
    }
}

//! What whoever started us is told of our state: systemd, by sd_notify(3).
//!
//! Nothing is said where nobody asked for it (`NOTIFY_SOCKET`).

use sd_notify::NotifyState;

/// All listeners are open.
pub(super) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The configuration file is being read again. [`ready`] follows.
pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "there is no time to tell the service manager"),
    }
}

/// The end has begun.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("draining")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}

//! Accepts the clients of one listener. `server` serves them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument;

use super::house::House;
use super::roster::Station;
use crate::observe::metrics::Transport;
use crate::transport::{Arrival, Endpoint, Listener};

/// Time to wait before accepting again when the operating system refuses (no descriptors left).
const BREATHER: Duration = Duration::from_millis(100);

/// Receives the result of the conversation on our own stdio, which is our exit code.
pub(super) type Report = mpsc::Sender<ExitCode>;

/// Accepts clients until there are no more, the listener is removed (`state` is closed), or the
/// relay is forced to stop. After a stop request the listener stays open for `Limits::drain_min`.
pub(super) async fn receive(
    house: Arc<House>,
    mut listener: Box<dyn Listener>,
    mut station: watch::Receiver<Arc<Station>>,
    report: Report,
) {
    let address = listener.address();
    let stdio = address == Endpoint::Stdio;
    let door = Transport::of_scheme(address.scheme());
    let mut until: Option<Instant> = None;
    loop {
        let arrival = tokio::select! {
            arrival = listener.accept() => arrival,
            changed = station.changed() => {
                if changed.is_err() {
                    return;
                }
                let setup = station.borrow_and_update().setup.clone();
                if let Err(error) = listener.renew(&setup) {
                    tracing::error!("{error}; the listener is unchanged");
                }
                continue;
            }
            () = house.stop.asked.cancelled(), if until.is_none() => {
                let open = station.borrow().setup.limits.drain_min;
                if stdio || open.is_zero() {
                    return;
                }
                until = Some(Instant::now() + open);
                continue;
            }
            () = closing_time(until) => return,
            () = house.stop.forced.cancelled() => return,
        };
        match arrival {
            None => return,
            Some(Err(error)) => {
                house.unaccepted(door);
                let address = listener.address();
                let seldom = &house.refusals.no_arrival;
                seldom.warn(format_args!("cannot accept on {address}: {error}"));
                sleep(BREATHER).await;
            }
            Some(Ok(arrival)) => {
                let span =
                    tracing::info_span!("client", conn = house.number(), from = arrival.from);
                let report = stdio.then(|| report.clone());
                let station = Arc::clone(&station.borrow());
                let worker = arrival.worker.clone();
                let conversation = attend(Arc::clone(&house), arrival, station, door, report);
                let conversation = conversation.instrument(span);
                worker.spawn(house.conversations.track_future(conversation));
            }
        }
    }
}

async fn closing_time(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Serves a client, and reports the result.
async fn attend(
    house: Arc<House>,
    arrival: Arrival,
    station: Arc<Station>,
    door: Transport,
    report: Option<Report>,
) {
    let code = house.welcome(arrival, &station, door).await;
    if let Some(report) = report {
            // There is only one conversation on our stdio, so the channel has space.
        let _ = report.try_send(code);
    }
}

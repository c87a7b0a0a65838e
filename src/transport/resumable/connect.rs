//! The client's end of a link.

use std::sync::Arc;

use parking_lot::Mutex;

use super::dialer::Dialer;
pub use super::dialer::{Carrier, Dial};
use super::end::LinkEnd;
use super::half;
use super::links::Links;
use super::stats::KeptBytes;
use super::watchdog::{ContactSource, LinkWatchdog};
use crate::{Endpoint, Link, OpenError, OpenErrorKind};
use auth::origin;
use jsonrpc::Limits;
use link::longest;

/// Opens a link over its first connection; `dial` opens the next ones. `contact` is what another
/// process needs to end the link if this one is killed.
///
/// # Errors
/// The server refuses.
pub async fn connect(
    carrier: Carrier,
    dial: Dial,
    contact: Option<ContactSource>,
    links: &Links,
    limits: &Arc<Limits>,
) -> Result<Link, OpenError> {
    let mut peer = carrier.link.peer.clone();
    let fail = |(kind, why): (OpenErrorKind, String)| {
        let what = format!("its relay does not open a link ({why})");
        let error = OpenError::new(kind, &peer.name, what);
        error.with_remedy("Try again, or connect with --no-link")
    };
    // A tunnel that is down refuses, too.
    let is_near = match peer.name.parse() {
        Ok(Endpoint::Http(at)) => origin::is_loopback_host(&at.host),
        _ => true,
    };
    let refused_grace = limits.refused_grace * if is_near { 10 } else { 1 };
    let begun = Dialer::begin_link(carrier, dial, limits, refused_grace).await;
    let (dialer, carrier, welcome) = begun.map_err(fail)?;
    peer.longest = longest(welcome.max);
    let kept = KeptBytes::new(&links.stats, None);
    let watchdog = contact.and_then(|contact| LinkWatchdog::start(contact, &dialer.known));
    let mut end = LinkEnd::new(Some(dialer), Arc::clone(limits), kept);
    end.watchdog = watchdog;
    let numbers = (welcome.generation, welcome.rx, welcome.window);
    let attached = end.attach(carrier, numbers, None);
    attached.map_err(|(_, error)| fail((OpenErrorKind::Unavailable, error.to_string())))?;
    let end = Arc::new(Mutex::new(end));
    links.watch(&end);
    Ok(half::link(&end, peer, || {}))
}

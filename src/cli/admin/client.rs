//! The HTTP client of an admin listener, for `status`, `health` and `top`.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Response, StatusCode};
use tokio::time::timeout;

use super::address::AdminAddress;
use super::address_file;
use crate::transport::{Endpoint, HttpClient, NoResponse, Setup};

/// How long a response may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Largest response that is read, in bytes.
const MAX_BODY: usize = 16 << 20;

/// The admin listener that was given, or else the only one of this user.
pub(in crate::cli) fn find(given: Option<&AdminAddress>) -> Result<AdminAddress, String> {
    if let Some(place) = given {
        return Ok(place.clone());
    }
    let found = address_file::find();
    match &found[..] {
        [] => Err(
            "no relay of yours with an admin listener is running here; start one with \
                   `acp-relay serve --admin 127.0.0.1:0 …`, or give its address: --admin ADDRESS"
                .to_owned(),
        ),
        [(_, place)] => Ok(place.clone()),
        several => {
            let list: Vec<_> = several
                .iter()
                .map(|(number, place)| format!("--admin {place} (process {number})"))
                .collect();
            Err(format!(
                "several relays are running; choose one: {}",
                list.join(", ")
            ))
        }
    }
}

/// Requests `path`, and returns the status and the body.
///
/// # Errors
/// Why there is no response, as text for the user.
pub(in crate::cli) async fn fetch(
    place: &AdminAddress,
    path: &str,
) -> Result<(StatusCode, String), String> {
    let to = match place {
        AdminAddress::Loopback(_) => place.to_string().parse::<Endpoint>(),
        AdminAddress::Unix(path) => Ok(Endpoint::Unix(path.clone())),
    };
    let to = to.map_err(|fault| fault.to_string())?;
    let failed = |why: &str| format!("cannot query the admin listener at {place}: {why}");
    let reply = timeout(TIMEOUT, get(&to, path)).await;
    let reply = reply.map_err(|_| failed(&format!("no answer within {TIMEOUT:?}")))?;
    let reply = reply.map_err(|fault| failed(fault.cause()))?;
    let body = String::from_utf8_lossy(reply.body()).into_owned();
    Ok((reply.status(), body))
}

async fn get(to: &Endpoint, path: &str) -> Result<Response<Bytes>, NoResponse> {
    let client = HttpClient::new(to, &Setup::default())?;
    let request = client.request(Method::GET, path, "")?;
    client.fetch(request, MAX_BODY).await
}

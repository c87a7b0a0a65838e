//! A request's body, bounded in size and in time.
//!
//! Not here: what it says (see `post`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};

use super::refuse::Refusal;
use crate::wire::Limits;

/// Bytes that buy a slow client another second.
const PACE: usize = 1 << 10;

/// Reads a body to its end.
pub(super) async fn read(mut body: Incoming, limits: &Limits) -> Result<Bytes, Refusal> {
    let most = limits.frame_from_network;
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let began = Instant::now();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    loop {
        let got = first.len() + all.len();
        let earned = Duration::from_secs((got / PACE) as u64);
        let until = began + limits.http_body + earned;
        let Ok(part) = timeout_at(until, body.frame()).await else {
            let why = "the body took too long";
            return Err(Refusal::stranger(StatusCode::REQUEST_TIMEOUT, why));
        };
        let data = match part {
            None => break,
            Some(Ok(part)) => part.into_data(),
            Some(Err(_)) => return Err(Refusal::bad("the body broke off")),
        };
        let Ok(data) = data else {
            continue;
        };
        if got + data.len() > most {
            return Err(too_large(most));
        }
        if got == 0 {
            first = data;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_large(most: usize) -> Refusal {
    let why = format!("a message has at most {most} bytes here");
    Refusal::stranger(StatusCode::PAYLOAD_TOO_LARGE, why)
}

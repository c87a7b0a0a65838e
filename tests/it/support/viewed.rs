//! Recordings of any lines, with valid checksums, and a viewer that is asked everything about one.
//! The fuzz target `events` includes this file.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use acp_relay::viewer::{Viewer, ViewerAccess, router};
use axum::Router;
use axum::body::Body;
use hyper::Request;
use serde_json::Value;
use tower_service::Service as _;

/// Longest time until a recording is read.
const PATIENCE: Duration = Duration::from_secs(60);

const HEADER: &str = r#"{"acpr":1,"id":"abababababababababababababababab","seg":0,"first":1,"began":1795190340.000000,"by":"x","client":{},"agent":{},"policy":"lossless","redact":{"mode":"full","rules":"","key":""},"prev":null"#;

/// What the viewer is asked about a recording that it has read.
const QUESTIONS: [&str; 12] = [
    "rows?all=1&count=500",
    "rows?count=500&t0=1&t1=18446744073709551615&i1=3",
    "rows?sort=-duration&n=18446744073709551615&from=1",
    "rows?sort=method&i0=99",
    "rows?q=method%20~%20%22s%22",
    "turns?from=99",
    "turns",
    "figures",
    "findings",
    "findings?from=18446744073709551615&count=18446744073709551615",
    "event?i=0&most=3",
    "event?i=99",
];

/// A line with its checksum; `content` has no closing brace.
pub(crate) fn sealed(content: &str) -> String {
    let sum = crc32c::crc32c(content.as_bytes());
    format!("{content},\"crc\":\"{sum:08x}\"}}\n")
}

/// Asks the router for a path, and returns the body of the answer.
async fn ask(router: &Router, path: &str) -> (u16, String) {
    let request = Request::get(path).header("host", "127.0.0.1:1");
    let request = request.body(Body::empty()).unwrap();
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX);
    let body = body.await.unwrap().to_vec();
    (status, String::from_utf8(body).unwrap())
}

/// Has the viewer read the recording in a folder, and asks it everything.
pub(crate) async fn view(folder: &Path) {
    let viewer = Viewer::of(folder, |_| Value::Null, |_, _| Err(String::new())).unwrap();
    let access = ViewerAccess::new(1, [0; 16]);
    let router = router("", &viewer, &access, || {});
    let api = format!("{}api", access.path());
    let begun = Instant::now();
    let mut path = format!("{api}/0/state");
    loop {
        let (status, state) = ask(&router, &path).await;
        assert_eq!(status, 200, "{state}");
        let state: Value = serde_json::from_str(&state).unwrap();
        assert_eq!(state["error"], Value::Null);
        let is_read = state["bytes"] == state["total"] && state["total"] != 0;
        if is_read && state["writing"] == false && state["lint"]["checked"] == state["events"] {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "it stays at {state}");
        path = format!("{api}/0/state?after={}", state["revision"]);
    }
    for question in QUESTIONS {
        let (status, body) = ask(&router, &format!("{api}/0/{question}")).await;
        assert!(
            status == 200 || status == 404,
            "{question}: {status} {body}"
        );
    }
    let (status, body) = ask(&router, &format!("{api}/compare?a=0&b=0")).await;
    assert_eq!(status, 200, "{body}");
    let (_, list) = ask(&router, &format!("{api}/recordings?now=1")).await;
    assert!(list.contains("hostile"), "{list}");
}

/// A folder with a recording of these lines.
pub(crate) fn folder(lines: &[String]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = sealed(HEADER) + &lines.concat();
    fs::write(folder.path().join("hostile.acpr"), text).unwrap();
    folder
}

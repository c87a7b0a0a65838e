//! Host × Origin and Sec-Fetch-Site × verb × credential, each combination over a real listener.
//!
//! The expected answers are written here a second time, as rules, and not derived from the code.

use std::io::ErrorKind;
use std::time::Duration;

use acp_relay::auth::AuthRequirement;
use acp_relay::jsonrpc::Limits;
use acp_relay::transport::{Endpoint, HttpEndpoint, HttpOptions, Setup};
use data_encoding::BASE64URL_NOPAD;
use rustix::process::geteuid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::gate::{gate, token};
use crate::support::link::{listen, run, setup_with};

const PAGE: &str = "https://editor.example";
const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A request line's verb, the headers that belong to it, and the status of an admitted request.
const VERBS: [(&str, &str, u16); 7] = [
    ("GET", "", 406),
    ("POST", "Content-Length: 0\r\n", 415),
    ("DELETE", "", 400),
    ("PUT", "Content-Length: 0\r\n", 405),
    ("OPTIONS", "", 405),
    ("OPTIONS", "Access-Control-Request-Method: POST\r\n", 405),
    ("GET", UPGRADE, 101),
];

/// The same at a port of Agent Connect, which upgrades no path.
const REST_VERBS: [(&str, &str, u16); 4] = [
    ("GET", "", 405),
    ("POST", "Content-Length: 0\r\n", 200),
    ("OPTIONS", "Access-Control-Request-Method: POST\r\n", 405),
    ("GET", UPGRADE, 405),
];

/// The Host header, with `PORT` for the listener's port, and whether it is allowed; it is missing
/// in the last but one, and present twice in the last.
const HOSTS: [(&str, bool); 9] = [
    ("Host: 127.0.0.1:PORT\r\n", true),
    ("Host: LOCALHOST:PORT\r\n", true),
    ("Host: agents.example\r\n", true),
    ("Host: evil.example:PORT\r\n", false),
    ("Host: 127.0.0.1\r\n", false),
    ("Host: 127.0.0.1:1\r\n", false),
    ("Host: 0.0.0.0:PORT\r\n", false),
    ("", false),
    ("Host: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\n", false),
];

/// The browser's headers about the page, and whether they are allowed.
const PAGES: [(&str, bool); 9] = [
    ("", true),
    ("Sec-Fetch-Site: none\r\n", true),
    ("Sec-Fetch-Site: cross-site\r\n", false),
    ("Sec-Fetch-Site: same-site\r\n", false),
    (
        "Origin: https://editor.example\r\nSec-Fetch-Site: cross-site\r\n",
        true,
    ),
    ("Origin: https://editor.example\r\n", true),
    ("Origin: null\r\n", false),
    (
        "Origin: http://127.0.0.1:PORT\r\nSec-Fetch-Site: same-origin\r\n",
        false,
    ),
    (
        "Origin: https://editor.example\r\nOrigin: https://evil.example\r\n",
        false,
    ),
];

/// The credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Good,
    /// The right id and another secret.
    Wrong,
    /// No such id.
    Unknown,
    Expired,
    Basic,
    Twice,
    Query,
    Subprotocol,
    /// None, but through a proxy.
    Forwarded,
}

const SHOWN: [Shown; 10] = [
    Shown::Nothing,
    Shown::Good,
    Shown::Wrong,
    Shown::Unknown,
    Shown::Expired,
    Shown::Basic,
    Shown::Twice,
    Shown::Query,
    Shown::Subprotocol,
    Shown::Forwarded,
];

impl Shown {
    fn query(self) -> String {
        match self {
            Self::Query => format!("?token={}", token(1).reveal()),
            _ => String::new(),
        }
    }

    fn fields(self) -> String {
        let bearer = |number| format!("Authorization: Bearer {}\r\n", token(number).reveal());
        match self {
            Self::Nothing | Self::Query => String::new(),
            Self::Good => bearer(1),
            Self::Wrong => bearer(1).replace("AQEB", "AgIC"),
            Self::Unknown => bearer(7),
            Self::Expired => bearer(2),
            Self::Basic => "Authorization: Basic YWxpY2U6eA==\r\n".to_owned(),
            Self::Twice => bearer(1) + &bearer(7),
            Self::Subprotocol => {
                let token = BASE64URL_NOPAD.encode(token(1).reveal().as_bytes());
                format!("Sec-WebSocket-Protocol: acp.bearer.{token}, acp\r\n")
            }
            Self::Forwarded => "X-Forwarded-For: 192.0.2.7\r\n".to_owned(),
        }
    }

    /// Whether it admits a program of the relay's own user. A proxy's host name in `host` counts
    /// like a proxy's own headers.
    fn is_good(self, admission: AuthRequirement, host: &str) -> bool {
        match self {
            Self::Good | Self::Subprotocol => true,
            Self::Nothing | Self::Query => {
                admission == AuthRequirement::User && !host.contains("agents.example")
            }
            _ => false,
        }
    }
}

/// The head of the answer to a request.
pub(super) async fn ask(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        let read = stream.read_buf(&mut answer).await.unwrap();
        assert_ne!(read, 0, "{head}{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8_lossy(&answer).into_owned()
}

async fn site(at: &str, admission: AuthRequirement) -> (u16, tokio::task::JoinHandle<()>) {
    let front = HttpOptions {
        origins: vec![PAGE.to_owned()],
        hosts: vec!["agents.example".to_owned()],
        ..HttpOptions::default()
    };
    let setup = Setup {
        http: front,
        gate: gate(admission, geteuid().as_raw(), usize::MAX),
        ..setup_with(Limits {
            unauthenticated_sockets: 1 << 20,
            ..Limits::default()
        })
    };
    accept_all(at, &setup).await
}

/// A listener whose clients are accepted and ignored: its port, and the task that accepts.
pub(super) async fn accept_all(at: &str, setup: &Setup) -> (u16, tokio::task::JoinHandle<()>) {
    let mut listener = listen(&at.parse().unwrap(), setup).await;
    let Endpoint::Http(HttpEndpoint { port, .. }) = listener.address() else {
        panic!("{}", listener.address());
    };
    let accepting = tokio::spawn(async move { while listener.accept().await.is_some() {} });
    (port, accepting)
}

#[test]
fn every_combination_is_answered_by_the_rules() {
    let count = combinations("http://127.0.0.1:0", "/acp", &VERBS);
    assert_eq!(count, 2 * 7 * 9 * 9 * 10);
}

#[test]
fn every_combination_at_a_port_of_agent_connect_is_answered_by_the_rules() {
    let count = combinations(
        "agent-connect+http://127.0.0.1:0",
        "/runs/search",
        &REST_VERBS,
    );
    assert_eq!(count, 2 * 4 * 9 * 9 * 10);
}

fn combinations(at: &str, path: &str, verbs: &[(&str, &str, u16)]) -> usize {
    let mut count = 0;
    run(async {
        for admission in [AuthRequirement::Credential, AuthRequirement::User] {
            let (port, accepting) = site(at, admission).await;
            for &(verb, own, status) in verbs {
                for (host, ours) in HOSTS {
                    for (page, may) in PAGES {
                        for shown in SHOWN {
                            let upgrades = own == UPGRADE;
                            let preflight = own.starts_with("Access") && page.contains("Origin");
                            let expected = match () {
                                () if !may => 403,
                                () if host.matches("Host").count() != 1 => 400,
                                () if !ours && upgrades => 403,
                                () if !ours => 421,
                                () if preflight => 204,
                                () if !shown.is_good(admission, host) => 401,
                                () => status,
                            };
                            let fields = format!("{host}{page}{own}{}", shown.fields());
                            let fields = fields.replace("PORT", &port.to_string());
                            let query = shown.query();
                            let head = format!("{verb} {path}{query} HTTP/1.1\r\n{fields}\r\n");
                            let answer = ask(port, &head).await;
                            let start = format!("HTTP/1.1 {expected} ");
                            let case = format!("{admission:?} {shown:?}\n{head}{answer}");
                            assert!(answer.starts_with(&start), "expected {expected}: {case}");
                            check_fields(
                                &answer,
                                expected,
                                page.contains(PAGE) && may && ours,
                                &case,
                            );
                            count += 1;
                        }
                    }
                }
            }
            accepting.abort();
        }
    });
    count
}

fn check_fields(answer: &str, status: u16, page: bool, case: &str) {
    let lower = answer.to_ascii_lowercase();
    assert_eq!(
        lower.contains("www-authenticate: bearer"),
        status == 401,
        "{case}"
    );
    // Only an allowed page can read the reason of a refusal.
    let shown = lower.contains("access-control-allow-origin: https://editor.example");
    assert_eq!(shown, page, "{case}");
    assert!(!lower.contains("allow-credentials"), "{case}");
    if status == 204 {
        assert!(
            lower.contains("allow-headers: accept, authorization"),
            "{case}"
        );
    }
    if status == 401 || status == 403 || status == 421 {
        assert!(lower.contains("connection: close"), "{case}");
    }
    let chosen = lower.contains("sec-websocket-protocol: acp\r\n");
    assert_eq!(
        chosen,
        status == 101 && case.contains("Subprotocol"),
        "{case}"
    );
}

/// The answer, without its date.
async fn refusal(port: u16, shown: Shown) -> String {
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let head = format!("GET /acp HTTP/1.1\r\n{host}{}\r\n", shown.fields());
    let answer = ask(port, &head).await;
    let lines = answer.lines().filter(|line| !line.starts_with("Date:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn wrong_unknown_and_expired_tokens_get_the_same_answer() {
    run(async {
        let (port, accepting) = site("http://127.0.0.1:0", AuthRequirement::Credential).await;
        let wrong = refusal(port, Shown::Wrong).await;
        assert!(wrong.contains("error=\"invalid_token\""), "{wrong}");
        for other in [Shown::Unknown, Shown::Expired, Shown::Basic, Shown::Twice] {
            assert_eq!(refusal(port, other).await, wrong, "{other:?}");
        }
        // Without credentials the answer names the scheme, and no error (RFC 6750, 3.1).
        let nothing = refusal(port, Shown::Nothing).await;
        assert!(
            nothing.contains("Bearer realm=\"acp-relay\"\n"),
            "{nothing}"
        );
        accepting.abort();
    });
}

/// A listener that requires credentials.
async fn guarded(failures: usize, limits: Limits) -> (u16, tokio::task::JoinHandle<()>) {
    let setup = Setup {
        gate: gate(AuthRequirement::Credential, geteuid().as_raw(), failures),
        ..setup_with(limits)
    };
    accept_all("http://127.0.0.1:0", &setup).await
}

#[test]
fn wrong_tokens_are_counted_and_unauthenticated_sockets_limited() {
    run(async {
        // One failure in sixty seconds: no test takes that long.
        let (port, accepting) = guarded(1, Limits::default()).await;
        let wrong = refusal(port, Shown::Wrong).await;
        assert!(wrong.starts_with("HTTP/1.1 401 "), "{wrong}");
        let enough = refusal(port, Shown::Unknown).await;
        assert!(enough.starts_with("HTTP/1.1 429 "), "{enough}");
        let wait = enough
            .lines()
            .find_map(|line| line.strip_prefix("Retry-After: "));
        let wait: u64 = wait.unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{enough}");
        for (shown, status) in [(Shown::Good, 406), (Shown::Nothing, 401)] {
            let answer = refusal(port, shown).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{answer}"
            );
        }
        accepting.abort();
        // Two may be slow to send credentials; of three, one is closed without an answer, the one
        // the listener accepts last. It is a new listener: the clients refused above may still
        // count at the other.
        let limits = Limits {
            unauthenticated_sockets: 2,
            handshake: Duration::from_secs(600),
            ..Limits::default()
        };
        let (port, accepting) = guarded(1, limits).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            // A reset is as good.
            let _ = stream.write_all(b"GET /acp HT").await;
            streams.push(stream);
        }
        let [a, b, c] = &mut streams[..] else {
            unreachable!("there are three")
        };
        let [mut to_a, mut to_b, mut to_c] = [[0; 1]; 3];
        let (closed, read) = tokio::select! {
            read = a.read(&mut to_a) => (0, read),
            read = b.read(&mut to_b) => (1, read),
            read = c.read(&mut to_c) => (2, read),
        };
        assert_eq!(read.unwrap_or(0), 0);
        streams.remove(closed);
        for stream in &streams {
            let read = stream.try_read(&mut [0; 1]);
            assert_eq!(read.unwrap_err().kind(), ErrorKind::WouldBlock);
        }
        accepting.abort();
    });
}

//! Bodies that clients send at the same time have a common bound, and are read in the order in
//! which their requests began.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy knows only functions marked so"
)]

use acp_relay::jsonrpc::{Frame, Limits};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::site::Site;
use crate::support::http::How;
use crate::support::link::{received, run};

/// A message of `size` bytes.
fn message(size: usize) -> String {
    let (head, tail) = (r#"{"method":"m","params":{"p":""#, r#""}}"#);
    format!("{head}{}{tail}", "p".repeat(size - head.len() - tail.len()))
}

/// A POST that is sent in two parts.
struct Slow {
    stream: TcpStream,
    rest: String,
}

impl Slow {
    async fn begin(site: &Site, id: &str, body: &str, sent: usize) -> Self {
        let length = body.len();
        let lines = format!(
            "Content-Type: application/json\r\nAcp-Connection-Id: {id}\r\n\
             Content-Length: {length}\r\n"
        );
        let (begin, rest) = body.split_at(sent);
        let stream = site.caller.begin_acp("POST", &lines, begin).await;
        let rest = rest.to_owned();
        Self { stream, rest }
    }

    /// Whether the server has answered before the rest was sent: the POST was refused.
    fn is_refused(&self) -> bool {
        self.stream.try_read(&mut [0; 16]).is_ok()
    }

    async fn finish(mut self) -> String {
        self.stream.write_all(self.rest.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        self.stream.read_exact(&mut status).await.unwrap();
        String::from_utf8(status.to_vec()).unwrap()
    }
}

#[test]
fn large_bodies_share_a_limit_and_leave_room_for_small_ones() {
    run(async {
        let limits = Limits {
            frame_from_network: 256 << 10,
            http_bodies: 1,
            ..Limits::default()
        };
        // The limit holds two of the longest bodies; large ones may use three quarters of it.
        let mut site = Site::open(How::H1, limits).await;
        let mut open = site.initialize().await;
        let large = message(250 << 10);
        let mut other = site.initialize().await;
        let mut slow = Slow::begin(&site, &other.id, &large, 249 << 10).await;
        let name = [("acp-connection-id", &*open.id)];
        // How much of the slow body has been read is unknown here: post until there is no room. Two
        // bodies that are read at once may both be refused, so one refusal shows nothing.
        let mut refusals = 0;
        let refused = loop {
            let reply = site.caller.post(&name, &large).await;
            if reply.status.as_u16() == 202 {
                refusals = 0;
                received(&mut *open.link.rx).await;
            } else if refusals == 2 {
                break reply;
            } else {
                refusals += 1;
            }
            // The slow body may be the one without room, when it was read after the other.
            if slow.is_refused() {
                slow = Slow::begin(&site, &other.id, &large, 249 << 10).await;
            }
        };
        assert_eq!(refused.status.as_u16(), 503);
        assert_eq!(refused.fields["retry-after"], "1");
        let small = message(60 << 10);
        let reply = site.caller.post(&name, &small).await;
        assert_eq!(reply.status.as_u16(), 202);
        assert_eq!(
            received(&mut *open.link.rx).await.as_bytes(),
            small.as_bytes()
        );
        assert_eq!(slow.finish().await, "HTTP/1.1 202");
        let frame = received(&mut *other.link.rx).await;
        assert_eq!(frame.as_bytes(), large.as_bytes());
        // A body that was passed on leaves room for the next.
        let reply = site.caller.post(&name, &message(250 << 10)).await;
        assert_eq!(reply.status.as_u16(), 202);
    });
}

#[test]
fn a_body_that_does_not_arrive_delays_the_next_message_only_briefly() {
    run(async {
        let mut site = Site::open(How::H1, Limits::default()).await;
        let mut open = site.initialize().await;
        let slow = Slow::begin(&site, &open.id, r#"{"method":"one"}"#, 5).await;
        let name = [("acp-connection-id", &*open.id)];
        let reply = site.caller.post(&name, r#"{"method":"two"}"#).await;
        assert_eq!(reply.status.as_u16(), 202);
        let first = received(&mut *open.link.rx).await;
        assert_eq!(first.as_bytes(), br#"{"method":"two"}"#);
        assert_eq!(slow.finish().await, "HTTP/1.1 202");
        let second = received(&mut *open.link.rx).await;
        assert_eq!(second.as_bytes(), br#"{"method":"one"}"#);
    });
}

#[test]
fn concurrent_posts_are_received_in_the_order_of_their_heads() {
    run(async {
        let mut site = Site::open(How::H2, Limits::default()).await;
        let mut open = site.initialize().await;
        let host = &site.caller.host;
        let stream = TcpStream::connect(host).await.unwrap();
        let io = TokioIo::new(stream);
        let opened = http2::handshake(TokioExecutor::new(), io).await;
        let (mut sender, connection) = opened.unwrap();
        tokio::spawn(connection);
        let text = |number: u32| {
            // A later small message could overtake a large one.
            let pad = "p".repeat(if number.is_multiple_of(4) { 40_000 } else { 0 });
            format!(r#"{{"method":"m","params":{{"number":{number},"pad":"{pad}"}}}}"#)
        };
        let mut answers = Vec::new();
        for number in 0..100 {
            let request = Request::post(format!("http://{host}/acp"))
                .header("content-type", "application/json")
                .header("acp-connection-id", &open.id)
                .body(Full::new(Bytes::from(text(number))))
                .unwrap();
            answers.push(sender.send_request(request));
        }
        let answered = tokio::spawn(async move {
            for answer in answers {
                assert_eq!(answer.await.unwrap().status().as_u16(), 202);
            }
        });
        for number in 0..100 {
            let frame = received(&mut *open.link.rx).await;
            assert!(frame == Frame::from(text(number)), "{number}");
        }
        answered.await.unwrap();
    });
}

//! The client: opens a connection, sends requests, receives streams, and checks every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::agent::update;
use super::line::{open, read_frame, write_frame};

/// How a client's messages are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Lines,
    Frames,
}

/// A connection through a hop, or to an agent.
pub(super) struct Client {
    framing: Framing,
    reader: BufReader<Box<dyn Read>>,
    writer: Box<dyn Write>,
    received: Vec<u8>,
    out: Vec<u8>,
    requests: u64,
}

impl Client {
    pub(super) fn new(reader: Box<dyn Read>, writer: Box<dyn Write>) -> Self {
        Self {
            framing: Framing::Lines,
            reader: BufReader::with_capacity(128 << 10, reader),
            writer,
            received: Vec::new(),
            out: Vec::new(),
            requests: 0,
        }
    }

    /// Connects to a hop.
    pub(super) fn dial(at: &str, framing: Framing) -> std::io::Result<Self> {
        let socket = TcpStream::connect(at)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Self::new(Box::new(socket.try_clone()?), Box::new(socket));
        client.framing = framing;
        if framing == Framing::Frames {
            open(&mut client.reader, &mut client.writer, at)?;
        }
        Ok(client)
    }

    fn send(&mut self, message: &str) {
        self.out.clear();
        match self.framing {
            Framing::Lines => {
                self.out.extend_from_slice(message.as_bytes());
                self.out.push(b'\n');
            }
            Framing::Frames => write_frame(message.as_bytes(), Some([1, 2, 3, 4]), &mut self.out),
        }
        self.writer.write_all(&self.out).unwrap();
    }

    /// The next message, without what ends it.
    fn receive(&mut self) -> &[u8] {
        self.received.clear();
        match self.framing {
            Framing::Lines => {
                self.reader.read_until(b'\n', &mut self.received).unwrap();
                assert_eq!(self.received.pop(), Some(b'\n'), "the hop has disconnected");
            }
            Framing::Frames => {
                read_frame(&mut self.reader, &mut self.received).unwrap();
                // Some hops keep the line's end in the frame.
                if self.received.last() == Some(&b'\n') {
                    self.received.pop();
                }
            }
        }
        &self.received
    }

    /// The median time of so many requests with their answers, in µs.
    pub(super) fn echo(&mut self, times: usize) -> f64 {
        let mut took: Vec<f64> = (0..times).map(|_| self.request()).collect();
        took.sort_by(f64::total_cmp);
        took[took.len() / 2]
    }

    /// The time of one request with its answer, in µs.
    pub(super) fn request(&mut self) -> f64 {
        self.requests += 1;
        let id = self.requests;
        let params = format!("{{\"text\":\"{}\"}}", "e".repeat(40));
        let began = Instant::now();
        self.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_echo\",\"params\":{params}}}"
        ));
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{params}}}");
        let received = self.receive();
        let took = began.elapsed().as_secs_f64() * 1e6;
        assert!(
            received == answer.as_bytes(),
            "{:?}",
            String::from_utf8_lossy(&received[..received.len().min(200)])
        );
        took
    }

    /// Requests a stream of `count` updates of `size` bytes; returns messages per second.
    pub(super) fn stream(&mut self, count: usize, size: usize) -> f64 {
        let expected = update(size);
        let expected = &expected[..expected.len() - 1];
        let began = Instant::now();
        self.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"_stream\",\"params\":{{\"stream\":{count},\"size\":{size}}}}}"
        ));
        for _ in 0..count {
            assert!(self.receive() == expected, "an update was changed");
        }
        count as f64 / began.elapsed().as_secs_f64()
    }
}

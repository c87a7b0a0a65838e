//! The client: opens a connection, asks and waits, has updates streamed, and checks every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::agent::update;
use super::line::{lay, open, take};

/// How a client's messages are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Lines,
    Frames,
}

/// A connection through a hop, or to an agent.
pub(super) struct Client {
    framing: Framing,
    hears: BufReader<Box<dyn Read>>,
    says: Box<dyn Write>,
    heard: Vec<u8>,
    out: Vec<u8>,
    asked: u64,
}

impl Client {
    pub(super) fn new(hears: Box<dyn Read>, says: Box<dyn Write>) -> Self {
        Self {
            framing: Framing::Lines,
            hears: BufReader::with_capacity(128 << 10, hears),
            says,
            heard: Vec::new(),
            out: Vec::new(),
            asked: 0,
        }
    }

    /// Dials a hop.
    pub(super) fn dial(at: &str, framing: Framing) -> std::io::Result<Self> {
        let socket = TcpStream::connect(at)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut client = Self::new(Box::new(socket.try_clone()?), Box::new(socket));
        client.framing = framing;
        if framing == Framing::Frames {
            open(&mut client.hears, &mut client.says, at)?;
        }
        Ok(client)
    }

    fn say(&mut self, message: &str) {
        self.out.clear();
        match self.framing {
            Framing::Lines => {
                self.out.extend_from_slice(message.as_bytes());
                self.out.push(b'\n');
            }
            Framing::Frames => lay(message.as_bytes(), Some([1, 2, 3, 4]), &mut self.out),
        }
        self.says.write_all(&self.out).unwrap();
    }

    /// The next message, without what ends it.
    fn hear(&mut self) -> &[u8] {
        self.heard.clear();
        match self.framing {
            Framing::Lines => {
                self.hears.read_until(b'\n', &mut self.heard).unwrap();
                assert_eq!(self.heard.pop(), Some(b'\n'), "the hop hung up");
            }
            Framing::Frames => {
                take(&mut self.hears, &mut self.heard).unwrap();
                // Some hops keep the line's end in the frame.
                if self.heard.last() == Some(&b'\n') {
                    self.heard.pop();
                }
            }
        }
        &self.heard
    }

    /// Asks and waits for the answer, so often; the median, in µs.
    pub(super) fn echo(&mut self, times: usize) -> f64 {
        let mut took: Vec<f64> = (0..times).map(|_| self.ask()).collect();
        took.sort_by(f64::total_cmp);
        took[took.len() / 2]
    }

    /// What one answer takes, in µs.
    pub(super) fn ask(&mut self) -> f64 {
        self.asked += 1;
        let id = self.asked;
        let params = format!("{{\"text\":\"{}\"}}", "e".repeat(40));
        let began = Instant::now();
        self.say(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"_echo\",\"params\":{params}}}"
        ));
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{params}}}");
        let heard = self.hear();
        let took = began.elapsed().as_secs_f64() * 1e6;
        assert!(
            heard == answer.as_bytes(),
            "{:?}",
            String::from_utf8_lossy(&heard[..heard.len().min(200)])
        );
        took
    }

    /// Has updates of so many bytes streamed; messages a second.
    pub(super) fn stream(&mut self, count: usize, size: usize) -> f64 {
        let wanted = update(size);
        let wanted = &wanted[..wanted.len() - 1];
        let began = Instant::now();
        self.say(&format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"_stream\",\"params\":{{\"stream\":{count},\"size\":{size}}}}}"
        ));
        for _ in 0..count {
            assert!(self.hear() == wanted, "an update was changed");
        }
        count as f64 / began.elapsed().as_secs_f64()
    }
}

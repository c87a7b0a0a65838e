//! The agent: answers each request with its params, and streams updates on request.
//!
//! A message with `"stream":N,"size":S` is followed by N updates of S bytes, written 64 KiB at a
//! time. Not here: ACP; the relay must forward these messages all the same.

use std::io::{BufRead, BufReader, BufWriter, Write, stdin, stdout};

/// Serves on stdin and stdout until the client ends.
pub(super) fn serve() {
    let mut input = BufReader::with_capacity(64 << 10, stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, stdout().lock());
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let answered = match stream_request(&line) {
            Some((count, size)) => stream(&mut output, count, size),
            None => answer(&mut output, &line),
        };
        if answered.and_then(|()| output.flush()).is_err() {
            return;
        }
        line.clear();
    }
}

/// `"stream":N,"size":S` of a message.
fn stream_request(line: &[u8]) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, rest) = text.split_once("\"stream\":")?;
    let (count, rest) = rest.split_once(",\"size\":")?;
    let (size, _) = rest.split_once('}')?;
    Some((count.parse().ok()?, size.parse().ok()?))
}

/// The params of the request as the result, with its id.
fn answer(out: &mut impl Write, line: &[u8]) -> std::io::Result<()> {
    let text = String::from_utf8_lossy(line);
    let member = |name: &str| text.split_once(name).map_or("", |(_, rest)| rest);
    let id = member("\"id\":").split(',').next().unwrap_or("");
    let params = member("\"params\":").trim_end().trim_end_matches('}');
    writeln!(
        out,
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{params}}}}}"
    )
}

fn stream(out: &mut impl Write, count: usize, size: usize) -> std::io::Result<()> {
    let line = update(size);
    (0..count).try_for_each(|_| out.write_all(&line))
}

/// An update of `size` bytes, with its line feed.
pub(super) fn update(size: usize) -> Vec<u8> {
    let with = |text: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{{\"text\":\"{text}\"}}}}}}\n"
        )
    };
    let pad = "some words ".repeat(size / 11 + 1);
    with(&pad[..size.saturating_sub(with("").len())]).into_bytes()
}

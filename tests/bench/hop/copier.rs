//! The limit: moves bytes between a socket and an agent, two threads for each client.
//!
//! Over WebSocket it puts each line into a frame and takes each frame out into a line, and that is
//! all it knows. What it costs, no hop can save. Not here: anything a real server needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use super::line::{accept, lay, take};

const BUFFER: usize = 128 << 10;

/// Listens until it is killed.
pub(super) fn serve(at: &str, frames: bool, command: &[&str]) {
    let socket = TcpListener::bind(at).unwrap();
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    while let Ok((client, _)) = socket.accept() {
        let command = command.clone();
        thread::spawn(move || carry(client, frames, &command));
    }
}

/// Whatever breaks ends it: a benchmark's client is gone then.
fn carry(client: TcpStream, frames: bool, command: &[String]) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let mut hears = BufReader::with_capacity(BUFFER, client.try_clone().ok()?);
    let mut says = client;
    if frames {
        accept(&mut hears, &mut says).ok()?;
    }
    let mut agent = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = agent.stdin.take()?;
    let output = agent.stdout.take()?;
    let back = thread::spawn(move || {
        if frames {
            to_frames(BufReader::with_capacity(BUFFER, output), says)
        } else {
            copy(output, says)
        }
    });
    if frames {
        let mut line = Vec::new();
        while take(&mut hears, &mut line).is_ok() {
            line.push(b'\n');
            if input.write_all(&line).is_err() {
                break;
            }
        }
    } else {
        copy(hears, &mut input);
    }
    drop(input);
    let _ = back.join();
    agent.wait().ok()?;
    Some(())
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// All lines that are there go in one write.
fn to_frames(mut from: BufReader<impl Read>, mut to: impl Write) {
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    while let Ok(there @ [_, ..]) = from.fill_buf() {
        let read = there.len();
        for part in there.split_inclusive(|&byte| byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(line) if rest.is_empty() => lay(line, None, &mut out),
                Some(line) => {
                    rest.extend_from_slice(line);
                    lay(&rest, None, &mut out);
                    rest.clear();
                }
                None => rest.extend_from_slice(part),
            }
        }
        from.consume(read);
        if to.write_all(&out).is_err() {
            return;
        }
        out.clear();
    }
}

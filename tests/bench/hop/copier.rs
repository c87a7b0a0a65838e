//! The lower limit of a hop's cost: moves bytes between a socket and an agent, with two threads for
//! each client.
//!
//! Over WebSocket it only converts lines to frames and frames to lines. Not here: anything else
//! that a real server needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use super::line::{accept, read_frame, write_frame};

const BUFFER: usize = 128 << 10;

/// Listens until it is killed.
pub(super) fn serve(at: &str, frames: bool, command: &[&str]) {
    let socket = TcpListener::bind(at).unwrap();
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    while let Ok((client, _)) = socket.accept() {
        let command = command.clone();
        thread::spawn(move || forward(client, frames, &command));
    }
}

/// Serves one client; any error ends it.
fn forward(client: TcpStream, frames: bool, command: &[String]) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let mut reader = BufReader::with_capacity(BUFFER, client.try_clone().ok()?);
    let mut writer = client;
    if frames {
        accept(&mut reader, &mut writer).ok()?;
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
            to_frames(BufReader::with_capacity(BUFFER, output), writer)
        } else {
            copy(output, writer)
        }
    });
    if frames {
        let mut line = Vec::new();
        while read_frame(&mut reader, &mut line).is_ok() {
            line.push(b'\n');
            if input.write_all(&line).is_err() {
                break;
            }
        }
    } else {
        copy(reader, &mut input);
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

/// All lines in the buffer go in one write.
fn to_frames(mut from: BufReader<impl Read>, mut to: impl Write) {
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    while let Ok(bytes @ [_, ..]) = from.fill_buf() {
        let read = bytes.len();
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(line) if rest.is_empty() => write_frame(line, None, &mut out),
                Some(line) => {
                    rest.extend_from_slice(line);
                    write_frame(&rest, None, &mut out);
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

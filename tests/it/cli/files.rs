//! stdin and stdout are what the editor makes of them: pipes, sockets, one socket for both, files.
//! All data is forwarded, and no file mode is changed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::pipe::{PipeFlags, pipe_with};

use super::forwarding::echo;
use crate::support::program::command;

/// Requests, one of them larger than any pipe.
fn asks() -> String {
    let ask = |id: usize, text: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ask\",\"params\":[\"{text}\"]}}\n")
    };
    let mut asks: String = (0..200).map(|id| ask(id, "")).collect();
    asks += &ask(200, &"x".repeat(1 << 20));
    asks
}

/// A stdin, and a function that writes all requests to it.
fn stdin(kind: &str) -> (OwnedFd, Box<dyn FnOnce() + Send>) {
    match kind {
        "pipe" => {
            let (near, far) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            let mut far = File::from(far);
            let write = move || far.write_all(asks().as_bytes()).unwrap();
            (near, Box::new(write))
        }
        "socket" => {
            let (near, mut far) = UnixStream::pair().unwrap();
            let write = move || far.write_all(asks().as_bytes()).unwrap();
            (near.into(), Box::new(write))
        }
        _ => {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(asks().as_bytes()).unwrap();
            file.rewind().unwrap();
            (file.into(), Box::new(|| {}))
        }
    }
}

/// A stdout, and its reader; that of a file is only for the end.
fn stdout(kind: &str) -> (OwnedFd, Box<dyn Read + Send>) {
    match kind {
        "pipe" => {
            let (far, near) = pipe_with(PipeFlags::CLOEXEC).unwrap();
            (near, Box::new(File::from(far)))
        }
        "socket" => {
            let (near, far) = UnixStream::pair().unwrap();
            (near.into(), Box::new(far))
        }
        _ => {
            let file = tempfile::NamedTempFile::new().unwrap();
            let near = file.reopen().unwrap();
            (near.into(), Box::new(file))
        }
    }
}

fn read_all(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

/// Runs `connect` on both until it exits.
fn carry(input: OwnedFd, output: OwnedFd, write: impl FnOnce() + Send + 'static) {
    let kept = [&input, &output].map(|file| file.try_clone().unwrap());
    let modes = kept.each_ref().map(mode);
    let args: Vec<String> = ["connect", "--"]
        .map(str::to_owned)
        .into_iter()
        .chain(echo())
        .collect();
    let mut program = command(&args).into_std();
    let mut child = program.stdin(input).stdout(output).spawn().unwrap();
    drop(program);
    let writer = thread::spawn(write);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    writer.join().unwrap();
    assert_eq!(kept.each_ref().map(mode), modes, "a mode has changed");
}

fn mode(file: &impl AsFd) -> OFlags {
    fcntl_getfl(file).unwrap()
}

fn is_all(answers: &str) {
    assert_eq!(answers.lines().count(), 201);
    assert!(answers.len() > 1 << 20);
    assert!(answers.lines().last().unwrap().contains("\"id\": 200"));
}

#[test]
fn every_kind_of_stdin_and_stdout_forwards_all() {
    for from in ["pipe", "socket", "file"] {
        for to in ["pipe", "socket"] {
            let (input, write) = stdin(from);
            let (output, far) = stdout(to);
            let reader = thread::spawn(|| read_all(far));
            carry(input, output, write);
            is_all(&reader.join().unwrap());
        }
        let (input, write) = stdin(from);
        let (output, far) = stdout("file");
        carry(input, output, write);
        is_all(&read_all(far));
    }
}

/// As inetd and socat start their programs.
#[test]
fn one_socket_can_be_stdin_and_stdout() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut ours = far.try_clone().unwrap();
    let write = move || {
        ours.write_all(asks().as_bytes()).unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
    };
    let reader = thread::spawn(|| read_all(far));
    let both = OwnedFd::from(near);
    carry(both.try_clone().unwrap(), both, write);
    is_all(&reader.join().unwrap());
}

/// A closed reader ends the conversation, without a signal.
#[test]
fn a_closed_stdout_does_not_kill_the_program() {
    for kind in ["pipe", "socket"] {
        let (input, far) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (output, reader) = stdout(kind);
        drop(reader);
        let args: Vec<String> = ["connect", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain(echo())
            .collect();
        let mut program = command(&args).into_std();
        let mut child = program.stdin(input).stdout(output).spawn().unwrap();
        drop(program);
        // It may exit before it has read all.
        let _ = File::from(far).write_all(asks().as_bytes());
        let code = child.wait().unwrap().code();
        assert!(code.is_some(), "{kind}: it was killed");
    }
}

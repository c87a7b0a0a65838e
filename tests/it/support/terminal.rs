//! A program at a pseudo-terminal, with a person who reads and types.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::link::PATIENCE;

/// A program whose stdin, stdout and stderr are a terminal.
pub(crate) struct Terminal {
    ours: File,
    child: Child,
    /// What it has printed, without carriage returns.
    printed: String,
    /// How much of that was expected already.
    read: usize,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        command.env("NO_COLOR", "1");
        Self::coloured(command)
    }

    /// The same, where `NO_COLOR` is as the command has it.
    pub(crate) fn coloured(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let theirs = File::from(open(name.as_c_str(), flags, Mode::empty()).unwrap());
        command
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs);
        let child = command.spawn().unwrap();
        // With the command, the last copy of the other end in this process is dropped.
        drop(command);
        Self {
            ours: File::from(ours),
            child,
            printed: String::new(),
            read: 0,
        }
    }

    /// Reads until `text` was printed after what was expected before, and returns all up to it.
    pub(crate) fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.printed[self.read..].find(text) {
                let end = self.read + at + text.len();
                let found = self.printed[self.read..end].to_owned();
                self.read = end;
                return found;
            }
            assert!(self.read_more(), "no {text:?} in {:?}", self.printed);
        }
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        writeln!(self.ours, "{line}").unwrap();
    }

    /// The identifier of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads to the end; returns all that was printed, and how the program ended.
    pub(crate) fn end(mut self) -> (String, ExitStatus) {
        while self.read_more() {}
        (self.printed, self.child.wait().unwrap())
    }

    fn read_more(&mut self) -> bool {
        let patience = Timespec::try_from(PATIENCE).unwrap();
        let mut ready = [PollFd::new(&self.ours, PollFlags::IN)];
        // A child of another test that ends interrupts it.
        let count = match poll(&mut ready, Some(&patience)) {
            Err(Errno::INTR) => return true,
            polled => polled.unwrap(),
        };
        assert!(count > 0, "the program hangs after {:?}", self.printed);
        let mut buffer = [0; 4096];
        match self.ours.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                let text = String::from_utf8_lossy(&buffer[..count]);
                self.printed.push_str(&text.replace('\r', ""));
                true
            }
            // The kernel's end of file at a terminal that no program has open any more.
            Err(fault) if fault.raw_os_error() == Some(Errno::IO.raw_os_error()) => false,
            Err(fault) if fault.kind() == ErrorKind::Interrupted => true,
            Err(fault) => panic!("{fault}"),
        }
    }
}

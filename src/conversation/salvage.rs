//! Delivers messages that come in lines with something else: behind a window's title, beside a log
//! line, over several lines. It is used for lines that are not JSON alone.
//!
//! *Escape sequences and control characters are not text.* Objects with nothing else around them
//! are messages.
//!
//! *A line with other text may quote a message.* So only an answer counts there, if its request is
//! open and it has what the schema requires of it, and only when no line of its own has brought an
//! answer for a second. What a wrong answer would permit is never answered in this way.
//!
//! *An object over several lines is joined only while `initialize` is open*, and is then an answer:
//! agents that print their first answer for a person print the others as lines.

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::state::Conversation;
use super::{Note, Outbox};
use jsonrpc::{
    Envelope, Frame, FrameError, FrameFault, Kind, Role, Scanned, Side, member, pieces, scan, text,
};

/// How long an answer in other text waits for one in a line of its own.
const WAIT: Duration = Duration::from_secs(1);
/// Answers in other text that wait at most.
const MAX_OFFERS: usize = 64;
/// How long, and for how many lines, the end of an object is waited for.
const JOIN: Duration = Duration::from_secs(10);
const MAX_LINES: usize = 1000;
/// Bytes that are read at most to find that end, for each line reads those before it again.
const MAX_READ: usize = 256 << 20;
/// The longest answer that is compared with what a line quotes, in bytes.
const MAX_COMPARED: usize = 4 << 10;

/// For the methods of ACP that permit nothing: the members that a result has to have; where
/// there are none, those that it may have.
const RESULTS: [(&str, &str, &str); 14] = [
    ("initialize", "protocolVersion", ""),
    ("session/new session/fork", "sessionId", ""),
    ("session/prompt", "stopReason", ""),
    ("session/list", "sessions", ""),
    ("session/set_config_option", "configOptions", ""),
    ("session/load session/resume", "", STATE),
    ("session/set_mode session/set_model", "", "_meta"),
    ("session/delete session/close", "", "_meta"),
    ("fs/read_text_file", "content", ""),
    ("fs/write_text_file", "", "_meta"),
    ("terminal/create", "terminalId", ""),
    ("terminal/output", "output truncated", ""),
    ("terminal/wait_for_exit", "", "exitCode signal _meta"),
    ("terminal/release terminal/kill", "", "_meta"),
];
const STATE: &str = "modes models configOptions _meta";

impl Conversation {
    /// Takes the messages out of a line that is not JSON; `false` if nothing is to be done for it.
    pub(super) fn salvage(
        &mut self,
        from: Side,
        line: &Frame,
        error: &FrameError,
        out: &mut Outbox,
    ) -> bool {
        let is_here = from == Side::Agent || self.links.client_on_stdio;
        let is_text = matches!(error.fault, FrameFault::Malformed { .. });
        if !is_here || !is_text || self.salvage.gives_up {
            return false;
        }
        let found = pieces(line.as_bytes(), &self.limits);
        let piece = |at: &Range<usize>| Frame::new(line.clone().into_bytes().slice(at.clone()));
        match (found.cut, found.objects.first()) {
            (Some(at), None) if !found.has_text => {
                let mut asked = self.pending[Side::Client as usize].iter();
                let is_open = asked.any(|(_, request)| &request.method[..] == b"initialize");
                let begun = || (line.as_bytes()[at..].to_vec(), self.now + JOIN);
                self.salvage.cut[from as usize] = is_open.then(begun);
                return is_open;
            }
            (_, None) => return false,
            (None, Some(first)) if *first == (0..line.len()) => return false,
            _ => {}
        }
        if !found.has_text && found.cut.is_none() {
            out.note(Note::Skipped { from });
            for object in &found.objects {
                self.take_line(from, piece(object), out);
            }
            return true;
        }
        let mut has_answer = false;
        for object in &found.objects {
            has_answer |= self.offer(from, piece(object), error, out);
        }
        match from {
            // A quoted request is not answered.
            Side::Agent if has_answer || error.role == Some(Role::Call) => {
                self.handle_stray(line, out);
            }
            Side::Client if has_answer => out.note(Note::Skipped { from }),
            _ => return false,
        }
        true
    }

    /// Takes a line while those before it are an object without an end; returns it if it does not
    /// belong to them.
    pub(super) fn join_line(
        &mut self,
        from: Side,
        line: Frame,
        scanned: &Scanned,
        out: &mut Outbox,
    ) -> Option<Frame> {
        let (text, _) = self.salvage.cut[from as usize].as_mut()?;
        let before = text.len();
        let lines = memchr::memchr_iter(b'\n', text).count() + 1;
        let max = (MAX_READ / lines).min(self.limits.frame_from_network);
        let fits = lines < MAX_LINES && before + line.len() < max;
        // A message in a line of its own is one.
        if !fits || matches!(scanned, Scanned::Message(at) if at.jsonrpc) {
            self.give_up_object(from, out);
            return Some(line);
        }
        text.push(b'\n');
        text.extend_from_slice(line.as_bytes());
        let found = pieces(text, &self.limits);
        let whole = found.objects.first().filter(|first| first.start == 0);
        match whole {
            None if found.cut == Some(0) => None,
            None => {
                text.truncate(before);
                self.give_up_object(from, out);
                Some(line)
            }
            Some(whole) => {
                let text = Bytes::copy_from_slice(text);
                let object = Frame::new(text.slice(whole.clone()));
                let asked = &self.pending[from.other() as usize];
                if matches!(scan(&object, &self.limits), Scanned::Message(at)
                    if at.kind.is_answer() && asked.get(at.id(&object)).is_some())
                {
                    self.salvage.cut[from as usize] = None;
                    let how = "several lines";
                    out.note(Note::Salvaged { from, how });
                    self.take_line(from, Frame::new(text), out);
                } else {
                    self.give_up_object(from, out);
                }
                None
            }
        }
    }

    /// When something is to be done.
    pub(super) fn salvage_due(&self) -> Option<Instant> {
        let cut = self.salvage.cut.iter().flatten().map(|(_, until)| *until);
        let offers = self.salvage.offers.iter().map(|(due, _)| *due);
        offers.chain(cut).min()
    }

    /// Takes what is due, or all that is left of `ended`, which has ended its stream.
    pub(super) fn expire_salvage(&mut self, ended: Option<Side>, out: &mut Outbox) {
        if self.salvage_due().is_none() {
            return;
        }
        let now = self.now;
        for from in [Side::Client, Side::Agent] {
            let is_due = |due: Instant| due <= now || ended == Some(from);
            let cut = self.salvage.cut[from as usize].as_ref();
            if cut.is_some_and(|(_, until)| is_due(*until)) {
                self.give_up_object(from, out);
            }
            let asked = self.pending[from.other() as usize].values_mut();
            let offered = asked.filter_map(|open| open.offered.take_if(|offer| is_due(offer.1)));
            for (frame, _) in offered.collect::<Vec<_>>() {
                let how = "a line with other text";
                out.note(Note::Salvaged { from, how });
                self.take_line(from, frame, out);
            }
        }
        self.count_offers();
    }

    /// Forgets the offers whose requests have got another answer.
    fn count_offers(&mut self) {
        let open = self.pending.iter().flat_map(|asked| asked.iter());
        let offers = open.filter_map(|(_, open)| open.offered.as_ref());
        let offers = offers.map(|(frame, due)| (*due, frame.weight()));
        self.salvage.offers = offers.collect();
    }

    /// Remembers an answer for `to` where it could be taken for another: `to` itself owes one with
    /// its id.
    #[inline]
    pub(super) fn remember_answer(&mut self, to: Side, frame: &Frame, at: &Envelope) {
        let owed = &mut self.pending[to.other() as usize];
        if !owed.is_empty()
            && frame.len() <= MAX_COMPARED
            && let Some(open) = owed.get_mut(at.id(frame))
        {
            open.namesake = Some(frame.clone());
        }
    }

    /// Keeps an answer in other text until it is due; `false` if it is none that counts. Without room,
    /// its request gets an error.
    fn offer(&mut self, from: Side, frame: Frame, error: &FrameError, out: &mut Outbox) -> bool {
        let Scanned::Message(at) = scan(&frame, &self.limits) else {
            return false;
        };
        if self.salvage.offers.len() >= MAX_OFFERS {
            self.count_offers();
        }
        let Some(open) = self.pending[from.other() as usize].get_mut(at.id(&frame)) else {
            return false;
        };
        let result = at.body(&frame).unwrap_or_default();
        let is_quoted = open.namesake.as_ref().is_some_and(|sent| {
            let value = |text| serde_json::from_slice::<serde_json::Value>(text).ok();
            member(sent.as_bytes(), "result").and_then(value) == value(result)
        });
        if at.kind != Kind::Result || is_quoted || !is_result_of(&open.method, result) {
            return false;
        }
        if open.offered.is_none() {
            let offers = &self.salvage.offers;
            let kept: usize = offers.iter().map(|(_, weight)| weight).sum();
            if offers.len() >= MAX_OFFERS || kept > self.limits.queue_bytes {
                let (id, role) = (at.id(&frame).to_owned(), Some(Role::Answer));
                let error = FrameError { id, role, ..*error };
                self.handle_frame_error(from, error, self.now, out);
                return true;
            }
            self.salvage.offers.push((self.now + WAIT, frame.weight()));
            open.offered = Some((frame, self.now + WAIT));
        }
        true
    }

    /// Takes the lines of an object without an end as if each had come alone.
    fn give_up_object(&mut self, from: Side, out: &mut Outbox) {
        let cut = self.salvage.cut[from as usize].take();
        let text = Bytes::from(cut.map(|(text, _)| text).unwrap_or_default());
        self.salvage.gives_up = true;
        for line in text.split(|byte| *byte == b'\n') {
            self.take_line(from, Frame::new(text.slice_ref(line)), out);
        }
        self.salvage.gives_up = false;
    }

    fn take_line(&mut self, from: Side, frame: Frame, out: &mut Outbox) {
        let scanned = scan(&frame, &self.limits);
        self.take_frame(from, frame, &scanned, out);
    }
}

/// Whether a result can be that of the method.
fn is_result_of(method: &[u8], result: &[u8]) -> bool {
    let is_known = |names: &str| names.split(' ').any(|name| name.as_bytes() == method);
    let Some((_, required, allowed)) = RESULTS.iter().find(|one| is_known(one.0)) else {
        return false;
    };
    // The `protocolVersion` of MCP is a date in a string.
    let has = |name| {
        member(result, name).is_some_and(|value| {
            value != b"null" && (name != "protocolVersion" || value[0].is_ascii_digit())
        })
    };
    let may_have = |name: &[u8]| allowed.split(' ').any(|known| text::same_name(name, known));
    match required.is_empty() {
        true if result.starts_with(b"{") => text::members(result).all(|(name, _)| may_have(name)),
        true => result == b"null",
        false => required.split(' ').all(has),
    }
}

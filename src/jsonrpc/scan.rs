//! Finds the envelope of one JSON-RPC message, and validates its JSON.
//!
//! Every message passes here once, so it costs no allocation unless the message is refused. Refused
//! is text that is not JSON, too deep, ambiguous (a member of the envelope twice) or not JSON-RPC.

use super::json::Reader;
use super::jsonrpc::Member;
use super::outline::{Bookmark, Draw, Outline};
use super::seen::{Found, Seen};
use super::stop::Stop;
use super::{Envelope, Fault, Flaw, Frame, IdBuf, Kind, Limits, Role, Span, Stem};

/// What a frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One message.
    One(Envelope),
    /// A JSON-RPC batch: an array. It is never forwarded.
    Batch,
    /// Not a message that can be passed on.
    Bad(Flaw),
}

/// A position in a message's body from which others that begin with the same bytes can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// The members read before the body.
    seen: Seen,
    /// The body's index; the part behind the position is rebuilt for each message.
    outline: Outline,
    /// Which member the body is, and where it starts.
    member: Member,
    start: usize,
    mark: Bookmark,
    /// Identifies the prefix.
    number: u64,
}

/// What is recorded about bodies.
#[derive(Debug)]
struct Marks<'o> {
    outline: &'o mut Outline,
    /// Up to which byte the next message may be the same.
    reach: usize,
    begun: Option<Begun>,
}

/// The depth of a message's own members.
const OUTERMOST: usize = 1;

/// How nearly every message begins.
const USUAL: &[u8] = b"{\"jsonrpc\":\"2.0\",";

/// Finds the envelope of `frame` by JSON-RPC 2.0, and tolerates what peers really send: `jsonrpc`
/// may be missing, an answer may carry both `result` and `error` if one of them is null, and an
/// answer may lack its id (the conversation cannot match it, but can report it).
#[must_use]
pub fn scan(frame: &Frame, limits: &Limits) -> Shape {
    scan_text(frame.as_bytes(), limits)
}

/// [`scan`] for a text that is not a [`Frame`].
#[must_use]
pub fn scan_text(text: &[u8], limits: &Limits) -> Shape {
    scan_marking(text, limits, &mut Marks::on(&mut Outline::default()))
}

/// [`scan_text`], which for a message also returns the last position up to `reach` from which
/// another can be read.
pub(super) fn scan_begun(text: &[u8], limits: &Limits, reach: usize) -> (Shape, Option<Begun>) {
    let mut outline = Outline::default();
    let mut marks = Marks {
        reach,
        ..Marks::on(&mut outline)
    };
    let shape = scan_marking(text, limits, &mut marks);
    let begun = marks.begun.filter(|_| matches!(shape, Shape::One(_)));
    (shape, begun)
}

/// [`scan_text`] for a text that begins like the one that `from` was found in, up to its position,
/// under the same limits.
pub(super) fn scan_rest(text: &[u8], limits: &Limits, begun: &mut Begun) -> Shape {
    let mut seen = begun.seen;
    match read_rest(text, &mut seen, limits, begun) {
        Some((kind, body)) => {
            let stem = begun.stem();
            Shape::One(seen.envelope(kind, body, &begun.outline, stem))
        }
        // Reading from the beginning finds the fault.
        None => scan_text(text, limits),
    }
}

#[inline(always)]
fn scan_marking(text: &[u8], limits: &Limits, marks: &mut Marks<'_>) -> Shape {
    let mut seen = Seen::default();
    let (fault, at) = match read(text, &mut seen, limits, marks) {
        Ok(Found::Message(kind, body)) => {
            return Shape::One(seen.envelope(kind, body, marks.outline, Stem::default()));
        }
        Ok(Found::Batch) => return Shape::Batch,
        Err(flaw) => flaw,
    };
    Shape::Bad(Flaw {
        at,
        id: seen.id.of(text).to_owned(),
        role: seen.role_despite(&fault),
        fault,
        json_like: json_like(text),
    })
}

/// Reads the id and the role from the first bytes of a message, when the rest is not available.
#[must_use]
pub fn scan_head(prefix: &[u8], limits: &Limits) -> (IdBuf, Option<Role>) {
    let mut seen = Seen::default();
    let mut reader = Reader::new(prefix, limits.nesting);
    if reader.space() == b'{' {
        // It always stops, because this is only the beginning of a text.
        let _ = seen.object(&mut reader, limits, &mut Marks::on(&mut Outline::default()));
    }
    (seen.id.of(prefix).to_owned(), seen.role())
}

/// Whether the first byte that is not white space opens an object or an array.
pub(super) fn json_like(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

fn read(
    text: &[u8],
    seen: &mut Seen,
    limits: &Limits,
    marks: &mut Marks<'_>,
) -> Result<Found, (Fault, usize)> {
    if u32::try_from(text.len()).is_err() {
        let limit = u32::MAX as usize;
        return Err((Fault::TooLong { limit }, limit));
    }
    let mut reader = Reader::new(text, limits.nesting);
    let first = reader.space();
    let end = match first {
        b'{' => seen.object(&mut reader, limits, marks),
        _ => reader.document(),
    };
    if end.is_err() || !reader.is_utf8() {
        return Err(flaw(text, seen, limits));
    }
    match first {
        b'{' => seen.message(text),
        b'[' => Ok(Found::Batch),
        _ => Err((
            Fault::NotAMessage {
                why: "it is not an object",
            },
            0,
        )),
    }
}

fn read_rest(
    text: &[u8],
    seen: &mut Seen,
    limits: &Limits,
    begun: &mut Begun,
) -> Option<(Kind, Option<Span>)> {
    let mut reader = Reader::at_place(text, limits.nesting, &begun.mark.place);
    seen.rest(&mut reader, begun, limits).ok()?;
    match seen.message(text) {
        Ok(Found::Message(kind, body)) if reader.is_utf8() => Some((kind, body)),
        _ => None,
    }
}

/// The first fault of a text that is not JSON or not UTF-8. It reads the text again.
#[cold]
fn flaw(text: &[u8], seen: &mut Seen, limits: &Limits) -> (Fault, usize) {
    *seen = Seen::default();
    let valid = std::str::from_utf8(text).map_or_else(|e| e.valid_up_to(), str::len);
    let mut reader = Reader::new(&text[..valid], limits.nesting);
    let end = match reader.space() {
        b'{' => seen.object(&mut reader, limits, &mut Marks::on(&mut Outline::default())),
        // A text that is not an object is only read once it is known to be UTF-8.
        _ if valid < text.len() => Ok(()),
        _ => reader.document(),
    };
    match end {
        Err(stop) if reader.at < valid || valid == text.len() => {
            (stop.fault(limits.nesting), reader.at)
        }
        _ => {
            let expected = "valid UTF-8";
            (Fault::Malformed { expected }, valid)
        }
    }
}

impl<'o> Marks<'o> {
    const fn on(outline: &'o mut Outline) -> Self {
        Self {
            outline,
            reach: 0,
            begun: None,
        }
    }
}

impl Begun {
    /// How many bytes another text has to share.
    pub(super) const fn shared(&self) -> usize {
        self.mark.place.at
    }

    pub(super) const fn numbered(self, number: u64) -> Self {
        Self { number, ..self }
    }

    /// The public description of it.
    fn stem(&self) -> Stem {
        if self.seen.method.is_none() {
            return Stem::default();
        }
        Stem {
            number: self.number,
            bytes: Span::new(self.shared(), self.shared()).start,
            marks: self.mark.count,
        }
    }
}

/// Reading, member by member.
impl Seen {
    /// Reads the message, from its opening brace to the end of the text.
    fn object(
        &mut self,
        reader: &mut Reader<'_>,
        limits: &Limits,
        marks: &mut Marks<'_>,
    ) -> Result<(), Stop> {
        reader.deeper(0)?;
        if reader.text[reader.at..].starts_with(USUAL) {
            reader.at += USUAL.len();
            self.names = Member::Jsonrpc.bit();
            reader.space();
        } else {
            reader.at += 1;
            if reader.space() == b'}' {
                reader.at += 1;
                return reader.end();
            }
        }
        self.members(reader, limits, marks)
    }

    /// Reads the message from the middle of its body on.
    fn rest(
        &mut self,
        reader: &mut Reader<'_>,
        begun: &mut Begun,
        limits: &Limits,
    ) -> Result<(), Stop> {
        let mut draw = Draw::taken_up(&mut begun.outline, &begun.mark);
        reader.rest(&begun.mark.place, &mut draw)?;
        let (whole, sessions) = (draw.whole, draw.sessions);
        self.drawn(begun.start, whole, sessions);
        self.take(begun.member, reader.text, begun.start, reader.at, limits);
        if was_last(reader)? {
            reader.end()
        } else {
            self.members(reader, limits, &mut Marks::on(&mut begun.outline))
        }
    }

    /// Reads the message from the name of a member on.
    #[inline]
    fn members(
        &mut self,
        reader: &mut Reader<'_>,
        limits: &Limits,
        marks: &mut Marks<'_>,
    ) -> Result<(), Stop> {
        loop {
            let name_at = reader.at;
            let member = match Member::at_hand(&reader.text[reader.at..]) {
                Some((member, length)) => {
                    reader.at += length;
                    reader.space();
                    Some(member)
                }
                None => Member::of(reader.key()?),
            };
            let new = member.is_some_and(|member| self.name(member, name_at));
            let start = reader.at;
            self.strangers |= member.is_none();
            match member {
                Some(member @ (Member::Params | Member::Result)) if reader.peek() == b'{' => {
                    self.body(member, reader, marks)?;
                }
                _ => reader.value(OUTERMOST, &mut ())?,
            }
            // A number at the very end may be truncated.
            if let Some(member) = member.filter(|_| new && reader.at < reader.text.len()) {
                self.take(member, reader.text, start, reader.at, limits);
            }
            if was_last(reader)? {
                return reader.end();
            }
        }
    }

    /// Reads the object that is `params` or `result`.
    fn body(
        &mut self,
        member: Member,
        reader: &mut Reader<'_>,
        marks: &mut Marks<'_>,
    ) -> Result<(), Stop> {
        let (start, outlined) = (reader.at, self.outlined);
        let mut draw = Draw::new(marks.outline).marking(marks.reach);
        reader.value(OUTERMOST, &mut draw)?;
        let (whole, sessions, mark) = (draw.whole, draw.sessions, draw.mark);
        self.drawn(start, whole, sessions);
        marks.begun = mark.filter(|_| self.fault.is_none()).map(|mark| Begun {
            seen: self.before_body(outlined),
            outline: *marks.outline,
            member,
            start,
            mark,
            number: 0,
        });
        Ok(())
    }
}

/// Skips what follows a member; returns whether it was the last.
#[inline]
fn was_last(reader: &mut Reader<'_>) -> Result<bool, Stop> {
    match reader.space() {
        b',' => {
            reader.at += 1;
            reader.space();
            Ok(false)
        }
        b'}' => {
            reader.at += 1;
            Ok(true)
        }
        _ => Err(Stop::CommaOrBrace),
    }
}

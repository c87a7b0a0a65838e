//! Finds the envelope of one JSON-RPC message, and validates its JSON.
//!
//! Every message passes here once, so it costs no allocation unless the message is refused. Refused
//! is text that is not JSON, too deep, ambiguous (a member of the envelope twice) or not JSON-RPC.

use super::field::Member;
use super::field_set::FieldSet;
use super::json::Reader;
use super::member_index::{IndexCheckpoint, Indexer, MemberIndex};
use super::read_error::ReadError;
use super::{Envelope, Frame, FrameError, FrameFault, Id, IdBuf, Kind, Limits, Role, Span};

/// What a frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// One message.
    Message(Envelope),
    /// A JSON-RPC batch: an array. It is never forwarded.
    Batch,
    /// Not a message that can be passed on.
    Invalid(FrameError),
}

/// A position in a message's body from which others that begin with the same bytes can be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumePoint {
    /// The members read before the body.
    fields: FieldSet,
    /// The body's index; the part behind the position is rebuilt for each message.
    index: MemberIndex,
    /// Which member the body is, and where it starts.
    member: Member,
    start: usize,
    checkpoint: IndexCheckpoint,
}

/// What is recorded about bodies.
#[derive(Debug, Default)]
struct BodyScan {
    index: MemberIndex,
    /// Up to which byte the next message may be the same.
    reach: usize,
    resume: Option<ResumePoint>,
}

/// The depth of a message's own members.
const TOP_LEVEL: usize = 1;

/// How nearly every message begins.
const USUAL_START: &[u8] = b"{\"jsonrpc\":\"2.0\",";

/// Finds the envelope of `frame` by JSON-RPC 2.0, and tolerates what peers really send: `jsonrpc`
/// may be missing, an answer may carry both `result` and `error` if one of them is null, and an
/// answer may lack its id (the conversation cannot match it, but can report it).
#[must_use]
pub fn scan(frame: &Frame, limits: &Limits) -> Scanned {
    scan_text(frame.as_bytes(), limits)
}

/// [`scan`] for a text that is not a [`Frame`].
#[must_use]
pub fn scan_text(text: &[u8], limits: &Limits) -> Scanned {
    scan_with(text, limits, &mut BodyScan::default())
}

/// [`scan_text`], which for a message also returns the last position up to `reach` from which
/// another can be read.
pub(super) fn scan_resumable(
    text: &[u8],
    limits: &Limits,
    reach: usize,
) -> (Scanned, Option<ResumePoint>) {
    let mut state = BodyScan {
        reach,
        ..BodyScan::default()
    };
    let shape = scan_with(text, limits, &mut state);
    let begun = state
        .resume
        .filter(|_| matches!(shape, Scanned::Message(_)));
    (shape, begun)
}

/// [`scan_text`] for a text that begins like the one that `from` was found in, up to its position,
/// under the same limits.
pub(super) fn scan_resumed(text: &[u8], limits: &Limits, from: &mut ResumePoint) -> Scanned {
    let mut fields = from.fields;
    match read_resumed(text, &mut fields, limits, from) {
        Some((kind, body)) => Scanned::Message(fields.envelope(kind, body, &from.index)),
        // Reading from the beginning finds the fault.
        None => scan_text(text, limits),
    }
}

#[inline(always)]
fn scan_with(text: &[u8], limits: &Limits, state: &mut BodyScan) -> Scanned {
    let mut fields = FieldSet::default();
    let (fault, at) = match read(text, &mut fields, limits, state) {
        Ok(Some((kind, body))) => {
            return Scanned::Message(fields.envelope(kind, body, &state.index));
        }
        Ok(None) => return Scanned::Batch,
        Err(error) => error,
    };
    Scanned::Invalid(FrameError {
        at,
        id: Id::at(fields.id, text).to_owned(),
        role: fields.role_of_invalid(&fault),
        fault,
        json_like: json_like(text),
    })
}

/// Reads the id and the role from the first bytes of a message, when the rest is not available.
#[must_use]
pub fn scan_head(prefix: &[u8], limits: &Limits) -> (IdBuf, Option<Role>) {
    let mut fields = FieldSet::default();
    let mut reader = Reader::new(prefix, limits.nesting);
    if reader.skip_space() == b'{' {
        // It always stops, because this is only the beginning of a text.
        let _ = fields.object(&mut reader, limits, &mut BodyScan::default());
    }
    (Id::at(fields.id, prefix).to_owned(), fields.role())
}

/// Whether the first byte that is not white space opens an object or an array.
pub(super) fn json_like(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// The kind of a message, and its body.
type Content = (Kind, Option<Span>);

/// The content of a message; nothing when it is a batch.
fn read(
    text: &[u8],
    fields: &mut FieldSet,
    limits: &Limits,
    state: &mut BodyScan,
) -> Result<Option<Content>, (FrameFault, usize)> {
    if u32::try_from(text.len()).is_err() {
        let limit = u32::MAX as usize;
        return Err((FrameFault::TooLong { limit }, limit));
    }
    let mut reader = Reader::new(text, limits.nesting);
    let first = reader.skip_space();
    let end = match first {
        b'{' => fields.object(&mut reader, limits, state),
        _ => reader.document(),
    };
    if end.is_err() || !reader.is_utf8() {
        return Err(find_fault(text, fields, limits));
    }
    fields.strings = reader.read_strings;
    match first {
        b'{' => fields.message(text).map(Some),
        b'[' => Ok(None),
        _ => Err((
            FrameFault::NotAMessage {
                why: "it is not an object",
            },
            0,
        )),
    }
}

fn read_resumed(
    text: &[u8],
    fields: &mut FieldSet,
    limits: &Limits,
    from: &mut ResumePoint,
) -> Option<(Kind, Option<Span>)> {
    let mut reader = Reader::resume(text, limits.nesting, &from.checkpoint.point);
    fields.rest(&mut reader, from, limits).ok()?;
    fields.strings = reader.read_strings;
    match fields.message(text) {
        Ok(message) if reader.is_utf8() => Some(message),
        _ => None,
    }
}

/// The first fault of a text that is not JSON or not UTF-8. It reads the text again.
#[cold]
fn find_fault(text: &[u8], fields: &mut FieldSet, limits: &Limits) -> (FrameFault, usize) {
    *fields = FieldSet::default();
    let valid = std::str::from_utf8(text).map_or_else(|e| e.valid_up_to(), str::len);
    let mut reader = Reader::new(&text[..valid], limits.nesting);
    let end = match reader.skip_space() {
        b'{' => fields.object(&mut reader, limits, &mut BodyScan::default()),
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
            (FrameFault::Malformed { expected }, valid)
        }
    }
}

impl ResumePoint {
    /// How many bytes another text has to share.
    pub(super) const fn prefix_len(&self) -> usize {
        self.checkpoint.point.at
    }
}

/// Reading, member by member.
impl FieldSet {
    /// Reads the message, from its opening brace to the end of the text.
    fn object(
        &mut self,
        reader: &mut Reader<'_>,
        limits: &Limits,
        state: &mut BodyScan,
    ) -> Result<(), ReadError> {
        reader.deeper(0)?;
        if reader.text[reader.at..].starts_with(USUAL_START) {
            reader.at += USUAL_START.len();
            self.names = Member::Jsonrpc.bit();
            reader.skip_space();
        } else {
            reader.at += 1;
            if reader.skip_space() == b'}' {
                reader.at += 1;
                return reader.end();
            }
        }
        self.members(reader, limits, state)
    }

    /// Reads the message from the middle of its body on.
    fn rest(
        &mut self,
        reader: &mut Reader<'_>,
        from: &mut ResumePoint,
        limits: &Limits,
    ) -> Result<(), ReadError> {
        let mut indexer = Indexer::resume(&mut from.index, &from.checkpoint);
        reader.rest(&from.checkpoint.point, &mut indexer)?;
        let (whole, sessions) = (indexer.complete, indexer.session_ids);
        self.end_body(from.start, whole, sessions);
        self.set_value(from.member, reader.text, from.start, reader.at, limits);
        if was_last(reader)? {
            reader.end()
        } else {
            // A second body would make the message invalid.
            self.members(reader, limits, &mut BodyScan::default())
        }
    }

    /// Reads the message from the name of a member on.
    #[inline]
    fn members(
        &mut self,
        reader: &mut Reader<'_>,
        limits: &Limits,
        state: &mut BodyScan,
    ) -> Result<(), ReadError> {
        loop {
            let name_at = reader.at;
            let member = match Member::next(&reader.text[reader.at..]) {
                Some((member, length)) => {
                    reader.at += length;
                    reader.skip_space();
                    Some(member)
                }
                None => Member::of(reader.key()?),
            };
            let new = member.is_some_and(|member| self.add(member, name_at));
            let start = reader.at;
            self.unknown |= member.is_none();
            match member {
                Some(member @ (Member::Params | Member::Result)) if reader.peek() == b'{' => {
                    self.body(member, reader, state)?;
                }
                _ => reader.value(TOP_LEVEL, &mut ())?,
            }
            // A number at the very end may be truncated.
            if let Some(member) = member.filter(|_| new && reader.at < reader.text.len()) {
                self.set_value(member, reader.text, start, reader.at, limits);
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
        state: &mut BodyScan,
    ) -> Result<(), ReadError> {
        let (start, outlined) = (reader.at, self.indexed_body);
        let mut indexer = Indexer::new(&mut state.index).until(state.reach);
        reader.value(TOP_LEVEL, &mut indexer)?;
        let (whole, sessions, checkpoint) =
            (indexer.complete, indexer.session_ids, indexer.checkpoint);
        self.end_body(start, whole, sessions);
        state.resume = checkpoint
            .filter(|_| self.fault.is_none())
            .map(|checkpoint| ResumePoint {
                fields: self.before_body(outlined),
                index: state.index,
                member,
                start,
                checkpoint,
            });
        Ok(())
    }
}

/// Skips what follows a member; returns whether it was the last.
#[inline]
fn was_last(reader: &mut Reader<'_>) -> Result<bool, ReadError> {
    match reader.skip_space() {
        b',' => {
            reader.at += 1;
            reader.skip_space();
            Ok(false)
        }
        b'}' => {
            reader.at += 1;
            Ok(true)
        }
        _ => Err(ReadError::CommaOrBrace),
    }
}

//! The members of an envelope that were read so far.
//!
//! It records where each member is, and at the end says which kind of message they make, or why
//! they make none.

use super::field::{MEMBER_NAMES, Member};
use super::member_index::MemberIndex;
use super::{Envelope, FrameFault, Kind, Limits, Role, Span};

/// Why a message without any content is invalid.
const NEITHER: &str = "it has neither method, result nor error";

/// The members of an envelope read so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldSet {
    /// The members whose names were read, one bit each.
    pub(super) names: u8,
    pub(super) id: Option<Span>,
    pub(super) method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    /// Where the body that has an index starts, if one has.
    pub(super) indexed_body: Option<usize>,
    /// Whether there are members that JSON-RPC does not define.
    pub(super) unknown: bool,
    /// How many strings the reader has read.
    pub(super) strings: u32,
    /// The first fault that was found although the text is JSON so far.
    pub(super) fault: Option<(FrameFault, usize)>,
}

impl FieldSet {
    /// Records what is known of a body that was read.
    pub(super) fn end_body(&mut self, start: usize, complete: bool, session_ids: u8) {
        if session_ids > 1 {
            let member = "sessionId";
            self.note(FrameFault::Duplicate { member }, start);
        }
        self.indexed_body = complete.then_some(start);
    }

    /// The state before a body was read, when the last body with an index was `indexed_body`.
    pub(super) const fn before_body(self, indexed_body: Option<usize>) -> Self {
        Self {
            indexed_body,
            ..self
        }
    }

    /// Records that a member is present; `false` when it was present before.
    #[inline]
    pub(super) fn add(&mut self, member: Member, at: usize) -> bool {
        let new = self.names & member.bit() == 0;
        if !new {
            let member = MEMBER_NAMES[member as usize];
            self.note(FrameFault::Duplicate { member }, at);
        }
        self.names |= member.bit();
        new
    }

    /// Records where a member's value is.
    #[inline]
    pub(super) fn set_value(
        &mut self,
        member: Member,
        text: &[u8],
        start: usize,
        end: usize,
        limits: &Limits,
    ) {
        let span = Span::new(start, end);
        let value = &text[start..end];
        match member {
            Member::Jsonrpc => {}
            Member::Params => self.params = Some(span),
            Member::Result => self.result = Some(span),
            Member::Error => self.error = Some(span),
            Member::Id if value.len() > limits.id => self.refuse("its id is too long", start),
            Member::Id if matches!(value[0], b'{' | b'[' | b't' | b'f') => {
                self.refuse("its id is neither a string, a number nor null", start);
            }
            Member::Id => self.id = Some(span),
            Member::Method if value[0] != b'"' => self.refuse("its method is not a string", start),
            Member::Method if value.len() > limits.method.saturating_add(2) => {
                self.refuse("its method is too long", start);
            }
            Member::Method => self.method = Some(Span::new(start + 1, end - 1)),
        }
    }

    #[cold]
    fn refuse(&mut self, why: &'static str, at: usize) {
        self.note(FrameFault::NotAMessage { why }, at);
    }

    #[cold]
    fn note(&mut self, fault: FrameFault, at: usize) {
        self.fault.get_or_insert((fault, at));
    }

    fn has(&self, member: Member) -> bool {
        self.names & member.bit() != 0
    }

    pub(super) fn role(&self) -> Option<Role> {
        if self.has(Member::Method) {
            Some(Role::Call)
        } else if self.has(Member::Result) || self.has(Member::Error) {
            Some(Role::Answer)
        } else {
            None
        }
    }

    /// The role of a message that was read to its end and refused for this reason: a message with
    /// only an id is what some peers send as an answer without a result.
    pub(super) fn role_of_invalid(&self, fault: &FrameFault) -> Option<Role> {
        let bare = matches!(fault, FrameFault::NotAMessage { why } if *why == NEITHER);
        let answers = bare && self.has(Member::Id) && !self.has(Member::Params);
        if answers {
            Some(Role::Answer)
        } else {
            self.role()
        }
    }

    /// The kind and the body of the message that the members make, after it was read to its end.
    pub(super) fn message(&self, text: &[u8]) -> Result<(Kind, Option<Span>), (FrameFault, usize)> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let null = |span: Span| span.of(text) == b"null";
        Ok(match (self.method, self.result, self.error) {
            (Some(_), None, None) if self.has(Member::Id) => (Kind::Request, self.params),
            (Some(_), None, None) => (Kind::Notification, self.params),
            (None, Some(result), None) => (Kind::Result, Some(result)),
            (None, None, Some(error)) => (Kind::Error, Some(error)),
            (None, Some(result), Some(error)) if null(error) => (Kind::Result, Some(result)),
            (None, Some(result), Some(error)) if null(result) => (Kind::Error, Some(error)),
            (None, None, None) => return invalid(NEITHER),
            (None, Some(_), Some(_)) => return invalid("it has both a result and an error"),
            (Some(_), ..) => return invalid("it has both a method and a result or an error"),
        })
    }

    /// The envelope of that message.
    #[inline(always)]
    pub(super) fn envelope(&self, kind: Kind, body: Option<Span>, index: &MemberIndex) -> Envelope {
        let start = body.map(|body| body.start as usize);
        Envelope {
            kind,
            id: self.id,
            method: self.method,
            body,
            index: if start.is_some() && start == self.indexed_body {
                Some(*index)
            } else {
                None
            },
            strings: self.strings,
            jsonrpc: self.has(Member::Jsonrpc),
            unknown_members: self.unknown,
        }
    }
}

#[cold]
fn invalid<T>(why: &'static str) -> Result<T, (FrameFault, usize)> {
    Err((FrameFault::NotAMessage { why }, 0))
}

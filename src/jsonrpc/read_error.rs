//! Why the JSON reader stopped. The reader has the position.

use super::FrameFault;
use super::levels::DEEPEST;

/// What was expected instead of the current byte. One byte wide, so that the success path stays in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadError {
    Value,
    Key,
    Colon,
    CommaOrBrace,
    CommaOrBracket,
    Digit,
    Escape,
    HexDigit,
    NoControl,
    Quote,
    End,
    Deep,
}

impl ReadError {
    /// The fault for this, under a nesting limit of `limit`.
    pub(super) fn fault(self, limit: usize) -> FrameFault {
        let expected = match self {
            Self::Deep => {
                return FrameFault::TooDeep {
                    limit: limit.min(DEEPEST),
                };
            }
            Self::Value => "a value",
            Self::Key => "a member name in quotes",
            Self::Colon => "a colon",
            Self::CommaOrBrace => "a comma or a closing brace",
            Self::CommaOrBracket => "a comma or a closing bracket",
            Self::Digit => "a digit",
            Self::Escape => "a valid escape",
            Self::HexDigit => "four hexadecimal digits",
            Self::NoControl => "no raw control character in a string",
            Self::Quote => "a closing quote",
            Self::End => "the end of the message",
        };
        FrameFault::Malformed { expected }
    }
}

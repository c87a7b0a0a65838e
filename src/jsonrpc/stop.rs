//! Why the reading of a text stopped.
//!
//! Not here: where it stopped, which the `json` reader knows.

use super::Fault;
use super::levels::DEEPEST;

/// Why reading stopped: what was expected instead of the byte at hand. One byte wide, so that the
/// good case stays in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
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

impl Stop {
    /// The fault this is, under a nesting limit of `limit`.
    pub(super) fn fault(self, limit: usize) -> Fault {
        let expected = match self {
            Self::Deep => {
                return Fault::TooDeep {
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
        Fault::Malformed { expected }
    }
}

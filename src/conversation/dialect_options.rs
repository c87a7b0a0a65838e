//! The dialect of each side, and its translator.
//!
//! The conversation itself is in canonical ACP. A canonical side costs nothing here; one with a
//! given dialect, or whose dialect is detected from its first messages, has a translator between
//! its link and the conversation.

use std::sync::Arc;

use crate::dialect::{
    self, Detector, DialectError, Library, Program, Translation, Translator, Way,
};
use crate::jsonrpc::{Envelope, Frame, IdBuf, Kind, Side};

/// The table of tolerant reading, used for every peer that is not known better.
const LOOSE: &str = "loose-v1";

/// The method whose exchange shows a peer's dialect.
const INITIALIZE: &str = "initialize";

/// Among how many of its first messages a side's dialect may be detected.
const DETECTION_MESSAGES: u8 = 32;

/// The dialect that is configured for a side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DialectChoice {
    /// Canonical ACP: its messages pass unchanged.
    #[default]
    Canonical,
    /// Detected from `initialize`; tolerant reading until then and otherwise.
    Auto,
    /// This dialect.
    Named(String),
}

/// The dialects of both sides of one conversation; by default both are canonical ACP.
#[derive(Debug, Default)]
pub struct DialectOptions {
    library: Arc<Library>,
    sides: [SideDialect; 2],
    /// The relay's working directory, for sessions that it opens itself.
    folder: String,
}

#[derive(Debug, Default)]
struct SideDialect {
    translator: Option<Box<Translator>>,
    /// Among how many more of its messages its dialect may still be detected.
    detect_in: u8,
    handshake: Detector,
}

/// A dialect that was detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// Its name.
    pub dialect: String,
    /// By what, as a clause for the log.
    pub by: String,
}

impl DialectOptions {
    /// Both sides use canonical ACP.
    #[must_use]
    pub fn canonical() -> Self {
        Self::default()
    }

    /// The dialects that are configured for the two sides, from `library`.
    ///
    /// # Errors
    /// When a dialect is not known.
    pub fn new(
        library: &Arc<Library>,
        client: &DialectChoice,
        agent: &DialectChoice,
    ) -> Result<Self, DialectError> {
        let build = |side, choice: &DialectChoice| {
            let program = match choice {
                DialectChoice::Canonical => None,
                DialectChoice::Auto => Some(library.program(LOOSE)?),
                DialectChoice::Named(name) => Some(library.program(name)?),
            };
            let translator = program.map(|program| Box::new(Translator::new(side, program)));
            Ok(SideDialect {
                translator,
                detect_in: if *choice == DialectChoice::Auto {
                    DETECTION_MESSAGES
                } else {
                    0
                },
                handshake: Detector::default(),
            })
        };
        Ok(Self {
            library: Arc::clone(library),
            sides: [build(Side::Client, client)?, build(Side::Agent, agent)?],
            folder: String::new(),
        })
    }

    /// Sets the relay's working directory: a client without sessions gets one there.
    #[must_use]
    pub fn in_folder(mut self, folder: &str) -> Self {
        folder.clone_into(&mut self.folder);
        for side in &mut self.sides {
            if let Some(translator) = &mut side.translator {
                translator.set_cwd(folder);
            }
        }
        self
    }

    /// Whether the messages of `side` pass unchanged.
    pub(super) fn is_canonical(&self, side: Side) -> bool {
        self.side(side).translator.is_none()
    }

    /// Whether the dialect of `side` may still be detected.
    pub(super) fn is_detecting(&self, side: Side) -> bool {
        self.side(side).detect_in > 0
    }

    /// Tries to detect the dialect of `side` from a message, as long as that is allowed: never
    /// where its dialect was configured. `request_method` is the method that the message
    /// answers.
    pub fn detect(
        &mut self,
        side: Side,
        frame: &Frame,
        at: &Envelope,
        request_method: Option<&[u8]>,
    ) -> Option<Detection> {
        if !self.is_detecting(side) {
            return None;
        }
        let request_method = request_method.and_then(|method| std::str::from_utf8(method).ok());
        let handshake = &mut self.sides[side as usize].handshake;
        let found = handshake.detect(self.library.headers(), side, frame, at, request_method);
        // A client's `initialize` shows its dialect; an agent's answer to it may be any agent's,
        // and its first messages show more.
        let calls = matches!(at.kind, Kind::Request | Kind::Notification);
        let shown = side == Side::Client && calls && at.method(frame) == INITIALIZE;
        let own = &mut self.sides[side as usize];
        own.detect_in = if shown || found.is_some() {
            0
        } else {
            own.detect_in.saturating_sub(1)
        };
        let found = found?;
        let program = self.library.program(&found.dialect).ok()?;
        own.switch_to(side, program, &at.id(frame).to_owned(), request_method);
        if let Some(translator) = &mut own.translator {
            translator.set_cwd(&self.folder);
        }
        Some(Detection {
            dialect: found.dialect,
            by: found.by,
        })
    }

    /// Whether the translator of `side` may do anything with a message; every other one may be
    /// passed on without it.
    pub(super) fn concerns(&self, side: Side, way: Way, frame: &Frame, at: &Envelope) -> bool {
        let translator = self.side(side).translator.as_ref();
        translator.is_some_and(|translator| translator.concerns(way, frame, at))
    }

    /// Translates a message of `side` into canonical ACP.
    pub fn read(&mut self, side: Side, frame: &Frame, at: &Envelope) -> Translation {
        match &mut self.sides[side as usize].translator {
            Some(translator) => translator.read(frame, at),
            None => Translation::default(),
        }
    }

    /// Translates a canonical message into the dialect of `side`.
    pub fn write(&mut self, side: Side, frame: &Frame, at: &Envelope) -> Translation {
        match &mut self.sides[side as usize].translator {
            Some(translator) => translator.write(frame, at),
            None => Translation::default(),
        }
    }

    /// The dialect that `side` is assumed to use at present.
    #[must_use]
    pub fn dialect(&self, side: Side) -> &str {
        let translator = self.side(side).translator.as_ref();
        translator.map_or("canonical", |translator| translator.dialect())
    }

    /// What the client would understand by a call of that name, as a clause, where that is not its
    /// canonical meaning, or not known yet.
    pub(super) fn misread_as(&self, method: &str) -> Option<String> {
        let client = self.side(Side::Client);
        let translator = client.translator.as_ref()?;
        if client.detect_in > 0 && !dialect::is_canonical(method) {
            return Some("the client's dialect is not known yet".to_owned());
        }
        let meant = translator.canonical_call(method)?;
        Some(format!("the client would take it for {meant}"))
    }

    fn side(&self, side: Side) -> &SideDialect {
        &self.sides[side as usize]
    }
}

impl SideDialect {
    /// Switches to another dialect in the middle of the exchange that showed it.
    fn switch_to(
        &mut self,
        side: Side,
        program: Arc<Program>,
        id: &IdBuf,
        request_method: Option<&str>,
    ) {
        let translator = match &mut self.translator {
            Some(known) => {
                known.switch_to(program);
                known
            }
            None => self
                .translator
                .insert(Box::new(Translator::new(side, program))),
        };
        if let Some(method) = request_method {
            translator.assume(side.other(), id, method, method);
        }
    }
}

//! The dialect of each side, and its translator.
//!
//! The conversation itself is in canonical ACP. A canonical side costs nothing here; one with a
//! given dialect, or whose dialect is detected from its first messages, has a translator between
//! its link and the conversation.

use std::sync::Arc;
use std::time::Instant;

use dialect::versions::{Negotiation, Step, V2_DIALECT, Version, VersionBridge, VersionPolicies};
use dialect::{
    self, DetectedDialect, Detector, DialectError, Library, Program, Translation, Translator, Way,
};
use jsonrpc::{Envelope, Frame, IdBuf, Kind, Limits, Side};

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
    /// Finds out which protocol versions the two speak; `None` when both pass unchanged.
    negotiation: Option<Box<Negotiation>>,
    /// The relay's working directory, for sessions that it opens itself.
    folder: String,
    /// The bytes that were translated since what is remembered was weighed last.
    translated: usize,
}

#[derive(Debug, Default)]
struct SideDialect {
    translator: Option<Box<Translator>>,
    /// The conversion to v1, when this side speaks v2 and the other one does not.
    bridge: Option<Box<VersionBridge>>,
    /// It speaks v2; its messages are not translated by a table.
    is_v2: bool,
    /// Among how many more of its messages its dialect may still be detected.
    detect_in: u8,
    handshake: Detector,
}

impl DialectChoice {
    /// Whether it is v2, which is no dialect of v1.
    #[must_use]
    pub fn is_v2(&self) -> bool {
        matches!(self, Self::Named(name) if name == V2_DIALECT)
    }
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
                DialectChoice::Named(name) if name == V2_DIALECT => None,
                DialectChoice::Auto => Some(library.program(LOOSE)?),
                DialectChoice::Named(name) => Some(library.program(name)?),
            };
            let translator = program.map(|program| Box::new(Translator::new(side, program)));
            Ok(SideDialect {
                translator,
                bridge: None,
                is_v2: choice.is_v2(),
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
            negotiation: None,
            folder: String::new(),
            translated: 0,
        })
    }

    /// Converts between v1 and v2 when the two sides speak different versions; `configured` are
    /// the versions of the client and the agent that are not left to `initialize`.
    #[must_use]
    pub fn with_versions(
        mut self,
        limits: Arc<Limits>,
        policies: VersionPolicies,
        mut configured: [Option<Version>; 2],
    ) -> Self {
        for (side, configured) in self.sides.iter().zip(&mut configured) {
            let is_named = side.translator.is_some() && side.detect_in == 0;
            match (side.is_v2, is_named) {
                (true, _) => configured.get_or_insert(Version::Two),
                // A table is for a dialect of v1.
                (false, true) => configured.get_or_insert(Version::One),
                (false, false) => continue,
            };
        }
        let library = Arc::clone(&self.library);
        let negotiation = Negotiation::new(library, limits, policies, configured);
        self.negotiation = Some(Box::new(negotiation));
        self
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
        let own = self.side(side);
        own.translator.is_none() && own.bridge.is_none()
    }

    /// Whether the versions of the two sides are not known yet.
    pub(super) fn is_negotiating(&self) -> bool {
        self.negotiation.is_some()
    }

    /// Whether the agent has not answered `initialize` yet.
    pub(super) fn awaits_version(&self) -> bool {
        let negotiation = self.negotiation.as_ref();
        negotiation.is_some_and(|negotiation| negotiation.is_open())
    }

    /// Whether no version was found that the relay can use.
    pub(super) fn has_no_version(&self) -> bool {
        let negotiation = self.negotiation.as_ref();
        negotiation.is_some_and(|negotiation| negotiation.has_failed())
    }

    /// Ends the negotiation once both versions are known.
    fn settle_versions(&mut self) {
        let negotiation = self.negotiation.as_ref();
        let Some(spoken) = negotiation.and_then(|negotiation| negotiation.spoken()) else {
            return;
        };
        self.negotiation = None;
        for (own, version) in self.sides.iter_mut().zip(spoken) {
            // Tables are for dialects of v1.
            if version == Version::Two {
                own.translator = None;
                own.detect_in = 0;
                own.is_v2 = true;
            }
        }
    }

    /// Sets the time of what is read and written next.
    pub(super) fn set_time(&mut self, now: Instant) {
        for bridge in self
            .sides
            .iter_mut()
            .filter_map(|side| side.bridge.as_mut())
        {
            bridge.set_time(now);
        }
    }

    /// Takes the client's `initialize`, or an answer of the agent while its version is not known;
    /// `may_retry`: it can be started again.
    pub(super) fn negotiate(
        &mut self,
        frame: &Frame,
        at: &Envelope,
        may_retry: bool,
        now: Instant,
    ) -> Step {
        let Some(negotiation) = &mut self.negotiation else {
            return Step::Pass;
        };
        let step = match at.kind.is_answer() {
            true => negotiation.answered(frame, at, may_retry, now),
            false => negotiation.ask(frame, at),
        };
        self.settle_versions();
        step
    }

    /// Converts what passes from now on. Returns the side that speaks v2.
    pub(super) fn convert_by(&mut self, bridge: Box<VersionBridge>) -> Side {
        let peer = bridge.peer();
        self.sides[peer as usize].bridge = Some(bridge);
        peer
    }

    /// Both sides are taken to speak the same version from now on.
    pub(super) fn stop_negotiating(&mut self) {
        self.negotiation = None;
    }

    /// When [`DialectOptions::expire`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let bridges = self.sides.iter().filter_map(|side| side.bridge.as_ref());
        bridges.filter_map(|bridge| bridge.deadline()).min()
    }

    /// What is due for the side that speaks v2, as if it had sent something.
    pub(super) fn expire(&mut self, now: Instant) -> Option<(Side, Translation)> {
        let bridge = self
            .sides
            .iter_mut()
            .find_map(|side| side.bridge.as_mut())?;
        let is_due = bridge.deadline().is_some_and(|at| at <= now);
        is_due.then(|| (bridge.peer(), bridge.expire(now)))
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
    ) -> Option<DetectedDialect> {
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
        if found.dialect == V2_DIALECT {
            // It passes, or the negotiation makes a bridge of it.
            own.translator = None;
            own.is_v2 = true;
            return Some(found);
        }
        let program = self.library.program(&found.dialect).ok()?;
        own.switch_to(side, program, &at.id(frame).to_owned(), request_method);
        if let Some(translator) = &mut own.translator {
            translator.set_cwd(&self.folder);
        }
        Some(found)
    }

    /// The side whose messages are converted between versions: it speaks v2, and the other one v1.
    pub(super) fn converted(&self) -> Option<Side> {
        let sides = [Side::Client, Side::Agent];
        sides
            .into_iter()
            .find(|side| self.side(*side).bridge.is_some())
    }

    /// Whether so much was translated since the last time that what is remembered may be more than
    /// `limit` bytes.
    #[inline]
    pub(super) const fn is_weighing_due(&self, limit: usize) -> bool {
        self.translated >= limit / 64
    }

    /// Weighs what is remembered of the conversation, and lets sessions forget. Returns of how many,
    /// and whether it still is more than `limit` bytes; `None` while it is less.
    pub(super) fn bound(&mut self, limit: usize) -> Option<(usize, bool)> {
        self.translated = 0;
        let weight = self.weight();
        // It is not weighed again before there is room for something new.
        let mut excess = (weight > limit).then(|| weight - limit / 4 * 3)?;
        let mut forgotten = 0;
        for side in &mut self.sides {
            let (translator, bridge) = (side.translator.as_mut(), side.bridge.as_mut());
            forgotten += translator.map_or(0, |one| one.forget(&mut excess));
            forgotten += bridge.map_or(0, |one| one.forget(&mut excess));
        }
        Some((forgotten, self.weight() > limit))
    }

    /// The memory that takes what is remembered of the conversation, in bytes.
    fn weight(&self) -> usize {
        let weight = |side: &SideDialect| {
            let translator = side.translator.as_ref().map_or(0, |one| one.weight());
            translator + side.bridge.as_ref().map_or(0, |one| one.weight())
        };
        self.sides.iter().map(weight).sum()
    }

    /// Whether the translator of `side` may do anything with a message; every other one may be
    /// passed on without it.
    pub(super) fn concerns(&mut self, side: Side, way: Way, frame: &Frame, at: &Envelope) -> bool {
        let own = &mut self.sides[side as usize];
        let translator = own.translator.as_mut();
        own.bridge.is_some()
            || translator.is_some_and(|translator| translator.concerns(way, frame, at))
    }

    /// Translates a message of `side` into canonical ACP.
    pub fn read(&mut self, side: Side, frame: &Frame, at: &Envelope) -> Translation {
        self.translated += frame.weight();
        let own = &mut self.sides[side as usize];
        if let Some(bridge) = &mut own.bridge {
            return bridge.read(frame, at);
        }
        match &mut own.translator {
            Some(translator) => translator.read(frame, at),
            None => Translation::default(),
        }
    }

    /// Translates a canonical message into the dialect of `side`.
    pub fn write(&mut self, side: Side, frame: &Frame, at: &Envelope) -> Translation {
        self.translated += frame.weight();
        let own = &mut self.sides[side as usize];
        if let Some(bridge) = &mut own.bridge {
            return bridge.write(frame);
        }
        match &mut own.translator {
            Some(translator) => translator.write(frame, at),
            None => Translation::default(),
        }
    }

    /// The dialect that `side` is assumed to use at present.
    #[must_use]
    pub fn dialect(&self, side: Side) -> &str {
        let own = self.side(side);
        match &own.translator {
            Some(translator) => translator.dialect(),
            None if own.is_v2 => V2_DIALECT,
            None => "canonical",
        }
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

//! The rules of the linter. Their ids are stable: filters and programs use them.

use serde::Serialize;
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

use acp::{CheckedMessage, Consequence, Violation, ViolationKind};
use jsonrpc::{Kind, Side};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing
    Hint,
    /// Some peers will fail on it
    Warning,
    /// It breaks the protocol
    Error,
}

/// A check of the linter.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LintRule {
    /// Its id, in filters and for programs.
    pub id: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// A sentence for people.
    #[serde(rename = "message")]
    pub description: &'static str,
}

/// Something that is wrong in a conversation: a violation of the schema, or of its sequence.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The number of the event; in a capture, of the line.
    pub n: u64,
    /// Its time, in microseconds since the recording began.
    pub t: u64,
    /// The rule that was violated.
    #[serde(flatten)]
    pub rule: &'static LintRule,
    /// The side that caused it, where known.
    pub side: Option<Side>,
    /// The kind of the message, if it is one.
    #[serde(skip)]
    pub kind: Option<Kind>,
    /// The method of the message.
    pub method: Option<String>,
    /// The details for people; quoted text is verbatim.
    pub what: String,
    /// The violation of the schema, if it is one.
    #[serde(skip)]
    pub violation: Option<Violation>,
    /// The rules of dialects that repair it.
    #[serde(skip)]
    pub remedies: Vec<Remedy>,
    /// The rule of an earlier finding that this one replaces, because the relay's translation
    /// repaired it.
    #[serde(skip)]
    pub repaired_from: Option<&'static LintRule>,
}

/// A rule of a dialect that repairs a violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Its id, as `table/rule`.
    pub rule: String,
    /// Why the rule exists.
    pub why: String,
}

impl Finding {
    /// A violation of the schema by a message at the place `n`.
    #[must_use]
    pub fn of_violation(n: u64, message: &CheckedMessage, violation: Violation) -> Self {
        let rule = match (for_violation(violation.kind), violation.consequence) {
            (rule, Consequence::Refused) => rule,
            (rule, _) if rule == &UNKNOWN_MEMBER => rule,
            (_, Consequence::Ignored) => &FORGIVEN,
        };
        let found = violation.found.as_deref().unwrap_or("nothing");
        let what = match violation.pointer.as_str() {
            "" => found.to_owned(),
            pointer => format!("{pointer}: {found}; wanted: {}", violation.expected),
        };
        Self {
            rule,
            n,
            t: 0,
            side: message.from,
            kind: message.kind,
            method: message.method.clone(),
            what,
            violation: Some(violation),
            remedies: Vec::new(),
            repaired_from: None,
        }
    }

    /// Whether it is what the agent says differently, and no rule repairs it although one could.
    #[must_use]
    pub fn is_of_dialect(&self) -> bool {
        let violation = self.violation.as_ref();
        self.side == Some(Side::Agent)
            && self.remedies.is_empty()
            && self.repaired_from.is_none()
            && violation.is_some_and(|violation| violation.kind.is_of_dialect())
    }
}

macro_rules! catalogue {
    ($($name:ident $id:literal $severity:ident $description:literal)*) => {
        $(pub(super) static $name: LintRule = LintRule { id: $id, severity: Severity::$severity, description: $description };)*
        /// All rules.
        pub static RULES: &[&LintRule] = &[$(&$name),*];
    };
}

catalogue! {
    NOISE "noise" Error "Output that is not JSON, such as a log line on stdout."
    NOT_JSON_RPC "not-json-rpc" Error "JSON that is no JSON-RPC message."
    BATCH "batch" Error "A JSON-RPC batch; ACP has none."
    NUMBER_RANGE "number-range" Error "A number beyond what programs can hold at all."
    LONE_SURROGATE "lone-surrogate" Warning "Half of a surrogate pair; many programs refuse the message or show a box."
    BIG_NUMBER "big-number" Warning "An integer beyond 2^53; programs in JavaScript read a different one."
    UNANSWERED "unanswered" Error "A request that never got its answer."
    ANSWERED_TWICE "answered-twice" Error "A second answer to one request."
    ANSWER_WITHOUT_REQUEST "answer-without-request" Error "An answer that belongs to no request."
    DUPLICATE_ID "duplicate-id" Error "A request with the id of another open one of the same side."
    UNKNOWN_METHOD "unknown-method" Warning "A method that is neither in the schema nor begins with `_`."
    WRONG_SIDE "wrong-side" Error "A method that the other side is to call."
    MISSING_MEMBER "schema-missing-member" Error "A member that the schema requires is missing."
    WRONG_TYPE "schema-wrong-type" Error "A value of another JSON type than the schema requires."
    UNKNOWN_VARIANT "schema-unknown-variant" Error "A union's discriminator names no variant of the schema."
    UNKNOWN_VALUE "schema-unknown-value" Error "A value that is not one of those the schema allows."
    OUT_OF_RANGE "schema-out-of-range" Error "A number or text outside of the schema's bounds."
    UNKNOWN_MEMBER "schema-unknown-member" Hint "A member the schema does not name; readers ignore it."
    REPAIRED "schema-repaired" Hint "A schema violation that a rule repaired before the message was forwarded."
    FORGIVEN "schema-forgiven" Hint "A schema violation that official readers replace by a default."
    NOT_INITIALIZED "not-initialized" Error "A message was sent before `initialize` was answered."
    INITIALIZED_TWICE "initialized-twice" Warning "A second `initialize`."
    NOT_CAPABLE "not-capable" Error "A method that the other side has not announced as a capability."
    UNKNOWN_SESSION "unknown-session" Warning "A session that was not opened in this conversation."
    EARLY_UPDATE "early-update" Hint "An update of a session whose id the client has not received yet."
    TURN_IN_TURN "turn-in-turn" Warning "A prompt in a session whose turn is not over."
    UPDATE_OUTSIDE_TURN "update-outside-turn" Warning "The agent sends output or tool calls in a session before any prompt."
    LATE_HISTORY "late-history" Warning "A loaded session is replayed after `session/load` was answered."
    UPDATE_AFTER_TURN "update-after-turn" Warning "The agent sends output or tool calls in a session whose turn is over."
    UNKNOWN_TOOL "unknown-tool" Warning "An update of a tool call that was not announced."
    PERMISSION_UNKNOWN_TOOL "permission-unknown-tool" Warning "A permission request for a tool call that was not announced."
    UNKNOWN_OPTION "unknown-option" Error "A permission is answered with an option that was not offered."
    TOOL_OPEN "tool-open" Hint "A turn ends while a tool call is neither completed nor failed."
    CANCEL_IGNORED "cancel-ignored" Error "A turn that was cancelled ends with another stop reason than `cancelled`."
    PERMISSION_AFTER_CANCEL "permission-after-cancel" Warning "A permission that was open at a cancel is not answered `cancelled`."
    RELATIVE_PATH "relative-path" Error "A path that is not absolute where the protocol requires one."
    MISSING_EVENTS "missing-events" Hint "The recording has a gap; later findings may be caused by it."
}

/// The rule for a violation of the schema.
fn for_violation(kind: ViolationKind) -> &'static LintRule {
    match kind {
        ViolationKind::NotJson => &NOISE,
        ViolationKind::Batch => &BATCH,
        ViolationKind::Unreadable => &NUMBER_RANGE,
        ViolationKind::UnmatchedAnswer => &ANSWER_WITHOUT_REQUEST,
        ViolationKind::ReusedId => &DUPLICATE_ID,
        ViolationKind::UnknownMethod => &UNKNOWN_METHOD,
        ViolationKind::WrongSide => &WRONG_SIDE,
        ViolationKind::MissingMember => &MISSING_MEMBER,
        ViolationKind::WrongType => &WRONG_TYPE,
        ViolationKind::UnknownVariant => &UNKNOWN_VARIANT,
        ViolationKind::UnknownValue => &UNKNOWN_VALUE,
        ViolationKind::OutOfRange => &OUT_OF_RANGE,
        ViolationKind::UnknownMember => &UNKNOWN_MEMBER,
        _ => &NOT_JSON_RPC,
    }
}

impl Severity {
    /// `hint`, `warning` or `error`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

//! Calling an action by its name.
//!
//! Not here: what each one does.

use crate::dialect::asked::Asked;
use crate::dialect::message::Message;
use crate::dialect::outcome::Outcome;
use crate::dialect::pointer::Place;
use crate::dialect::table::{Action, Case, Way};
use crate::dialect::translate::Translator;
use crate::dialect::tree::Node;

/// What an action may see and leave behind besides its message.
#[derive(Debug)]
pub(in crate::dialect) struct Scene<'s, 'a> {
    pub(in crate::dialect) way: Way,
    /// The message as it came.
    pub(in crate::dialect) original: &'s Message<'a>,
    /// Messages that go on before this one.
    pub(in crate::dialect) before: Vec<Message<'a>>,
    /// Why this one does not go on now.
    pub(in crate::dialect) hold: Option<String>,
    /// The error that its sender is answered with instead.
    pub(in crate::dialect) refuse: Option<&'static [u8]>,
}

impl Action {
    /// The names in tables.
    pub const ALL: [(&'static str, Self); 10] = [
        ("find_tool_call", Self::FindToolCall),
        ("tell_permission", Self::TellPermission),
        ("rebuild_config_options", Self::RebuildConfigOptions),
        ("reject_unsupported", Self::RejectUnsupported),
        ("stop_reason_of_turn", Self::StopReasonOfTurn),
        ("only_new_text", Self::OnlyNewText),
        ("number_tool_call", Self::NumberToolCall),
        ("number_update", Self::NumberUpdate),
        ("ask_confirmation", Self::AskConfirmation),
        ("open_session", Self::OpenSession),
    ];
}

impl Translator {
    /// Calls the actions of the cases, in order.
    pub(in crate::dialect) fn act<'a>(
        &mut self,
        message: &mut Message<'a>,
        asked: &mut Asked,
        cases: &[&Case],
        scene: &mut Scene<'_, 'a>,
        out: &mut Outcome,
    ) {
        for action in cases.iter().flat_map(|case| &case.actions) {
            match action {
                Action::FindToolCall => self.find_tool_call(message, scene.way),
                Action::TellPermission => tell_permission(message, scene.way),
                Action::RebuildConfigOptions => self.rebuild_options(message, asked, scene.way),
                Action::RejectUnsupported => self.reject_unsupported(message, asked, out),
                Action::StopReasonOfTurn if scene.way == Way::Write => {
                    self.explain_stop(message, asked)
                }
                Action::StopReasonOfTurn => self.stop_reason(message, asked, scene.way),
                // It has a say when further messages are made.
                Action::OnlyNewText => {}
                Action::NumberToolCall | Action::NumberUpdate
                    if *action == Action::NumberUpdate && scene.way == Way::Read => {}
                Action::NumberToolCall | Action::NumberUpdate => {
                    self.number_tool_call(message, asked, scene, out)
                }
                Action::AskConfirmation => self.ask_confirmation(message, asked, scene),
                Action::OpenSession => self.open_session(message, scene, out),
            }
        }
    }
}

/// A pointer of ours.
pub(super) fn place(text: &str) -> Place {
    Place::parse(text).expect("a pointer of ours parses")
}

/// Puts a value into a message; where a scalar is in the way nothing happens.
pub(super) fn set<'a>(message: &mut Message<'a>, at: &str, value: Node<'a>) {
    if message.body.put(place(at).names(), value).is_ok() {
        message.changed = true;
    }
}

pub(super) use super::talk::tell_permission;

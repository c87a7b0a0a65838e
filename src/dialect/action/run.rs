//! Calls the actions of a rule by name.

use crate::dialect::asked::Asked;
use crate::dialect::message::Message;
use crate::dialect::outcome::Outcome;
use crate::dialect::pointer::Place;
use crate::dialect::table::{Action, Case, Way};
use crate::dialect::translate::Translator;
use crate::dialect::tree::Node;

/// What an action can read and change besides its message.
#[derive(Debug)]
pub(in crate::dialect) struct Scene<'s, 'a> {
    pub(in crate::dialect) way: Way,
    /// The message as it was received.
    pub(in crate::dialect) original: &'s Message<'a>,
    /// Messages to send before this one.
    pub(in crate::dialect) before: Vec<Message<'a>>,
    /// Why this message is not forwarded now.
    pub(in crate::dialect) hold: Option<String>,
    /// The error to answer the sender with instead of forwarding the message.
    pub(in crate::dialect) refuse: Option<Box<[u8]>>,
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
                Action::FindToolCall => self.find_tool_call(message, scene),
                Action::TellPermission => tell_permission(message, scene.way),
                Action::RebuildConfigOptions => self.rebuild_options(message, asked, scene.way),
                Action::RejectUnsupported => self.reject_unsupported(message, asked, out),
                Action::StopReasonOfTurn if scene.way == Way::Write => {
                    self.explain_stop(message, asked)
                }
                Action::StopReasonOfTurn => self.stop_reason(message, asked, scene.way),
                // It takes effect when further messages are made.
                Action::OnlyNewText => {}
                Action::NumberToolCall | Action::NumberUpdate
                    if *action == Action::NumberUpdate && scene.way == Way::Read => {}
                Action::NumberToolCall | Action::NumberUpdate => {
                    self.number_tool_call(message, asked, scene, out)
                }
                Action::AskConfirmation => self.ask_confirmation(message, asked, scene),
                Action::OpenSession => self.open_session(message, scene, out),
                Action::ModelOption => self.model_option(message, asked, scene.way, out),
                Action::ModeOption if scene.way == Way::Read => {
                    self.mode_option(message, asked, scene);
                }
                Action::ChooseMode if scene.way == Way::Write => self.choose_mode(message),
                Action::SetModel if scene.way == Way::Read => self.set_model(message),
                Action::ModelsOfOptions if scene.way == Way::Write => models_of_options(message),
                Action::ModelsUpdate if scene.way == Way::Read => self.models_update(message, out),
                Action::CancelledTurn if scene.way == Way::Read => {
                    self.cancelled_turn(message, asked);
                }
                Action::FailTurn if scene.way == Way::Read => fail_turn(message),
                Action::AnnounceToolCall => self.announce_tool_call(message, scene),
                Action::BeginToolCall if scene.way == Way::Read => self.begin_tool_call(message),
                Action::DenyWithOption if scene.way == Way::Read => {
                    self.deny_with_option(message, asked, out);
                }
                Action::AcceptUnsupported if scene.way == Way::Read => {
                    accept_unsupported(message, out);
                }
                Action::MissingSession if scene.way == Way::Read => {
                    missing_session(message, asked);
                }
                Action::AbsolutePaths => self.absolute_paths(message, asked, scene.way),
                Action::PlainPath if scene.way == Way::Read => plain_path(message),
                Action::AuthMethod => self.auth_method(message, scene.way),
                Action::SliceLines if scene.way == Way::Read => self.slice_lines(message, asked),
                Action::PlainEnvelope if scene.way == Way::Read => plain_envelope(message),
                Action::IsoTimes if scene.way == Way::Read => iso_times(message),
                Action::PlainCommands if scene.way == Way::Read => plain_commands(message),
                Action::MergePlan if scene.way == Way::Read => self.merge_plan(message, scene),
                // These work in one direction only.
                Action::ModeOption
                | Action::ChooseMode
                | Action::SetModel
                | Action::ModelsOfOptions
                | Action::ModelsUpdate
                | Action::CancelledTurn
                | Action::FailTurn
                | Action::BeginToolCall
                | Action::DenyWithOption
                | Action::AcceptUnsupported
                | Action::MissingSession
                | Action::PlainPath
                | Action::SliceLines
                | Action::PlainEnvelope
                | Action::IsoTimes
                | Action::PlainCommands
                | Action::MergePlan => {}
            }
        }
    }
}

/// Parses a pointer that is written in this source.
pub(super) fn place(text: &str) -> Place {
    Place::parse(text).expect("a pointer of ours parses")
}

/// Puts a value into a message; nothing happens where a scalar blocks the pointer.
pub(super) fn set<'a>(message: &mut Message<'a>, at: &str, value: Node<'a>) {
    if message.body.put(place(at).names(), value).is_ok() {
        message.changed = true;
    }
}

use super::model::models_of_options;
use super::plain::{iso_times, plain_commands, plain_envelope, plain_path};
pub(super) use super::talk::tell_permission;
use super::turn::{accept_unsupported, fail_turn, missing_session};

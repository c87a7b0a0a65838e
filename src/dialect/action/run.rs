//! Calls the actions of a rule by name.

use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::pointer::JsonPointer;
use crate::dialect::table::{Action, Case, Way};
use crate::dialect::translation::Translation;
use crate::dialect::translator::Translator;
use crate::dialect::tree::Node;

/// What an action can read and change besides its message.
#[derive(Debug)]
pub(in crate::dialect) struct ActionContext<'s, 'a> {
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
    pub(in crate::dialect) fn run_actions<'a>(
        &mut self,
        message: &mut Message<'a>,
        pending: &mut PendingRequest,
        cases: &[&Case],
        context: &mut ActionContext<'_, 'a>,
        out: &mut Translation,
    ) {
        for action in cases.iter().flat_map(|case| &case.actions) {
            match action {
                Action::FindToolCall => self.find_tool_call(message, context),
                Action::TellPermission => tell_permission(message, context.way),
                Action::RebuildConfigOptions => self.rebuild_options(message, pending, context.way),
                Action::RejectUnsupported => self.reject_unsupported(message, pending, out),
                Action::StopReasonOfTurn if context.way == Way::Write => {
                    self.explain_stop(message, pending)
                }
                Action::StopReasonOfTurn => self.stop_reason(message, pending, context.way),
                // It takes effect when further messages are made.
                Action::OnlyNewText => {}
                Action::NumberToolCall | Action::NumberUpdate
                    if *action == Action::NumberUpdate && context.way == Way::Read => {}
                Action::NumberToolCall | Action::NumberUpdate => {
                    self.number_tool_call(message, pending, context, out)
                }
                Action::AskConfirmation => self.ask_confirmation(message, pending, context),
                Action::OpenSession => self.open_session(message, context, out),
                Action::ModelOption => self.model_option(message, pending, context.way, out),
                Action::ModeOption if context.way == Way::Read => {
                    self.mode_option(message, pending, context);
                }
                Action::ChooseMode if context.way == Way::Write => self.choose_mode(message),
                Action::SetModel if context.way == Way::Read => self.set_model(message),
                Action::ModelsOfOptions if context.way == Way::Write => models_of_options(message),
                Action::ModelsUpdate if context.way == Way::Read => {
                    self.models_update(message, out)
                }
                Action::CancelledTurn if context.way == Way::Read => {
                    self.cancelled_turn(message, pending);
                }
                Action::FailTurn if context.way == Way::Read => fail_turn(message),
                Action::AnnounceToolCall => self.announce_tool_call(message, context),
                Action::BeginToolCall if context.way == Way::Read => self.begin_tool_call(message),
                Action::DenyWithOption if context.way == Way::Read => {
                    self.deny_with_option(message, pending, out);
                }
                Action::AcceptUnsupported if context.way == Way::Read => {
                    accept_unsupported(message, out);
                }
                Action::MissingSession if context.way == Way::Read => {
                    missing_session(message, pending);
                }
                Action::AbsolutePaths => self.absolute_paths(message, pending, context.way),
                Action::PlainPath if context.way == Way::Read => plain_path(message),
                Action::AuthMethod => self.auth_method(message, context.way),
                Action::SliceLines if context.way == Way::Read => {
                    self.slice_lines(message, pending)
                }
                Action::PlainEnvelope if context.way == Way::Read => plain_envelope(message),
                Action::IsoTimes if context.way == Way::Read => iso_times(message),
                Action::PlainCommands if context.way == Way::Read => plain_commands(message),
                Action::MergePlan if context.way == Way::Read => self.merge_plan(message, context),
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
pub(super) fn pointer(text: &str) -> JsonPointer {
    JsonPointer::parse(text).expect("a pointer of ours parses")
}

/// Puts a value into a message; nothing happens where a scalar blocks the pointer.
pub(super) fn set<'a>(message: &mut Message<'a>, at: &str, value: Node<'a>) {
    if message.body.put(pointer(at).names(), value).is_ok() {
        message.changed = true;
    }
}

use super::model::models_of_options;
use super::normalize::{iso_times, plain_commands, plain_envelope, plain_path};
pub(super) use super::repair::tell_permission;
use super::turn::{accept_unsupported, fail_turn, missing_session};

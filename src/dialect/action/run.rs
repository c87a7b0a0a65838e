//! Calls the actions of a rule by name.

use super::context::ActionContext;
use super::model::models_of_options;
use super::normalize::{
    iso_times, remove_command_slashes, remove_dot_segments, remove_envelope_type,
};
use super::repair::join_permission_title;
use super::turn::{accept_unsupported, fail_turn, missing_session};
use crate::dialect::message::Message;
use crate::dialect::pending::PendingRequest;
use crate::dialect::table::{Action, Case, Way};
use crate::dialect::translation::Translation;
use crate::dialect::translator::Translator;

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
        let way = context.way;
        let actions = cases.iter().flat_map(|case| &case.actions);
        for action in actions {
            match (action, way) {
                (Action::FindToolCall, _) => self.find_tool_call(message, context),
                (Action::JoinPermissionTitle, _) => join_permission_title(message, way),
                (Action::RebuildConfigOptions, _) => self.rebuild_options(message, pending, way),
                (Action::RejectUnsupported, _) => self.reject_unsupported(message, pending, out),
                (Action::StopReasonOfTurn, Way::Read) => self.stop_reason(message, pending),
                (Action::StopReasonOfTurn, Way::Write) => self.explain_stop(message, pending),
                (Action::NumberToolCall, _) | (Action::NumberUpdate, Way::Write) => {
                    self.number_tool_call(message, pending, context, out);
                }
                (Action::AskConfirmation, _) => self.ask_confirmation(message, pending, context),
                (Action::OpenSession, _) => self.open_session(message, context, out),
                (Action::ModelOption, _) => self.model_option(message, pending, way, out),
                (Action::ModeOption, Way::Read) => self.mode_option(message, pending, context),
                (Action::ChooseMode, Way::Write) => self.choose_mode(message),
                (Action::SetModel, Way::Read) => self.set_model(message),
                (Action::ModelsOfOptions, Way::Write) => models_of_options(message),
                (Action::ModelsUpdate, Way::Read) => self.models_update(message, out),
                (Action::CancelledTurn, Way::Read) => self.cancelled_turn(message, pending),
                (Action::FailTurn, Way::Read) => fail_turn(message),
                (Action::AnnounceToolCall, _) => self.announce_tool_call(message, context),
                (Action::BeginToolCall, Way::Read) => self.begin_tool_call(message),
                (Action::DenyWithOption, Way::Read) => self.deny_with_option(message, pending, out),
                (Action::AcceptUnsupported, Way::Read) => accept_unsupported(message, out),
                (Action::MissingSession, Way::Read) => missing_session(message, pending),
                (Action::AbsolutePaths, _) => self.absolute_paths(message, pending, way),
                (Action::RemoveDotSegments, Way::Read) => remove_dot_segments(message),
                (Action::AuthMethod, _) => self.auth_method(message, way),
                (Action::SliceLines, Way::Read) => self.slice_lines(message, pending),
                (Action::RemoveEnvelopeType, Way::Read) => remove_envelope_type(message),
                (Action::IsoTimes, Way::Read) => iso_times(message),
                (Action::RemoveCommandSlashes, Way::Read) => remove_command_slashes(message),
                (Action::MergePlan, Way::Read) => self.merge_plan(message, context),
                // Some work in one way only. `only_new_text` works when further messages are made.
                _ => {}
            }
        }
    }
}

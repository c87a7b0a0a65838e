//! Calls the actions of a rule by name.

use super::normalize::{
    iso_times, remove_command_slashes, remove_dot_segments, remove_envelope_type,
};
use super::options::models_of_options;
use super::repair::{join_permission_title, reject_unsupported};
use super::turn::{accept_unsupported, fail_turn, missing_session};
use crate::message::Message;
use crate::step::Step;
use crate::table::{Action, Case, Way};
use crate::translator::Translator;

impl Translator {
    /// Calls the actions of the cases, in order.
    pub(crate) fn run_actions<'a>(
        &mut self,
        cases: &[&Case],
        message: &mut Message<'a>,
        step: &mut Step<'_, 'a>,
    ) {
        for action in cases.iter().flat_map(|case| &case.actions) {
            match (action, step.way) {
                (Action::FindToolCall, _) => self.find_tool_call(message, step),
                (Action::JoinPermissionTitle, _) => join_permission_title(message, step),
                (Action::RebuildConfigOptions, Way::Read) => self.rebuild_options(message, step),
                (Action::RejectUnsupported, _) => reject_unsupported(message, step),
                (Action::StopReasonOfTurn, Way::Read) => self.stop_reason(message, step),
                (Action::StopReasonOfTurn, Way::Write) => self.explain_stop(message, step),
                (Action::NumberToolCall, _) | (Action::NumberUpdate, Way::Write) => {
                    self.number_tool_call(message, step);
                }
                (Action::AskConfirmation, _) => self.ask_confirmation(message, step),
                (Action::OpenSession, _) => self.open_session(message, step),
                (Action::ModelOption, _) => self.model_option(message, step),
                (Action::ModeOption, Way::Read) => self.mode_option(message, step),
                (Action::ChooseMode, Way::Write) => self.choose_mode(message),
                (Action::SetModel, Way::Read) => self.set_model(message),
                (Action::ModelsOfOptions, Way::Write) => models_of_options(message),
                (Action::ModelsUpdate, Way::Read) => self.models_update(message, step),
                (Action::CancelledTurn, Way::Read) => self.cancelled_turn(message, step),
                (Action::FailTurn, Way::Read) => fail_turn(message),
                (Action::AnnounceToolCall, _) => self.announce_tool_call(message, step),
                (Action::BeginToolCall, Way::Read) => self.begin_tool_call(message),
                (Action::DenyWithOption, Way::Read) => self.deny_with_option(message, step),
                (Action::AcceptUnsupported, Way::Read) => accept_unsupported(message, step),
                (Action::MissingSession, Way::Read) => missing_session(message, step),
                (Action::AbsolutePaths, _) => self.absolute_paths(message, step),
                (Action::RemoveDotSegments, Way::Read) => remove_dot_segments(message),
                (Action::AuthMethod, _) => self.auth_method(message, step),
                (Action::SliceLines, Way::Read) => self.slice_lines(message, step),
                (Action::RemoveEnvelopeType, Way::Read) => remove_envelope_type(message),
                (Action::IsoTimes, Way::Read) => iso_times(message),
                (Action::RemoveCommandSlashes, Way::Read) => remove_command_slashes(message),
                (Action::MergePlan, Way::Read) => self.merge_plan(message, step),
                (Action::PastTerminals, Way::Read) => self.past_terminals(message, step),
                // Some work in one way only. `only_new_text` works when further messages are made.
                _ => {}
            }
        }
    }
}

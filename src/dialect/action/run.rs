//! Calls the actions of a rule by name.

use super::context::ActionContext;
use super::model::models_of_options;
use super::normalize::{iso_times, plain_commands, plain_envelope, plain_path};
use super::repair::tell_permission;
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
        for action in actions.filter(|action| action.works(way)) {
            match action {
                Action::FindToolCall => self.find_tool_call(message, context),
                Action::TellPermission => tell_permission(message, way),
                Action::RebuildConfigOptions => self.rebuild_options(message, pending, way),
                Action::RejectUnsupported => self.reject_unsupported(message, pending, out),
                Action::StopReasonOfTurn => match way {
                    Way::Read => self.stop_reason(message, pending),
                    Way::Write => self.explain_stop(message, pending),
                },
                // It takes effect when further messages are made.
                Action::OnlyNewText => {}
                Action::NumberToolCall | Action::NumberUpdate => {
                    self.number_tool_call(message, pending, context, out);
                }
                Action::AskConfirmation => self.ask_confirmation(message, pending, context),
                Action::OpenSession => self.open_session(message, context, out),
                Action::ModelOption => self.model_option(message, pending, way, out),
                Action::ModeOption => self.mode_option(message, pending, context),
                Action::ChooseMode => self.choose_mode(message),
                Action::SetModel => self.set_model(message),
                Action::ModelsOfOptions => models_of_options(message),
                Action::ModelsUpdate => self.models_update(message, out),
                Action::CancelledTurn => self.cancelled_turn(message, pending),
                Action::FailTurn => fail_turn(message),
                Action::AnnounceToolCall => self.announce_tool_call(message, context),
                Action::BeginToolCall => self.begin_tool_call(message),
                Action::DenyWithOption => self.deny_with_option(message, pending, out),
                Action::AcceptUnsupported => accept_unsupported(message, out),
                Action::MissingSession => missing_session(message, pending),
                Action::AbsolutePaths => self.absolute_paths(message, pending, way),
                Action::PlainPath => plain_path(message),
                Action::AuthMethod => self.auth_method(message, way),
                Action::SliceLines => self.slice_lines(message, pending),
                Action::PlainEnvelope => plain_envelope(message),
                Action::IsoTimes => iso_times(message),
                Action::PlainCommands => plain_commands(message),
                Action::MergePlan => self.merge_plan(message, context),
            }
        }
    }
}

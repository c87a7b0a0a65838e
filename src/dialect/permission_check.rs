//! Applies the checks of `permission` to the answer that a table has made.

use super::message::Message;
use super::pending::PendingRequest;
use super::permission::{self, PermissionAnswer};
use super::translation::{DialectEvent, Translation};
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{Kind, reply};

impl Translator {
    /// Checks a permission answer in canonical, and corrects it.
    pub(super) fn check_read(
        &self,
        message: &mut Message<'_>,
        pending: &PendingRequest,
        original: Option<&Node<'_>>,
        out: &mut Translation,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = pending.offered.clone().unwrap_or_default();
        let answer = PermissionAnswer::read(&message.body.json());
        let checked = match original {
            Some(original) => permission::check_read(&original.json(), &offered, &answer),
            None => offered.resolve(&answer),
        };
        if let Some(repair) = checked.correction {
            message.body = Node::owned(checked.answer.result());
            message.changed = true;
            out.note(DialectEvent::Permission, None, repair);
        }
    }

    /// Checks a permission answer as it is written to the dialect.
    pub(super) fn check_written(
        message: &mut Message<'_>,
        canonical: &Node<'_>,
        pending: &PendingRequest,
        out: &mut Translation,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = pending.offered.clone().unwrap_or_default();
        let answer = PermissionAnswer::read(&canonical.json());
        if permission::check_write(&answer, &offered, &message.body.json()) {
            return;
        }
        let reason = "the translation would change the meaning of the answer; it failed closed";
        let error = format!(
            "{{\"code\":{},\"message\":{reason:?}}}",
            reply::UNTRANSLATABLE
        );
        message.kind = Kind::Error;
        message.body = Node::owned(error.into_bytes());
        message.changed = true;
        out.note(DialectEvent::Permission, None, reason);
    }
}

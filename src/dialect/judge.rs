//! Applies the checks of `permission` to the answer that a table has made.

use super::asked::Asked;
use super::message::Message;
use super::outcome::{Happened, Outcome};
use super::permission::{self, Verdict};
use super::translate::Translator;
use super::tree::Node;
use crate::jsonrpc::{Kind, reply};

impl Translator {
    /// Checks a permission answer in canonical, and corrects it.
    pub(super) fn place_answer(
        &self,
        message: &mut Message<'_>,
        asked: &Asked,
        said: Option<&Node<'_>>,
        out: &mut Outcome,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = asked.offered.clone().unwrap_or_default();
        let verdict = Verdict::read(&message.body.json());
        let ruling = match said {
            Some(said) => permission::judge_read(&said.json(), &offered, &verdict),
            None => offered.place(&verdict),
        };
        if let Some(repair) = ruling.repair {
            message.body = Node::made(ruling.verdict.result());
            message.changed = true;
            out.note(Happened::Permission, None, repair);
        }
    }

    /// Checks a permission answer as it is written to the dialect.
    pub(super) fn check_written(
        message: &mut Message<'_>,
        canonical: &Node<'_>,
        asked: &Asked,
        out: &mut Outcome,
    ) {
        if message.kind != Kind::Result {
            return;
        }
        let offered = asked.offered.clone().unwrap_or_default();
        let verdict = Verdict::read(&canonical.json());
        if permission::judge_write(&verdict, &offered, &message.body.json()) {
            return;
        }
        let why = "the translation would change the meaning of the answer; it failed closed";
        let error = format!("{{\"code\":{},\"message\":{why:?}}}", reply::UNTRANSLATABLE);
        message.kind = Kind::Error;
        message.body = Node::made(error.into_bytes());
        message.changed = true;
        out.note(Happened::Permission, None, why);
    }
}

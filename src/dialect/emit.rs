//! Further messages, made from the parts of a message that passes. `step` decides when.

use super::message::Message;
use super::pending::PendingRequest;
use super::pointer::JsonPointer;
use super::program::Layer;
use super::rewrite::{RewriteError, Rewriter};
use super::table::{Action, Case, Emit, Recall, Row};
use super::translator::Translator;
use super::tree::Node;
use crate::jsonrpc::{IdBuf, Kind};

impl Translator {
    /// Makes further messages from the parts of the current one.
    pub(super) fn emit<'a>(
        &mut self,
        layer: &'a Layer,
        emit: &'a Emit,
        cases: &[&Case],
        original: &Message<'a>,
        pending: &PendingRequest,
        next: &mut Vec<Message<'a>>,
    ) {
        let mut sources = vec![original.body.clone()];
        if let Some(place) = &emit.each {
            let mut body = original.body.clone();
            let Some(list) = body.get_mut(place.names()) else {
                return;
            };
            let once = cases
                .iter()
                .any(|case| case.actions.contains(&Action::OnlyNewText));
            if once && self.was_streamed(pending, list) {
                return;
            }
            sources = list.items().cloned().unwrap_or_default();
        }
        let session = self.session_of(original, pending);
        for source in sources {
            let this = &*self;
            let recall =
                |recall: &Recall, key: Option<&str>| this.recall(recall, key, &session, pending);
            let mut rewriter = Rewriter {
                way: emit.way,
                shapes: &layer.table.shapes,
                recall: &recall,
                changed: false,
                dropped: Vec::new(),
                unmatched: Vec::new(),
                unnamed: 0,
            };
            if let Ok(body) = rewriter.build(&source, &emit.rows) {
                let made = Message::new(Kind::Notification, IdBuf::Absent, &emit.method, body);
                next.push(made);
            }
        }
    }
}

impl<'a> Rewriter<'a, '_> {
    /// Makes a new value from another one by rows.
    fn build(&mut self, source: &Node<'a>, rows: &'a [Row]) -> Result<Node<'a>, RewriteError> {
        let mut made = Node::Absent;
        for row in rows {
            self.build_row(source, row, &mut made)?;
        }
        Ok(made)
    }

    fn build_row(
        &mut self,
        source: &Node<'a>,
        row: &'a Row,
        made: &mut Node<'a>,
    ) -> Result<(), RewriteError> {
        let whole = JsonPointer::parse("").expect("the empty pointer parses");
        let after = row
            .after(self.way)
            .cloned()
            .unwrap_or_else(|| whole.clone());
        // The row's source column is moved to a separate object so that it cannot collide with the
        // result.
        let mut scope = Node::object(Vec::new());
        if let Some(before) = row.before(self.way) {
            let mut source = source.clone();
            if let Some(value) = source.get_mut(before.names()) {
                let value = value.clone();
                let blocked = |_| RewriteError::Blocked(before.to_string());
                if before.names().is_empty() {
                    scope = value;
                } else {
                    scope.put(before.names(), value).map_err(blocked)?;
                }
            } else if row.fill.is_none() {
                return Ok(());
            }
        }
        self.rows(&mut scope, std::slice::from_ref(row))?;
        let Some(value) = scope.take(after.names()) else {
            return Ok(());
        };
        made.put(after.names(), value)
            .map_err(|_| RewriteError::Blocked(after.to_string()))
    }
}

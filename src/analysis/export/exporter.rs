//! Visits the events of a conversation and has a format write them.

use serde::Serialize;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use super::json::{Captured, Devtools, Jsons, Plain};
use super::text::{Markdown, Mermaid};
use super::{Exported, Format};
use crate::chunk_run::{ChunkFolder, ChunkRun};
use jsonrpc::Side;
use recording::{EventKind, Exchanges, Header, RecordedEvent, View};

/// A format in which a conversation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ExportFormat {
    /// For the official trace viewer
    Jsons,
    /// A sequence diagram
    Mermaid,
    /// A transcript, turn by turn
    Md,
    /// The messages alone, one a line
    Ndjson,
    /// The messages with direction and time, one a line
    Capture,
    /// For acp-devtools
    Devtools,
}

/// Writes a conversation.
#[derive(Debug)]
pub struct Exporter {
    format: Box<dyn Format>,
    view: View,
    /// The format has runs of chunks.
    folds: bool,
    chunks: ChunkFolder,
    conversation: Exchanges,
    header: Option<Header>,
    /// The time of the last message.
    last: u64,
    /// What was written and not taken.
    out: Vec<u8>,
    /// What became of the messages so far.
    pub counts: ExportCounts,
}

/// How many messages were written, and how many not.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ExportCounts {
    /// Written.
    pub messages: u64,
    /// The format cannot represent them.
    pub left_out: u64,
    /// Their bodies were not recorded.
    pub bodiless: u64,
}

impl ExportFormat {
    /// The view that it shows if none is chosen.
    pub const fn default_view(self) -> View {
        match self {
            Self::Md | Self::Mermaid => View::At(Side::Client),
            _ => View::Received,
        }
    }

    fn begin(self) -> Box<dyn Format> {
        match self {
            Self::Jsons => Box::new(Jsons),
            Self::Mermaid => Box::new(Mermaid),
            Self::Md => Box::new(Markdown::default()),
            Self::Ndjson => Box::new(Plain),
            Self::Capture => Box::new(Captured),
            Self::Devtools => Box::new(Devtools::default()),
        }
    }
}

impl Exporter {
    /// Writes that view in that format.
    pub fn new(to: ExportFormat, view: View) -> Self {
        Self {
            format: to.begin(),
            view,
            folds: matches!(to, ExportFormat::Md | ExportFormat::Mermaid),
            chunks: ChunkFolder::default(),
            conversation: Exchanges::default(),
            header: None,
            last: 0,
            out: Vec::new(),
            counts: ExportCounts::default(),
        }
    }

    /// Adds a header; the first one counts.
    pub fn header(&mut self, header: &Header) {
        if self.header.is_none() {
            self.last = header.began;
            self.begin(header.clone());
        }
    }

    /// Adds an event. One outside of the view may show which request an answer belongs to.
    pub fn event(&mut self, event: &RecordedEvent, in_view: bool) {
        // The line of the header may be damaged.
        if self.header.is_none() {
            self.begin(Header::default());
        }
        self.conversation.add(event);
        if !in_view {
            return;
        }
        let exchange = self.conversation.exchange_in(self.view, event.n);
        let exchange = exchange.filter(|one| one.n != event.n);
        let took = exchange.map(|exchange| event.t.saturating_sub(exchange.requested_at));
        let mut text = Vec::new();
        match &event.kind {
            EventKind::Message(message) => {
                let began = self.header.as_ref().map_or(0, |header| header.began);
                let exported = Exported::new(event, message, began, took);
                let written = exported.map(|exported| {
                    self.last = exported.at;
                    let chunk = ChunkRun::from_event(event).filter(|_| self.folds);
                    let Some(chunk) = chunk else {
                        return self.format.message(&exported, &mut text);
                    };
                    if let Some(run) = self.chunks.add(chunk) {
                        self.format.run(&run, &mut self.out);
                    }
                    true
                });
                *(match written {
                    Some(true) => &mut self.counts.messages,
                    Some(false) => &mut self.counts.left_out,
                    None => &mut self.counts.bodiless,
                }) += 1;
            }
            _ => self.format.event(event, &mut text),
        }
        // An event that the format does not show does not end a run.
        if !text.is_empty() {
            self.end_run();
            self.out.extend(text);
        }
    }

    /// Ends the conversation.
    pub fn end(&mut self) {
        self.end_run();
        let header = self.header.take().unwrap_or_default();
        self.format.end(&header, self.last, &mut self.out);
    }

    /// Takes what was written so far, if it is more than `most` bytes.
    pub fn take(&mut self, most: usize) -> Option<Vec<u8>> {
        (self.out.len() > most).then(|| std::mem::take(&mut self.out))
    }

    fn begin(&mut self, header: Header) {
        self.format.begin(&header, &mut self.out);
        self.header = Some(header);
    }

    fn end_run(&mut self) {
        if let Some(run) = self.chunks.end() {
            self.format.run(&run, &mut self.out);
        }
    }
}

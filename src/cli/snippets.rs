//! Faults in files, as compilers print them: with the line that each is in, and a caret.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A fault in a file.
#[derive(Debug)]
pub(super) struct FileFault<'f> {
    pub(super) file: &'f str,
    pub(super) text: &'f str,
    /// The bytes of the file.
    pub(super) at: Range<usize>,
    /// Whether it is only a note.
    pub(super) is_note: bool,
    /// The name of the part of the file; empty if it has none.
    pub(super) part: &'f str,
    pub(super) what: &'f str,
    /// Empty if it is not known.
    pub(super) remedy: &'f str,
}

impl FileFault<'_> {
    /// The fault as several lines, with colours or without.
    pub(super) fn snippet(&self, colours: bool) -> String {
        let level = [Level::ERROR, Level::NOTE][usize::from(self.is_note)].clone();
        let mut title = level.primary_title(self.what);
        if !self.part.is_empty() {
            title = title.id(self.part);
        }
        // What is wrong with several lines is shown at the first.
        let (mut start, mut end) = (self.at.start.min(self.text.len()), self.at.end);
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.text[start..].lines().next().unwrap_or_default().len();
        end = end.clamp(start, start + line);
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        let place = AnnotationKind::Primary.span(start..end);
        let snippet = Snippet::source(self.text).path(self.file);
        let mut report = title.element(snippet.annotation(place));
        if !self.remedy.is_empty() {
            report = report.element(Level::HELP.message(self.remedy));
        }
        let styled = Renderer::styled();
        let renderer = if colours { styled } else { Renderer::plain() };
        renderer.render(&[report])
    }
}

//! Selects a recording, its events and a point of view for a subcommand.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command::{recording, unreadable};
use crate::cli::console::remark;
use crate::jsonrpc::Side;
use crate::recording::filter::{FIELDS, Field, Filter};
use crate::recording::{Entry, Event, Found, Header, Insight, Recording, Scene, View, What};

/// A recording and a filter of its events.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// A filter of events, such as `method:session/* and dur>2s`; the fields are below
    #[arg(value_name = "FILTER")]
    pub(super) filter: Option<Filter>,
}

/// The point of view on a conversation.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum At {
    /// What the relay received from both sides, before translation
    #[default]
    Heard,
    /// What the client sent and received
    Client,
    /// What the agent sent and received
    Agent,
}

/// An open recording, with what must be known from all of it.
#[derive(Debug)]
pub(super) struct Chosen<'a> {
    selection: &'a Selection,
    recording: Recording,
    view: Option<Scene>,
    insight: Insight,
}

/// One line for each field of the language, for `--help`.
pub(super) fn help() -> String {
    let mut text = String::from("Filters join terms with and, or, not and parentheses:\n");
    for (_, _, example, what) in FIELDS {
        text += &format!("  {example:<20} {what}\n");
    }
    text.trim_end().to_owned()
}

impl At {
    pub(super) const fn view(self) -> View {
        match self {
            Self::Heard => View::Heard,
            Self::Client => View::At(Side::Client),
            Self::Agent => View::At(Side::Agent),
        }
    }
}

impl Selection {
    /// Opens the recording; on failure, prints why and returns the exit code. With `at`, messages
    /// outside of the view are skipped.
    pub(super) fn open(&self, at: Option<At>) -> Result<Chosen<'_>, ExitCode> {
        let mut chosen = Chosen {
            selection: self,
            recording: recording(&self.file)?,
            view: None,
            insight: Insight::wanted_by(self.filter.as_ref()),
        };
        let asks = |field| self.filter.as_ref().is_some_and(|f| f.asks(field));
        // The view of received messages needs no state.
        let at = at.map(At::view);
        let looks_on = at.is_some_and(|at| at != View::Heard);
        if looks_on || asks(Field::Lint) || asks(Field::Dur) {
            chosen.learn(at)?;
        } else {
            chosen.view = at.map(Scene::of);
        }
        Ok(chosen)
    }
}

impl Chosen<'_> {
    /// Reads the whole recording once, for what depends on other events.
    fn learn(&mut self, view: Option<View>) -> Result<(), ExitCode> {
        let mut scene = Scene::of(view.unwrap_or_default());
        let mut over = false;
        for entry in self.recording.entries() {
            let (_, entry) = entry.map_err(|error| unreadable(&self.selection.file, &error))?;
            match entry.found {
                Found::Event(event) => {
                    over = matches!(event.what, What::End { rotated: false, .. });
                    scene.see(&event);
                    self.insight.see(&event);
                }
                Found::Header(header) => self.insight.begin(&header),
                Found::Broken(_) => {}
            }
        }
        if !over {
            scene.leave_open();
        }
        self.insight.end();
        self.view = view.map(|_| scene);
        Ok(())
    }

    /// Whether the event is in the view and matches the filter.
    pub(super) fn picks(&self, event: &Event) -> bool {
        self.is_in_view(event) && self.passes(event)
    }

    /// Whether the event is in the view.
    pub(super) fn is_in_view(&self, event: &Event) -> bool {
        match (&self.view, &event.what) {
            (Some(scene), What::Message(message)) => scene.shows(event.n, message),
            _ => true,
        }
    }

    /// Whether the event matches the filter.
    pub(super) fn passes(&self, event: &Event) -> bool {
        let filter = self.selection.filter.as_ref();
        filter.is_none_or(|filter| filter.matches(event, self.insight.facts(event.n)))
    }

    /// All lines, also those not selected.
    pub(super) fn entries(&self) -> impl Iterator<Item = std::io::Result<(usize, Entry)>> + '_ {
        self.recording.entries()
    }

    /// Visits the header and all selected events; then reports damaged lines.
    pub(super) fn each(
        &self,
        begin: impl FnMut(&Header),
        mut see: impl FnMut(&Event),
    ) -> Result<(), ExitCode> {
        self.each_told(begin, |event, in_view| {
            if in_view {
                see(event);
            }
        })
    }

    /// Like [`Self::each`], but also visits events outside of the view, with a flag.
    pub(super) fn each_told(
        &self,
        mut begin: impl FnMut(&Header),
        mut see: impl FnMut(&Event, bool),
    ) -> Result<(), ExitCode> {
        let mut first = true;
        let mut damaged = 0_u64;
        let everything = Scene::heard();
        let mut order = self.view.as_ref().unwrap_or(&everything).in_order();
        let mut show = |event: &Event| {
            if self.passes(event) {
                see(event, self.is_in_view(event));
            }
        };
        for entry in self.recording.entries() {
            let (_, entry) = entry.map_err(|error| unreadable(&self.selection.file, &error))?;
            match entry.found {
                Found::Header(header) if first => begin(&header),
                Found::Header(_) => {}
                Found::Event(event) => order.take(*event, &mut show),
                Found::Broken(_) => damaged += 1,
            }
            first = false;
        }
        order.end(&mut show);
        passed_over(damaged);
        Ok(())
    }
}

/// Reports that lines of a recording were damaged, if any.
pub(super) fn passed_over(damaged: u64) {
    let lines = match damaged {
        0 => return,
        1 => "1 damaged line was".to_owned(),
        more => format!("{more} damaged lines were"),
    };
    remark(&format!(
        "acp-relay: {lines} skipped: see `inspect verify`"
    ));
}

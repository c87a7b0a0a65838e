//! Which recording and which of its events a subcommand is about.
//!
//! Not here: the filter language (see `recording::filter`).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command::{recording, unreadable};
use crate::cli::console::remark;
use crate::jsonrpc::Side;
use crate::recording::filter::{FIELDS, Field, Filter};
use crate::recording::{Entry, Event, Found, Header, Insight, Recording, Scene, View, What};

/// A recording, and which of its events.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// The recording; of one in several segments, any of them
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Which events, such as `method:session/* and dur>2s`; the fields are below
    #[arg(value_name = "FILTER")]
    pub(super) filter: Option<Filter>,
}

/// From where a conversation is looked at.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum At {
    /// What both sides said, before anything was translated
    #[default]
    Heard,
    /// What the client said and was told
    Client,
    /// What the agent said and was told
    Agent,
}

/// A recording, with what only a reader of all of it knows.
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
    /// Opens the recording. Where that fails it is said why, and the exit code returned. With
    /// `at`, messages that are not in the view are passed over.
    pub(super) fn open(&self, at: Option<At>) -> Result<Chosen<'_>, ExitCode> {
        let mut chosen = Chosen {
            selection: self,
            recording: recording(&self.file)?,
            view: None,
            insight: Insight::wanted_by(self.filter.as_ref()),
        };
        let asks = |field| self.filter.as_ref().is_some_and(|f| f.asks(field));
        // What both sides said can be told from each event by itself.
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
    /// Reads all of it once, for what cannot be known event by event.
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

    /// Whether the event is meant.
    pub(super) fn picks(&self, event: &Event) -> bool {
        self.is_in_view(event) && self.passes(event)
    }

    /// Whether the event is seen from where it is looked at.
    pub(super) fn is_in_view(&self, event: &Event) -> bool {
        match (&self.view, &event.what) {
            (Some(scene), What::Message(message)) => scene.shows(event.n, message),
            _ => true,
        }
    }

    /// Whether the filter means the event.
    pub(super) fn passes(&self, event: &Event) -> bool {
        let filter = self.selection.filter.as_ref();
        filter.is_none_or(|filter| filter.matches(event, self.insight.facts(event.n)))
    }

    /// All lines, those that are not meant, too.
    pub(super) fn entries(&self) -> impl Iterator<Item = std::io::Result<(usize, Entry)>> + '_ {
        self.recording.entries()
    }

    /// Shows all events that are meant and the header; that lines are damaged is said at the end.
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

    /// The same, those events, too, that are not in the view, each with whether it is.
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

/// Says that lines of a recording could not be read, if there are any.
pub(super) fn passed_over(damaged: u64) {
    let lines = match damaged {
        0 => return,
        1 => "1 damaged line was".to_owned(),
        more => format!("{more} damaged lines were"),
    };
    remark(&format!(
        "acp-relay: {lines} passed over: see `inspect verify`"
    ));
}

//! Chooses between Prometheus' two text formats of metrics.
//!
//! A client that accepts OpenMetrics gets it, as from Prometheus. All others get the older format,
//! which all scrapers read. Between two accepted formats the weight decides, then the order, as in
//! Prometheus' own clients; `*/*` names neither.

use hyper::header::{ACCEPT, HeaderMap};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFormat {
    /// OpenMetrics 1.0.
    Open,
    /// Prometheus' own, 0.0.4.
    Plain,
}

impl TextFormat {
    /// The format that is requested.
    pub(super) fn negotiate(headers: &HeaderMap) -> Self {
        let fields = headers.get_all(ACCEPT).into_iter();
        let fields = fields.filter_map(|field| field.to_str().ok());
        let mut clauses: Vec<(Self, f32)> = fields
            .flat_map(|field| field.split(','))
            .filter_map(Self::named)
            .collect();
        // Stable: among equals the first counts.
        clauses.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        clauses.first().map_or(Self::Plain, |(form, _)| *form)
    }

    /// The format that one clause names, and its weight.
    fn named(clause: &str) -> Option<(Self, f32)> {
        let mut parts = clause.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let (mut weight, mut version) = (1.0, "");
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "q" | "Q" => weight = value.trim().parse().ok()?,
                "version" => version = value.trim().trim_matches('"'),
                _ => {}
            }
        }
        let form = match (&*name, version) {
            ("application/openmetrics-text", "" | "0.0.1" | "1.0.0") => Self::Open,
            ("text/plain", "" | "0.0.4") => Self::Plain,
            _ => return None,
        };
        (weight > 0.0).then_some((form, weight))
    }

    /// The media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts a text in OpenMetrics to this format.
    pub(super) fn render(self, openmetrics: String) -> String {
        match self {
            Self::Open => openmetrics,
            Self::Plain => plain(&openmetrics),
        }
    }
}

/// Converts OpenMetrics to 0.0.4: a counter's family has the name of its samples, there is no EOF
/// line, there are no units, and quotes in help texts are not escaped.
fn plain(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        let comment = line
            .strip_prefix("# ")
            .and_then(|rest| rest.split_once(' '));
        match comment {
            Some(("HELP", rest)) => help = rest.split_once(' '),
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
                let (total, kind) = match kind {
                    "counter" => ("_total", kind),
                    "unknown" => ("", "untyped"),
                    _ => ("", kind),
                };
                if let Some((_, words)) = help.take() {
                    let words = words.replace("\\\"", "\"");
                    text += &format!("# HELP {name}{total} {words}\n");
                }
                text += &format!("# TYPE {name}{total} {kind}\n");
            }
            _ if line.starts_with('#') => {}
            _ => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_the_older_form_says_otherwise() {
        let open = "# HELP a_seconds Time, \\\"all\\\" of it.\n\
                    # TYPE a_seconds gauge\n\
                    # UNIT a_seconds seconds\n\
                    a_seconds 1.5\n\
                    # HELP b Things.\n\
                    # TYPE b counter\n\
                    b_total{c=\"# EOF\"} 2\n\
                    # TYPE d histogram\n\
                    d_bucket{le=\"+Inf\"} 0\n\
                    # EOF\n";
        let old = "# HELP a_seconds Time, \"all\" of it.\n\
                   # TYPE a_seconds gauge\n\
                   a_seconds 1.5\n\
                   # HELP b_total Things.\n\
                   # TYPE b_total counter\n\
                   b_total{c=\"# EOF\"} 2\n\
                   # TYPE d histogram\n\
                   d_bucket{le=\"+Inf\"} 0\n";
        assert_eq!(plain(open), old);
    }
}

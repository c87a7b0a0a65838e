//! The page: its files as the server sends them, or as one file.
//!
//! It is plain HTML, CSS and JavaScript, without a build step and without requests to other
//! servers. As one file it has no server, and shows plain recordings that are dropped onto it,
//! without findings.

use ring::digest::{SHA256, digest};
use serde_json::Value;

use analysis::lint::RULES;

/// The content security policy of the page.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page's HTML; it names the two other parts, and has a place for the ids of the linter's rules.
const HTML: &str = include_str!("page/index.html");

/// The page's style.
pub(super) const STYLE: &str = concat!(
    include_str!("page/base.css"),
    include_str!("page/views.css"),
    include_str!("page/overview.css"),
    include_str!("page/list.css"),
);

/// The page's script; later parts depend on earlier ones.
pub(super) const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/text.js"),
    include_str!("page/keep.js"),
    include_str!("page/json.js"),
    include_str!("page/facts.js"),
    include_str!("page/filter.js"),
    include_str!("page/server.js"),
    include_str!("page/file.js"),
    include_str!("page/list.js"),
    include_str!("page/sequence.js"),
    include_str!("page/waterfall.js"),
    include_str!("page/markdown.js"),
    include_str!("page/tools.js"),
    include_str!("page/turns.js"),
    include_str!("page/findings.js"),
    include_str!("page/timeline.js"),
    include_str!("page/schema.js"),
    include_str!("page/detail.js"),
    include_str!("page/dialogs.js"),
    include_str!("page/hints.js"),
    include_str!("page/main.js"),
    include_str!("page/compare.js"),
    include_str!("page/overview.js"),
    include_str!("page/keys.js"),
    include_str!("page/open.js"),
);

/// The page, for a browser that is connected to a viewer.
pub(super) fn html() -> String {
    let rules: Value = RULES.iter().map(|rule| rule.id).collect();
    // It is data, which a browser does not run.
    HTML.replace("[]</script>", &format!("{rules}</script>"))
}

/// The page in one file. Its policy allows the two parts by their digests, and no server.
pub fn single_file() -> String {
    let hash = |text: &str| data_encoding::BASE64.encode(digest(&SHA256, text.as_bytes()).as_ref());
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src \
         'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">",
        hash(SCRIPT),
        hash(STYLE),
    );
    let style = format!("{policy}\n<style>{STYLE}</style>");
    HTML.replace("<link rel=\"stylesheet\" href=\"page.css\">", &style)
        .replace(
            "<script src=\"page.js\" defer></script>",
            // A deferred script cannot be inline; this one is at the end of the body.
            "",
        )
        .replace("</body>", &format!("<script>{SCRIPT}</script>\n</body>"))
}

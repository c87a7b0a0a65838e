//! The page: its files in one program, or in one file.
//!
//! It is plain HTML, CSS and JavaScript, without a build step and without any request but to the
//! viewer itself. All in one file it has no server, and shows what is dropped onto it. Not here:
//! what the page does (see `page/`).

use ring::digest::{SHA256, digest};

/// What a browser may load and run on the page.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page itself; it names the other two.
pub(super) const HTML: &str = include_str!("page/index.html");

/// How it looks.
pub(super) const STYLE: &str = concat!(
    include_str!("page/base.css"),
    include_str!("page/views.css")
);

/// What it does, in the order in which its parts build on each other.
pub(super) const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/text.js"),
    include_str!("page/json.js"),
    include_str!("page/facts.js"),
    include_str!("page/filter.js"),
    include_str!("page/server.js"),
    include_str!("page/file.js"),
    include_str!("page/list.js"),
    include_str!("page/sequence.js"),
    include_str!("page/turns.js"),
    include_str!("page/findings.js"),
    include_str!("page/timeline.js"),
    include_str!("page/detail.js"),
    include_str!("page/main.js"),
);

/// The page in one file. Its policy names the two parts by their digests, and no server at all.
pub(super) fn alone() -> String {
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
            // A deferred script cannot be inline; this one stands where the body ends.
            "",
        )
        .replace("</body>", &format!("<script>{SCRIPT}</script>\n</body>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_nobody_else() {
        let whole = alone();
        assert!(whole.len() < 300 << 10, "{} bytes", whole.len());
        for word in ["http://", "https://", "innerHTML", "eval(", "//# source"] {
            assert!(!whole.contains(word), "the page has {word}");
        }
        assert!(!whole.contains("page.css") && !whole.contains("page.js"));
        for part in [SCRIPT, STYLE] {
            assert!(!part.contains("</"), "a part would end its element");
        }
    }
}

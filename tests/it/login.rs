//! Which pages of an agent elsewhere are opened, and what is carried back.

use std::fs;

use acp_relay::policy::LoginPage;

/// The page that the requests of `redirects.tsv` come after.
const PAGE: &str = "https://login.example/?redirect_uri=http://127.0.0.1:4711/cb&state=a%20b";

#[test]
fn pages_are_opened_or_refused() {
    check("pages.tsv", |address| match LoginPage::read(address) {
        Ok(page) => page
            .redirect
            .map_or_else(|| "opened".to_owned(), |to| format!("port {}", to.port)),
        Err(_) => "refused".to_owned(),
    });
}

#[test]
fn redirects_have_the_path_and_the_state_of_the_page() {
    let page = LoginPage::read(PAGE).expect("a page");
    let redirect = page.redirect.expect("a redirect");
    check("redirects.tsv", |target| match redirect.check(target) {
        Ok(()) => "carried".to_owned(),
        Err(_) => "other".to_owned(),
    });
}

/// Compares what is made of the second column with the first.
fn check(name: &str, made: impl Fn(&str) -> String) {
    let path = format!("{}/tests/vectors/login/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("readable");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<_> = rows
        .map(|row| row.split_once('\t').expect("two columns"))
        .collect();
    assert!(!rows.is_empty());
    for (expected, text) in rows {
        assert_eq!(made(text), expected, "{text}");
    }
}

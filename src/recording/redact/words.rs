//! Where in a text a secret may be: at words that some begin with, and that others stand behind.
//!
//! Most frames have none of these words and are done with, so this is where redaction is fast or
//! slow. Not here: whether there is a secret at a word (see `shapes`).
//!
//! # Why
//! *Three searches and not one.* A search for many words at once looks at the first letters of
//! sixteen places or more together, and has to stop wherever any of the words might begin. With
//! all of them in one it stopped so often that code took twice as long as prose. Keys of makers
//! mostly have a dash near their beginning, and credentials in URLs an `@`: a search for those bytes
//! finds both. What is left is in two groups, each small enough for the quick kind of search (no
//! more than 32 words), and of the values' no word is shorter than four letters. So there is room
//! for more words at the same price.
//!
//! *What was searched need not be searched again.* Whether there is a word at a place depends on
//! the bytes of the word alone. So where a text begins with bytes that are known to have no whole
//! word in them, a search finds the same words when it begins there, less the length of the
//! longest one. Whether there is a secret at a word is another matter, for that depends on what
//! follows: so a beginning with words in it that turned out to be nothing is known up to the first
//! of them only.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind, packed};

use super::urls::ends_host;

/// Keys and tokens that begin like this: the beginning, and the fewest characters in all.
const DASHED: [(&str, usize); 45] = [
    ("sk-", 20),
    // Stripe's.
    ("sk_live_", 20),
    ("sk_test_", 20),
    ("rk_live_", 20),
    ("rk_test_", 20),
    ("whsec_", 20),
    // Groq's, xAI's, Perplexity's and NVIDIA's.
    ("gsk_", 20),
    ("xai-", 20),
    ("pplx-", 20),
    ("nvapi-", 20),
    ("shpat_", 20),
    ("pypi-", 60),
    // GitHub's.
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("ghr_", 20),
    ("github_pat_", 22),
    ("glpat-", 20),
    // Slack's.
    ("xoxa-", 15),
    ("xoxb-", 15),
    ("xoxc-", 15),
    ("xoxd-", 15),
    ("xoxe-", 15),
    ("xoxo-", 15),
    ("xoxp-", 15),
    ("xoxr-", 15),
    ("xoxs-", 15),
    ("xapp-", 20),
    ("npm_", 30),
    ("hf_", 30),
    // DigitalOcean's.
    ("dop_v1_", 40),
    ("doo_v1_", 40),
    ("dor_v1_", 40),
    // Grafana's.
    ("glsa_", 30),
    ("glc_", 30),
    // Linear's.
    ("lin_api_", 30),
    ("lin_oauth_", 30),
    // Sentry's.
    ("sntrys_", 40),
    ("sntryu_", 40),
    // Docker's.
    ("dckr_pat_", 30),
    ("dckr_oat_", 30),
    // Replicate's, age's and Tailscale's.
    ("r8_", 40),
    ("AGE-SECRET-KEY-", 60),
    ("tskey-", 25),
];

/// Parts of the names of secrets, words that call for a look at the places of a message, and
/// beginnings that are too short to be looked for among [`VALUES`].
///
/// The search has eight baskets, and a word goes into that of its number, unless one that begins
/// alike is in another. It stops in vain where the beginnings in one basket could be mixed, so the
/// order matters: this one and that of the values were found by trying, and stop seldom.
const NAMES: [(&str, Word); 32] = [
    ("assPhrase", Word::Telling),
    ("redential", Word::Telling),
    ("ookie", Word::Cookie),
    // Members of Docker's and of mailers' settings.
    ("auth\"", Word::Ending),
    // The WebSocket's header, without dashes.
    ("etProt", Word::Place),
    ("oken", Word::Telling),
    // SendGrid's keys.
    ("SG.", Word::Beginning(50)),
    ("\"headers", Word::Place),
    ("PASS", Word::Telling),
    ("UTHORIZ", Word::Authorization),
    ("key", Word::Telling),
    // An ASCII character in disguise.
    ("\\u00", Word::Place),
    ("\"Pwd", Word::Place),
    // How all JWTs begin.
    ("eyJ", Word::Beginning(30)),
    ("uthoriz", Word::Authorization),
    ("\"PWD", Word::Place),
    ("assphrase", Word::Telling),
    ("pass\"", Word::Ending),
    ("OKEN", Word::Telling),
    ("Key", Word::Telling),
    ("assW", Word::Telling),
    ("\"pwd", Word::Place),
    ("ecret", Word::Telling),
    // `environment`, too.
    ("\"env", Word::Place),
    ("KEY", Word::Telling),
    ("uthentic", Word::Place),
    ("pass\\", Word::Ending),
    ("ECRET", Word::Telling),
    ("OOKIE", Word::Cookie),
    ("assw", Word::Telling),
    ("REDENTIAL", Word::Telling),
    ("auth\\", Word::Ending),
];

/// Beginnings of keys and tokens, be they in base64, and words that they follow.
const VALUES: [(&str, Word); 32] = [
    // How some keys begin in base64.
    ("eG94", Word::Packed),
    // Vault's keys.
    ("hvs.", Word::Beginning(28)),
    ("Z2l0aHVi", Word::Packed),
    ("Z2hw", Word::Packed),
    ("ASIA", Word::Beginning(20)),
    ("earer\\", Word::Scheme),
    ("QUtJ", Word::Packed),
    // What is said before credentials, and the first letter of a blank.
    ("earer ", Word::Scheme),
    // Google's keys.
    ("ya29.", Word::Beginning(20)),
    ("Z2hz", Word::Packed),
    ("ZXlK", Word::Packed),
    ("earer\t", Word::Scheme),
    ("AIza", Word::Beginning(35)),
    ("Z2xwYXQt", Word::Packed),
    ("LS0tLS1C", Word::Packed),
    ("asic ", Word::Scheme),
    ("ure=", Word::Signature),
    ("Z2hv", Word::Packed),
    ("QUl6", Word::Packed),
    ("EARER ", Word::Scheme),
    // AWS's keys.
    ("AKIA", Word::Beginning(20)),
    ("asic\\", Word::Scheme),
    ("c2st", Word::Packed),
    ("asic\t", Word::Scheme),
    // Signatures in URLs.
    ("sig=", Word::Signature),
    ("hvb.", Word::Beginning(28)),
    ("-BEGIN", Word::Pem),
    // Codes in URLs, for a token.
    ("code=", Word::Signature),
    // Programs that are given passwords.
    ("sshpass", Word::Command),
    ("mysql", Word::Command),
    ("curl ", Word::Command),
    ("mariadb", Word::Command),
];

/// A word that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Of a key or token, which has so many characters.
    Beginning(usize),
    /// Of a key or token in base64.
    Packed,
    Scheme,
    /// Of the header's name.
    Authorization,
    /// That ends a header's name.
    Cookie,
    /// Before a signature, or a code for a token, in a URL.
    Signature,
    /// A program that is given a password.
    Command,
    /// The first letter of an option of a program that is given a password.
    Option,
    /// The end of the name of a variable, with an equals sign.
    Variable,
    Telling,
    /// Of the name of the WebSocket's header.
    Protocol,
    Place,
    /// That ends the name of a member, and what ends a string behind it.
    Ending,
    /// An option of one letter by itself, as in a list of arguments.
    Argument,
    Pem,
    /// What comes before a user in a URL.
    User,
}

/// What finds the words.
#[derive(Debug)]
pub(super) struct Words {
    names: Search,
    values: Search,
}

#[derive(Debug)]
struct Search {
    engine: Engine,
    /// Bytes of the longest word but one: so far before a border a word may begin that lies
    /// across it.
    before: usize,
    /// With fewer bytes to search it is slow.
    fewest: usize,
}

#[derive(Debug)]
enum Engine {
    Packed(packed::Searcher),
    /// For processors that the other one is not written for.
    Plain(AhoCorasick),
}

impl Words {
    pub(super) fn new() -> Self {
        Self {
            names: Search::of(&NAMES.map(|(word, _)| word)),
            values: Search::of(&VALUES.map(|(word, _)| word)),
        }
    }

    /// Calls `is_it` for the words of a text, in no order, until it says so. No word lies as a
    /// whole in the first `known` bytes.
    pub(super) fn each(
        &self,
        text: &[u8],
        known: usize,
        mut is_it: impl FnMut(Range<usize>, Word) -> bool,
    ) -> bool {
        let (names, values) = (&self.names, &self.values);
        names.each(text, known, |at, place| is_it(place, NAMES[at].1))
            || values.each(text, known, |at, place| is_it(place, VALUES[at].1))
            || marked(text, known, &mut is_it)
    }
}

impl Search {
    fn of(words: &[&str]) -> Self {
        let longest = words.iter().map(|word| word.len()).max();
        let packed = packed::Searcher::new(words);
        Self {
            before: longest.map_or(0, |longest| longest - 1),
            fewest: packed.as_ref().map_or(0, packed::Searcher::minimum_len),
            engine: match packed {
                Some(packed) => Engine::Packed(packed),
                None => Engine::Plain(
                    AhoCorasick::builder()
                        .match_kind(MatchKind::LeftmostFirst)
                        .build(words)
                        .expect("the words are few and short"),
                ),
            },
        }
    }

    fn each(
        &self,
        text: &[u8],
        known: usize,
        mut is_it: impl FnMut(usize, Range<usize>) -> bool,
    ) -> bool {
        let last = text.len().saturating_sub(self.fewest);
        let mut from = known.saturating_sub(self.before).min(last);
        loop {
            let found = match &self.engine {
                Engine::Packed(packed) => packed.find_in(text, (from..text.len()).into()),
                Engine::Plain(plain) => plain.find(aho_corasick::Input::new(text).range(from..)),
            };
            let Some(found) = found else { return false };
            from = found.end();
            if is_it(found.pattern().as_usize(), found.range()) {
                return true;
            }
        }
    }
}

/// How many bytes of a word stand behind a dash or an underline.
const BEHIND: usize = "Protocol".len();

/// Words that a dash ends, options of one dash, variables, and users of URLs, which an `@` ends: all
/// in one search.
fn marked(text: &[u8], known: usize, is_it: &mut impl FnMut(Range<usize>, Word) -> bool) -> bool {
    // Where a host may begin whose user was not found yet.
    let mut host = 0;
    let from = known.saturating_sub(BEHIND);
    memchr::memchr3_iter(b'-', b'_', b'@', &text[from..]).any(|at| {
        let at = from + at;
        match text[at] {
            b'@' if at < host => false,
            b'@' => {
                let start = before_user(text, host, at);
                host = ends_host_at(text, at);
                start.is_some_and(|start| is_it(start - 1..start, Word::User))
            }
            _ => {
                behind(text, at).is_some_and(|(place, word)| is_it(place, word))
                    || dashed(text, at + 1).is_some_and(|(start, fewest)| {
                        is_it(start..at + 1, Word::Beginning(fewest))
                    })
            }
        }
    })
}

/// The word that goes on behind a dash or an underline.
fn behind(text: &[u8], at: usize) -> Option<(Range<usize>, Word)> {
    let rest = &text[at + 1..];
    if text[at] == b'-' {
        let before = at.checked_sub(1).map(|before| text[before]);
        return match (before, rest.first()) {
            (Some(b' '), Some(letter)) if b"abpPwUSskd".contains(letter) => {
                Some((at - 1..at + 2, Word::Option))
            }
            (Some(b'"'), Some(b'-')) if rest.get(1).is_some_and(u8::is_ascii_lowercase) => {
                Some((at - 1..at + 2, Word::Argument))
            }
            (Some(b'"'), Some(letter)) if b"abkpPSswUu".contains(letter) => {
                Some((at - 1..at + 2, Word::Argument))
            }
            (Some(b't' | b'T'), Some(b'p' | b'P')) => {
                let name = rest.first_chunk::<8>()?;
                let is_it = name.eq_ignore_ascii_case(b"protocol");
                is_it.then(|| (at..at + 9, Word::Protocol))
            }
            _ => None,
        };
    }
    let names = [&b"PWD="[..], b"AUTH=", b"auth", b"pass"];
    let name = names.into_iter().find(|name| rest.starts_with(name))?;
    Some((at..at + 1 + name.len(), Word::Variable))
}

/// Where the beginning of a key begins that a dash ends at `end`, and the fewest characters of one.
fn dashed(text: &[u8], end: usize) -> Option<(usize, usize)> {
    let [one, two, three] = *text[..end].last_chunk()?;
    let [ones, twos, threes] = &LAST;
    let may_be = ones[usize::from(one)] & twos[usize::from(two)] & threes[usize::from(three)];
    if may_be == 0 {
        return None;
    }
    let ends = |(word, _): &&(&str, usize)| text[..end].ends_with(word.as_bytes());
    let (word, fewest) = DASHED.iter().find(ends)?;
    Some((end - word.len(), *fewest))
}

/// Where a user begins that ends at an `@`, not before `host`, when it is that of a URL.
fn before_user(text: &[u8], host: usize, at: usize) -> Option<usize> {
    let back = text[host..at].iter().rposition(ends_host);
    let start = back.map_or(host, |back| host + back + 1);
    let before = &text[..start];
    (before.ends_with(b"://") || before.ends_with(b":\\/\\/")).then_some(start)
}

/// Where a host has ended, at the latest, that goes on at `from`.
fn ends_host_at(text: &[u8], from: usize) -> usize {
    let rest = text[from..].iter().position(ends_host);
    rest.map_or(text.len(), |rest| from + rest)
}

/// Which of the words have a byte as the third last, the second last, or the last, a bit each.
static LAST: [[u64; 256]; 3] = [last(3), last(2), last(1)];

const fn last(back: usize) -> [u64; 256] {
    let mut words = [0; 256];
    let mut at = 0;
    while at < DASHED.len() {
        let word = DASHED[at].0.as_bytes();
        words[word[word.len() - back] as usize] |= 1 << at;
        at += 1;
    }
    words
}

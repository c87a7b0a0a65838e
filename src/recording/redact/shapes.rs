//! Secrets that show by their shape, in any text.
//!
//! A search for many short words at once finds where one may be; most frames have none of them
//! and are done with. What follows the word decides. It works on text as it stands in JSON, too,
//! for none of these secrets needs an escape. Not here: places (see `walk`).

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind, packed};

/// Keys and tokens that begin like this: the beginning, and the fewest characters in all. Fewer
/// words are found faster, so makers with one habit share a word.
const BEGINNINGS: [(&str, usize); 23] = [
    ("sk-", 20),
    // Stripe's, `sk_` and `rk_`.
    ("k_live_", 20),
    ("k_test_", 20),
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
    // Google's.
    ("AIza", 35),
    ("ya29.", 20),
    // Slack's: `xoxb-`, `xoxp-`.
    ("xox", 15),
    ("xapp-", 20),
    ("npm_", 30),
    ("hf_", 30),
];

/// As above, of AWS and of JWTs: what follows is more common.
const STRICT: [(&str, usize); 3] = [("AKIA", 20), ("ASIA", 20), ("eyJ", 30)];

/// What is said before credentials in headers.
const SCHEMES: [&str; 2] = ["earer ", "asic "];

/// Parts of words in the names of secrets, as they are spelled in names.
const WORDS: [&str; 12] = [
    "key",
    "Key",
    "KEY",
    "oken",
    "OKEN",
    "ecret",
    "ECRET",
    "assw",
    "ASSW",
    "redential",
    "REDENTIAL",
    "assphrase",
];

/// Words that call for a look at the places of a message.
const PLACES: [&str; 9] = [
    "\"env\"",
    "\"headers\"",
    "\"environment\"",
    "uthentic",
    "uthoriz",
    "UTHORIZ",
    "ookie",
    "OOKIE",
    // An ASCII character in disguise.
    "\\u00",
];

const PEM: &str = "-----BEGIN";
const USER: [&str; 2] = ["://", ":\\/\\/"];

/// Characters that may stand between a telling name and its secret.
const BETWEEN: &[u8] = b" \t=:\"'`\\>";

/// Fewest characters of a secret that only its name and its randomness show.
const RANDOM: usize = 16;

/// What finds the words.
#[derive(Debug)]
pub(super) struct Shapes {
    search: Search,
}

#[derive(Debug)]
enum Search {
    Packed(packed::Searcher),
    /// For processors that the other one is not written for.
    Plain(AhoCorasick),
}

/// What a word is, by the place of its pattern.
enum Word {
    Beginning(usize),
    Scheme,
    Telling,
    Place,
    Pem,
    User,
}

impl Shapes {
    pub(super) fn new() -> Self {
        let words = BEGINNINGS
            .iter()
            .map(|(word, _)| *word)
            .chain(STRICT.iter().map(|(word, _)| *word))
            .chain(SCHEMES)
            .chain(WORDS)
            .chain(PLACES)
            .chain([PEM])
            .chain(USER);
        let words: Vec<&str> = words.collect();
        let search = match packed::Searcher::new(&words) {
            Some(packed) => Search::Packed(packed),
            None => Search::Plain(
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostFirst)
                    .build(&words)
                    .expect("the words are few and short"),
            ),
        };
        Self { search }
    }

    /// Whether a message has to be walked through.
    pub(super) fn suspects(&self, text: &[u8]) -> bool {
        self.words(text, |at, word| match word {
            Word::Place => true,
            // The name of a member, an option or a variable ends so.
            Word::Telling if text.get(name_end(text, at.end)) == Some(&b'"') => true,
            word => secret(text, at, &word).is_some(),
        })
    }

    /// The secrets in a text, in order; none lies in another.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        self.words(text, |at, word| {
            let known = found.last().map_or(0, |last| last.end);
            if let Some(secret) = secret(text, at.clone(), &word)
                && secret.start >= known
            {
                found.push(secret);
            }
            false
        });
        found
    }

    /// Calls `is_it` for each word until it says so.
    fn words(&self, text: &[u8], mut is_it: impl FnMut(Range<usize>, Word) -> bool) -> bool {
        let mut at = 0;
        while let Some((pattern, place)) = self.next(text, at) {
            at = place.end;
            if is_it(place, Word::of(pattern)) {
                return true;
            }
        }
        false
    }

    fn next(&self, text: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let found = match &self.search {
            Search::Packed(packed) => packed.find_in(text, (from..text.len()).into()),
            Search::Plain(plain) => plain.find(aho_corasick::Input::new(text).range(from..)),
        }?;
        Some((found.pattern().as_usize(), found.range()))
    }
}

impl Word {
    fn of(pattern: usize) -> Self {
        let strict = BEGINNINGS.len();
        let schemes = strict + STRICT.len();
        let words = schemes + SCHEMES.len();
        let places = words + WORDS.len();
        let pem = places + PLACES.len();
        match pattern {
            at if at < strict => Self::Beginning(BEGINNINGS[at].1),
            at if at < schemes => Self::Beginning(STRICT[at - strict].1),
            at if at < words => Self::Scheme,
            at if at < places => Self::Telling,
            at if at < pem => Self::Place,
            at if at == pem => Self::Pem,
            _ => Self::User,
        }
    }
}

/// Whether a name tells that its value is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let known = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "sec-websocket-protocol",
        "pwd",
    ];
    let parts = [
        "key",
        "token",
        "secret",
        "passw",
        "credential",
        "passphrase",
    ];
    known.contains(&lower.as_str()) || parts.iter().any(|part| lower.contains(part))
}

/// Whether a whole text, under a telling name, is more than a word or a number.
pub(super) fn is_random(text: &[u8]) -> bool {
    if text.len() < RANDOM {
        return false;
    }
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let total = text.len() as f64;
    let entropy: f64 = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|part| -part * part.log2())
        .sum();
    let digits = text.iter().any(u8::is_ascii_digit);
    let letters = text.iter().any(u8::is_ascii_alphabetic);
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase);
    entropy > 3.0 && letters && (digits || (mixed && entropy > 3.5))
}

/// Whether a text is made of words, as names, paths and calls are, and as keys are not: parts of
/// letters, the last ones with a digit or two, or short numbers, and not too short on the whole.
pub(super) fn reads_as_words(text: &[u8]) -> bool {
    let (mut parts, mut letters, mut at) = (0_usize, 0_usize, 0);
    while at < text.len() {
        let count =
            |from: usize, is: fn(&u8) -> bool| text[from..].iter().take_while(|b| is(b)).count();
        let (capitals, digits) = (
            count(at, u8::is_ascii_uppercase),
            count(at, u8::is_ascii_digit),
        );
        let small = count(at + capitals, u8::is_ascii_lowercase);
        if capitals + small > 0 {
            // `HTTPServer` is two words, `Server` is one.
            parts += 1 + usize::from(capitals > 1 && small > 0);
            letters += capitals + small;
            at += capitals + small;
            let digits = count(at, u8::is_ascii_digit);
            let goes_on = text.get(at + digits).is_some_and(u8::is_ascii_lowercase);
            if digits > 2 || (digits > 0 && goes_on) {
                return false;
            }
            at += digits;
        } else if digits > 0 {
            let goes_on = text.get(at + digits).is_some_and(u8::is_ascii_alphabetic);
            if digits > 4 || goes_on {
                return false;
            }
            at += digits;
        } else {
            at += 1;
        }
    }
    // A word of thirty letters is none.
    parts > 0 && letters >= 3 * parts && letters <= 20 * parts
}

/// The secret that the word at `at` announces.
fn secret(text: &[u8], at: Range<usize>, word: &Word) -> Option<Range<usize>> {
    match word {
        Word::Beginning(fewest) => {
            let own = &text[at.clone()];
            let stripe = own == b"k_live_" || own == b"k_test_";
            let start = at.start - usize::from(stripe && at.start > 0);
            let end = run(text, start);
            let is_one = begins_word(text, start)
                && end - start >= *fewest
                && text[start..end].iter().any(u8::is_ascii_digit)
                // A JSON object in base64, in a `data:` URL, and no JWT.
                && !(own == b"eyJ" && text[..start].ends_with(b";base64,"));
            is_one.then_some(start..end)
        }
        Word::Scheme => {
            let end = run(text, at.end);
            // `Bearer` and `bearer`.
            let start = at.start.checked_sub(1)?;
            let named = matches!(text[start], b'B' | b'b') && begins_word(text, start);
            // `a basic understanding` is none, but behind the header's name all are.
            let header =
                memchr::memmem::find(&text[start.saturating_sub(24)..start], b"uthorization");
            let is_one = header.is_some() || !reads_as_words(&text[at.end..end]);
            (end - at.end >= 8 && named && is_one).then_some(at.end..end)
        }
        Word::Telling => {
            let name = name_end(text, at.end);
            let gap = text[name..]
                .iter()
                .take(8)
                .take_while(|byte| BETWEEN.contains(byte));
            let start = name + gap.count();
            let end = run(text, start);
            let own = &text[start..end];
            // What people think up is made of words, too, and what is called is no secret.
            let chosen = text[at.clone()].to_ascii_lowercase().starts_with(b"ass");
            let is_one = start > name
                && is_random(own)
                && (chosen || !reads_as_words(own))
                && text.get(end) != Some(&b'(');
            is_one.then_some(start..end)
        }
        Word::Pem => {
            let rest = &text[at.end..];
            // What is meant for everybody; where the label is cut off, nobody knows.
            let label = memchr::memmem::find(&rest[..rest.len().min(64)], b"-----");
            let label = label.map_or(&b""[..], |end| &rest[..end]);
            let says = |word: &[u8]| memchr::memmem::find(label, word).is_some();
            let public = [
                &b"CERTIFICATE"[..],
                b"PUBLIC",
                b"SIGNATURE",
                b"CRL",
                b"SIGNED",
            ];
            if !says(b"PRIVATE") && public.iter().any(|word| says(word)) {
                return None;
            }
            let end = memchr::memmem::find(rest, b"-----END").map_or(text.len(), |end| {
                let from = at.end + end + "-----END".len();
                let tail = memchr::memmem::find(&text[from..], b"-----");
                tail.map_or(text.len(), |tail| from + tail + 5)
            });
            Some(at.start..end)
        }
        Word::User => {
            let stops = |byte: &u8| b"/?# \t\n\"\\'<>".contains(byte);
            let rest = &text[at.end..];
            let host = &rest[..rest.iter().position(stops).unwrap_or(rest.len())];
            let user = memchr::memrchr(b'@', host)?;
            // `git@host`, but a name alone may be a token.
            let known = user < 16 && host[..user].iter().all(u8::is_ascii_lowercase);
            (user > 0 && !known).then_some(at.end..at.end + user)
        }
        Word::Place => None,
    }
}

/// Where the name ends that a telling word is part of, if it does so soon.
fn name_end(text: &[u8], from: usize) -> usize {
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let name = text[from..].iter().take(24).take_while(|byte| rest(byte));
    from + name.count()
}

/// Where the characters end that tokens are made of.
fn run(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => at += 1,
            b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=' | b'%' => at += 1,
            // As some encoders spell `/`.
            b'\\' if text.get(at + 1) == Some(&b'/') => at += 2,
            _ => break,
        }
    }
    at
}

/// Whether no word goes on at `at`; the letter of an escape such as `\n` is none, nor is the last
/// one of a terminal's, such as `[31m`.
fn begins_word(text: &[u8], at: usize) -> bool {
    let back = |by: usize| at.checked_sub(by).map(|at| text[at]);
    if back(1).is_none_or(|byte| !byte.is_ascii_alphanumeric()) || back(2) == Some(b'\\') {
        return true;
    }
    let before = text[..at].strip_suffix(b"m").unwrap_or_default();
    let colours = |byte: &&u8| byte.is_ascii_digit() || **byte == b';';
    let count = before.iter().rev().take_while(colours).count();
    before[..before.len() - count].ends_with(b"[")
}

//! Passwords that programs take behind an option of one letter (`redis-cli -a secret`), behind one
//! that is named for it (`-storepass secret`), and in variables with a short name (`DB_PASS=x`).
//!
//! A letter says nothing by itself, so the program has to stand before it in the same line. Not
//! here: options with two dashes, and programs whose name alone is looked for (see `commands`).

use std::ops::Range;

use super::commands::{is_said, value};
use super::escapes::{begins_word, behind_gap};
use super::given::is_chosen;
use super::piped;
use super::random::reads_as_words;
use super::runs;

/// Bytes of a line that are looked at before an option.
const LINE: usize = 256;

/// How a program takes a password.
#[derive(Clone, Copy)]
enum Taken {
    /// As the next word.
    Apart,
    /// In the same word.
    Joined,
    /// In the next word, behind a user and this.
    After(u8),
    /// By another program.
    Told,
}

/// Programs, or how their names begin, with their options.
const PROGRAMS: [(&[u8], &[u8], Taken); 31] = [
    (b"redis-cli", b"-a", Taken::Apart),
    (b"valkey-cli", b"-a", Taken::Apart),
    (b"mongo", b"-p", Taken::Apart),
    (b"cqlsh", b"-p", Taken::Apart),
    (b"docker login", b"-p", Taken::Apart),
    (b"podman login", b"-p", Taken::Apart),
    (b"nerdctl login", b"-p", Taken::Apart),
    (b"skopeo login", b"-p", Taken::Apart),
    (b"buildah login", b"-p", Taken::Apart),
    (b"helm registry login", b"-p", Taken::Apart),
    (b"az login", b"-p", Taken::Apart),
    (b"az acr login", b"-p", Taken::Apart),
    (b"oc login", b"-p", Taken::Apart),
    (b"cf login", b"-p", Taken::Apart),
    (b"ldap", b"-w", Taken::Apart),
    (b"sqlcmd", b"-P", Taken::Apart),
    (b"ipmitool", b"-P", Taken::Apart),
    (b"unzip", b"-P", Taken::Apart),
    (b"zip", b"-P", Taken::Apart),
    (b"7z", b"-p", Taken::Joined),
    (b"7za", b"-p", Taken::Joined),
    (b"smbclient", b"-U", Taken::After(b'%')),
    (b"rpcclient", b"-U", Taken::After(b'%')),
    (b"http", b"-a", Taken::After(b':')),
    (b"https", b"-a", Taken::After(b':')),
    (b"xh", b"-a", Taken::After(b':')),
    (b"curl", b"-b", Taken::After(b'=')),
    (b"twine", b"-p", Taken::Apart),
    (b"snowsql", b"-p", Taken::Apart),
    (b"openssl", b"-k", Taken::Apart),
    (b"sudo", b"-S", Taken::Told),
];

/// Options that say what stands behind them.
const NAMED: [&[u8]; 9] = [
    b"-password",
    b"-passwd",
    b"-passphrase",
    b"-storepass",
    b"-keypass",
    b"-srcstorepass",
    b"-deststorepass",
    b"-srckeypass",
    b"-destkeypass",
];

/// What a variable with a short name for a password belongs to.
const OWNERS: [&[u8]; 24] = [
    b"ADMIN",
    b"AUTH",
    b"DATABASE",
    b"DB",
    b"EMAIL",
    b"FTP",
    b"LDAP",
    b"LOGIN",
    b"MAIL",
    b"MONGO",
    b"MSSQL",
    b"MYSQL",
    b"ORACLE",
    b"PG",
    b"POSTGRES",
    b"PROXY",
    b"RABBITMQ",
    b"REDIS",
    b"ROOT",
    b"SMTP",
    b"SQL",
    b"SSH",
    b"SUDO",
    b"USER",
];

/// The password behind an option whose first letter ends at `at.end`.
pub(super) fn behind(text: &[u8], at: Range<usize>, begun: bool) -> Option<Range<usize>> {
    let dash = at.end - 2;
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let rest = &text[dash..text.len().min(dash + 24)];
    let option = &rest[..rest
        .iter()
        .position(|byte| !part(byte))
        .unwrap_or(rest.len())];
    let next = dash + option.len() + 1;
    let apart = text.get(next - 1) == Some(&b' ');
    let word = |from: usize| {
        let own = value(text, from, &mut (0..0))?;
        let open = begun && own.end == text.len();
        (!is_said(&text[own.clone()], open)).then_some(own)
    };
    if [&b"-passin"[..], b"-passout", b"-pass"].contains(&option) {
        return text[next.min(text.len())..]
            .starts_with(b"pass:")
            .then(|| word(next + 5))?;
    }
    if NAMED.contains(&option) {
        return apart.then(|| word(next))?;
    }
    let line = &text[dash.saturating_sub(LINE)..dash];
    let ends = |byte: &u8| b"\n\r|;&`(".contains(byte);
    let line = &line[line.iter().rposition(ends).map_or(0, |end| end + 1)..];
    let line = &line[memchr::memmem::rfind(line, b"\\n").map_or(0, |end| end + 2)..];
    PROGRAMS.iter().find_map(|(program, own, taken)| {
        let fits = match taken {
            Taken::Joined => option.len() > own.len() && option.starts_with(own),
            _ => option == *own && apart,
        };
        if !fits || !names(line, program) {
            return None;
        }
        match taken {
            Taken::Apart => word(next),
            Taken::Joined => word(dash + own.len()),
            Taken::Told => piped::into(text, dash - line.len()..at.end),
            Taken::After(sign) => {
                let own = word(next)?;
                let user = memchr::memchr(*sign, &text[own.clone()])?;
                (own.start + user + 1 < own.end).then(|| own.start + user + 1..own.end)
            }
        }
    })
}

/// The password in a variable whose short name, with an equals sign, ends at `at.end`; or in one in
/// lower case, of which the sign is not yet there.
pub(super) fn assigned(text: &[u8], at: Range<usize>, begun: bool) -> Option<Range<usize>> {
    if [&b"_pass"[..], b"_auth"].contains(&&text[at.clone()]) {
        return set(text, at);
    }
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let before = &text[at.start.saturating_sub(24)..at.start];
    let name = &before[before
        .iter()
        .rposition(|byte| !part(byte))
        .map_or(0, |end| end + 1)..];
    let own = name.strip_suffix(b"_").unwrap_or(name);
    let owner = own.rsplit(|byte| *byte == b'_').next().unwrap_or(own);
    let known = match &text[at.clone()] {
        b"_AUTH=" => owner == b"REDISCLI",
        _ => OWNERS.contains(&owner),
    };
    // In one of nobody's, or of somebody else's, only what does not read as words is.
    let apart = name.is_empty() || name.ends_with(b"_") || text[at.start] == b'_';
    if !known && !apart {
        return None;
    }
    let own = value(text, at.end, &mut (0..0))?;
    let word = &text[own.clone()];
    let nothing = [&b"None"[..], b"null", b"nil", b"true", b"false"];
    let open = begun && own.end == text.len();
    let none = |known: &&[u8]| match open {
        true => known.starts_with(word),
        false => *known == word,
    };
    // A path, a call, an element or a member is none.
    let code = matches!(text.get(own.end), Some(b'(' | b'[')) || word.contains(&b'.');
    let is_none = nothing.iter().any(none) || code || memchr::memchr(b'/', word).is_some();
    let is_one = known || (is_chosen(word) && !reads_as_words(word));
    (is_one && !is_none).then_some(own)
}

/// What `db_pass: …` and, of npm, `_auth=…` are set to, when it does not read as words.
fn set(text: &[u8], at: Range<usize>) -> Option<Range<usize>> {
    let start = behind_gap(text, at.end);
    let gap = &text[at.end..start];
    memchr::memchr2(b':', b'=', gap)?;
    let own = start..runs::end(text, start);
    let word = &text[own.clone()];
    let code = matches!(text.get(own.end), Some(b'(' | b'['))
        || memchr::memchr2(b'.', b'/', word).is_some();
    (is_chosen(word) && !reads_as_words(word) && !code).then_some(own)
}

/// Whether a line has the program in it, as a word or, of some, the beginning of one.
fn names(line: &[u8], program: &[u8]) -> bool {
    let open = [&b"mongo"[..], b"ldap"].contains(&program);
    memchr::memmem::find_iter(line, program).any(|at| {
        let rest = &line[at + program.len()..];
        let more = rest
            .iter()
            .take_while(|byte| open && byte.is_ascii_lowercase());
        begins_word(line, at) && rest.get(more.count()) == Some(&b' ')
    })
}

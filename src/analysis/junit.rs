//! Test results as JUnit XML for CI: one suite for each file.

use std::time::Duration;

/// The tests of one file.
#[derive(Debug)]
pub struct Suite {
    /// The file.
    pub name: String,
    /// How long the tests took.
    pub took: Duration,
    /// The tests.
    pub cases: Vec<Case>,
}

/// One test.
#[derive(Debug, Default)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What is wrong, a line each; nothing if it passed.
    pub faults: Vec<String>,
    /// It could not be run.
    pub broken: bool,
}

impl Suite {
    /// The suite of a file that could not be tested.
    pub fn unreadable(name: String, why: &str) -> Self {
        let case = Case {
            name: "open".to_owned(),
            faults: vec![why.to_owned()],
            broken: true,
        };
        Self {
            name,
            took: Duration::ZERO,
            cases: vec![case],
        }
    }

    fn xml(&self) -> String {
        let class = escaped(&self.name);
        let (mut failures, mut errors, mut cases) = (0, 0, String::new());
        for case in &self.cases {
            let name = escaped(&case.name);
            cases += &format!("    <testcase classname=\"{class}\" name=\"{name}\"");
            let Some(first) = case.faults.first() else {
                cases += "/>\n";
                continue;
            };
            let (word, count) = match case.broken {
                true => ("error", &mut errors),
                false => ("failure", &mut failures),
            };
            *count += 1;
            let (summary, text) = (escaped(first), escaped(&case.faults.join("\n")));
            cases += &format!(
                ">\n      <{word} message=\"{summary}\">{text}</{word}>\n    </testcase>\n"
            );
        }
        format!(
            "  <testsuite name=\"{class}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" \
             skipped=\"0\" time=\"{:.3}\">\n{cases}  </testsuite>\n",
            self.cases.len(),
            self.took.as_secs_f64(),
        )
    }
}

/// The report.
pub fn report(suites: &[Suite]) -> String {
    let suites: String = suites.iter().map(Suite::xml).collect();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n{suites}</testsuites>\n")
}

/// Text escaped for XML 1.0; characters that XML does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    let replaced = |character: char| match character {
        '\n' | '\t' => character,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    let text: String = text.chars().map(replaced).collect();
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

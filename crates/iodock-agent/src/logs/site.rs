//! Reads a site's own rules from a TOML file.
//!
//! ```toml
//! [[rule]]
//! kind = "burst-buffer-full"
//! severity = "error"                     # note, warning (the default), error
//! texts = ["bbd", "no room"]             # a line has all of them
//! after = "volume "                      # the word behind it is the target
//! file_system = "scratch"
//! ```

use super::rules::{Rule, Subject, MOST_TEXTS};
use iodock_samples::event::Severity;
use serde::Deserialize;
use std::borrow::Cow;

/// Largest number of rules. More are probably a mistake.
const MOST_RULES: usize = 1000;
/// Largest lengths in bytes of a text to search for, and of a name.
const LONGEST: usize = 500;
const LONGEST_NAME: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    kind: String,
    severity: Option<String>,
    texts: Vec<String>,
    after: Option<String>,
    file_system: Option<String>,
}

/// Parses the rules in the text of a file.
///
/// # Errors
/// Fails with the mistake and its rule or line.
pub fn rules(text: &str) -> Result<Vec<Rule>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
    if file.rule.len() > MOST_RULES {
        return Err(format!("{} rules; {MOST_RULES} are the most", file.rule.len()));
    }
    let rules = file.rule.into_iter().zip(1..);
    rules.map(|(rule, number)| checked(rule).map_err(|why| format!("rule {number}: {why}"))).collect()
}

fn checked(written: Written) -> Result<Rule, String> {
    let is_kind = |kind: &str| {
        (1..=LONGEST_NAME).contains(&kind.len())
            && kind.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !is_kind(&written.kind) {
        return Err(format!(
            "kind = {:?}: small letters, digits and -, as \"burst-buffer-full\"",
            written.kind
        ));
    }
    let named = written.severity.as_deref().map_or(Some(Severity::Warning), Severity::named);
    let severity =
        named.ok_or_else(|| format!("severity = {:?}: note, warning or error", written.severity))?;
    let texts = written.texts.iter().chain(&written.after);
    if let Some(text) = texts.clone().find(|text| text.is_empty() || text.len() > LONGEST) {
        return Err(format!("a text of {} bytes: 1 to {LONGEST}", text.len()));
    }
    if !(1..=MOST_TEXTS).contains(&written.texts.len()) {
        return Err(format!("texts has {}: 1 to {MOST_TEXTS}", written.texts.len()));
    }
    let file_system = written.file_system.unwrap_or_default();
    if file_system.len() > LONGEST_NAME || file_system.contains(char::is_control) {
        return Err(format!("file_system = {file_system:?}: a short name"));
    }
    Ok(Rule {
        kind: Cow::Owned(written.kind),
        severity,
        texts: written.texts.into_iter().map(Cow::Owned).collect(),
        subject: written.after.map_or(Subject::Nothing, |text| Subject::After(Cow::Owned(text))),
        file_system,
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::Rules;
    use super::*;

    #[test]
    fn a_rule_of_the_site_precedes_the_built_in_ones() {
        let text = "[[rule]]\nkind = \"raid-card\"\nseverity = \"error\"\ntexts = [\"I/O error, dev sdq\"]\n\
                    after = \"dev \"\nfile_system = \"scratch\"\n";
        let rules = Rules::new(self::rules(text).expect("rules")).expect("few");
        let found = rules.of(b"kernel: I/O error, dev sdq, sector 5").expect("it is a rule's");
        assert_eq!((found.kind, found.severity), ("raid-card", Severity::Error));
        assert_eq!((found.file_system.as_str(), found.target.as_str()), ("scratch", "sdq"));
        assert_eq!(rules.of(b"I/O error, dev sda, sector 5").map(|found| found.kind), Some("io-error"));
        assert!(self::rules("").expect("no rule is fine").is_empty());
    }

    #[test]
    fn errors_in_the_site_file_are_reported() {
        let rule = |rest: &str| format!("[[rule]]\nkind = \"a\"\ntexts = [\"x\"]\n{rest}");
        for (text, said) in [
            ("[[rule]]\nkind = \"A b\"\ntexts = [\"x\"]".to_owned(), "rule 1: kind"),
            (rule("severity = \"fatal\""), "rule 1: severity"),
            (rule("file_system = \"a\\n\""), "rule 1: file_system"),
            (rule("after = \"\""), "1 to 500"),
            (rule("colour = 1"), "colour"),
            ("[[rule]]\nkind = \"a\"\ntexts = []".to_owned(), "texts has 0"),
            ("[[rule]]\nkind = 5".to_owned(), "line 2"),
            ("[[rule".to_owned(), "line 1"),
            ("x = ".repeat(100_000), "line 1"),
            ("[[rule]]\nkind = \"a\"\ntexts = [\"x\"]\n".repeat(1001), "1001 rules"),
        ] {
            let error = rules(&text).expect_err("refused");
            assert!(error.contains(said) && !error.contains('\n'), "{error}");
        }
    }
}

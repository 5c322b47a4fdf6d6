//! Finds ranks and hosts in the names of logs.

use crate::ImportError;
use regex_lite::Regex;
use std::collections::BTreeMap;

/// Rank and host that a log's name contains.
type RankAndHost = (Option<i32>, Option<String>);

/// Rank and host of a log, and its space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    pub path: String,
    /// Number of the log's space. Logs of one space share their thread ids: the files of `strace -ff`, or a
    /// single log.
    pub space: usize,
    pub rank: Option<i32>,
    pub host: Option<String>,
}

/// Sorts `logs` into spaces.
///
/// `rank_from` says where to find a log's rank: `name` (the number that differs between the names), `order`
/// (the order of `logs`), a template such as `trace.{rank}.log` (also with `{host}` and `{pid}`), or a
/// regular expression with a group named `rank`. Without `rank_from`, all logs form one space.
///
/// # Errors
/// The names do not contain the rank, or contain it twice.
pub fn place_logs(logs: &[String], rank_from: Option<&str>) -> Result<Vec<LogPlace>, ImportError> {
    let found: Vec<RankAndHost> = match rank_from {
        None => vec![(None, None); logs.len()],
        Some("order") => (0..logs.len()).map(|rank| (Some(rank as i32), None)).collect(),
        Some("name") => ranks_by_name(logs)?.into_iter().map(|rank| (Some(rank), None)).collect(),
        Some(pattern) => by_pattern(logs, pattern)?,
    };
    let mut spaces = BTreeMap::new();
    let places = logs.iter().zip(found).map(|(path, (rank, host))| {
        let next = spaces.len();
        let space = *spaces.entry((rank, host.clone())).or_insert(next);
        LogPlace { path: path.clone(), space, rank, host }
    });
    Ok(places.collect())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the name with each run of digits replaced by `#`, and these runs.
fn digit_runs(name: &str) -> (String, Vec<&str>) {
    let mut skeleton = String::new();
    let mut runs = Vec::new();
    let mut rest = name;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[start..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - start);
        skeleton.push_str(&rest[..start]);
        skeleton.push('#');
        runs.push(&rest[start..start + length]);
        rest = &rest[start + length..];
    }
    skeleton.push_str(rest);
    (skeleton, runs)
}

fn ranks_by_name(logs: &[String]) -> Result<Vec<i32>, ImportError> {
    let runs: Vec<(String, Vec<&str>)> = logs.iter().map(|log| digit_runs(base_name(log))).collect();
    let (skeleton, first) = &runs[0];
    if let Some(odd) = runs.iter().position(|(other, _)| other != skeleton) {
        return Err(unclear(format!("{} and {} are not named alike", logs[0], logs[odd])));
    }
    let varies = |at: &usize| runs.iter().any(|(_, numbers)| numbers[*at] != first[*at]);
    let mut varying: Vec<usize> = (0..first.len()).filter(varies).collect();
    if logs.len() == 1 && first.len() == 1 {
        varying = vec![0];
    }
    // strace -ff appends the process id to the name, so the rank is the number before it.
    if varying.len() == 2 && skeleton.ends_with('#') && varying[1] == first.len() - 1 {
        varying.pop();
    }
    let &[at] = varying.as_slice() else {
        return Err(unclear(format!("{} numbers vary in the logs' names, not one", varying.len())));
    };
    runs.iter().zip(logs).map(|((_, numbers), log)| rank_number(numbers[at], log)).collect()
}

fn rank_number(text: &str, log: &str) -> Result<i32, ImportError> {
    text.parse().map_err(|_| unclear(format!("{log}: {text} is too large for a rank")))
}

fn unclear(message: String) -> ImportError {
    ImportError::Usage {
        message: format!("can't take the ranks from the names: {message}"),
        hint:
            "say where the rank stands, for example --rank-from 'trace.{rank}.log', or use --rank-from order"
                .into(),
    }
}

/// Converts a template to a regular expression. A pattern without `{rank}` already is one.
fn expression(pattern: &str) -> String {
    if !pattern.contains("{rank}") {
        return pattern.into();
    }
    let escaped = regex_lite::escape(pattern);
    let named = escaped
        .replace(&regex_lite::escape("{rank}"), "(?P<rank>[0-9]+)")
        .replace(&regex_lite::escape("{host}"), "(?P<host>[^/]+?)")
        .replace(&regex_lite::escape("{pid}"), "[0-9]+");
    format!("(?:^|/){named}$")
}

fn by_pattern(logs: &[String], pattern: &str) -> Result<Vec<RankAndHost>, ImportError> {
    let expression = Regex::new(&expression(pattern)).map_err(|error| ImportError::Usage {
        message: format!("--rank-from {pattern:?} is no regular expression: {error}"),
        hint: "a template such as 'trace.{rank}.log' is easier".into(),
    })?;
    logs.iter()
        .map(|log| {
            let found = expression.captures(log);
            let named = |name| found.as_ref().and_then(|found| found.name(name)).map(|text| text.as_str());
            let first = found.as_ref().and_then(|found| found.get(1)).map(|text| text.as_str());
            let Some(rank) = named("rank").or(first) else {
                return Err(unclear(format!("{log} does not match {pattern:?}")));
            };
            Ok((Some(rank_number(rank, log)?), named("host").map(str::to_owned)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(names: &[&str], from: &str) -> Result<Vec<Option<i32>>, String> {
        let logs: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let places = place_logs(&logs, Some(from)).map_err(|error| error.to_string())?;
        Ok(places.into_iter().map(|place| place.rank).collect())
    }

    #[test]
    fn the_varying_number_is_the_rank() {
        assert_eq!(ranks(&["d1/t2.0.log", "d1/t2.10.log"], "name").unwrap(), [Some(0), Some(10)]);
        assert_eq!(ranks(&["t.0.812", "t.0.813", "t.1.812"], "name").unwrap(), [Some(0), Some(0), Some(1)]);
        assert_eq!(ranks(&["only7.log"], "name").unwrap(), [Some(7)]);
    }

    #[test]
    fn ambiguous_file_names_are_refused() {
        assert!(ranks(&["a.log", "b.log"], "name").unwrap_err().contains("not named alike"));
        assert!(ranks(&["1.2.3.log", "4.5.6.log"], "name").unwrap_err().contains("3 numbers vary"));
        assert!(ranks(&["t.99999999999.log", "t.1.log"], "name").unwrap_err().contains("too large"));
        assert!(ranks(&["t.1.log"], "(").unwrap_err().contains("no regular expression"));
        assert!(ranks(&["t.x.log"], "t.{rank}.log").unwrap_err().contains("does not match"));
    }

    #[test]
    fn templates_and_expressions_give_the_rank() {
        assert_eq!(ranks(&["x/t.3.log"], "t.{rank}.log").unwrap(), [Some(3)]);
        assert_eq!(ranks(&["x/r12-n.log"], r"r(?P<rank>\d+)").unwrap(), [Some(12)]);
        let logs = vec!["n1.0.5".to_string(), "n1.0.6".into(), "n2.0.5".into()];
        let places = place_logs(&logs, Some("{host}.{rank}.{pid}")).unwrap();
        assert_eq!(places.iter().map(|p| p.space).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(places[2].host.as_deref(), Some("n2"));
    }

    #[test]
    fn logs_without_ranks_share_one_process_space() {
        let places = place_logs(&["a".into(), "b".into()], None).unwrap();
        assert!(places.iter().all(|place| place.space == 0 && place.rank.is_none()));
    }
}

//! Ranks of a recording whose data are missing or incomplete.

use iodock_event::LossKind;
use iodock_store::Manifest;

/// Adds the ranks with missing data to the manifest.
///
/// `there` contains the ranks that have a part, `cut` those whose part was not closed.
pub fn name_ranks(manifest: &mut Manifest, there: &[i32], cut: Vec<i32>) {
    let expected = manifest.ranks.and_then(|ranks| i32::try_from(ranks).ok()).unwrap_or(0);
    let missing: Vec<i32> = (0..expected).filter(|rank| !there.contains(rank)).collect();
    for (kind, ranks) in [(LossKind::MissingRanks, missing), (LossKind::JournalCut, cut)] {
        let entry = manifest.losses.iter_mut().find(|entry| entry.name == kind.name());
        if let Some(entry) = entry.filter(|_| !ranks.is_empty()) {
            entry.cure = format!("{} (rank {})", entry.cure, listed(&ranks));
        }
    }
}

/// Lists ranks as `2, 5, 7`, with `...` after the first few.
pub fn listed(ranks: &[i32]) -> String {
    const SHOWN: usize = 20;
    let mut names: Vec<String> = ranks.iter().take(SHOWN).map(i32::to_string).collect();
    if ranks.len() > SHOWN {
        names.push("...".into());
    }
    names.join(", ")
}

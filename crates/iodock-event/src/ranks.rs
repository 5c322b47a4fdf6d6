//! The rank that an MPI launcher assigns to a process.

/// Environment variables in which launchers pass the rank, and the number of ranks.
pub const RANK_NAMES: [(&str, &str); 6] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// The rank in an environment's `NAME=VALUE` pairs, from the first name that is present.
pub fn rank_among<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> Option<i32> {
    pairs.filter_map(rank_of_pair).min_by_key(|&(name, _)| name).map(|(_, rank)| rank)
}

fn rank_of_pair(pair: &[u8]) -> Option<(usize, i32)> {
    // The first letter excludes most pairs.
    if !matches!(pair.first(), Some(b'O' | b'P' | b'M' | b'S')) {
        return None;
    }
    RANK_NAMES.iter().enumerate().find_map(|(index, (name, _))| {
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some((index, std::str::from_utf8(value).ok()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    fn rank(pairs: &[&str]) -> Option<i32> {
        super::rank_among(pairs.iter().map(|pair| pair.as_bytes()))
    }

    #[test]
    fn the_launchers_own_name_for_the_rank_comes_first() {
        assert_eq!(rank(&["PATH=/bin", "SLURM_PROCID=7", "OMPI_COMM_WORLD_RANK=3", "HOME=/"]), Some(3));
        assert_eq!(rank(&["PMI_RANK=x", "SLURM_PROCID=7"]), Some(7));
        assert_eq!(rank(&["PMI_RANKS=1", "OMPI=2", "", "S"]), None);
    }
}

use super::*;
use std::sync::Barrier;

const CLAIMANTS: usize = 4;

/// Creates a temporary folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("iodock-naming-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder can be made");
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn at_once<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (work, together) = (&work, &Barrier::new(CLAIMANTS));
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..CLAIMANTS)
            .map(|number| {
                scope.spawn(move || {
                    together.wait();
                    work(number)
                })
            })
            .collect();
        started.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

#[test]
fn the_number_of_a_kept_store_precedes_the_ending() {
    assert_eq!(numbered(Path::new("/a/run.iodock"), 3), Path::new("/a/run-3.iodock"));
    assert_eq!(numbered(Path::new("run"), 1), Path::new("run-1"));
    assert_eq!(numbered(Path::new(".iodock"), 1), Path::new(".iodock-1"));
}

#[test]
fn the_previous_store_is_kept_under_the_highest_number() {
    let folder = folder("kept");
    let store = folder.join("run.iodock");
    fs::create_dir(folder.join("run-20261128.iodock")).expect("a date is no number");
    for number in 1..4 {
        fs::write(
            take(&store, false, None).expect("taken").store.join("journal/main.journal"),
            format!("{number}"),
        )
        .expect("written");
    }
    let taken = take(&store, false, None).expect("taken");
    assert_eq!(taken.way.kept, Some(folder.join("run-3.iodock")));
    assert_eq!(fs::read_to_string(folder.join("run-3.iodock/journal/main.journal")).expect("kept"), "3");
    assert_eq!(
        names(&folder),
        ["run-1.iodock", "run-2.iodock", "run-20261128.iodock", "run-3.iodock", "run.iodock"]
    );
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn simultaneous_recordings_each_get_a_store() {
    let folder = folder("several");
    let store = folder.join("run.iodock");
    drop(take(&store, false, None).expect("taken"));
    let taken = at_once(|_| take(&store, false, None).expect("taken"));
    let with_the_name = taken.iter().filter(|one| one.store == store).count();
    assert_eq!(with_the_name, 1);
    assert!(taken.iter().filter(|one| one.store != store).all(|one| one.way.elsewhere.is_some()));
    assert_eq!(names(&folder).len(), CLAIMANTS + 1, "{:?}", names(&folder));
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn ranks_of_a_launch_share_a_store_and_keep_the_previous_one() {
    let folder = folder("ranks");
    let store = folder.join("run.iodock");
    for round in 0..20 {
        let name = format!("launch {round}");
        let taken = at_once(|rank| {
            let launch = Launch { name: name.clone(), rank: rank as i32 };
            take(&store, false, Some(&launch)).expect("taken")
        });
        assert!(taken.iter().all(|one| one.store == store));
        assert_eq!(taken.iter().filter(|one| one.created).count(), 1);
        assert_eq!(taken.iter().filter(|one| one.way.kept.is_some()).count(), usize::from(round > 0));
    }
    assert_eq!(names(&folder).len(), 20);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_late_rank_finds_its_store_after_it_was_renamed() {
    let folder = folder("late");
    let store = folder.join("run.iodock");
    let launch = |name: &str, rank| Launch { name: name.into(), rank };
    drop(take(&store, false, Some(&launch("a", 0))).expect("taken"));
    let other = take(&store, false, None).expect("taken");
    let late = take(&store, false, Some(&launch("a", 1))).expect("taken");
    assert_eq!((other.store, late.store), (store, folder.join("run-1.iodock")));
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_rank_that_records_again_begins_another_store() {
    let folder = folder("again");
    let store = folder.join("run.iodock");
    let launch = Launch { name: "a".into(), rank: 0 };
    let first = take(&store, false, Some(&launch)).expect("taken");
    fs::write(store.join("journal/rank-00000-host-1.journal"), "").expect("written");
    let second = take(&store, false, Some(&launch)).expect("taken");
    let third = take(&store, false, Some(&Launch { name: "a".into(), rank: 1 })).expect("taken");
    assert_eq!((second.store, third.store), (folder.join("run-1.iodock"), first.store));
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_folder_that_is_not_a_store_is_not_replaced() {
    let folder = folder("foreign");
    let store = folder.join("run.iodock");
    fs::write(&store, "mine").expect("written");
    let taken = take(&store, false, None).expect("taken");
    assert_eq!(taken.store, folder.join("run-1.iodock"));
    assert_eq!(taken.way.elsewhere.as_deref(), Some("is a file"));
    assert_eq!(fs::read_to_string(&store).expect("there"), "mine");
    assert!(matches!(take(&store, true, None), Err(Claim::Foreign(_))));
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn only_one_of_several_recordings_replaces_a_store() {
    let folder = folder("replaced");
    let store = folder.join("run.iodock");
    for _ in 0..50 {
        let claims = at_once(|_| take(&store, true, None));
        let (got, refused): (Vec<_>, Vec<_>) = claims.into_iter().partition(Result::is_ok);
        assert_eq!(got.len(), 1);
        assert!(refused.into_iter().filter_map(Result::err).all(|claim| matches!(claim, Claim::Busy)));
        assert!(store.join("journal/job").is_file());
    }
    fs::remove_dir_all(&folder).expect("removed");
}

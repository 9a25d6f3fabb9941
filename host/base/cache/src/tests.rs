//! The cache finds the artifacts it stored, and reports files that were tampered with.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

const CAKES: Kind =
    Kind { magic: b"a cake of tests.", name: "a cake", source: "recipe", maker: "oven" };

/// Returns the contents made from a recipe, and their digest.
fn made(number: u32) -> (String, Vec<u8>) {
    let cake = format!("cake {number}, ").repeat(100).into_bytes();
    (hex(&Sha256::digest(number.to_le_bytes())), cake)
}

fn cache(folder: &Path) -> Cache {
    Cache::at(folder, &CAKES, [7; 32]).unwrap().unwrap()
}

#[track_caller]
fn wrong(cache: &Cache, digest: &str) -> String {
    match cache.find(digest) {
        Lookup::Wrong(what) => what.replace(&cache.path(digest).display().to_string(), "FILE"),
        Lookup::Whole(_) => panic!("it was taken"),
        Lookup::Nothing => panic!("there is nothing"),
    }
}

#[test]
fn finds_a_stored_artifact_and_keeps_it_private() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("deep/below");
    let (digest, cake) = made(1);
    let cache = cache(&folder);
    assert!(matches!(cache.find(&digest), Lookup::Nothing));
    cache.put(&digest, &cake).unwrap();
    match cache.find(&digest) {
        Lookup::Whole(found) => assert_eq!(*found, cake),
        other => panic!("{other:?}"),
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&cache.path(&digest))), (0o700, 0o600));
    // And again over it, leaving nothing else behind.
    cache.put(&digest, &cake).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_changed_artifact_is_refused_and_replaced() {
    let home = tempfile::tempdir().unwrap();
    let cache = cache(home.path());
    let (digest, cake) = made(2);
    cache.put(&digest, &cake).unwrap();
    let path = cache.path(&digest);
    let whole = fs::read(&path).unwrap();
    let at = |at: usize| match at {
        0..16 => "FILE is not a cake",
        16..48 => "FILE belongs to another recipe",
        48..80 => "FILE was written by another version of the oven",
        _ => "FILE was changed after it was written, or is truncated",
    };
    let edges = [0, 15, 16, 47, 48, 79, 80, 111, 112];
    let places = (0..whole.len()).step_by(whole.len() / 40).chain(edges);
    for place in places.chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(wrong(&cache, &digest), format!("its cached form {}", at(place)), "{place}");
    }
    for length in [0, 1, HEADER - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(wrong(&cache, &digest), "its cached form FILE is truncated");
    }
    for length in [HEADER, HEADER + 1, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        assert_eq!(wrong(&cache, &digest), format!("its cached form {}", at(HEADER)));
    }
    cache.put(&digest, &cake).unwrap();
    assert!(matches!(cache.find(&digest), Lookup::Whole(_)));
}

#[test]
fn an_artifact_of_another_source_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let cache = cache(home.path());
    let ((first, one), (second, other)) = (made(3), made(4));
    cache.put(&first, &one).unwrap();
    cache.put(&second, &other).unwrap();
    let aside = home.path().join("aside");
    fs::rename(cache.path(&first), &aside).unwrap();
    fs::rename(cache.path(&second), cache.path(&first)).unwrap();
    fs::rename(&aside, cache.path(&second)).unwrap();
    for digest in [first, second] {
        assert_eq!(wrong(&cache, &digest), "its cached form FILE belongs to another recipe");
    }
}

#[test]
fn an_artifact_that_others_may_write_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("cache");
    let (digest, cake) = made(5);
    let cache = cache(&folder);
    cache.put(&digest, &cake).unwrap();
    let path = cache.path(&digest);
    for (mode, octal) in [(0o620, "620"), (0o602, "602"), (0o666, "666")] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(
            wrong(&cache, &digest),
            format!("its cached form FILE is not used: other users may write to it (mode {octal})")
        );
    }
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(cache.find(&digest), Lookup::Whole(_)));
    // A file that is replaced is its owner's alone again.
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    cache.put(&digest, &cake).unwrap();
    assert!(matches!(cache.find(&digest), Lookup::Whole(_)));

    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let Err(message) = Cache::at(&folder, &CAKES, [7; 32]) else {
        panic!("a folder that anybody may write in was taken");
    };
    assert_eq!(
        message.replace(&folder.display().to_string(), "FOLDER"),
        "the cache of compiled plugins and tokenizers in FOLDER is not used: other users may write to it \
         (mode 777); name a folder of your own with --cache-dir"
    );
}

#[test]
fn a_folder_in_place_of_an_artifact_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let cache = cache(home.path());
    let (digest, _) = made(6);
    fs::create_dir(cache.path(&digest)).unwrap();
    let expected = "its cached form FILE is not used: it is not a regular file";
    assert_eq!(wrong(&cache, &digest), expected);
}

#[test]
fn without_a_folder_there_is_no_cache() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Cache::at(&file.join("below"), &CAKES, [7; 32]), Ok(None)));
}

#[test]
fn removes_unused_artifacts_alone() {
    let home = tempfile::tempdir().unwrap();
    let cache = cache(home.path());
    let old = clock::date() - 2 * UNUSED;
    let date = |path: &Path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(old)).unwrap();
    };
    let ((unused, one), (used, other), (new, third)) = (made(7), made(8), made(9));
    cache.put(&unused, &one).unwrap();
    cache.put(&used, &other).unwrap();
    let others = home.path().join("notes.txt");
    let left = home.path().join(format!("1-1{UNFINISHED}"));
    fs::write(&others, "").unwrap();
    fs::write(&left, "").unwrap();
    for path in [&cache.path(&unused), &cache.path(&used), &others, &left] {
        date(path);
    }
    assert!(matches!(cache.find(&used), Lookup::Whole(_)));
    cache.put(&new, &third).unwrap();
    assert!(matches!(cache.find(&unused), Lookup::Nothing));
    assert!(matches!(cache.find(&used), Lookup::Whole(_)));
    assert!(others.exists(), "what is not ours is left alone");
    assert!(!left.exists());
}

#[test]
fn removes_the_oldest_artifacts_beyond_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let cache = cache(home.path());
    let (digest, cake) = made(10);
    let large = |name: &str| {
        let path = home.path().join(format!("{name}{ENDING}"));
        // Without any contents: it takes no room on the disk.
        File::create(&path).unwrap().set_len(FOLDER_BYTES / 2).unwrap();
        path
    };
    let (older, newer) = (large("older"), large("newer"));
    let file = File::options().write(true).open(&older).unwrap();
    file.set_times(FileTimes::new().set_modified(clock::date() - DAY)).unwrap();
    cache.put(&digest, &cake).unwrap();
    assert!(!older.exists());
    assert!(newer.exists());
    assert!(matches!(cache.find(&digest), Lookup::Whole(_)));
}

#[test]
fn each_maker_finds_its_own() {
    let home = tempfile::tempdir().unwrap();
    let one = cache(home.path());
    let other = Cache::at(home.path(), &CAKES, [8; 32]).unwrap().unwrap();
    let (digest, cake) = made(11);
    one.put(&digest, &cake).unwrap();
    assert_eq!(other.find(&digest), Lookup::Nothing);
    other.put(&digest, b"another").unwrap();
    match (one.find(&digest), other.find(&digest)) {
        (Lookup::Whole(first), Lookup::Whole(second)) => {
            assert_eq!((&*first, &*second), (&*cake, &b"another"[..]));
        }
        found => panic!("{found:?}"),
    }
}

use std::cell::Cell;
use std::fs::{self, File, Permissions};
use std::io::{Cursor, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;
use nix::unistd::{Uid, geteuid, gethostname, setfsuid};
use tempfile::{TempDir, tempdir};

use super::content::ContentDigest;
use super::entries::{EntryKind, is_valid};
use super::gifts::replace;
use super::store::prefix;
use super::*;
use crate::cleanup::{Registry, scratch_place};
use ftsh_sys::{FileLock, LockKind};

const KEY: DigestKey = [7; 16];

fn names(names: &[&str]) -> Vec<BString> {
    names.iter().map(|name| BString::from(*name)).collect()
}

fn write(place: &Path, content: &[u8]) {
    fs::create_dir_all(place.parent().expect("a parent")).expect("a directory");
    fs::write(place, content).expect("a file");
}

/// A directory with files of all kinds that travel.
fn all_kinds() -> TempDir {
    let place = tempdir().expect("a directory");
    write(&place.path().join("lib/empty"), b"");
    write(&place.path().join("lib/deep/large"), &vec![b'x'; 3 << 20]);
    write(&place.path().join("lib/deep-file"), b"behind `deep` in the order of bytes");
    write(&place.path().join(std::ffi::OsStr::from_bytes(b"lib/\xff\n*")), b"any bytes");
    fs::create_dir(place.path().join("lib/nothing")).expect("a directory");
    symlink("../lib/empty", place.path().join("lib/link")).expect("a link");
    symlink("missing", place.path().join("lib/dangling")).expect("a link");
    write(&place.path().join("tool"), b"a program");
    let set = |name: &str, mode| {
        let place = place.path().join(name);
        fs::set_permissions(place, Permissions::from_mode(mode)).expect("a mode");
    };
    set("tool", 0o755);
    set("lib/empty", 0o400);
    set("lib/deep", 0o555);
    place
}

/// Returns the entries with their digests.
fn entries(place: &Path, names: &[BString]) -> Vec<FileEntry> {
    Outgoing::list(place, names, "take", &Digests::new(KEY)).expect("files").entries
}

/// Takes files by a store, and returns the number of requested files.
fn take(store: &FileStore, from: &Path, to: &Path, names: &[BString]) -> usize {
    let digests = Digests::new(KEY);
    let outgoing = Outgoing::list(from, names, "take", &digests).expect("files");
    let mut incoming =
        IncomingFiles::new(store, outgoing.entries.clone(), names).expect("a valid list");
    let mut count = 0;
    loop {
        let wanted = incoming.wanted().expect("a store");
        for index in &wanted {
            let mut content = Vec::new();
            outgoing.send(*index as usize, &mut content).expect("a content");
            incoming.receive(*index, &mut Cursor::new(content)).expect("a content");
        }
        count += wanted.len();
        if wanted.is_empty() {
            break;
        }
    }
    incoming.build(to, names).expect("copies");
    count
}

#[test]
fn taken_files_arrive_as_they_are_and_cross_once() {
    let (here, names) = (all_kinds(), names(&["lib", "tool"]));
    let store = FileStore::open(&format!("{:016x}", ftsh_sys::random().expect("a number")), KEY)
        .expect("a store");
    let first = store.create_directory().expect("a directory");
    assert_eq!(take(&store, here.path(), &first, &names), 5);
    let second = store.create_directory().expect("a directory");
    assert_eq!(take(&store, here.path(), &second, &names), 0);
    fs::write(first.join("tool"), "changed").expect("a file of its own");
    assert_eq!(entries(here.path(), &names), entries(&second, &names));
    store.leave(&second, false).expect("a directory that goes");
    assert!(!first.exists(), "the store stayed");
}

#[test]
fn a_large_content_is_awaited_and_not_requested_twice() {
    let (here, names) = (all_kinds(), names(&["lib"]));
    let name = format!("{:016x}", ftsh_sys::random().expect("a number"));
    let open = || FileStore::open(&name, KEY).expect("a store");
    let listed = entries(here.path(), &names);
    let (store, digests) = (open(), Digests::new(KEY));
    let mut first = IncomingFiles::new(&store, listed, &names).expect("a valid list");
    let wanted = first.wanted().expect("a store");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let store = open();
            let place = store.create_directory().expect("a directory");
            let count = take(&store, here.path(), &place, &names);
            let found = entries(&place, &names);
            store.leave(&place, true).expect("a directory that goes");
            (count, found)
        });
        let outgoing = Outgoing::list(here.path(), &names, "take", &digests).expect("files");
        for index in wanted {
            let mut content = Vec::new();
            outgoing.send(index as usize, &mut content).expect("a content");
            first.receive(index, &mut Cursor::new(content)).expect("a content");
        }
        let (count, found) = second.join().expect("a branch");
        // Small contents may cross twice.
        assert!(count < 4, "{count}");
        assert_eq!(found, outgoing.entries);
    });
    // The keeper removes the store when no branch is left.
    let (keeper, other) = (store.keeper(Duration::from_millis(1)), store.keeper(Duration::ZERO));
    let place = store.create_directory().expect("a directory");
    let keeper = std::thread::spawn(keeper);
    drop(first);
    drop(store);
    keeper.join().expect("a keeper");
    other();
    assert!(!place.exists(), "the store stayed");
}

#[test]
fn a_store_with_a_keeper_stays_between_its_branches() {
    let open = || {
        let name = format!("{:016x}", ftsh_sys::random().expect("a number"));
        let store = FileStore::open(&name, KEY).expect("a store");
        let place = store.create_directory().expect("a directory");
        (store, place)
    };
    let open_another = || {
        let (store, place) = open();
        store.leave(&place, false).expect("a store that goes");
    };
    let (store, place) = open();
    let keeper = File::create(place.with_file_name("keeper")).expect("a file");
    let keeper = FileLock::lock(keeper, LockKind::ExclusiveNow).expect("a lock");
    drop(store);
    open_another();
    assert!(place.exists(), "the store is gone");
    drop(keeper);
    open_another();
    assert!(!place.exists(), "the store stayed");
}

/// Other nodes may share the file system, and their locks may not reach this one.
#[test]
fn a_store_of_another_node_stays() {
    let name = format!("{:016x}", ftsh_sys::random().expect("a number"));
    let place = scratch_place();
    let own = prefix(&gethostname().expect("a name").to_string_lossy());
    let longer = own.strip_suffix("-").expect("a prefix").to_owned() + "0-";
    let others = [prefix("another"), longer].map(|it| place.join(it + &name));
    let stale = place.join(format!("{own}{name}0"));
    for path in others.iter().chain([&stale]) {
        fs::create_dir(path).expect("a directory");
    }
    let store = FileStore::open(&name, KEY).expect("a store");
    let stay = others.each_ref().map(|it| it.exists());
    for path in &others {
        let _ = fs::remove_dir(path);
    }
    assert_eq!((stay, stale.exists()), ([true, true], false));
    let branch = store.create_directory().expect("a directory");
    store.leave(&branch, false).expect("a store that goes");
}

#[test]
fn given_files_replace_those_here_completely() {
    let (node, names) = (all_kinds(), names(&["lib", "sub/tool"]));
    fs::create_dir(node.path().join("sub")).expect("a directory");
    fs::rename(node.path().join("tool"), node.path().join("sub/tool")).expect("a file");
    let here = tempdir().expect("a directory");
    write(&here.path().join("lib/old"), b"old");
    let registry = Arc::new(Registry::new(None));
    let notes = || registry.path().map(|run| fs::read_dir(run).expect("notes").count());
    let digests = Digests::new(KEY);
    let outgoing = Outgoing::list(node.path(), &names, "give", &digests).expect("files");
    let mut contents = Vec::new();
    (0..outgoing.entries.len()).for_each(|index| {
        outgoing.send(index, &mut contents).expect("a content");
    });
    let receive = |contents: &[u8]| {
        let mut from = Cursor::new(contents);
        Gifts::receive_in(&registry, here.path(), &names, &outgoing.entries, &KEY, &mut from)
    };
    for end in [0, 1, 100, contents.len() - 1] {
        assert_eq!(receive(&contents[..end]).err(), Some(TransferError::Cut));
    }
    let mut changed = contents.clone();
    changed[1 << 20] = b'y';
    assert_eq!(receive(&changed).err(), Some(TransferError::Cut));
    let gifts = receive(&contents).expect("files");
    assert_eq!(notes(), Some(2));
    drop(gifts);
    assert!(here.path().join("lib/old").exists() && !here.path().join("sub").exists());
    let gifts = receive(&contents).expect("files");
    gifts.place(|| ()).expect("their places");
    assert!(notes() > Some(0), "the old directory is removed before the report");
    drop(gifts);
    assert_eq!(entries(here.path(), &names), outgoing.entries);
    assert_eq!(fs::read_dir(here.path()).expect("a directory").count(), 2);
    assert_eq!(notes(), Some(0));
    let gifts = receive(&contents).expect("files");
    registry.close();
    assert_eq!(gifts.place(|| ()), Err("the shell has ended".into()));
}

/// Receives the files of a node for their places in another directory.
fn gifts(node: &Path, here: &Path, names: &[BString]) -> Gifts {
    let digests = Digests::new(KEY);
    let outgoing = Outgoing::list(node, names, "give", &digests).expect("files");
    let mut contents = Vec::new();
    for index in 0..outgoing.entries.len() {
        outgoing.send(index, &mut contents).expect("a content");
    }
    let registry = Arc::new(Registry::new(None));
    let mut from = Cursor::new(contents);
    Gifts::receive_in(&registry, here, names, &outgoing.entries, &KEY, &mut from).expect("files")
}

#[test]
fn a_directory_of_another_user_moves_and_a_failed_move_leaves_the_mode() {
    let (node, here, names) = (tempdir().expect("one"), tempdir().expect("other"), names(&["lib"]));
    write(&node.path().join("lib/new"), b"new");
    let sub = here.path().join("sub");
    let lib = sub.join("lib");
    write(&lib.join("old"), b"old");
    let set = |place: &Path, mode| {
        fs::set_permissions(place, Permissions::from_mode(mode)).expect("a mode");
    };
    set(&lib, 0o777);
    let user = Uid::from_raw(65534);
    if geteuid().is_root() {
        for place in [node.path(), here.path()] {
            set(place, 0o755);
        }
        chown(&sub, Some(user.as_raw()), None).expect("another owner");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if geteuid().is_root() {
                // This thread alone loses the rights of root on files.
                setfsuid(user);
            }
            gifts(node.path(), &sub, &names).place(|| ()).expect("its place");
            assert!(lib.join("new").exists());
            set(&lib, 0o500);
            let gifts = gifts(node.path(), &sub, &names);
            set(&sub, 0o555);
            gifts.place(|| ()).expect_err("the directory cannot be written");
            assert_eq!(lib.metadata().expect("a directory").mode() & 0o777, 0o500);
            set(&sub, 0o755);
        });
    });
}

#[test]
fn only_a_directory_replaces_a_directory() {
    let (node, here) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let (node, here) = (node.path(), here.path());
    write(&node.join("first"), b"new");
    write(&node.join("file"), b"new");
    symlink("file", node.join("link")).expect("a link");
    write(&node.join("directory/new"), b"new");
    write(&here.join("first"), b"old");
    let put = |name: &str, kind: &str| match kind {
        "a directory" => write(&here.join(name).join("old"), b"old"),
        "a symbolic link" => symlink("first", here.join(name)).expect("a link"),
        _ => write(&here.join(name), b"old"),
    };
    let entries = |place: &Path| {
        let entries = place.read_dir().expect("a directory").flatten();
        let mut names: Vec<_> = entries.map(|it| it.file_name()).collect();
        names.sort();
        names
    };
    for (name, old, refused) in [
        ("file", "a directory", Some("a file cannot replace a directory")),
        ("link", "a directory", Some("a file cannot replace a directory")),
        ("directory", "a file", Some("a directory cannot replace a file")),
        ("directory", "a symbolic link", Some("a directory cannot replace a symbolic link")),
        ("file", "a file", None),
        ("file", "a symbolic link", None),
        ("link", "a file", None),
        ("link", "a symbolic link", None),
        ("directory", "a directory", None),
    ] {
        put(name, old);
        let given = gifts(node, here, &names(&["first", name])).place(|| ());
        let expected =
            refused.map_or(Ok(()), |why| Err(format!("the branch cannot give `{name}`: {why}")));
        assert_eq!(given, expected, "{name} for {old}");
        let (first, place) = (fs::read(here.join("first")).expect("a file"), here.join(name));
        let found = place.symlink_metadata().expect("an entry").file_type();
        let is_new = match name {
            "directory" => found.is_dir() && entries(&place) == ["new"],
            "link" => found.is_symlink() && place.read_link().expect("a link") == Path::new("file"),
            _ => found.is_file() && fs::read(&place).expect("a file") == b"new",
        };
        assert_eq!(is_new, refused.is_none(), "{name} for {old}");
        assert_eq!(first == b"new", refused.is_none(), "{name} for {old}: all or nothing");
        assert!(entries(here) == [name, "first"] || entries(here) == ["first", name]);
        if found.is_dir() {
            fs::remove_dir_all(&place).expect("a directory");
        } else {
            fs::remove_file(&place).expect("a file");
        }
        write(&here.join("first"), b"old");
    }
}

#[test]
fn a_replaced_directory_is_somewhere_after_each_step() {
    let replaced = |fails: fn(usize) -> bool| {
        let here = tempdir().expect("a directory");
        let at = |name: &str| here.path().join(name);
        write(&at("place/old"), b"");
        write(&at("hidden/new/new"), b"");
        let count = Cell::new(0);
        let rename = |from: &Path, to: &Path| {
            count.set(count.get() + 1);
            if fails(count.get()) { Err(ErrorKind::Other.into()) } else { fs::rename(from, to) }
        };
        let is_done = replace(&at("hidden/new"), &at("place"), &at("hidden/old"), rename).is_ok();
        let all = here.path().read_dir().expect("a directory").flatten();
        let aside = all.filter(|it| it.file_name().to_string_lossy().starts_with(".ftsh-"));
        let is_aside = aside.into_iter().any(|it| it.path().join("old").exists());
        let is_new = at("place/new").exists() && !at("place/old").exists();
        let is_old = at("place/old").exists() && at("hidden/new/new").exists();
        (is_done, is_new, is_old, at("hidden/old/old").exists(), is_aside)
    };
    assert_eq!(replaced(|_| false), (true, true, false, true, false));
    assert_eq!(replaced(|step| step == 2), (false, false, true, false, false));
    // As after a kill, nothing is put back.
    assert_eq!(replaced(|step| step >= 2), (false, false, false, false, true));
    assert_eq!(replaced(|step| step == 3), (true, true, false, false, true));
}

#[test]
fn files_that_cannot_travel_have_their_names_in_messages() {
    let place = tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    UnixListener::bind(at("socket")).expect("a socket");
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    symlink("/etc/passwd", at("absolute")).expect("a link");
    fs::create_dir(at("sub")).expect("a directory");
    symlink("../../x", at("sub/out")).expect("a link");
    symlink("/etc", at("etc")).expect("a link");
    for (name, message) in [
        ("no", "the branch cannot take `no`: no such file or directory"),
        ("no/more", "the branch cannot take `no/more`: no such file or directory"),
        ("socket", "the branch cannot take `socket`: it is a socket"),
        ("pipe", "the branch cannot take `pipe`: it is a named pipe"),
        (
            "absolute",
            "the branch cannot take `absolute`: it leads out of the directory of the branch",
        ),
        ("sub", "the branch cannot take `sub/out`: it leads out of the directory of the branch"),
        (
            "etc/passwd",
            "the branch cannot take `etc/passwd`: it leads out of the directory of the branch",
        ),
    ] {
        assert_eq!(check_files(place.path(), &names(&[name]), "take"), Err(message.into()));
        let message = message.replace("take", "give");
        assert_eq!(check_files(place.path(), &names(&[name]), "give"), Err(message));
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_an_error() {
    let place = all_kinds();
    let digests = Digests::new(KEY);
    let names = names(&["tool"]);
    let outgoing = Outgoing::list(place.path(), &names, "take", &digests).expect("files");
    let mut file = File::options().append(true).open(place.path().join("tool")).expect("a file");
    file.write_all(b" that grows").expect("a longer file");
    let why = "the branch cannot take `tool`: it has changed meanwhile";
    let sent = outgoing.send(0, &mut Vec::new());
    assert_eq!(sent, Err(TransferError::Files(why.into())));
    assert_ne!(entries(place.path(), &names), outgoing.entries);
}

/// A second change within one tick of the clock leaves the times that the first change set.
#[test]
fn a_file_that_has_just_changed_is_read_again() {
    let place = tempdir().expect("a directory");
    let path = place.path().join("file");
    let digests = Digests::new(KEY);
    let open = |path: &Path| File::open(path).expect("a file");
    fs::write(&path, "one").expect("a file");
    let found = path.metadata().expect("a file");
    let first = digests.of(open(&path), &found).expect("a digest");
    fs::write(&path, "two").expect("a file");
    assert_ne!(digests.of(open(&path), &found).expect("a digest"), first);
    // The file of a program is old, and is not read again: an empty one could not be read.
    let program = Path::new("/bin/sh");
    let found = program.metadata().expect("a program");
    let first = digests.of(open(program), &found).expect("a digest");
    assert_eq!(digests.of(open(Path::new("/dev/null")), &found).expect("a digest"), first);
}

#[test]
fn a_list_of_another_machine_cannot_lead_out() {
    let names = names(&["a", "b/c"]);
    let entry =
        |path: &[u8], kind| FileEntry { path: path.into(), mode: 0, modified: (0, 0), kind };
    let file = || EntryKind::File(0, ContentDigest::default());
    let good = || vec![entry(b"a", EntryKind::Directory), entry(b"b/c", file())];
    assert!(is_valid(&good(), &names));
    assert!(!is_valid(&good()[..1], &names));
    for (path, kind, expected) in [
        (&b"a/x"[..], file(), true),
        (b"a/x", EntryKind::Link("../b/c".into()), true),
        (b"a/x", EntryKind::Link("../../b".into()), false),
        (b"a/x", EntryKind::Link("/etc".into()), false),
        (b"a/..", file(), false),
        (b"a/", file(), false),
        (b"a/x\0", file(), false),
        (b"a/x/y", file(), false),
        (b"b/d", file(), false),
        (b"b/c/d", file(), false),
        (b"a", file(), false),
        (b"/etc/x", file(), false),
    ] {
        let mut entries = good();
        let at = if path.starts_with(b"a/") { 1 } else { 2 };
        entries.insert(at, entry(path, kind.clone()));
        assert_eq!(is_valid(&entries, &names), expected, "{path:?} {kind:?}");
    }
    let mut entries = good();
    entries.push(entry(b"a/x", file()));
    assert!(!is_valid(&entries, &names), "a content behind another name");
    for mode in [0o4755, 0o2755, 0o1777, 0o100_644] {
        let mut entries = good();
        entries[1].mode = mode;
        assert!(!is_valid(&entries, &names), "{mode:o}");
    }
}

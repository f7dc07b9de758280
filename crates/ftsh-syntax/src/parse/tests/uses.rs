//! `use`, and scripts with several files.

use std::collections::BTreeMap;
use std::path::Path;

use super::tidied as printed;
use crate::uses::{UsedFile, UsedFiles, joined, parse_with_files};
use crate::{KnownNames, Script, diagnostic, parse, parse_with};

/// Files by their names.
struct Memory(BTreeMap<&'static str, &'static str>);

impl UsedFiles for Memory {
    fn read(&mut self, user: &str, path: &str) -> Result<UsedFile, String> {
        let directory = Path::new(user).parent().unwrap_or(Path::new(""));
        let place = joined(directory, path);
        let name = place.display().to_string();
        let text = self.0.get(name.as_str()).ok_or("no such file")?;
        Ok(UsedFile { name, identity: place, text: text.as_bytes().to_vec() })
    }
}

fn read(script: &str, files: &[(&'static str, &'static str)]) -> Result<Script, String> {
    let mut memory = Memory(files.iter().copied().collect());
    parse_with_files("main", script.as_bytes(), &mut memory)
        .map_err(|errors| diagnostic::render_all(&errors))
}

fn wrong(script: &str, files: &[(&'static str, &'static str)]) -> String {
    read(script, files).err().unwrap_or_else(|| panic!("no error:\n{script}"))
}

#[test]
fn uses_are_printed_as_written() {
    let text = "# begin\nargs a\nuse lib.ftsh # names\nuse \"b c.ftsh\"\n\necho $a";
    assert_eq!(printed(text).trim_end(), text);
    assert_eq!(printed("use   './x'").trim_end(), "use './x'");
}

#[test]
fn only_the_form_at_the_beginning_uses_a_file() {
    let uses = |text| parse("t", text).expect("a script").uses().count();
    assert_eq!(uses("use a; use b\necho"), 2);
    for other in ["echo\nuse a", "use a b", "use", "use a | b", "use a > b"] {
        assert!(parse("t", other).is_err(), "{other}");
    }
    assert_eq!(uses("\"use\" a.ftsh"), 0);
    assert_eq!(uses("function use\n echo\nend\nuse a"), 0);
    for misplaced in ["echo\nuse a.ftsh", "if true\n use a.ftsh\nend", "use $x.ftsh"] {
        assert!(parse("t", misplaced).is_err(), "{misplaced}");
    }
    let part = KnownNames { is_part: true, ..KnownNames::default() };
    assert!(parse_with("t", "use a.ftsh", part).is_err());
}

#[test]
fn files_are_read_once_and_define_names() {
    let files = [
        ("lib/a.ftsh", "use b.ftsh\nfunction a\n return b()\nend"),
        ("lib/b.ftsh", "channel disk at most 2\nfunction b\n return 1\nend"),
    ];
    let script = "use lib/a.ftsh\nuse ./lib/b.ftsh\nx=a()\ny=b()\ntry through disk\n c\nend";
    let script = read(script, &files).expect("a script");
    let names: Vec<_> = script.all_files().iter().map(|it| it.source.name().to_string()).collect();
    assert_eq!(names, ["main", "lib/a.ftsh", "lib/b.ftsh"]);
    assert_eq!(script.used.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn names_must_exist_in_some_file() {
    let files = [("a", "function f\n return g()\nend"), ("b", "function h\n return 1\nend")];
    assert!(wrong("use a", &files).contains("there is no function `g`"));
    assert!(wrong("use b\nx=hh()", &files).contains("there is no function `hh`"));
    assert!(wrong("use b\ntry through k\n a\nend", &files).contains("there is no channel `k`"));
    // Without the files, any name may be theirs.
    assert!(parse("t", "use b\nx=f()\ntry through k\n a\nend").is_ok());
}

#[test]
fn mistakes_are_shown_in_their_file() {
    let files = [
        ("cycle/a", "use b\n"),
        ("cycle/b", "use c\n"),
        ("cycle/c", "use a\n"),
        ("runs", "function f\nend\n\necho hi\nx=1"),
        ("args", "args a"),
        ("broken", "function f\n if true\n"),
        ("f", "function f\n a\nend\nchannel k at most 1"),
    ];
    insta::assert_snapshot!(wrong("use cycle/a", &files), @r"
    error[used-file]: the files use each other: cycle/a → cycle/b → cycle/c → cycle/a
     --> cycle/c:1:1
      |
    1 | use a
      | ^^^^^ a third file, which both use, can have what both need
    ");
    insta::assert_snapshot!(wrong("use f\nfunction f\n b\nend", &files), @r"
    error[duplicate-function]: the function `f` is defined twice
     --> main:2:10
      |
    2 | function f
      |          ^ first defined in f, line 1
    ");
    for (script, messages) in [
        ("use none", &["can't read `none`: no such file", "main:1:1"][..]),
        ("use runs", &["functions and channels only", "runs:4:1", "runs:5:1"]),
        ("use args", &["has no arguments", "args:1:1"]),
        ("use broken", &["broken:2:2"]),
        ("use f\nchannel k at most 1", &["the channel `k` is defined twice", "f, line 4"]),
    ] {
        let shown = wrong(script, &files);
        for message in messages {
            assert!(shown.contains(message), "{message}: {shown}");
        }
    }
}

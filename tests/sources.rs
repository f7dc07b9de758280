//! Sources of scripts, and their encodings.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::Ftsh;

#[test]
fn a_missing_script() {
    Ftsh::new().arg("nosuch.ftsh").refused(&["nosuch.ftsh", "no such file"]).one_line();
}

#[test]
fn a_directory_as_script() {
    Ftsh::new().arg("/").refused(&["directory"]).one_line();
}

#[test]
fn an_unreadable_script() {
    let ftsh = Ftsh::script("echo never");
    fs::set_permissions(ftsh.path("script.ftsh"), fs::Permissions::from_mode(0o000))
        .expect("permissions");
    ftsh.unprivileged().refused(&["script.ftsh", "ermission denied"]).one_line();
}

#[test]
fn a_script_that_is_not_utf8_is_refused_with_the_offset() {
    Ftsh::script(b"echo caf\xe9\n").refused(&["script.ftsh", "UTF-8", "8"]);
    Ftsh::new()
        .arg("-c")
        .arg({
            use std::os::unix::ffi::OsStrExt;
            std::ffi::OsStr::from_bytes(b"echo \xff")
        })
        .refused(&["UTF-8", "5"]);
    Ftsh::new().stdin(b"echo a\n\xc3").refused(&["UTF-8", "7"]);
}

#[test]
fn an_empty_script_succeeds() {
    for text in ["", "\n", "# nothing", "   \n\t\n", ";", "\r\n", "#!/usr/bin/ftsh\n"] {
        Ftsh::script(text).stdout("").success();
    }
    Ftsh::command("").stdout("").success();
    Ftsh::new().stdin("").stdout("").success();
    Ftsh::new().arg("/dev/null").stdout("").success();
}

#[test]
fn a_script_without_a_last_newline() {
    for text in ["echo a", "if true; echo a; end", "echo a # b", "try\necho a\nend"] {
        Ftsh::script(text).stdout("a\n").success();
    }
}

#[test]
fn crlf_is_accepted() {
    Ftsh::script("#!/usr/bin/ftsh\r\nx=1\r\nif $x .eql. 1\r\n\techo \"one\"\r\nelse\r\n\techo two\r\nend\r\necho a \\\r\n b\r\n# c\r\ncat <<E\r\nhere\r\nE\r\necho last")
        .stdout("one\na b\nhere\r\nlast\n".replace("here\r\n", "here\n"))
        .success();
}

#[test]
fn a_byte_order_mark_is_no_command() {
    Ftsh::script("\u{feff}echo hi\n").stdout("hi\n").success();
}

#[test]
fn dev_stdin_as_script() {
    Ftsh::new()
        .arg("/dev/stdin")
        .args(["x"])
        .stdin("echo from stdin $1")
        .stdout("from stdin x\n")
        .success();
}

#[test]
fn a_fifo_as_script() {
    let ftsh = Ftsh::new().arg("fifo");
    let path = ftsh.path("fifo");
    mkfifo(&path, Mode::S_IRWXU).expect("a fifo");
    let writer = std::thread::spawn(move || fs::write(path, "echo from a fifo\n"));
    ftsh.stdout("from a fifo\n").success();
    writer.join().expect("the writer ends").expect("the writer writes");
}

#[test]
fn a_script_is_read_whole_before_it_runs() {
    Ftsh::script("echo 'echo changed' > script.ftsh\necho original\n")
        .stdout("original\n")
        .success();
}

#[test]
fn a_script_is_found_in_the_directory_not_along_the_path() {
    Ftsh::new().arg("ls").refused(&["ls"]);
}

#[test]
fn a_syntax_error_shows_its_place() {
    let errors = Ftsh::script("echo a\nif true\n\techo b\n").stdout("").failure(2).errors();
    assert!(errors.contains("script.ftsh:2"), "{errors}");
    assert!(errors.contains("if true"), "{errors}");
    assert!(errors.contains('^'), "{errors}");
}

#[test]
fn sources_without_a_file_have_a_name_in_errors() {
    for ftsh in [Ftsh::command("echo a\nend"), Ftsh::new().stdin("echo a\nend\n")] {
        let errors = ftsh.stdout("").failure(2).errors();
        assert!(errors.contains(":2"), "{errors}");
    }
}

#[test]
#[ignore = "slow: `.ci/run` includes it"]
fn nothing_makes_the_parser_crash_or_hang() {
    let many = |count: usize, text: &str| text.repeat(count);
    let texts = [
        many(3000, "try\n") + "success\n" + &many(3000, "end\n"),
        many(3000, "if true\n") + &many(3000, "end\n"),
        many(3000, "forall x in a\n") + "success\n" + &many(3000, "end\n"),
        many(3000, "try\n"),
        many(3000, "end\n"),
        format!("x={}1{}", many(5000, "("), many(5000, ")")),
        format!("x={}1", many(5000, "(")),
        format!("x={} true", many(5000, ".not. ")),
        format!("x=1{}", many(10000, " .add. 1")),
        format!("x=2{}", many(5000, " .pow. 1")),
        format!("x={}1{}", many(3000, "f("), many(3000, ")")),
        format!("echo {}", many(100_000, "a ")),
        format!("echo \"{}\"", many(20_000, "$HOME ")),
        format!("echo {}x{}", many(3000, "${a:-"), many(3000, "}")),
        format!("echo \"{}", many(100_000, "a")),
        many(30_000, "success\n"),
        many(20_000, "success | "),
        many(20_000, "echo \\\n"),
        many(20_000, "$"),
        many(20_000, "\\"),
        many(20_000, "<"),
        many(20_000, "("),
        many(20_000, "\""),
        many(20_001, "'"),
        many(20_000, "&"),
        many(2_000, "cat <<E\n"),
        "echo \0 a".into(),
        "\0".into(),
        "echo \u{202e} \u{7f} \u{1b}[31m".into(),
        "if\nelse\ncatch\nend\nin\n".into(),
        "try for\ntry every\ntry each\ntry backoff\ntry while\n".into(),
        "x=\ny= \nz=()\nw=,\n=5\n1=2\n".into(),
        "${".into(),
        "$(".into(),
        "${a:-".into(),
        "${a:".into(),
        "cat <<".into(),
        "cat <<<".into(),
        "echo ->".into(),
        "echo >".into(),
        "-> v".into(),
        "| cat".into(),
        "function".into(),
        "function f".into(),
        "return return return".into(),
        "99999999999999999999999 .add. 1".into(),
        "echo ${99999999999999999999}".into(),
        "try 99999999999999999999999 times\nsuccess\nend".into(),
        "try for 1e999 seconds\nsuccess\nend".into(),
        "try for nan seconds\nsuccess\nend".into(),
        "try for 99999999999999999999999999 days\nsuccess\nend".into(),
        "try for 1h1h\nsuccess\nend".into(),
    ];
    for text in texts {
        let shown: String = text.chars().take(40).collect();
        let finished = Ftsh::script(&text).options(["-n"]).limit(Duration::from_secs(20)).run();
        let code = finished.status.and_then(|status| status.code());
        assert!(matches!(code, Some(0 | 2)), "{shown:?}: {}", finished.story());
        let run = Ftsh::script(&text).limit(Duration::from_secs(20)).run();
        let code = run.status.and_then(|status| status.code());
        assert!(code.is_some_and(|code| code < 128), "{shown:?}: {}", run.story());
    }
}

//! Translation of paths: the shell reaches what programs of the attempt reach.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::program::{Random, plant};
use super::{begin, is_nobody, rounds, run, scratch};

#[test]
fn the_shell_reaches_what_programs_reach() {
    if !is_nobody("paths::the_shell_reaches_what_programs_reach") {
        return;
    }
    for seed in 0..rounds(5) {
        let scratch = scratch();
        let root = scratch.path().canonicalize().expect("a path");
        let (inside, outside) = (root.join("inside"), root.join("outside"));
        plant(&inside, seed);
        plant(&outside, seed + 1);
        symlink(&outside, inside.join("out")).expect("a link");
        symlink("../outside", inside.join("up")).expect("a link");
        symlink(&inside, outside.join("in")).expect("a link");
        symlink("loop", outside.join("loop")).expect("a link");
        let Some(attempt) = begin(&[&inside]) else { return };
        // Inside, each file has another content than outside.
        let mark = format!(
            "find '{}' -type f -exec sh -c 'chmod u+w \"$0\"; echo inside >> \"$0\"' {{}} \\;",
            inside.display()
        );
        assert_eq!(run(Some(&attempt), &["/bin/sh", "-c", &mark], &[]), 0);
        let mut random = Random::new(seed);
        let prefixes =
            ["inside", "outside", "inside/out", "inside/up", "outside/in", "outside/loop"];
        let paths: Vec<PathBuf> = (0..40)
            .map(|index| {
                let prefix = root.join(prefixes[index % prefixes.len()]);
                let path = prefix.join(random.path());
                if index % 5 == 0 { path.join("..").join(random.path()) } else { path }
            })
            .collect();
        let copies = scratch.path().join("copies");
        fs::create_dir(&copies).expect("a directory");
        for (index, path) in paths.iter().enumerate() {
            let copy = copies.join(index.to_string());
            let command = format!("exec cat '{}' > '{}' 2>&-", path.display(), copy.display());
            run(Some(&attempt), &["/bin/sh", "-c", &command], &[]);
            let by_program = fs::read(copy).expect("a copy");
            let by_shell = attempt.translate(path, true).and_then(fs::read).unwrap_or_default();
            assert_eq!(by_shell, by_program, "seed {seed}: {}", path.display());
        }
    }
}

#[test]
fn other_paths_stay() {
    let scratch = scratch();
    let Some(attempt) = begin(&[scratch.path()]) else { return };
    for path in ["/etc/passwd", "/proc/self/fd/0", "/dev/null", "/", "/etc/../etc/x"] {
        let translated = attempt.translate(path.as_ref(), true).expect("a path");
        assert_eq!(translated, PathBuf::from(path));
    }
    let link = scratch.path().join("link");
    let own = attempt.translate(&link, false).expect("a path");
    symlink("/etc/passwd", &own).expect("a link");
    assert!(fs::read_link(attempt.translate(&link, false).expect("a path")).is_ok());
    assert_eq!(attempt.translate(&link, true).expect("a path"), link);
    assert!(!link.is_symlink());
}

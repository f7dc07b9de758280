//! What is said of commands and files before a rehearsal, and of what never came in one.

use std::path::Path;

use crate::rehearse::{folder, lab, rehearse, rows};

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// What a rehearsal prints, and what it complains of.
fn both(folder: &Path, args: &[&str]) -> (String, String) {
    let output = lab(folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn comments_stand_where_words_begin() {
    let folder = folder("a\nb '#1'\n");
    let models = "# of both\na takes 3s   # slow\n#\n\
                  b '#1' takes 4 s # 'quoted\nb prints \"x # y\" takes 9s#\n";
    write(folder.path(), "models", &models.replace("takes 9s#", "takes 9s"));
    let args = ["--commands", "models", "--trials", "1", "--csv", "--as-it-is"];
    let (printed, said) = both(folder.path(), &args);
    assert!(printed.contains(",7.000000,") || printed.contains(",7,"), "{printed}{said}");
    write(folder.path(), "models", models);
    let (_, said) = both(folder.path(), &args);
    assert!(said.contains("models:5: `takes 9s#`"), "inside a word it is no comment: {said}");
    write(folder.path(), "models", "a # takes 3s\n");
    let (_, said) = both(folder.path(), &args);
    assert!(said.contains("models:1: `a` needs a clause"), "{said}");
}

#[test]
fn files_that_are_not_here_need_a_text() {
    let script =
        "if .exists. b\n\tread n < b\n\tif $n .eq. ''\n\t\tfailure an empty line\n\tend\nend\n";
    let folder = folder(script);
    let args = |file| ["--trials", "1", "--file", file, "--as-it-is"];
    let refused = |file, words: &str| {
        let (printed, said) = both(folder.path(), &args(file));
        assert!(said.contains(words) && said.lines().count() == 1, "{file}: {said}{printed}");
    };
    refused("b", "no file `b`");
    refused("b", "`--file b=`");
    refused("", "--file");
    refused("=text", "--file");
    refused(".", "can't read `.`");
    // An empty one has no line, not an empty one.
    let (printed, _) = both(folder.path(), &args("b="));
    assert!(printed.contains(": 0 % of the runs succeed"), "{printed}");
    assert!(!printed.contains("an empty line"), "{printed}");
    write(folder.path(), "b", "x\n");
    let (printed, said) = both(folder.path(), &args("b"));
    assert!(printed.contains("100 % of the runs succeed"), "{printed}{said}");
}

#[test]
fn commands_that_never_ran_are_listed() {
    let script = "\
function f
	inner
end
try 2 times
	wget a
	gzip b | sort -u
	if .succeeds. ( grep x y )
		exec 'last one'
	end
	for x in 1 2
		$x \"$x\" literal
		git clone
	end
	cd d
	f
catch
	true
finally
	/bin/rm -f a
end
";
    let models = ["--command", "wget fails", "--command", "git clone fails 1%", "--trials", "2"];
    let text = rehearse(script, &models);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "never ran, in no trial, and have no model: `inner`, `gzip`, `sort`, `grep`, `last \
                one`.";
    assert!(joined.contains(note), "{text}");
    assert!(joined.contains("No command was ever like this: `git clone fails 1%`."), "{text}");
    assert!(joined.contains("print nothing: `rm`, `true`."), "{text}");
    let rows = rows(script, "commands", &["wget fails"], &["--trials", "2"]);
    let gzip = rows.iter().find(|row| row["command"] == "gzip (no model)").expect("a row");
    assert_eq!(gzip["runs"], 0.0);
    let text = rehearse("wget a\ngit push\n", &["--command", "git *l* fails", "--trials", "2"]);
    assert!(!text.contains("never ran"), "all of it ran: {text}");
}

//! The manual page and the completions, made of the definition of the command line.

use std::io;

use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use ftsh::cli::flags;
use ftsh::cli::options::{self, STATUS};

/// Every file: its name and what it holds.
pub fn all() -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    Ok(vec![
        ("ftsh.1", manual_page()?),
        ("ftsh.bash", completions(Shell::Bash)),
        ("_ftsh", completions(Shell::Zsh)),
        ("ftsh.fish", completions(Shell::Fish)),
    ])
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut flags::command(), "ftsh", &mut text);
    text
}

const DESCRIPTION: [&str; 3] = [
    "ftsh runs scripts around commands that fail: downloads, queues, databases, other people's \
     machines. A command that fails ends its group; try runs the group again, within a limit of \
     time or times, with growing random delays; and what an attempt started, daemons included, has \
     ended before the next one begins. A failure that no try handles ends the script.",
    "The script is a file, TEXT after -c, or standard input. Options stop at its name; what \
     follows are its arguments. A #! line may hold several options.",
    "The word after --lock is the lock's file, unless it is the last word, ends in .ftsh or names \
     a file that begins with #!: then it is the script, and the lock one of its own. --lock=FILE \
     always names the lock.",
];

const EXAMPLES: [(&str, &str); 5] = [
    (
        "Try for an hour, each attempt for no longer than five minutes:",
        "ftsh -c 'try for 1 hour each 5 minutes; rsync -q host::data .; end'",
    ),
    ("Look for mistakes and for what is rarely meant, run nothing:", "ftsh -n script.ftsh"),
    ("See what it does, with every attempt and delay:", "ftsh -l 30 script.ftsh"),
    (
        "A line of a crontab: silent unless it fails, never twice at once, not on the minute:",
        "0 * * * *  ftsh --cron --lock --splay 5min /srv/jobs/sync.ftsh",
    ),
    (
        "A crontab whose lines are ftsh's:",
        "SHELL=/usr/bin/ftsh\nFTSH_CRON=1\n0 * * * *  try for 50 minutes; rsync -q host::data .; end",
    ),
];

fn manual_page() -> io::Result<Vec<u8>> {
    let man = Man::new(flags::help());
    // Without a date, so that it is the same whenever it is made.
    let title =
        concat!(".TH FTSH 1 \"\" \"ftsh ", env!("CARGO_PKG_VERSION"), "\" \"User Commands\"\n");
    let mut page = title.as_bytes().to_vec();
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    let mut roff = Roff::new();
    section(&mut roff, "DESCRIPTION");
    for (number, paragraph) in DESCRIPTION.into_iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(paragraph)]);
    }
    roff.to_writer(&mut page)?;
    man.render_options_section(&mut page)?;

    let mut roff = Roff::new();
    section(&mut roff, "ENVIRONMENT");
    roff.text([roman("Options override these.")]);
    for (names, meaning) in options::environment() {
        entry(&mut roff, &names, &meaning);
    }
    section(&mut roff, "EXIT STATUS");
    for (status, meaning) in STATUS {
        entry(&mut roff, status, meaning);
    }
    roff.control("PP", []).text([roman(
        "When ftsh is told to end by SIGINT, SIGTERM, SIGHUP or SIGQUIT, it ends all that it runs \
         and then itself by that signal.",
    )]);
    section(&mut roff, "FILES");
    entry(&mut roff, "/run/ftsh, /tmp/ftsh-UID", "the locks of --lock alone, root's and others'");
    section(&mut roff, "EXAMPLES");
    for (number, (purpose, lines)) in EXAMPLES.into_iter().enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(purpose)]);
        roff.control("PP", []).control("in", ["+4n"]).control("nf", []);
        roff.text([roman(lines)]).control("fi", []).control("in", []);
    }
    section(&mut roff, "SEE ALSO");
    let others = [("timeout", "1"), ("flock", "1"), ("parallel", "1"), ("crontab", "5")];
    let mut references: Vec<Inline> = Vec::new();
    for (name, section) in others {
        let comma = if references.is_empty() { "" } else { ", " };
        references.extend([roman(comma), bold(name), roman(format!("({section})"))]);
    }
    roff.text(references);
    roff.control("PP", []).text([
        roman("The language: "),
        italic("docs/reference/language.md"),
        roman("; cron and timers: "),
        italic("docs/operate/cron.md"),
        roman("; tasks and their scripts: "),
        italic("docs/cookbook"),
    ]);
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn section(roff: &mut Roff, title: &str) {
    roff.control("SH", [title]);
}

fn entry(roff: &mut Roff, name: &str, meaning: &str) {
    roff.control("TP", []).text([bold(name)]).text([roman(meaning)]);
}

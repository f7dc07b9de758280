//! Arguments of engines: options for a command, or a list of hosts.

/// Kind of argument that an engine takes.
#[derive(Debug)]
pub enum Argument {
    /// Options, split at blanks, for a command of an engine that chooses the machine itself. The options may
    /// be missing.
    Options {
        /// Name of the command.
        program: &'static str,
        /// Options that would break a branch.
        refused: &'static [RefusedOption],
        /// Letters of options without a value, which may stand before other letters in one word.
        flags: &'static str,
    },
    /// Hosts with their places, `host1 host2*4`, among which the shell chooses.
    Hosts,
    /// Words for a carrier, split at blanks. The words may be missing. `hosts=host1,host2*4` lists
    /// hosts.
    Words,
}

/// Option that a branch cannot run with.
#[derive(Debug)]
pub struct RefusedOption {
    letter: Option<char>,
    long: &'static str,
    why: &'static str,
}

pub(super) const ONE_TASK: &str =
    "a branch is one task on one node, and `--cpus-per-task=2` gives it two processors";
pub(super) const STREAMS: &str = "the streams of a branch are connected to this shell";
pub(super) const NOTHING: &str = "the branch would not run";

impl RefusedOption {
    /// Creates the row of an option with a letter and a name.
    pub const fn option(letter: char, long: &'static str, why: &'static str) -> Self {
        Self { letter: Some(letter), long, why }
    }

    /// Creates the row of an option without a letter.
    pub const fn long(long: &'static str, why: &'static str) -> Self {
        Self { letter: None, long, why }
    }
}

impl Argument {
    /// True if the engine does nothing without an argument.
    pub const fn is_required(&self) -> bool {
        matches!(self, Self::Hosts)
    }

    /// Returns the error in an argument of the engine with this name.
    pub(super) fn error(&self, engine: &str, argument: &str) -> Option<String> {
        match self {
            Self::Options { program, refused, flags } => {
                options_error(program, refused, flags, argument)
            }
            Self::Hosts if argument.trim().is_empty() => {
                Some(format!("expected a list of hosts, like `on {engine} \"host1 host2*4\"`"))
            }
            Self::Hosts => hosts(argument).err(),
            Self::Words => None,
        }
    }
}

/// Returns the hosts of a list, `host1 host2*4`, each with its places. The list may be empty.
pub fn hosts(list: &str) -> Result<Vec<(String, u64)>, String> {
    let host = |word: &str| {
        let (host, places) = match word.rsplit_once('*') {
            None => (word, 1),
            Some((host, places)) => match places.parse() {
                Ok(places @ 1..) => (host, places),
                _ => return Err(format!("`{word}` needs a number of places, like `{host}*4`")),
            },
        };
        if host.is_empty() || host.starts_with('-') {
            return Err(format!("`{word}` is not a host"));
        }
        Ok((host.to_owned(), places))
    };
    let mut hosts: Vec<(String, u64)> = Vec::new();
    for word in list.split_whitespace() {
        let (host, places) = host(word)?;
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            // A host named twice has the places of both.
            Some((_, all)) => *all = all.saturating_add(places),
            None => hosts.push((host, places)),
        }
    }
    Ok(hosts)
}

fn options_error(
    program: &str,
    refused: &[RefusedOption],
    flags: &str,
    options: &str,
) -> Option<String> {
    let words: Vec<_> = options.split_ascii_whitespace().collect();
    if let Some(first) = words.first().filter(|first| !first.starts_with('-')) {
        return Some(format!("`{first}` is not an option of `{program}`"));
    }
    words.iter().enumerate().find_map(|(at, word)| {
        if ["--", ":"].contains(word) {
            return Some(format!("`{word}` is not allowed among the options of `{program}`"));
        }
        let (name, value) = match word.strip_prefix("--") {
            Some(long) => long.split_once('=').map_or((long, None), |(it, to)| (it, Some(to))),
            None => letter(refused, flags, word)?,
        };
        let is_meant = |row: &&RefusedOption| {
            if word.starts_with("--") {
                row.long.starts_with(name)
            } else {
                row.letter.is_some_and(|letter| name.chars().eq([letter]))
            }
        };
        let why = refused.iter().find(is_meant)?.why;
        let value = value.or_else(|| words.get(at + 1).copied());
        let is_one = why == ONE_TASK && value.is_some_and(|it| ["1", "1-1"].contains(&it));
        (!is_one).then(|| format!("`{program}` can't take `{word}`: {why}"))
    })
}

/// Returns the first letter in a word of options with a meaning for the caller, and the value after
/// the letter.
///
/// A letter has a meaning if the option is refused or takes a value.
fn letter<'a>(
    refused: &[RefusedOption],
    flags: &str,
    word: &'a str,
) -> Option<(&'a str, Option<&'a str>)> {
    let letters = word.strip_prefix('-')?;
    let is_refused = |c| refused.iter().any(|row| row.letter == Some(c));
    let (at, letter) =
        letters.char_indices().find(|(_, c)| is_refused(*c) || !flags.contains(*c))?;
    let (name, value) = letters[at..].split_at(letter.len_utf8());
    Some((name, Some(value).filter(|value| !value.is_empty())))
}

#[cfg(test)]
mod tests {
    use crate::engine::EngineId;

    #[test]
    fn invalid_lists_of_hosts() {
        for list in ["", " ", "a*0", "a*x", "*4", "-oProxyCommand=x"] {
            assert!(EngineId::Ssh.argument_error(list).is_some(), "{list}");
        }
        assert_eq!(EngineId::Ssh.argument_error("a b*4"), None);
    }

    #[test]
    fn refused_options() {
        for options in [
            "-n 2",
            "-n2",
            "--ntasks=2",
            "--ntasks 2",
            "--nta=2",
            "-N 2-3",
            "--nodes=2",
            "-l",
            "-vl",
            "--label",
            "--lab",
            "-o/tmp/x",
            "-kHo x",
            "--output=x",
            "-e x",
            "-i none",
            "--input none",
            "--pty",
            "--multi-prog",
            "--version",
            "-V",
            "--help",
            "-h",
            "--usage",
            "--test-only",
            "-E",
            "-Q",
            "--quiet",
            "-Z",
            "mem=4G",
            "--mem=4G --",
            "--mem=4G : --mem=2G",
            "--mem=4G -n 2",
        ] {
            assert!(EngineId::Slurm.argument_error(options).is_some(), "{options}");
        }
        let error = EngineId::Slurm.argument_error("-p long -n 2");
        let expected = "`srun` can't take `-n`: a branch is one task on one node, and `--cpus-per-task=2` \
                        gives it two processors";
        assert_eq!(error.as_deref(), Some(expected));
    }

    #[test]
    fn options_left_to_the_engine() {
        for options in [
            "",
            " ",
            "--mem=4G",
            "-p long --mem=4G",
            "-plong",
            "-c4",
            "-vv",
            "-n 1 -N 1-1",
            "--ntasks=1",
            "-x node1",
            "--exclude=node1,node2",
            "--exclusive",
            "-Jlabel",
            "--nosuch",
            "-K1",
            "--time=1 -C l",
            "--nice",
            "--overlap",
        ] {
            assert_eq!(EngineId::Slurm.argument_error(options), None, "{options}");
        }
    }
}

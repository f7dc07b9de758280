//! The words of a command line, divided into heads and the command.

use std::ffi::{OsStr, OsString};

use anyhow::{Error, Result};

use super::head::{Head, Piece};
use super::help;
use super::mistake::{self, Mark, marked};
use crate::cli::messages::usage;
use crate::cli::options::flags::{HEADS, head};
use ftsh_syntax::clauses;
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{FILE_CLAUSES, is_loop, is_name};

/// Ends the heads.
const END: &str = "--";

/// The words of a command line, divided.
pub(super) struct Line<'w> {
    /// Words before the command.
    heads: &'w [OsString],
    /// The command and its arguments.
    pub command: &'w [OsString],
}

impl<'w> Line<'w> {
    /// Divides the words at the first `--`.
    ///
    /// # Errors
    ///
    /// Fails if there is no command.
    pub(super) fn split(words: &'w [OsString]) -> Result<Self> {
        let Some(end) = words.iter().position(|word| word == END) else {
            return Err(Self { heads: words, command: &[] }.without_command());
        };
        let line = Self { heads: &words[..end], command: &words[end + 1..] };
        if line.command.is_empty() {
            line.heads()?;
            return Err(usage(
                Slug::MissingCommand,
                format_args!(
                    "{}: the command is missing after `--`",
                    marked(line.heads, Mark::End)
                ),
            ));
        }
        Ok(line)
    }

    /// Reads the heads.
    pub(super) fn heads(&self) -> Result<Vec<Head>> {
        let mut heads: Vec<Head> = Vec::new();
        let mut at = 0;
        while at < self.heads.len() {
            let (pieces, next) = self.pieces(at);
            let head = Head::read(&pieces, self.heads, at)?;
            if head.reads_words() && heads.iter().any(|head| head.list.is_some()) {
                let place = marked(self.heads, Mark::Word(at));
                return Err(usage(
                    Slug::PrefixInput,
                    format_args!(
                        "{place}: a loop inside a loop reads no input; name its words after `in`"
                    ),
                ));
            }
            heads.push(head);
            at = next;
        }
        Ok(heads)
    }

    /// Returns the error for a line without `--`: the probable start of the command, which is the
    /// first word outside the heads, or else a mistake in a head.
    fn without_command(&self) -> Error {
        let before_command = |at| {
            let (before, command) = self.heads.split_at(at);
            let (before, command) = (marked(before, Mark::None), marked(command, Mark::None));
            usage(
                Slug::MissingDashes,
                format_args!("no `--` before the command: write `ftsh {before} -- {command}`"),
            )
        };
        let mut at = 0;
        while at < self.heads.len() {
            let (pieces, next) = self.pieces(at);
            if let Some(wrong) = Head::command_among(&pieces, self.heads, at) {
                if let Some(option) = mistake::option(self.heads, Mark::Word(wrong)) {
                    return option;
                }
                // No name of a command begins with `-`.
                if !self.heads[wrong].as_encoded_bytes().starts_with(b"-") {
                    return before_command(wrong);
                }
            }
            if let Err(wrong) = Head::read(&pieces, self.heads, at) {
                return wrong;
            }
            at = next;
        }
        // `{}` stands in an argument of the command, whose name comes before options.
        let words: Vec<_> = self.heads.iter().map(|word| word.to_string_lossy()).collect();
        let argument = words.iter().position(|word| word.contains("{}")).unwrap_or_default();
        let name = (3..argument).rev().find(|at| !words[*at].starts_with('-'));
        if let Some(name) = name.filter(|_| is_loop(self.keyword(0))) {
            return before_command(name);
        }
        let line = marked(self.heads, Mark::None);
        usage(
            Slug::MissingDashes,
            format_args!("no `--` and no command: write `ftsh {line} -- COMMAND`"),
        )
    }

    /// Returns the pieces of the head that begins at a word, and where the next head begins.
    fn pieces(&self, start: usize) -> (Vec<Piece>, usize) {
        let keyword = self.keyword(start);
        let mut pieces = Vec::new();
        let mut at = start + 1;
        match keyword {
            "forany" | "forall" => self.list(keyword, &mut at, &mut pieces),
            "on" => self.engine(&mut at, &mut pieces),
            _ => {}
        }
        while at < self.heads.len() {
            let word = &self.heads[at];
            let is_clause = keyword == "forall" && word == "on" && !has_engine(&pieces);
            if is_clause {
                at += 1;
                self.engine(&mut at, &mut pieces);
            } else if keyword == "forall" && self.is(at, "once") && self.is(at + 1, "in") {
                pieces.extend([Piece::Raw(at), Piece::Raw(at + 1)]);
                pieces.extend(self.heads.get(at + 2).map(|_| Piece::File(at + 2)));
                at = (at + 3).min(self.heads.len());
            } else if self.is(at, "atomic") && self.is(at + 1, "in") {
                pieces.extend([Piece::Raw(at), Piece::Raw(at + 1)]);
                at += 2;
                self.files(keyword, Piece::File, &mut at, &mut pieces);
            } else if self.is_file_clause(keyword, at) {
                pieces.push(Piece::Raw(at));
                at += 1;
                self.files(keyword, Piece::BranchFile, &mut at, &mut pieces);
            } else if head(word).is_some() {
                break;
            } else {
                pieces.push(Piece::Raw(at));
                at += 1;
            }
        }
        (pieces, at)
    }

    fn keyword(&self, at: usize) -> &'static str {
        self.heads.get(at).and_then(head).unwrap_or(HEADS[0])
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.heads.get(at).is_some_and(|word| word == text)
    }

    /// Reads the variable and the words of a loop, up to its clauses.
    fn list(&self, keyword: &str, at: &mut usize, pieces: &mut Vec<Piece>) {
        let begins = |at| self.is(at, "in") || self.is(at, "from") && self.is(at + 1, "input");
        if !begins(*at) && begins(*at + 1) && self.heads[*at].to_str().is_some_and(is_name) {
            pieces.push(Piece::Variable(*at));
            *at += 1;
        }
        if self.is(*at, "from") && self.is(*at + 1, "input") {
            pieces.push(Piece::Input(*at));
            *at += 2;
            if self.is(*at, "by") && *at + 1 < self.heads.len() {
                pieces.push(Piece::Separator(*at + 1));
                *at += 2;
            }
        } else if self.is(*at, "in") {
            pieces.push(Piece::List(*at));
            *at += 1;
            // As in a script, the first word may be `on`: `forall x in on off`.
            let first = *at;
            let is_on = |at| self.is(at, "on") && !self.is_built_in(at + 1);
            let is_word = |at| at == first && (is_on(at) || self.is_file_clause(keyword, at));
            while *at < self.heads.len() && (is_word(*at) || !self.ends_list(keyword, *at)) {
                pieces.push(Piece::Item(*at));
                *at += 1;
            }
        }
    }

    /// True if a word is the name of an engine of the shell itself.
    fn is_built_in(&self, at: usize) -> bool {
        EngineId::BUILT_IN.iter().any(|engine| self.is(at, engine.name()))
    }

    /// Reads the engine after `on`, and its words up to the next clause or head.
    fn engine(&self, at: &mut usize, pieces: &mut Vec<Piece>) {
        pieces.push(Piece::Engine(*at));
        *at += 1;
        while *at < self.heads.len() && !self.ends_list("on", *at) {
            pieces.push(Piece::Option(*at));
            *at += 1;
        }
    }

    /// Reads the files of a clause, up to the next clause or head.
    fn files(
        &self,
        keyword: &str,
        piece: fn(usize) -> Piece,
        at: &mut usize,
        pieces: &mut Vec<Piece>,
    ) {
        let ends = |at| {
            let mut rows = clauses::rows(keyword);
            rows.any(|row| row.words.len() == 1 && self.is(at, row.words[0]))
        };
        while *at < self.heads.len() && !self.ends_list(keyword, *at) && !ends(*at) {
            pieces.push(piece(*at));
            *at += 1;
        }
    }

    /// True if a clause or a head begins here.
    fn ends_list(&self, keyword: &str, at: usize) -> bool {
        head(&self.heads[at]).is_some()
            || opens_clause(&self.heads[at..])
            || self.is_file_clause(keyword, at)
    }

    /// True if `takes` or `gives` begins here.
    fn is_file_clause(&self, keyword: &str, at: usize) -> bool {
        matches!(keyword, "forall" | "on") && FILE_CLAUSES.iter().any(|word| self.is(at, word))
    }
}

fn has_engine(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| matches!(piece, Piece::Engine(_)))
}

/// True if the words begin with a clause of a loop.
fn opens_clause(words: &[OsString]) -> bool {
    let rows = clauses::ROWS.iter().filter(|row| is_loop(row.head) && row.words.len() == 2);
    let begins = |clause: &[&str]| {
        clause.iter().enumerate().all(|(at, word)| words.get(at).is_some_and(|it| it == word))
    };
    let is_engine = |word: &OsString| word.to_str().is_some_and(|it| EngineId::named(it).is_some());
    let on = matches!(words, [first, name, ..] if first == "on" && is_engine(name));
    on || rows.map(|row| row.words).any(begins)
}

/// Returns the head that the words ask for help about.
pub(super) fn asks_for_help(words: &[OsString]) -> Option<&'static str> {
    let is_asking = |word: &OsStr| help::WORDS.iter().any(|help| word == *help);
    let pairs = words.windows(2).take_while(|pair| pair[0] != END);
    let after_head = pairs.filter(|pair| is_asking(&pair[1])).find_map(|pair| head(&pair[0]));
    // After whole heads no word but a request for help can be the last.
    let at_end = || match words {
        [heads @ .., last] if is_asking(last) && !heads.iter().any(|word| word == END) => {
            let heads = Line { heads, command: &[] }.heads().ok()?;
            heads.last().map(|head| head.keyword)
        }
        _ => None,
    };
    after_head.or_else(at_end)
}

//! What programs are made of: a tree that has nothing of the shell's own.

/// A list of commands.
pub type Block = Vec<Command>;

/// A command.
#[derive(Clone, Debug)]
pub enum Command {
    Echo(Vec<Word>),
    /// `sh -c "exit n"`
    Status(u8),
    /// A program that isn't there.
    Missing,
    /// `cat -< name`
    Show(&'static str),
    /// `echo words | cat`
    Pipe(Vec<Word>),
    /// Prints this; what `Show` is when a redirection comes next.
    Print(String),
    Assign(&'static str, Expr),
    Unset(&'static str),
    /// `local name=value`; only in functions.
    Local(&'static str, Expr),
    If(Expr, Block, Block),
    /// `name=0; while $name .lt. n`, which counts first.
    Count(&'static str, i64, Block),
    For(&'static str, Vec<Word>, Block),
    /// `for name in lines(value)`
    Lines(&'static str, Expr, Block),
    /// `for name in split(value, separator)`
    Split(&'static str, Expr, &'static str, Block),
    /// `for name in a .to. b`
    Range(&'static str, i64, i64, Block),
    /// `forany name in words in order`
    ForAny(&'static str, Vec<Word>, Block),
    /// With `catch` and `finally`.
    Try(u32, Block, Option<Block>, Option<Block>),
    /// A group with its output in a variable, or added to it.
    Capture(Box<Command>, &'static str, bool),
    Call(usize, Vec<Word>),
    Return(Option<Expr>),
    /// `break`, or else `continue`
    Jump(bool),
    Shift,
    Failure(Vec<Word>),
    Giveup,
    Exit(u8),
}

/// Pieces joined to a word.
pub type Word = Vec<Piece>;

/// A piece of a word.
#[derive(Clone, Debug)]
pub enum Piece {
    Text(&'static str),
    Variable(&'static str),
    Quoted(Vec<Piece>),
    /// `"$@"`
    Arguments,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    Word(Word),
    Not(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Call(usize, Vec<Expr>),
    /// A function of the language, of one value.
    Of(&'static str, Box<Expr>),
}

//! How codes are written.

#[rustfmt::skip]
pub(super) const BINARY: [(&str, &str); 36] = [
    ("aN", "&="), ("aS", "="), ("aa", "&&"), ("an", "&"), ("cm", ","), ("ds", ".*"), ("dV", "/="),
    ("dv", "/"), ("eO", "^="), ("eo", "^"), ("eq", "=="), ("ge", ">="), ("gt", ">"), ("lS", "<<="),
    ("le", "<="), ("ls", "<<"), ("lt", "<"), ("mI", "-="), ("mL", "*="), ("mi", "-"), ("ml", "*"),
    ("ne", "!="), ("oR", "|="), ("oo", "||"), ("or", "|"), ("pL", "+="), ("pl", "+"), ("pm", "->*"),
    ("rM", "%="), ("rS", ">>="), ("rm", "%"), ("rs", ">>"), ("ss", "<=>"), ("aO", "&="),
    ("ix", "[]"), ("dt", "."),
];

#[rustfmt::skip]
pub(super) const UNARY: [(&str, &str); 8] = [
    ("ad", "&"), ("co", "~"), ("de", "*"), ("ng", "-"), ("nt", "!"), ("ps", "+"), ("pp", "++"),
    ("mm", "--"),
];

/// Those that stand in names only, or are written otherwise in expressions.
#[rustfmt::skip]
const NAMED: [(&str, &str); 9] = [
    ("aw", " co_await"), ("cl", "()"), ("da", " delete[]"), ("dl", " delete"), ("na", " new[]"),
    ("nw", " new"), ("pt", "->"), ("qu", "?"), ("ix", "[]"),
];

/// How an operator is written, behind the word.
pub(super) fn operator_symbol(code: &str) -> Option<&'static str> {
    let tables = [&NAMED[..], &BINARY, &UNARY];
    tables.into_iter().find_map(|table| look_up(table, code))
}

/// The text of a code.
pub(super) fn look_up(table: &[(&str, &'static str)], code: &str) -> Option<&'static str> {
    let row = table.iter().find(|(c, _)| *c == code);
    row.map(|(_, text)| *text)
}

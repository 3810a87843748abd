//! Names that fit into a terminal.

use std::borrow::Cow;

/// A name of at most `room` columns: what is too long loses its begin, since the method stands at the end. Some of it stays,
/// however narrow the terminal.
pub(crate) fn fit(name: &str, room: Option<usize>) -> Cow<'_, str> {
    const LEAST: usize = 16;
    let Some(room) = room.map(|room| room.max(LEAST)) else {
        return name.into();
    };
    let long = name.chars().count();
    if long <= room {
        return name.into();
    }
    // At a dot or so, if that does not lose more than a few columns.
    const NEAR: usize = 12;
    let rest = long - (room - 1);
    let from = name.char_indices().nth(rest).map_or(0, |(at, _)| at);
    let tail = &name[from..];
    let boundary = tail.char_indices().take(NEAR);
    let mut boundary = boundary.filter(|(_, c)| matches!(c, '.' | '!' | '+' | '/'));
    let skip = boundary.next().map_or(0, |(at, _)| at);
    format!("…{}", &tail[skip..]).into()
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn the_method_stays() {
        let name = "System.Private.CoreLib!System.Threading.WaitHandle.WaitOneNoCheck";
        assert_eq!(fit(name, None), name);
        assert_eq!(fit(name, Some(65)), name);
        assert_eq!(fit(name, Some(43)), "….Threading.WaitHandle.WaitOneNoCheck");
        assert_eq!(fit(name, Some(3)), "….WaitOneNoCheck");
        assert_eq!(fit("ünïcödé.ünïcödé.ünïcödé", Some(16)), "….ünïcödé");
    }
}

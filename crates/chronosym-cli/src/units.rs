//! Times and addresses as people write them.

/// `1.5s`, `200ms`, `3us`, or a number of ns → ns.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let units = [
        ("ns", 1u64),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|&(suffix, unit)| {
            text.strip_suffix(suffix)
                .map(|number| (number.trim_end(), unit))
        })
        .unwrap_or((text, 1));
    let bad = || {
        format!(
            "'{text}' is not a time: expected a number with s, ms, us or ns, such as 1.5s or 200ms"
        )
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(bad);
    }
    let value: f64 = number.parse().map_err(|_| bad())?;
    let ns = value * unit as f64;
    if ns.is_finite() && (0.0..1.8e19).contains(&ns) {
        Ok(ns.round() as u64)
    } else {
        Err(bad())
    }
}

/// `0x…` or decimal; bare text with hex letters is hex, and so is text that is padded with zeros.
pub fn parse_address(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(&hex.replace('`', ""), 16).ok(),
        None => text
            .parse()
            .ok()
            .filter(|_| text == "0" || !text.starts_with('0'))
            .or_else(|| u64::from_str_radix(&text.replace('`', ""), 16).ok()),
    }
}

/// `PID` or `PID@TIME`.
pub fn parse_pid(text: &str) -> Result<(u32, Option<u64>), String> {
    let (pid, time) = match text.split_once('@') {
        Some((pid, time)) => (pid, Some(parse_time(time)?)),
        None => (text, None),
    };
    let pid = pid
        .parse()
        .map_err(|_| format!("'{pid}' is not a process id"))?;
    Ok((pid, time))
}

/// ns since the trace began, for people.
pub fn show_time(ns: u64) -> String {
    format!("{}.{:06}s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// A number with thousands separated, for people.
pub fn show_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Breaks a text into lines of at most `width` columns where words allow it; lines after the first begin with `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > width {
            out.push('\n');
            out.push_str(indent);
            column = indent.chars().count();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_time("200ms"), Ok(200_000_000));
        assert_eq!(parse_time("7"), Ok(7));
        assert_eq!(parse_time("3 us"), Ok(3_000));
        assert_eq!(parse_time("18446744073709551615"), Ok(u64::MAX));
        for bad in [
            "",
            "s",
            "-1s",
            "1h",
            "nan",
            "1e30s",
            "99999999999999999999s",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_are_hex_or_decimal() {
        assert_eq!(parse_address("0x10"), Some(16));
        assert_eq!(parse_address("10"), Some(10));
        assert_eq!(parse_address("7fcc"), Some(0x7fcc));
        assert_eq!(parse_address("0000000000401000"), Some(0x40_1000));
        assert_eq!(parse_address("0"), Some(0));
        assert_eq!(
            parse_address("0xfffff801`12345678"),
            Some(0xffff_f801_1234_5678)
        );
        assert_eq!(parse_address("x"), None);
    }

    #[test]
    fn a_pid_can_have_a_time() {
        assert_eq!(parse_pid("7@1s"), Ok((7, Some(1_000_000_000))));
        assert_eq!(parse_pid("7"), Ok((7, None)));
        assert!(parse_pid("x").is_err());
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three");
        assert_eq!(wrap("muchtoolong a", 4, ""), "muchtoolong\na");
        assert_eq!(wrap("", 4, ""), "");
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(
            (show_count(1_234_567), show_count(12), show_count(123)),
            ("1,234,567".into(), "12".into(), "123".into())
        );
    }
}

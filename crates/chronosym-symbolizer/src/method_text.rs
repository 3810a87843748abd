//! Parses methods as stack traces write them: `Ns.Type+Nested.Method[T] (System.Int32 x, T& y)`.

use chronosym_pdb::metadata::{MethodSignature, TypeFormat};

use crate::module::open_name;

/// Returns the name without parameters and type arguments, and with one separator only, because
/// runtimes use different separators between a type and its nested types.
pub(super) fn plain_name(method: &str) -> String {
    let name = method.split('(').next().unwrap_or_default().trim_end();
    open_name(name).replace(['+', '/', ':'], ".")
}

/// Returns whether the parameters in a text match a signature. A text without parameters matches
/// any.
pub(super) fn takes(method: &str, signature: Option<&MethodSignature>) -> bool {
    let Some((_, parameters)) = method.split_once('(') else {
        return true;
    };
    let stated = split(parameters.trim_end().trim_end_matches(')'));
    signature.is_some_and(|signature| {
        stated.len() == signature.parameters.len()
            && stated.iter().zip(&signature.parameters).all(|(text, own)| {
                let own = own.text(TypeFormat::Namespace);
                // The name of a type parameter is in other metadata.
                own.starts_with('!') || simple(text) == simple(&own)
            })
    })
}

/// Splits the parameters at their separating commas.
fn split(parameters: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = parameters.split(|c| {
        match c {
            '[' | '<' | '(' => depth += 1,
            ']' | '>' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// Returns the type's name without namespace and arguments, and whether it is an array, a reference
/// or a pointer.
fn simple(parameter: &str) -> (&str, bool, bool, bool) {
    let words = parameter.split_whitespace();
    let mut words = words.skip_while(|word| matches!(*word, "ref" | "out" | "in" | "params"));
    let text = words.next().unwrap_or_default();
    let name = text.split(['`', '[', '<', '&', '*']).next();
    let name = name.and_then(|name| name.rsplit(['.', '+', '/']).next());
    let is_array = text.contains("[]") || text.contains("[,");
    (
        name.unwrap_or_default(),
        is_array,
        text.ends_with('&'),
        text.ends_with('*'),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronosym_pdb::metadata::Type;

    #[test]
    fn names_are_the_same_however_they_are_written() {
        for text in [
            "N.Outer+Inner`1.M",
            "N.Outer/Inner`1:M (System.Int32 x)",
            "N.Outer+Inner`1[T].M[U](Int32, U)",
        ] {
            assert_eq!(plain_name(text), "N.Outer.Inner`1.M", "{text}");
        }
        assert_eq!(plain_name("N.T..ctor(Int32 x)"), "N.T..ctor");
    }

    #[test]
    fn parameters_distinguish_overloads() {
        let int = || Type::Primitive(8);
        let signature = MethodSignature {
            has_this: false,
            convention: 0,
            generic_parameters: 1,
            return_type: Type::Primitive(1),
            parameters: vec![
                int(),
                Type::SzArray(Box::new(int())),
                Type::ByRef(Box::new(Type::Primitive(14))),
                Type::MethodVar(0),
            ],
            sentinel: None,
        };
        let takes = |text| takes(text, Some(&signature));
        assert!(takes("N.M"));
        assert!(takes("N.M(Int32 a, Int32[] b, String& c, T d)"));
        assert!(takes(
            "N.M[T] (System.Int32 a, System.Int32[] b, System.String& c, T d)"
        ));
        assert!(takes("N.M(Int32, Int32[], String&, Dictionary`2[A,B])"));
        assert!(!takes("N.M(Int32 a, Int32 b, String& c, T d)"));
        assert!(!takes("N.M(Int32 a, Int32[] b, String c, T d)"));
        assert!(!takes("N.M(Int64 a, Int32[] b, String& c, T d)"));
        assert!(!takes("N.M()"));
    }
}

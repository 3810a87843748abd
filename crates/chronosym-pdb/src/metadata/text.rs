//! Types and signatures as text.

use super::signature::{MethodSignature, Type};

/// Texts are cut here: an instantiation can grow exponentially.
const MAX_TEXT: usize = 16 << 10;

/// How CLR events spell types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeFormat {
    /// As in the `MethodSignature` field: `class System.String`, `int32`, nested types without
    /// their enclosing types.
    Signature,
    /// As in the `MethodNamespace` field: `System.Int32`, arguments in `[A,B]`.
    Namespace,
}

struct Writer {
    out: String,
    format: TypeFormat,
}

impl Type {
    /// Returns the type as text; type parameters are written as `!0` and `!!0`.
    pub fn text(&self, format: TypeFormat) -> String {
        let mut writer = Writer::new(format);
        writer.write(self);
        writer.out
    }
}

/// Return type, two spaces (the event's text has no method name between them), parameters.
pub(crate) fn signature_text(of: &MethodSignature) -> String {
    let mut writer = Writer::new(TypeFormat::Signature);
    writer.prefixes(of);
    writer.write(&of.return_type);
    writer.push("  ");
    writer.parameters(of);
    writer.out
}

fn primitive(element: u8, format: TypeFormat) -> &'static str {
    let (event, full) = match element {
        0x01 => ("void", "System.Void"),
        0x02 => ("bool", "System.Boolean"),
        0x03 => ("wchar", "System.Char"),
        0x04 => ("int8", "System.SByte"),
        0x05 => ("unsigned int8", "System.Byte"),
        0x06 => ("int16", "System.Int16"),
        0x07 => ("unsigned int16", "System.UInt16"),
        0x08 => ("int32", "System.Int32"),
        0x09 => ("unsigned int32", "System.UInt32"),
        0x0a => ("int64", "System.Int64"),
        0x0b => ("unsigned int64", "System.UInt64"),
        0x0c => ("float32", "System.Single"),
        0x0d => ("float64", "System.Double"),
        0x0e => ("class System.String", "System.String"),
        0x16 => ("refany", "System.TypedReference"),
        0x18 => ("int", "System.IntPtr"),
        0x19 => ("unsigned int", "System.UIntPtr"),
        0x1c => ("class System.Object", "System.Object"),
        _ => ("?", "?"),
    };
    if format == TypeFormat::Signature {
        event
    } else {
        full
    }
}

impl Writer {
    fn new(format: TypeFormat) -> Self {
        Self {
            out: String::new(),
            format,
        }
    }

    fn push(&mut self, text: &str) {
        if self.out.len() < MAX_TEXT {
            self.out.push_str(text);
        }
    }

    fn number(&mut self, prefix: &str, value: i64) {
        self.push(prefix);
        self.push(&value.to_string());
    }

    fn list(&mut self, types: &[Type], open: &str, close: &str) {
        self.push(open);
        for (index, of) in types.iter().enumerate() {
            if index > 0 {
                self.push(",");
            }
            self.write(of);
        }
        self.push(close);
    }

    fn prefixes(&mut self, of: &MethodSignature) {
        if of.has_this {
            self.push("instance ");
        }
        if of.generic_parameters > 0 {
            self.push("generic ");
        }
        if of.convention == 5 {
            self.push("vararg ");
        }
    }

    fn parameters(&mut self, of: &MethodSignature) {
        let all = &of.parameters[..];
        let fixed = of.sentinel.and_then(|fixed| all.split_at_checked(fixed));
        let (fixed, variable) = fixed.unwrap_or((all, &[]));
        self.list(fixed, "(", "");
        if of.sentinel.is_some() {
            self.push(if fixed.is_empty() { "..." } else { ",..." });
            self.list(variable, ",", "");
        }
        self.push(")");
    }

    fn write(&mut self, of: &Type) {
        // The decoder limits the depth.
        if self.out.len() >= MAX_TEXT {
            return;
        }
        match of {
            Type::Primitive(element) => self.push(primitive(*element, self.format)),
            Type::Canon => {
                let is_event = self.format == TypeFormat::Signature;
                self.push(if is_event { "class " } else { "" });
                self.push("System.__Canon");
            }
            Type::Named { name, value } if self.format == TypeFormat::Signature => {
                self.push(if *value { "value class " } else { "class " });
                self.push(name.simple_name());
            }
            Type::Named { name, .. } => self.push(name.full()),
            Type::Generic { base, arguments } => {
                self.write(base);
                match self.format {
                    TypeFormat::Signature => self.list(arguments, "<", ">"),
                    TypeFormat::Namespace => self.list(arguments, "[", "]"),
                }
            }
            Type::Var(index) => self.number("!", (*index).into()),
            Type::MethodVar(index) => self.number("!!", (*index).into()),
            Type::Pointer(of) => self.suffixed(of, "*"),
            Type::ByRef(of) => self.suffixed(of, "&"),
            Type::SzArray(of) => self.suffixed(of, "[]"),
            Type::Array {
                element,
                rank,
                sizes,
                lower_bounds,
            } => {
                self.write(element);
                self.array_shape(*rank, sizes, lower_bounds);
            }
            Type::Function(signature) => {
                self.push("fnptr ");
                self.write(&signature.return_type);
                self.parameters(signature);
            }
            Type::Modified {
                required,
                modifier,
                of,
            } => {
                if self.format == TypeFormat::Signature {
                    let kind = if *required { "required" } else { "optional" };
                    self.push(kind);
                    self.push("_modifier ");
                    match &**modifier {
                        Type::Named { name, .. } => self.push(name.simple_name()),
                        other => self.write(other),
                    }
                    self.push(" ");
                }
                self.write(of);
            }
            Type::Pinned(of) => self.suffixed(of, " pinned"),
            Type::Unknown => self.push("?"),
        }
    }

    fn suffixed(&mut self, of: &Type, suffix: &str) {
        self.write(of);
        self.push(suffix);
    }

    fn array_shape(&mut self, rank: u32, sizes: &[u32], lower_bounds: &[i32]) {
        self.push("[");
        for dimension in 0..rank as usize {
            if dimension > 0 {
                self.push(",");
            }
            let size = i64::from(sizes.get(dimension).copied().unwrap_or(0));
            let lower = i64::from(lower_bounds.get(dimension).copied().unwrap_or(0));
            if self.format != TypeFormat::Signature || size == 0 && lower == 0 {
                continue;
            }
            if lower == 0 {
                self.number("", size);
            } else {
                self.number("", lower);
                self.push("...");
                if size != 0 {
                    self.number("", lower.saturating_add(size).saturating_sub(1));
                }
            }
        }
        self.push("]");
    }
}

//! JSON objects whose absent fields are omitted.

use std::fmt::Display;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value that has the fields of a JSON object.
pub trait Fields {
    /// Adds its fields to an object.
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>);
}

impl<T: Fields> Fields for &T {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        (*self).fields(object);
    }
}

/// Serializes a value as the object of its [`Fields`].
#[derive(Clone, Copy, Debug)]
pub struct Json<'a, T>(pub &'a T);

impl<T: Fields> Serialize for Json<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object {
            map: serializer.serialize_map(None)?,
            error: None,
        };
        self.0.fields(&mut object);
        match object.error {
            None => object.map.end(),
            Some(error) => Err(error),
        }
    }
}

/// A JSON object being written. Serializing returns the first error.
#[derive(Debug)]
pub struct Object<M: SerializeMap> {
    map: M,
    error: Option<M::Error>,
}

impl<M: SerializeMap> Object<M> {
    /// Adds a field.
    pub fn field(&mut self, key: &str, value: impl Serialize) -> &mut Self {
        if self.error.is_none() {
            self.error = self.map.serialize_entry(key, &value).err();
        }
        self
    }

    /// Adds a field, unless the value is absent.
    pub fn some(&mut self, key: &str, value: Option<impl Serialize>) -> &mut Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// Adds a text, unless it is empty.
    pub fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.some(key, Some(value).filter(|value| !value.is_empty()))
    }

    /// Adds `true`, or nothing.
    pub fn flag(&mut self, key: &str, value: bool) -> &mut Self {
        self.some(key, value.then_some(true))
    }

    /// Adds the text of a value.
    pub fn shown(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.field(key, Shown(value))
    }

    /// Adds a list of objects.
    pub fn objects<T: Fields>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        self.field(key, Objects(values.into_iter().collect()))
    }

    /// Adds a list of objects, unless it is empty.
    pub fn some_objects<T: Fields>(&mut self, key: &str, values: &[T]) -> &mut Self {
        match values {
            [] => self,
            values => self.objects(key, values),
        }
    }

    /// Adds an object, unless it is absent.
    pub fn object<T: Fields>(&mut self, key: &str, value: Option<&T>) -> &mut Self {
        self.some(key, value.map(Json))
    }

    /// Adds the fields of another value.
    pub fn fields_of(&mut self, value: &impl Fields) -> &mut Self {
        value.fields(self);
        self
    }
}

struct Shown<T>(T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

struct Objects<T>(Vec<T>);

impl<T: Fields> Serialize for Objects<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Point(u32, Option<u32>);

    impl Fields for Point {
        fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
            object.field("x", self.0).some("y", self.1);
        }
    }

    struct Line<'a>(&'a [Point], bool);

    impl Fields for Line<'_> {
        fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
            object
                .objects("points", self.0)
                .object("first", self.0.first())
                .flag("closed", self.1)
                .text("name", "")
                .shown("length", self.0.len());
        }
    }

    #[test]
    fn absent_fields_are_left_out() {
        let json = |points: &[Point], is_closed| {
            serde_json::to_string(&Json(&Line(points, is_closed))).unwrap()
        };
        assert_eq!(json(&[], false), r#"{"points":[],"length":"0"}"#);
        assert_eq!(
            json(&[Point(1, None), Point(2, Some(3))], true),
            r#"{"points":[{"x":1},{"x":2,"y":3}],"first":{"x":1},"closed":true,"length":"2"}"#
        );
    }

    #[test]
    fn the_first_error_is_returned() {
        struct Bad;
        impl Fields for Bad {
            fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
                object
                    .field("map", std::collections::BTreeMap::from([((1, 2), 3)]))
                    .field("more", 1);
            }
        }
        assert!(serde_json::to_string(&Json(&Bad)).is_err());
    }
}

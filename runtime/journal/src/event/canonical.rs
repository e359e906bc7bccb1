//! Canonical JSON: object keys sorted, no white space. Written in one pass, without a tree of values.
//!
//! Fields are written in the order in which `serde` visits them. When an object ends, its fields are sorted if its keys
//! were not in order. The text is identical to what `serde_json` writes for the same value with sorted keys; the hashes
//! of journals depend on that. A tree of values would increase the time of a component stage by 6 %
//! (`benches/canonical.rs`).

mod keys;

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Error;
use std::fmt::Display;
use std::io::Write as _;

/// Initial capacity of the buffer in bytes, enough for most records.
const USUAL_BYTES: usize = 1024;

/// Returns a value, such as an event, as canonical JSON: object keys sorted, no white space.
pub fn canonical<T: Serialize + ?Sized>(fact: &T) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    write_canonical(&mut bytes, fact)?;
    String::from_utf8(bytes).map_err(Error::custom)
}

/// Appends a value to `bytes` as canonical JSON. See [`canonical`].
pub fn write_canonical<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, fact: &T) -> Result<(), Error> {
    let mut text = Text { bytes, fields: Vec::new(), scratch: Vec::new() };
    fact.serialize(&mut text)
}

/// Canonical JSON that is being written.
struct Text<'b> {
    bytes: &'b mut Vec<u8>,
    /// Fields of the open objects. The fields of the innermost object are the last.
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

/// The position of a field in the text.
#[derive(Clone, Copy)]
struct Field {
    key: usize,
    /// Position of the colon after the key.
    colon: usize,
    end: usize,
}

impl Text<'_> {
    /// Writes a scalar as `serde_json` does.
    fn scalar<T: Serialize + ?Sized>(&mut self, scalar: &T) -> Result<(), Error> {
        serde_json::to_writer(&mut *self.bytes, scalar)
    }

    fn number(&mut self, number: impl Display) -> Result<(), Error> {
        write!(self.bytes, "{number}").map_err(Error::io)
    }

    /// Opens an object with one field, the form of an enum variant with content.
    fn open_variant(&mut self, variant: &'static str) -> Result<(), Error> {
        self.bytes.push(b'{');
        self.scalar(variant)?;
        self.bytes.push(b':');
        Ok(())
    }

    /// Sorts the fields of the innermost object. `first` is the index in `fields` of the first one.
    fn sort(&mut self, first: usize) {
        let Some(begin) = self.fields.get(first).map(|field| field.key) else { return };
        let bytes = &*self.bytes;
        let key = |field: &Field| &bytes[field.key..field.colon];
        let own = &mut self.fields[first..];
        if own.windows(2).all(|pair| keys::order(key(&pair[0]), key(&pair[1])).is_lt()) {
            return;
        }
        // The sort is stable: of two fields with the same key, the later one stays later, and it replaces the earlier one.
        own.sort_by(|one, other| keys::order(key(one), key(other)));
        self.scratch.clear();
        for (index, field) in own.iter().enumerate() {
            if own.get(index + 1).is_some_and(|next| keys::order(key(field), key(next)).is_eq()) {
                continue;
            }
            if !self.scratch.is_empty() {
                self.scratch.push(b',');
            }
            self.scratch.extend_from_slice(&bytes[field.key..field.end]);
        }
        self.bytes.truncate(begin);
        self.bytes.extend_from_slice(&self.scratch);
    }
}

/// An array or an object that is being written.
struct Parts<'t, 'b> {
    text: &'t mut Text<'b>,
    /// For an object, the index in [`Text::fields`] of the first field.
    first: usize,
    has_some: bool,
    /// The bytes that close the array or object.
    end: &'static [u8],
}

impl<'t, 'b> Parts<'t, 'b> {
    fn array(text: &'t mut Text<'b>, end: &'static [u8]) -> Self {
        text.bytes.push(b'[');
        Self { first: 0, text, has_some: false, end }
    }

    fn object(text: &'t mut Text<'b>, end: &'static [u8]) -> Self {
        text.bytes.push(b'{');
        Self { first: text.fields.len(), text, has_some: false, end }
    }

    fn begin_part(&mut self) {
        if self.has_some {
            self.text.bytes.push(b',');
        }
        self.has_some = true;
    }

    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        self.begin_part();
        item.serialize(&mut *self.text)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.begin_part();
        let begin = self.text.bytes.len();
        key.serialize(&mut *self.text)?;
        keys::quote(self.text.bytes, begin)?;
        let colon = self.text.bytes.len();
        self.text.bytes.push(b':');
        self.text.fields.push(Field { key: begin, colon, end: colon });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.text)?;
        let end = self.text.bytes.len();
        let field = self.text.fields.last_mut().ok_or_else(|| Error::custom("a value without a key"))?;
        field.end = end;
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.key(key)?;
        self.value(value)
    }

    fn close_array(self) -> Result<(), Error> {
        self.text.bytes.extend_from_slice(self.end);
        Ok(())
    }

    fn close_object(self) -> Result<(), Error> {
        self.text.sort(self.first);
        self.text.fields.truncate(self.first);
        self.text.bytes.extend_from_slice(self.end);
        Ok(())
    }
}

/// Implements the `serialize_*` methods of scalars.
macro_rules! scalars {
    ($($method:ident $kind:ty, $write:ident;)*) => {
        $(fn $method(self, value: $kind) -> Result<(), Error> {
            self.$write(&value)
        })*
    };
}

impl<'t, 'b> Serializer for &'t mut Text<'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'t, 'b>;
    type SerializeTuple = Parts<'t, 'b>;
    type SerializeTupleStruct = Parts<'t, 'b>;
    type SerializeTupleVariant = Parts<'t, 'b>;
    type SerializeMap = Parts<'t, 'b>;
    type SerializeStruct = Parts<'t, 'b>;
    type SerializeStructVariant = Parts<'t, 'b>;

    scalars! {
        serialize_bool bool, number;
        serialize_i8 i8, number;
        serialize_i16 i16, number;
        serialize_i32 i32, number;
        serialize_i64 i64, number;
        serialize_u8 u8, number;
        serialize_u16 u16, number;
        serialize_u32 u32, number;
        serialize_u64 u64, number;
        serialize_f64 f64, scalar;
        serialize_char char, scalar;
        serialize_str &str, scalar;
    }

    /// Writes the `f32` as the `f64` of the same value, as a tree of `serde_json` values does.
    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.bytes.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.scalar(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.open_variant(variant)?;
        value.serialize(&mut *self)?;
        self.bytes.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'t, 'b>, Error> {
        Ok(Parts::array(self, b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'t, 'b>, Error> {
        Ok(Parts::array(self, b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'t, 'b>, Error> {
        Ok(Parts::array(self, b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'t, 'b>, Error> {
        self.open_variant(variant)?;
        Ok(Parts::array(self, b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'t, 'b>, Error> {
        Ok(Parts::object(self, b"}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts<'t, 'b>, Error> {
        Ok(Parts::object(self, b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'t, 'b>, Error> {
        self.open_variant(variant)?;
        Ok(Parts::object(self, b"}}"))
    }
}

/// Implements the traits that write the items of an array.
macro_rules! arrays {
    ($($trait:ident $method:ident,)*) => {
        $(impl $trait for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
                self.item(item)
            }

            fn end(self) -> Result<(), Error> {
                self.close_array()
            }
        })*
    };
}

/// Implements the traits that write the fields of an object.
macro_rules! objects {
    ($($trait:ident,)*) => {
        $(impl $trait for Parts<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close_object()
            }
        })*
    };
}

arrays! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

objects! { SerializeStruct, SerializeStructVariant, }

impl SerializeMap for Parts<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close_object()
    }
}

#[cfg(test)]
mod tests;

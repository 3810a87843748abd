//! The pages of a Parquet file, decompressed within limits. The decoder would expand a page, and repeat
//! the texts of a dictionary, before it compares anything with what the file states.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

/// Maximum bytes of a page. Writers make pages of about 1 MiB.
const PAGE: u64 = 8 << 20;
/// Bytes to which the pages of a file may expand in total, and how often its size in addition.
const FREE: u64 = 64 << 20;
const RATIO: u64 = 200;
/// Maximum bytes of a text in a dictionary, and of the texts in a page of texts on average.
const TEXT: u64 = 256 << 10;
const MEAN_TEXT: u64 = 4 << 10;
/// Bytes to which the texts of dictionaries in a batch may be repeated, and its maximum rows.
const BATCH: u64 = 16 << 20;
const ROWS: u64 = 1 << 11;

/// The bytes to which the pages of a file may still expand.
#[derive(Clone, Debug)]
pub(crate) struct Expansion(Arc<AtomicU64>);

impl Expansion {
    /// Returns that of a file of a size.
    pub fn of(size: u64) -> Self {
        let most = FREE.saturating_add(size.saturating_mul(RATIO));
        Expansion(Arc::new(AtomicU64::new(most)))
    }

    /// Decompresses the data of a page behind an offset.
    fn inflate(&self, page: &[u8], offset: usize) -> Result<Vec<u8>> {
        let (plain, compressed) = page.split_at_checked(offset).ok_or_else(damaged)?;
        let mut out = plain.to_vec();
        let most = PAGE.min(self.0.load(Ordering::Relaxed));
        let decoder = MultiGzDecoder::new(compressed);
        let read = match compressed.is_empty() {
            true => 0,
            false => decoder.take(most + 1).read_to_end(&mut out)? as u64,
        };
        if read > most {
            return Err(refused(format!("a page expands to more than {most} bytes")));
        }
        self.0.fetch_sub(read, Ordering::Relaxed);
        Ok(out)
    }
}

/// One row group of a file.
pub(crate) struct Group {
    pub file: Arc<File>,
    pub metadata: Arc<ParquetMetaData>,
    pub number: usize,
    pub expansion: Expansion,
}

impl Group {
    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.number)
    }

    fn pages(&self, column: usize) -> Result<Pages> {
        let columns = self.group().columns();
        let chunk = columns.get(column).ok_or_else(damaged)?;
        let is_compressed = match chunk.compression() {
            Compression::UNCOMPRESSED => false,
            Compression::GZIP(_) => true,
            other => return Err(refused(format!("compression {other} is not supported"))),
        };
        let builder = ColumnChunkMetaData::into_builder(chunk.clone());
        let stored = builder.set_compression(Compression::UNCOMPRESSED).build()?;
        let file = Arc::clone(&self.file);
        Ok(Pages {
            stored: SerializedPageReader::new(file, &stored, self.num_rows(), None)?,
            is_compressed,
            is_text: chunk.column_type() == Type::BYTE_ARRAY,
            expansion: self.expansion.clone(),
        })
    }

    /// Returns the rows of a batch in which these columns repeat texts of their dictionaries within
    /// limits.
    pub fn batch_rows(&self, columns: impl Iterator<Item = usize>) -> Result<usize> {
        let mut longest = 1;
        for column in columns {
            let mut pages = self.pages(column)?;
            if !pages.is_text {
                continue;
            }
            if let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? {
                longest += longest_text(&buf)?;
            }
        }
        Ok((BATCH / longest).clamp(1, ROWS) as usize)
    }
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        Ok(Box::new(Chunk(Some(self.pages(column)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The column chunk of a row group.
struct Chunk(Option<Pages>);

impl Iterator for Chunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let pages = self.0.take()?;
        Some(Ok(Box::new(pages)))
    }
}

impl PageIterator for Chunk {}

/// The pages of a column chunk.
struct Pages {
    /// As they are in the file.
    stored: SerializedPageReader<File>,
    is_compressed: bool,
    is_text: bool,
    expansion: Expansion,
}

impl Pages {
    /// Decompresses a page, and checks its texts.
    fn expand(&self, mut page: Page) -> Result<Page> {
        let is_dictionary = matches!(page, Page::DictionaryPage { .. });
        let (buf, offset, is_compressed) = match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0, true),
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                let levels = usize::try_from(levels).map_err(|_| damaged())?;
                (buf, levels, *is_compressed)
            }
        };
        if self.is_compressed && is_compressed {
            *buf = self.expansion.inflate(buf, offset)?.into();
        }
        let bytes = buf.len() as u64;
        if is_dictionary && self.is_text {
            longest_text(buf)?;
        }
        let most = u64::from(page.num_values()).saturating_mul(MEAN_TEXT);
        let is_plain = page.encoding() == Encoding::PLAIN;
        if self.is_text && is_plain && !is_dictionary && bytes > most.saturating_add(TEXT) {
            return Err(refused(format!("a page of texts has {bytes} bytes")));
        }
        Ok(page)
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.stored.get_next_page()?;
        page.map(|page| self.expand(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.stored.skip_next_page()
    }
}

/// Returns the bytes of the longest text in a dictionary: each is preceded by its length.
fn longest_text(mut dictionary: &[u8]) -> Result<u64> {
    let mut longest = 0;
    while let Some((length, rest)) = dictionary.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        let rest = rest.get(length as usize..);
        dictionary = rest.ok_or_else(damaged)?;
        longest = longest.max(u64::from(length));
    }
    match longest > TEXT {
        true => Err(refused(format!(
            "a text of a dictionary has {longest} bytes"
        ))),
        false => Ok(longest),
    }
}

fn damaged() -> ParquetError {
    refused("it is damaged".to_owned())
}

fn refused(what: String) -> ParquetError {
    ParquetError::General(what)
}

//! Archives (zip) as attackers write them: any name, mode and size, twice the same name, and files
//! that are compressed or not.

/// The methods of compression.
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The mode of a regular file, and of a program.
pub const FILE: u32 = 0o100_644;
pub const PROGRAM: u32 = 0o100_755;
pub const FOLDER: u32 = 0o040_755;
pub const LINK: u32 = 0o120_777;

/// An entry of an archive.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name, which is written as it is.
    pub name: Vec<u8>,
    /// The mode of Unix, with the kind of the file.
    pub mode: u32,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The same bytes after `deflate`, if the archive has them so.
    pub deflated: Option<Vec<u8>>,
    /// The size that the archive claims.
    pub size: usize,
}

impl Entry {
    /// A file that is not compressed.
    #[must_use]
    pub fn new(name: &str, mode: u32, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref().to_vec();
        let size = bytes.len();
        Self { name: name.as_bytes().to_vec(), mode, bytes, deflated: None, size }
    }
}

/// The archive of these entries.
///
/// # Panics
/// When an archive cannot have so much.
#[must_use]
pub fn archive(entries: &[Entry]) -> Vec<u8> {
    let (mut all, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let start = four(all.len());
        let shared = shared(entry);
        all.extend_from_slice(b"PK\x03\x04\x14\0");
        all.extend_from_slice(&shared);
        all.extend_from_slice(&entry.name);
        all.extend_from_slice(entry.deflated.as_ref().unwrap_or(&entry.bytes));
        // Made by Unix, so that the mode counts.
        directory.extend_from_slice(b"PK\x01\x02\x14\x03\x14\0");
        directory.extend_from_slice(&shared);
        // No comment, the first disk, and no internal attributes.
        directory.extend_from_slice(&[0; 6]);
        directory.extend_from_slice(&(entry.mode << 16).to_le_bytes());
        directory.extend_from_slice(&start);
        directory.extend_from_slice(&entry.name);
    }
    let start = four(all.len());
    let count = u16::try_from(entries.len()).expect("fewer than 65,536 entries").to_le_bytes();
    all.extend_from_slice(&directory);
    all.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    all.extend_from_slice(&count);
    all.extend_from_slice(&count);
    all.extend_from_slice(&four(directory.len()));
    all.extend_from_slice(&start);
    all.extend_from_slice(&[0; 2]);
    all
}

/// The members that both headers of an entry have.
fn shared(entry: &Entry) -> Vec<u8> {
    // Names are UTF-8; the time is 1980-01-01.
    let mut shared = 0x0800_u16.to_le_bytes().to_vec();
    let method = if entry.deflated.is_some() { DEFLATED } else { STORED };
    shared.extend_from_slice(&method.to_le_bytes());
    shared.extend_from_slice(&[0, 0, 0x21, 0]);
    shared.extend_from_slice(&crc32(&entry.bytes).to_le_bytes());
    let packed = entry.deflated.as_ref().unwrap_or(&entry.bytes).len();
    shared.extend_from_slice(&four(packed));
    shared.extend_from_slice(&four(entry.size));
    let length = u16::try_from(entry.name.len()).expect("a name of fewer than 65,536 bytes");
    shared.extend_from_slice(&length.to_le_bytes());
    shared.extend_from_slice(&[0; 2]);
    shared
}

fn four(number: usize) -> [u8; 4] {
    u32::try_from(number).expect("fewer than 4 GiB").to_le_bytes()
}

/// The checksum of archives, CRC-32.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(sum & 1));
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_archives() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}

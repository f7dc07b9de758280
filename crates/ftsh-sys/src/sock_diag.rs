//! Bytes sent and received by TCP sockets, from the kernel's socket monitoring (`sock_diag(7)`).
//!
//! `recv` does not count as input in `/proc/PID/io`, so a transfer may be visible only here.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use nix::unistd::{read, write};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Attribute with a `tcp_info`.
const INET_DIAG_INFO: u16 = 2;
/// All states except that of listening sockets.
const STATES: u32 = !(1 << 10);
/// Length of `nlmsghdr`.
const HEADER: usize = 16;
/// Length of `inet_diag_msg`, and offset of the inode inside.
const MESSAGE: usize = 72;
const INODE: usize = 68;
/// Offset of `tcpi_bytes_acked` in `tcp_info`; `tcpi_bytes_received` follows.
const BYTES_ACKED: usize = 120;
const BYTES_RECEIVED: usize = 128;

/// Returns the bytes acknowledged and received so far by each TCP socket of this network namespace,
/// by the inode of the socket.
pub fn tcp_bytes() -> io::Result<HashMap<u64, u64>> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let protocol = SockProtocol::NetlinkSockDiag;
    let monitor = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
    let mut found = HashMap::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        dump(&monitor, family as u8, &mut found)?;
    }
    Ok(found)
}

fn dump(monitor: &OwnedFd, family: u8, found: &mut HashMap<u64, u64>) -> io::Result<()> {
    // `nlmsghdr`, then `inet_diag_req_v2` with an empty socket id.
    let mut request = [0_u8; HEADER + 56];
    request[..4].copy_from_slice(&((HEADER + 56) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    request[HEADER] = family;
    request[HEADER + 1] = libc::IPPROTO_TCP as u8;
    request[HEADER + 2] = 1 << (INET_DIAG_INFO - 1);
    request[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
    write(monitor.as_fd(), &request)?;
    let mut buffer = vec![0_u8; 64 * 1024];
    loop {
        let count = read(monitor.as_fd(), &mut buffer)?;
        if count == 0 || take_messages(&buffer[..count], found)? {
            return Ok(());
        }
    }
}

/// Adds the sockets of some messages. Returns true after the last message.
fn take_messages(mut text: &[u8], found: &mut HashMap<u64, u64>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (number_at::<4>(text, 0), number_at::<2>(text, 4)) {
        let (length, kind) = (u32::from_ne_bytes(length) as usize, u16::from_ne_bytes(kind));
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => return Err(io::ErrorKind::Unsupported.into()),
            _ => {}
        }
        let Some(message) = text.get(HEADER..length) else { break };
        found.extend(socket_bytes(message));
        text = text.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Returns the inode and the bytes of a socket.
fn socket_bytes(message: &[u8]) -> Option<(u64, u64)> {
    let inode = u32::from_ne_bytes(number_at(message, INODE)?);
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let length = usize::from(u16::from_ne_bytes(number_at(attributes, 0)?));
        let kind = u16::from_ne_bytes(number_at(attributes, 2)?);
        if kind == INET_DIAG_INFO {
            let info = attributes.get(4..length)?;
            let acked = u64::from_ne_bytes(number_at(info, BYTES_ACKED)?);
            let received = u64::from_ne_bytes(number_at(info, BYTES_RECEIVED)?);
            return Some((u64::from(inode), acked.wrapping_add(received)));
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// Returns the inode of a descriptor.
    fn inode(socket: &TcpStream) -> u64 {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        std::fs::metadata(path).expect("an open socket").ino()
    }

    #[test]
    fn received_bytes_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        let bytes = |socket: &TcpStream| tcp_bytes().expect("a dump").get(&inode(socket)).copied();
        let before = bytes(&client).expect("a known socket");
        server.write_all(b"five!").expect("a reader");
        client.read_exact(&mut [0; 5]).expect("five bytes");
        assert_eq!(bytes(&client), Some(before + 5));
    }
}

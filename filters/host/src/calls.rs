//! The safe layer over hostcalls.
//!
//! The SDK's own wrappers panic on a status that they do not expect and on bytes that are no UTF-8, and a panic takes the
//! worker's VM down with every request in it. So the calls are declared here once more: statuses are plain integers,
//! values are bytes, and whatever goes wrong is an absence.
#![allow(unsafe_code)]

use std::ptr::null_mut;

use exchange::{HeaderChange, Headers};

/// The status of a call that worked.
const OK: i32 = 0;
/// The status of a write that came too late.
const CAS_MISMATCH: i32 = 8;

/// The largest buffer that is ever asked of the gateway at once, in bytes.
const MAX_BUFFER: usize = 256 << 20;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: i32, data: *const u8, size: usize) -> i32;
    fn proxy_get_current_time_nanoseconds(time: *mut u64) -> i32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> i32;
    fn proxy_get_buffer_bytes(kind: i32, start: usize, max: usize, data: *mut *mut u8, size: *mut usize) -> i32;
    fn proxy_set_buffer_bytes(kind: i32, start: usize, size: usize, data: *const u8, length: usize) -> i32;
    fn proxy_get_header_map_pairs(kind: i32, data: *mut *mut u8, size: *mut usize) -> i32;
    fn proxy_set_header_map_pairs(kind: i32, data: *const u8, size: usize) -> i32;
    fn proxy_replace_header_map_value(
        kind: i32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> i32;
    fn proxy_add_header_map_value(
        kind: i32,
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
    ) -> i32;
    fn proxy_remove_header_map_value(kind: i32, key: *const u8, key_size: usize) -> i32;
    fn proxy_get_property(path: *const u8, path_size: usize, data: *mut *mut u8, size: *mut usize) -> i32;
    fn proxy_set_property(path: *const u8, path_size: usize, data: *const u8, size: usize) -> i32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        cas: *mut u32,
    ) -> i32;
    fn proxy_set_shared_data(key: *const u8, key_size: usize, data: *const u8, size: usize, cas: u32) -> i32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> i32;
    fn proxy_continue_stream(kind: i32) -> i32;
    fn proxy_set_effective_context(context: u32) -> i32;
    fn proxy_define_metric(kind: i32, name: *const u8, name_size: usize, id: *mut u32) -> i32;
    fn proxy_increment_metric(id: u32, by: i64) -> i32;
    fn proxy_record_metric(id: u32, value: u64) -> i32;
    fn proxy_grpc_send(token: u32, data: *const u8, size: usize, end: i32) -> i32;
    fn proxy_grpc_close(token: u32) -> i32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn random_get(data: *mut u8, size: usize) -> i32;
}

/// The buffers that the gateway hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Buffer {
    RequestBody = 0,
    ResponseBody = 1,
    GrpcMessage = 5,
    Configuration = 7,
}

/// The header maps that the gateway hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Map {
    RequestHeaders = 0,
    RequestTrailers = 1,
    ResponseHeaders = 2,
    ResponseTrailers = 3,
}

/// The two halves of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Half {
    Request = 0,
    Response = 1,
}

/// Levels of the gateway's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum LogLevel {
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// A shared value was written by somebody else in between, or could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedDataError {
    Conflict,
    Refused,
}

/// Takes over a buffer that the gateway allocated through `proxy_on_memory_allocate`.
///
/// Only call it with what a hostcall has just returned: that function allocates exactly `size` bytes as a boxed slice.
fn take(data: *mut u8, size: usize) -> Vec<u8> {
    if data.is_null() || size == 0 {
        return Vec::new();
    }
    // SAFETY: the gateway got this block from this module's allocator with capacity `size`, filled it, and gave it up.
    unsafe { Vec::from_raw_parts(data, size, size) }
}

pub(crate) fn log(level: LogLevel, message: &str) {
    // SAFETY: the gateway reads `message` during the call and keeps no reference.
    unsafe { proxy_log(level as i32, message.as_ptr(), message.len()) };
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let mut nanoseconds = 0;
    // SAFETY: the gateway writes one u64.
    unsafe { proxy_get_current_time_nanoseconds(&mut nanoseconds) };
    nanoseconds / 1_000_000
}

pub(crate) fn set_tick_period(millis: u32) {
    // SAFETY: no memory is touched.
    unsafe { proxy_set_tick_period_milliseconds(millis) };
}

/// At most `max` bytes of a buffer from its beginning.
pub(crate) fn buffer(kind: Buffer, max: usize) -> Option<Vec<u8>> {
    buffer_from(kind, 0, max)
}

/// At most `max` bytes of a buffer from `start` on.
pub(crate) fn buffer_from(kind: Buffer, start: usize, max: usize) -> Option<Vec<u8>> {
    let (mut data, mut size) = (null_mut(), 0);
    // SAFETY: the gateway writes a pointer and a size; `take` says why they may be taken over.
    match unsafe { proxy_get_buffer_bytes(kind as i32, start, max.min(MAX_BUFFER), &mut data, &mut size) } {
        OK => Some(take(data, size)),
        _ => None,
    }
}

/// Replaces a whole buffer.
pub(crate) fn replace_buffer(kind: Buffer, bytes: &[u8]) -> bool {
    // SAFETY: the gateway reads `bytes` during the call.
    unsafe { proxy_set_buffer_bytes(kind as i32, 0, usize::MAX >> 1, bytes.as_ptr(), bytes.len()) == OK }
}

/// A header map; `None` where it is gone, or larger than the gateway hands out.
pub(crate) fn headers(kind: Map) -> Option<Headers> {
    let (mut data, mut size) = (null_mut(), 0);
    // SAFETY: as in `buffer`.
    match unsafe { proxy_get_header_map_pairs(kind as i32, &mut data, &mut size) } {
        OK => Headers::read(take(data, size)),
        _ => None,
    }
}

/// A pairs map: count, then the two lengths of each pair (all u32), then each key and value with a NUL behind it.
fn write_pairs(pairs: &[(String, Vec<u8>)]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
    let mut bytes = length(pairs.len()).to_vec();
    for (name, value) in pairs {
        bytes.extend_from_slice(&length(name.len()));
        bytes.extend_from_slice(&length(value.len()));
    }
    for (name, value) in pairs {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(value);
        bytes.push(0);
    }
    bytes
}

/// Takes every field of a map away.
pub(crate) fn clear(kind: Map) {
    let nothing = write_pairs(&[]);
    // SAFETY: the gateway reads the pairs during the call.
    unsafe { proxy_set_header_map_pairs(kind as i32, nothing.as_ptr(), nothing.len()) };
}

pub(crate) fn set_header(kind: Map, name: &str, value: &[u8]) {
    // SAFETY: the gateway reads both during the call.
    unsafe { proxy_replace_header_map_value(kind as i32, name.as_ptr(), name.len(), value.as_ptr(), value.len()) };
}

/// Carries out a change of a header.
pub(crate) fn change_header(kind: Map, change: &HeaderChange) {
    match change {
        HeaderChange::Set { name, value } => {
            // Some gateways replace the first header of a name and leave the others.
            if !name.starts_with(':') {
                change_header(kind, &HeaderChange::Remove { name: name.clone() });
            }
            set_header(kind, name, value);
        }
        HeaderChange::Add { name, value } => {
            // SAFETY: the gateway reads both during the call.
            unsafe {
                proxy_add_header_map_value(kind as i32, name.as_ptr(), name.len(), value.as_ptr(), value.len());
            }
        }
        HeaderChange::Remove { name } => {
            // SAFETY: the gateway reads the name during the call.
            unsafe { proxy_remove_header_map_value(kind as i32, name.as_ptr(), name.len()) };
        }
    }
}

/// A property; its path is a list of words.
pub(crate) fn property(path: &[&str]) -> Option<Vec<u8>> {
    let path = path.join("\0");
    let (mut data, mut size) = (null_mut(), 0);
    // SAFETY: as in `buffer`.
    match unsafe { proxy_get_property(path.as_ptr(), path.len(), &mut data, &mut size) } {
        OK => Some(take(data, size)),
        _ => None,
    }
}

/// Sets a filter state under one word (a longer path would be taken and never found again).
pub(crate) fn set_property(token: &str, value: &[u8]) {
    // SAFETY: the gateway reads both during the call.
    unsafe { proxy_set_property(token.as_ptr(), token.len(), value.as_ptr(), value.len()) };
}

pub(crate) fn shared_data(key: &str) -> Option<(Vec<u8>, u32)> {
    let (mut data, mut size, mut cas) = (null_mut(), 0, 0);
    // SAFETY: as in `buffer`.
    match unsafe { proxy_get_shared_data(key.as_ptr(), key.len(), &mut data, &mut size, &mut cas) } {
        OK => Some((take(data, size), cas)),
        _ => None,
    }
}

pub(crate) fn set_shared_data(key: &str, value: &[u8], cas: u32) -> Result<(), SharedDataError> {
    // SAFETY: the gateway reads both during the call.
    match unsafe { proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas) } {
        OK => Ok(()),
        CAS_MISMATCH => Err(SharedDataError::Conflict),
        _ => Err(SharedDataError::Refused),
    }
}

/// Answers in the backend's place; `details` shows in access logs as the response code details.
pub(crate) fn send_local_response(status: u16, details: &str, headers: &[(String, Vec<u8>)], body: &[u8]) -> bool {
    let headers = write_pairs(headers);
    // SAFETY: the gateway reads all of them during the call.
    unsafe {
        proxy_send_local_response(
            u32::from(status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            -1,
        ) == OK
    }
}

pub(crate) fn continue_stream(half: Half) {
    // SAFETY: no memory is touched.
    unsafe { proxy_continue_stream(half as i32) };
}

/// Makes later calls act on another stream; false where that stream is gone.
pub(crate) fn set_effective_context(context: u32) -> bool {
    // SAFETY: no memory is touched.
    unsafe { proxy_set_effective_context(context) == OK }
}

/// Defines a counter.
pub(crate) fn define_counter(name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: the gateway reads the name and writes one u32.
    (unsafe { proxy_define_metric(0, name.as_ptr(), name.len(), &mut id) } == OK).then_some(id)
}

pub(crate) fn increment(metric: u32, by: u64) {
    // SAFETY: no memory is touched.
    unsafe { proxy_increment_metric(metric, i64::try_from(by).unwrap_or(i64::MAX)) };
}

/// Defines a gauge.
pub(crate) fn define_gauge(name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: as in `define_counter`.
    (unsafe { proxy_define_metric(1, name.as_ptr(), name.len(), &mut id) } == OK).then_some(id)
}

pub(crate) fn record(metric: u32, value: u64) {
    // SAFETY: no memory is touched.
    unsafe { proxy_record_metric(metric, value) };
}

/// Fills a buffer with bytes of the gateway's cryptographic random source; false where it has none.
pub(crate) fn random(buffer: &mut [u8]) -> bool {
    // SAFETY: the gateway writes as many bytes as the buffer has.
    unsafe { random_get(buffer.as_mut_ptr(), buffer.len()) == OK }
}

/// Sends a message on a stream; false where the stream is gone.
pub(crate) fn send_stream_message(token: u32, message: &[u8]) -> bool {
    // SAFETY: the gateway reads the message during the call.
    unsafe { proxy_grpc_send(token, message.as_ptr(), message.len(), 0) == OK }
}

/// Ends a stream of the context in effect.
pub(crate) fn close_stream(token: u32) {
    // SAFETY: no memory is touched.
    unsafe { proxy_grpc_close(token) };
}

/// Opens a stream to a method of a service behind a cluster.
///
/// This one goes through the SDK, whose dispatcher has to know the token to deliver the stream's messages. The statuses
/// that the gateway can answer with here are all ones that the SDK expects.
pub(crate) fn open_stream(cluster: &str, service: &str, method: &str) -> Option<u32> {
    proxy_wasm::hostcalls::open_grpc_stream(&grpc_service(cluster)?, service, method, Vec::new()).ok()
}

/// An encoded `envoy.config.core.v3.GrpcService { envoy_grpc { cluster_name } }`. Lengths under 128 are one byte, and
/// one that is also ASCII, which is what lets the SDK take it as a string.
fn grpc_service(cluster: &str) -> Option<String> {
    let inner = u8::try_from(cluster.len()).ok().filter(|length| *length < 120)?;
    let mut bytes = vec![0x0a, inner + 2, 0x0a, inner];
    bytes.extend_from_slice(cluster.as_bytes());
    String::from_utf8(bytes).ok()
}

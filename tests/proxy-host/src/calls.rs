//! The hostcalls of module `env`.

use wasmtime::{Caller, Linker};

use super::abi::{Answer, Refusal, Status, buffer, decode_pairs, encode_pairs, status};
use super::clusters::{Outgoing, Word, cluster_of};
use super::state::{CallKind, GrpcStream, Half, Incoming, Phase, State, Stream};
use super::{headers, properties};
use crate::traffic::{Headers, LocalReply};

/// The most streams that a filter may have open, so that a filter gone wild gets an answer.
const MAX_STREAMS: usize = 10_000;

type Call<'a> = Caller<'a, State>;

pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    link_basics(linker)?;
    link_maps(linker)?;
    link_shared(linker)?;
    link_streams(linker)
}

fn link_basics(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker
        .func_wrap("env", "proxy_log", |mut call: Call<'_>, level: i32, data: u32, size: u32| {
            status(read(&mut call, data, size).map(|text| {
                call.data_mut().log(level, String::from_utf8_lossy(&text).into_owned());
            }))
        })?
        .func_wrap("env", "proxy_get_log_level", |mut call: Call<'_>, out: u32| status(write_u32(&mut call, out, 0)))?
        .func_wrap("env", "proxy_get_current_time_nanoseconds", |mut call: Call<'_>, out: u32| {
            let now = call.data().node.now_nanos();
            status(write(&mut call, out, &now.to_le_bytes()))
        })?
        .func_wrap("env", "proxy_set_tick_period_milliseconds", |mut call: Call<'_>, period: u32| {
            call.data_mut().set_timer(period);
            Status::Ok as i32
        })?
        .func_wrap("env", "proxy_get_buffer_bytes", {
            |mut call: Call<'_>, kind: u32, start: u32, max: u32, data: u32, size: u32| {
                let bytes = buffer_bytes(call.data(), kind, start, max);
                status(bytes.and_then(|bytes| give(&mut call, &bytes, data, size)))
            }
        })?
        .func_wrap("env", "proxy_set_buffer_bytes", {
            |mut call: Call<'_>, kind: u32, start: u32, size: u32, data: u32, length: u32| {
                status(read(&mut call, data, length).and_then(|bytes| {
                    let body = match kind {
                        buffer::REQUEST_BODY => &mut stream(call.data_mut())?.request,
                        buffer::RESPONSE_BODY => &mut stream(call.data_mut())?.response,
                        _ => return Err(Status::BadArgument.into()),
                    };
                    if !body.body_open {
                        return Err(Status::NotFound.into());
                    }
                    headers::splice(&mut body.body, to_usize(start), to_usize(size), bytes)
                }))
            }
        })?
        .func_wrap("env", "proxy_get_property", {
            |mut call: Call<'_>, path: u32, path_size: u32, data: u32, size: u32| {
                status(read(&mut call, path, path_size).and_then(|path| {
                    let value = properties::get(call.data(), &path).ok_or(Status::NotFound)?;
                    give(&mut call, &value, data, size)
                }))
            }
        })?
        .func_wrap("env", "proxy_set_property", {
            |mut call: Call<'_>, path: u32, path_size: u32, data: u32, size: u32| {
                let answer = read(&mut call, path, path_size).and_then(|path| {
                    let value = read(&mut call, data, size)?;
                    stream(call.data_mut())?.filter_state.insert(path, value);
                    call.data_mut().effect();
                    Ok(())
                });
                status(answer)
            }
        })?
        .func_wrap("env", "proxy_set_effective_context", |mut call: Call<'_>, context: u32| {
            let state = call.data_mut();
            let known = context == state.root || state.streams.contains_key(&context);
            if known {
                state.effective = context;
            }
            (if known { Status::Ok } else { Status::BadArgument }) as i32
        })?
        .func_wrap("env", "proxy_done", || Status::Ok as i32)?
        .func_wrap("env", "proxy_get_status", |mut call: Call<'_>, code: u32, data: u32, size: u32| {
            let (number, message) = call.data().incoming.status.clone();
            let answer = write_u32(&mut call, code, number);
            status(answer.and_then(|()| give(&mut call, message.as_bytes(), data, size)))
        })?
        .func_wrap("env", "proxy_call_foreign_function", {
            |_: u32, _: u32, _: u32, _: u32, _: u32, _: u32| Status::NotFound as i32
        })?;
    Ok(())
}

fn link_maps(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker
        .func_wrap("env", "proxy_get_header_map_pairs", |mut call: Call<'_>, kind: u32, data: u32, size: u32| {
            let encoded =
                map(call.data_mut(), kind).and_then(|pairs| encode_pairs(pairs).ok_or(Status::BadArgument.into()));
            status(encoded.and_then(|bytes| give(&mut call, &bytes, data, size)))
        })?
        .func_wrap("env", "proxy_set_header_map_pairs", |mut call: Call<'_>, kind: u32, data: u32, size: u32| {
            status(read(&mut call, data, size).and_then(|bytes| {
                let pairs = decode_pairs(&bytes).ok_or(Status::BadArgument)?;
                *map(call.data_mut(), kind)? = pairs;
                Ok(())
            }))
        })?
        .func_wrap("env", "proxy_get_header_map_value", {
            |mut call: Call<'_>, kind: u32, name: u32, name_size: u32, data: u32, size: u32| {
                status(read(&mut call, name, name_size).and_then(|name| {
                    let value = headers::get(map(call.data_mut(), kind)?, &name).map(<[u8]>::to_vec);
                    give(&mut call, &value.ok_or(Status::NotFound)?, data, size)
                }))
            }
        })?
        .func_wrap("env", "proxy_replace_header_map_value", {
            |mut call: Call<'_>, kind: u32, name: u32, name_size: u32, value: u32, value_size: u32| {
                status(pair(&mut call, (name, name_size), (value, value_size)).and_then(|(name, value)| {
                    headers::replace(map(call.data_mut(), kind)?, &name, value);
                    Ok(())
                }))
            }
        })?
        .func_wrap("env", "proxy_add_header_map_value", {
            |mut call: Call<'_>, kind: u32, name: u32, name_size: u32, value: u32, value_size: u32| {
                status(pair(&mut call, (name, name_size), (value, value_size)).and_then(|(name, value)| {
                    headers::add(map(call.data_mut(), kind)?, &name, value);
                    Ok(())
                }))
            }
        })?
        .func_wrap("env", "proxy_remove_header_map_value", {
            |mut call: Call<'_>, kind: u32, name: u32, name_size: u32| {
                status(read(&mut call, name, name_size).and_then(|name| {
                    headers::remove(map(call.data_mut(), kind)?, &name);
                    Ok(())
                }))
            }
        })?;
    Ok(())
}

fn link_shared(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker
        .func_wrap("env", "proxy_get_shared_data", {
            |mut call: Call<'_>, key: u32, key_size: u32, data: u32, size: u32, cas: u32| {
                status(read(&mut call, key, key_size).and_then(|key| {
                    let (value, token) = call.data().node.get_shared(&key).ok_or(Status::NotFound)?;
                    write_u32(&mut call, cas, token)?;
                    give(&mut call, &value, data, size)
                }))
            }
        })?
        .func_wrap("env", "proxy_set_shared_data", {
            |mut call: Call<'_>, key: u32, key_size: u32, value: u32, value_size: u32, cas: u32| {
                status(pair(&mut call, (key, key_size), (value, value_size)).and_then(|(key, value)| {
                    if call.data().node.set_shared(key, value, cas)? {
                        call.data_mut().effect();
                    }
                    Ok(())
                }))
            }
        })?
        .func_wrap("env", "proxy_register_shared_queue", |mut call: Call<'_>, name: u32, size: u32, out: u32| {
            status(read(&mut call, name, size).and_then(|name| {
                let state = call.data();
                let id = state.node.register_queue(name, state.worker);
                write_u32(&mut call, out, id)
            }))
        })?
        .func_wrap("env", "proxy_resolve_shared_queue", {
            |mut call: Call<'_>, _vm: u32, _vm_size: u32, name: u32, size: u32, out: u32| {
                status(read(&mut call, name, size).and_then(|name| {
                    let id = call.data().node.resolve_queue(&name).ok_or(Status::NotFound)?;
                    write_u32(&mut call, out, id)
                }))
            }
        })?
        .func_wrap("env", "proxy_enqueue_shared_queue", |mut call: Call<'_>, id: u32, data: u32, size: u32| {
            status(read(&mut call, data, size).and_then(|bytes| {
                call.data_mut().effect();
                Ok(call.data().node.enqueue(id, bytes)?)
            }))
        })?
        .func_wrap("env", "proxy_dequeue_shared_queue", |mut call: Call<'_>, id: u32, data: u32, size: u32| {
            let message = call.data().node.dequeue(id).map_err(Refusal::from);
            if message.is_ok() {
                call.data_mut().effect();
            }
            status(message.and_then(|bytes| give(&mut call, &bytes, data, size)))
        })?
        .func_wrap("env", "proxy_define_metric", |mut call: Call<'_>, kind: u32, name: u32, size: u32, out: u32| {
            status(read(&mut call, name, size).and_then(|name| {
                let id = call.data().node.define_metric(kind, String::from_utf8_lossy(&name).into_owned());
                write_u32(&mut call, out, id)
            }))
        })?
        .func_wrap("env", "proxy_increment_metric", |mut call: Call<'_>, id: u32, by: i64| {
            call.data_mut().effect();
            let changed = call.data().node.with_metric(id, |metric| metric.value = metric.value.saturating_add(by));
            status(changed.map_err(Refusal::from))
        })?
        .func_wrap("env", "proxy_record_metric", |mut call: Call<'_>, id: u32, value: i64| {
            call.data_mut().effect();
            let record = |metric: &mut super::Metric| match metric.kind {
                1 => metric.value = value,
                _ => metric.value = metric.value.saturating_add(value),
            };
            status(call.data().node.with_metric(id, record).map_err(Refusal::from))
        })?
        .func_wrap("env", "proxy_get_metric", |mut call: Call<'_>, id: u32, out: u32| {
            let value = call.data().node.with_metric(id, |metric| metric.value).map_err(Refusal::from);
            status(value.and_then(|value| write(&mut call, out, &value.to_le_bytes())))
        })?;
    Ok(())
}

fn link_streams(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker
        .func_wrap("env", "proxy_continue_stream", |mut call: Call<'_>, kind: u32| {
            status(act(call.data_mut(), |stream| {
                match kind {
                    0 => stream.request.resumed = true,
                    1 => stream.response.resumed = true,
                    _ => return Err(Status::BadArgument.into()),
                }
                Ok(())
            }))
        })?
        .func_wrap("env", "proxy_close_stream", |mut call: Call<'_>, _kind: u32| {
            status(act(call.data_mut(), |stream| {
                stream.reset = true;
                Ok(())
            }))
        })?
        .func_wrap("env", "proxy_send_local_response", {
            |mut call: Call<'_>,
             code: u32,
             details: u32,
             details_size: u32,
             body: u32,
             body_size: u32,
             pairs: u32,
             pairs_size: u32,
             _grpc: i32| {
                let answer = read(&mut call, details, details_size).and_then(|details| {
                    let body = read(&mut call, body, body_size)?;
                    let headers = decode_pairs(&read(&mut call, pairs, pairs_size)?).ok_or(Status::BadArgument)?;
                    let status = u16::try_from(code).map_err(|_| Status::BadArgument)?;
                    let details = String::from_utf8_lossy(&details).into_owned();
                    act(call.data_mut(), |stream| {
                        // The first answer is the one that is sent.
                        stream.local.get_or_insert(LocalReply { status, details, headers, body });
                        Ok(())
                    })
                });
                status(answer)
            }
        })?
        .func_wrap("env", "proxy_grpc_stream", {
            |mut call: Call<'_>,
             service: u32,
             service_size: u32,
             name: u32,
             name_size: u32,
             method: u32,
             method_size: u32,
             _metadata: u32,
             _metadata_size: u32,
             out: u32| {
                let answer = read(&mut call, service, service_size).and_then(|service| {
                    let cluster = cluster_of(&service).ok_or(Status::ParseFailure)?;
                    let (name, method) = pair(&mut call, (name, name_size), (method, method_size))?;
                    let method = format!("{}/{}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&method));
                    let state = call.data_mut();
                    if state.grpc.len() >= MAX_STREAMS {
                        return Err(Status::InternalFailure.into());
                    }
                    let (token, context) = (state.token(), state.effective);
                    state.say(Word::Open { token, cluster, path: format!("/{method}") });
                    state.grpc.push(GrpcStream { token, context, service, method, sent: Vec::new(), closed: false });
                    write_u32(&mut call, out, token)
                });
                status(answer)
            }
        })?
        .func_wrap("env", "proxy_grpc_send", |mut call: Call<'_>, token: u32, data: u32, size: u32, end: i32| {
            status(read(&mut call, data, size).and_then(|message| {
                let state = call.data_mut();
                let listened = state.listened;
                let stream = grpc(state, token)?;
                stream.closed = end != 0;
                if listened {
                    state.say(Word::Message { token, message, end: end != 0 });
                } else {
                    stream.sent.push(message);
                    state.effect();
                }
                Ok(())
            }))
        })?
        .func_wrap("env", "proxy_grpc_close", |mut call: Call<'_>, token: u32| status(hang_up(call.data_mut(), token)))?
        .func_wrap("env", "proxy_grpc_cancel", |mut call: Call<'_>, token: u32| {
            status(hang_up(call.data_mut(), token))
        })?
        .func_wrap("env", "proxy_grpc_call", {
            |mut call: Call<'_>,
             service: u32,
             service_size: u32,
             name: u32,
             name_size: u32,
             method: u32,
             method_size: u32,
             metadata: u32,
             metadata_size: u32,
             message: u32,
             message_size: u32,
             timeout: u32,
             out: u32| {
                let answer = read(&mut call, service, service_size).and_then(|service| {
                    let cluster = cluster_of(&service).ok_or(Status::ParseFailure)?;
                    let (name, method) = pair(&mut call, (name, name_size), (method, method_size))?;
                    let headers =
                        decode_pairs(&read(&mut call, metadata, metadata_size)?).ok_or(Status::BadArgument)?;
                    let body = read(&mut call, message, message_size)?;
                    let path = format!("/{}/{}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&method));
                    let said =
                        Outgoing { cluster, path, method: String::new(), headers, body, timeout_millis: timeout };
                    dial(&mut call, CallKind::Grpc, said, out)
                });
                status(answer)
            }
        })?
        .func_wrap("env", "proxy_http_call", {
            |mut call: Call<'_>,
             cluster: u32,
             cluster_size: u32,
             headers: u32,
             headers_size: u32,
             body: u32,
             body_size: u32,
             _trailers: u32,
             _trailers_size: u32,
             timeout: u32,
             out: u32| {
                let answer = read(&mut call, cluster, cluster_size).and_then(|cluster| {
                    let headers = decode_pairs(&read(&mut call, headers, headers_size)?).ok_or(Status::BadArgument)?;
                    let body = read(&mut call, body, body_size)?;
                    let word = |name: &[u8]| {
                        headers::get(&headers, name).map(|value| String::from_utf8_lossy(value).into_owned())
                    };
                    // The gateway makes no request of less.
                    let (Some(path), Some(method), Some(_)) = (word(b":path"), word(b":method"), word(b":authority"))
                    else {
                        return Err(Status::BadArgument.into());
                    };
                    let cluster = String::from_utf8_lossy(&cluster).into_owned();
                    let said = Outgoing { cluster, path, method, headers, body, timeout_millis: timeout };
                    dial(&mut call, CallKind::Http, said, out)
                });
                status(answer)
            }
        })?;
    Ok(())
}

/// Changes the stream in effect in a way that may let it go on.
fn act(state: &mut State, change: impl FnOnce(&mut Stream) -> Answer) -> Answer {
    change(stream(state)?)?;
    state.effect();
    state.touched.push_back(state.effective);
    Ok(())
}

/// Notes a call and says it to the cluster.
fn dial(call: &mut Call<'_>, kind: CallKind, said: Outgoing, out: u32) -> Answer {
    let state = call.data_mut();
    if state.calls.len() >= MAX_STREAMS {
        return Err(Status::InternalFailure.into());
    }
    let token = state.token();
    state.calls.insert(token, (state.effective, kind));
    state.effect();
    // Somebody answers every call, also where nobody listens to streams.
    state.words.push_back(match kind {
        CallKind::Http => Word::Http { token, call: said },
        CallKind::Grpc => Word::Grpc { token, call: said },
    });
    write_u32(call, out, token)
}

/// Ends a stream or a call of the context in effect.
fn hang_up(state: &mut State, token: u32) -> Answer {
    let context = state.effective;
    if state.calls.get(&token).is_some_and(|(owner, kind)| *owner == context && *kind == CallKind::Grpc) {
        state.calls.remove(&token);
        state.effect();
        return Ok(());
    }
    grpc(state, token)?.closed = true;
    state.say(Word::Close { token });
    Ok(())
}

fn buffer_bytes(state: &State, kind: u32, start: u32, max: u32) -> Answer<Vec<u8>> {
    let of_half = |pick: fn(&Stream) -> &Half| {
        let half = pick(state.streams.get(&state.effective)?);
        half.body_open.then_some(half.body.as_slice())
    };
    let bytes = match kind {
        buffer::REQUEST_BODY => of_half(|stream| &stream.request),
        buffer::RESPONSE_BODY => of_half(|stream| &stream.response),
        buffer::HTTP_CALL_BODY => of_call(state, CallKind::Http).and_then(|incoming| incoming.body.as_deref()),
        buffer::GRPC_MESSAGE => of_call(state, CallKind::Grpc).and_then(|incoming| incoming.body.as_deref()),
        buffer::VM_CONFIGURATION => Some(&[][..]),
        buffer::PLUGIN_CONFIGURATION => Some(state.configuration.as_slice()),
        _ => return Err(Status::BadArgument.into()),
    };
    let rest = bytes.ok_or(Status::NotFound)?.get(to_usize(start)..).unwrap_or_default();
    Ok(rest.get(..to_usize(max)).unwrap_or(rest).to_vec())
}

/// What a cluster answered, if it is of this kind.
fn of_call(state: &State, kind: CallKind) -> Option<&Incoming> {
    Some(&state.incoming).filter(|incoming| incoming.kind == Some(kind))
}

/// A header map; there is none before its time and after it went on. The log sees all of them again.
fn map(state: &mut State, kind: u32) -> Answer<&mut Headers> {
    if let 4..=7 = kind {
        let of = if kind < 6 { CallKind::Grpc } else { CallKind::Http };
        let Incoming { headers, trailers, kind: known, .. } = &mut state.incoming;
        let map = if matches!(kind, 4 | 6) { headers } else { trailers };
        return map.as_mut().filter(|_| *known == Some(of)).ok_or(Status::NotFound.into());
    }
    let stream = stream(state)?;
    let log = stream.phase == Phase::Log;
    let (map, open) = match kind {
        0 => (&mut stream.request.headers, stream.request.headers_open),
        1 => (&mut stream.request.trailers, stream.request.trailers_open),
        2 => (&mut stream.response.headers, stream.response.headers_open),
        3 => (&mut stream.response.trailers, stream.response.trailers_open),
        _ => return Err(Status::BadArgument.into()),
    };
    if open || log { Ok(map) } else { Err(Status::NotFound.into()) }
}

fn stream(state: &mut State) -> Answer<&mut Stream> {
    let context = state.effective;
    state.streams.get_mut(&context).ok_or(Status::BadArgument.into())
}

fn grpc(state: &mut State, token: u32) -> Answer<&mut GrpcStream> {
    let context = state.effective;
    let open = |stream: &&mut GrpcStream| stream.token == token && stream.context == context && !stream.closed;
    state.grpc.iter_mut().find(open).ok_or(Status::NotFound.into())
}

fn pair(call: &mut Call<'_>, name: (u32, u32), value: (u32, u32)) -> Answer<(Vec<u8>, Vec<u8>)> {
    Ok((read(call, name.0, name.1)?, read(call, value.0, value.1)?))
}

/// Bytes of the filter's memory.
pub(crate) fn read(call: &mut Call<'_>, at: u32, size: u32) -> Answer<Vec<u8>> {
    let memory = call.data().memory.ok_or(Status::InvalidMemory)?;
    let (at, size) = (to_usize(at), to_usize(size));
    let bytes = memory.data(&*call).get(at..).and_then(|rest| rest.get(..size));
    Ok(bytes.ok_or(Status::InvalidMemory)?.to_vec())
}

pub(crate) fn write(call: &mut Call<'_>, at: u32, bytes: &[u8]) -> Answer {
    let memory = call.data().memory.ok_or(Status::InvalidMemory)?;
    let place = memory.data_mut(&mut *call).get_mut(to_usize(at)..).and_then(|rest| rest.get_mut(..bytes.len()));
    place.ok_or(Status::InvalidMemory)?.copy_from_slice(bytes);
    Ok(())
}

pub(crate) fn write_u32(call: &mut Call<'_>, at: u32, value: u32) -> Answer {
    write(call, at, &value.to_le_bytes())
}

/// Hands bytes over: into memory that the filter allocates, whose place and size are written where it asked for them.
fn give(call: &mut Call<'_>, bytes: &[u8], data: u32, size: u32) -> Answer {
    let length = u32::try_from(bytes.len()).map_err(|_| Status::InternalFailure)?;
    let mut at = 0;
    if length > 0 {
        let allocate = call.data().allocate.clone().ok_or(Status::InvalidMemory)?;
        at = allocate.call(&mut *call, length)?;
        write(call, at, bytes)?;
    }
    write_u32(call, data, at)?;
    write_u32(call, size, length)
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

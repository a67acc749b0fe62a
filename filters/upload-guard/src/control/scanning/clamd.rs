//! clamd: its commands in the form with a NUL byte (clamd(8)).

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Verdict;

/// How much is sent at once, in bytes.
const CHUNK: usize = 64 << 10;
/// The longest reply, in bytes.
const MAX_REPLY: u64 = 4096;

/// Sends a file in a stream of its own.
///
/// # Errors
/// Why there is no verdict.
pub(super) async fn scan<S>(mut stream: S, content: &[u8]) -> Result<Verdict, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let sent = send(&mut stream, content).await;
    // Where a file is too long for it, clamd says so and does not read on.
    let reply = reply(&mut stream).await;
    match (reply.as_deref(), sent) {
        (Ok(""), Err(why)) | (Err(_), Err(why)) => Err(why),
        (Ok(reply), _) => verdict(reply),
        (Err(why), Ok(())) => Err(why.clone()),
    }
}

/// The version of its database: `ClamAV 1.4.1/27500/Tue Jan  7 10:26:04 2025`. Empty where it has none but databases of the operator's own,
/// whose changes it does not show.
///
/// # Errors
/// Why there is none.
pub(super) async fn version<S>(mut stream: S) -> Result<String, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(b"zVERSION\0").await.map_err(|error| lost(&error))?;
    let reply = reply(&mut stream).await?;
    match reply.starts_with("ClamAV") {
        true if reply.contains('/') => Ok(reply),
        true => Ok(String::new()),
        false => Err(unexpected(&reply)),
    }
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, content: &[u8]) -> Result<(), String> {
    let sending = async {
        stream.write_all(b"zINSTREAM\0").await?;
        for chunk in content.chunks(CHUNK) {
            let length = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            stream.write_all(&length.to_be_bytes()).await?;
            stream.write_all(chunk).await?;
        }
        stream.write_all(&[0; 4]).await?;
        stream.flush().await
    };
    sending.await.map_err(|error| lost(&error))
}

async fn reply<S: AsyncRead + Unpin>(stream: &mut S) -> Result<String, String> {
    let mut bytes = Vec::new();
    stream.take(MAX_REPLY).read_to_end(&mut bytes).await.map_err(|error| lost(&error))?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).trim().to_owned())
}

fn verdict(reply: &str) -> Result<Verdict, String> {
    let said = reply.strip_prefix("stream: ").unwrap_or(reply);
    if said == "OK" {
        return Ok(Verdict::Clean);
    }
    if let Some(threat) = said.strip_suffix(" FOUND").filter(|threat| !threat.is_empty()) {
        return Ok(Verdict::Infected(super::shown(threat)));
    }
    if said.contains("size limit exceeded") {
        return Err("the file is longer than StreamMaxLength of clamd".to_owned());
    }
    Err(if reply.is_empty() { "clamd closed the connection without an answer".to_owned() } else { unexpected(reply) })
}

fn unexpected(reply: &str) -> String {
    format!("clamd answered `{}`", super::shown(reply))
}

fn lost(error: &std::io::Error) -> String {
    format!("the connection to clamd was lost: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        assert_eq!(verdict("stream: OK"), Ok(Verdict::Clean));
        assert_eq!(
            verdict("stream: Win.Test.EICAR_HDB-1 FOUND"),
            Ok(Verdict::Infected("Win.Test.EICAR_HDB-1".to_owned()))
        );
        assert!(verdict("INSTREAM size limit exceeded. ERROR").unwrap_err().contains("StreamMaxLength"));
        for reply in
            ["", "OKAY", "stream: FOUND", " FOUND", "stream: Can't allocate memory ERROR", "UNKNOWN COMMAND", "\u{7}"]
        {
            assert!(verdict(reply).is_err(), "{reply}");
        }
    }
}

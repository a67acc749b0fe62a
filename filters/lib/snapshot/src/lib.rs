//! What the control plane compiles and filters run: messages, codecs, content hash

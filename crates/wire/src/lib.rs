//! MCP on the wire as raw JSON: envelopes, both protocol eras, headers, SSE, framing and limits.

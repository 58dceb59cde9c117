//! Test support: the fixture MCP server with the conformance suite's names, forwarders and builders.

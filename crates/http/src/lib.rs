//! The HTTP door: MCP endpoints, health, metrics and the host boundary checks.

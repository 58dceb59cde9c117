//! Tests of the HTTP door, in one binary.

#[cfg(test)]
mod api;
#[cfg(test)]
mod boundary;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod calling;
#[cfg(test)]
mod console;
#[cfg(test)]
mod cors;
#[cfg(test)]
mod decision;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod invitations;
#[cfg(test)]
mod legacy;
#[cfg(test)]
mod listener;
#[cfg(test)]
mod listener_tls;
#[cfg(test)]
mod modern;
#[cfg(test)]
mod ready;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod shelf;
#[cfg(test)]
mod signin;
#[cfg(test)]
mod vfs;
#[cfg(test)]
mod world;

//! The description of one operation; all other facts follow from its row in the table of routes.

use schemars::JsonSchema;

use crate::shapes::{Problem, Shape};

/// JSON, in most bodies.
pub(super) const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// `HEAD` is described by `GET`.
    pub(super) method: &'static str,
    /// The path, as in the table of routes.
    pub(super) template: &'static str,
    /// Its name for programs, unique.
    pub(super) id: &'static str,
    /// The purpose, in a sentence.
    pub(super) summary: &'static str,
    /// Parameters behind `?`, and headers, by their names in `parameters.json`.
    pub(super) parameters: &'static [&'static str],
    pub(super) body: Option<Body>,
    /// The answers of a success; a method may have several.
    pub(super) answers: [Option<Answer>; 4],
    /// Schema of the problems.
    pub(super) refusal: Shape,
    /// Kinds of problems beside those that follow from the route.
    pub(super) problems: &'static [u16],
}

/// The schema of a type.
pub(super) const fn of<T: JsonSchema>() -> Shape {
    Shape::of::<T>()
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Body {
    pub(super) schema: Shape,
    /// Its media types.
    pub(super) media: &'static [&'static str],
}

/// One answer to a request that is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content: Content,
    /// Headers, by their names in `headers.json`.
    pub(super) headers: &'static [&'static str],
}

impl Content {
    /// The schemas of the body.
    pub(super) fn schemas(self) -> impl Iterator<Item = Shape> {
        let (one, other) = match self {
            Self::Json(one) | Self::Events(one) | Self::JsonOrLines(one) => (Some(one), None),
            Self::Either(one, other) | Self::JsonOrEvents(one, other) => (Some(one), Some(other)),
            Self::None | Self::File | Self::Text(_) => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// The body of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Content {
    None,
    /// JSON of this schema.
    Json(Shape),
    /// JSON of one of these schemas.
    Either(Shape, Shape),
    /// JSON of the first schema, or a stream of events of the second for a client that prefers one.
    JsonOrEvents(Shape, Shape),
    /// A stream of events of this schema.
    Events(Shape),
    /// JSON of this schema, or lines of JSON for a client that accepts these.
    JsonOrLines(Shape),
    /// A file of any type.
    File,
    /// Text of these media types.
    Text(&'static [&'static str]),
}

macro_rules! methods {
    ($($name:ident $method:literal),*) => {$(
        pub(super) const fn $name(
            template: &'static str,
            id: &'static str,
            summary: &'static str,
        ) -> Operation {
            operation($method, template, id, summary)
        }
    )*};
}

methods! { get "GET", put "PUT", post "POST", patch "PATCH", delete "DELETE" }

const fn operation(
    method: &'static str,
    template: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    let (parameters, problems): (&[&str], &[u16]) = (&[], &[]);
    let (body, answers, refusal) = (None, [None; 4], of::<Problem>());
    Operation { method, template, id, summary, parameters, body, answers, refusal, problems }
}

impl Operation {
    /// Adds these parameters and headers of the request.
    pub(super) const fn asks(self, parameters: &'static [&'static str]) -> Self {
        Self { parameters, ..self }
    }

    /// Adds a body of JSON.
    pub(super) const fn takes(self, schema: Shape) -> Self {
        self.takes_as(schema, &[JSON])
    }

    /// Adds a body with the members to change.
    pub(super) const fn merges(self, schema: Shape) -> Self {
        self.takes_as(schema, &[JSON, MERGE_PATCH])
    }

    pub(super) const fn takes_as(self, schema: Shape, media: &'static [&'static str]) -> Self {
        Self { body: Some(Body { schema, media }), ..self }
    }

    /// Answers 200 with JSON.
    pub(super) const fn gives(self, schema: Shape) -> Self {
        self.answers(200, Content::Json(schema), &[])
    }

    /// Answers 201 with JSON, and the place of the new object.
    pub(super) const fn makes(self, schema: Shape) -> Self {
        self.answers(201, Content::Json(schema), &["Location"])
    }

    /// Answers 204.
    pub(super) const fn ends(self) -> Self {
        self.answers(204, Content::None, &[])
    }

    /// One more answer, of four at most.
    pub(super) const fn answers(
        mut self,
        status: u16,
        content: Content,
        headers: &'static [&'static str],
    ) -> Self {
        let answer = Some(Answer { status, content, headers });
        let free = match self.answers {
            [None, ..] => 0,
            [_, None, ..] => 1,
            [_, _, None, _] => 2,
            _ => 3,
        };
        self.answers[free] = answer;
        self
    }

    /// Answers problems of this schema.
    pub(super) const fn refuses_with(self, refusal: Shape) -> Self {
        Self { refusal, ..self }
    }

    /// Adds further problems.
    pub(super) const fn refuses(self, problems: &'static [u16]) -> Self {
        Self { problems, ..self }
    }
}

/// The meaning of a refusal's status.
pub(super) fn meaning(status: u16) -> &'static str {
    match status {
        400 => "the request is not valid",
        401 => "a valid bearer token is needed",
        403 => "the caller is not allowed to do this, or this Host or Origin is not allowed",
        404 => "there is no such object, or the caller may not see it",
        405 => "this method is not allowed here",
        406 => "the client accepts none of the available content types",
        408 => "the body did not arrive in time",
        409 => "the request conflicts with the present state",
        412 => "a condition of the request does not hold",
        413 => "the body is too long",
        415 => "the content type of the body is not supported",
        422 => "the request has faults; the answer lists all of them",
        429 => "a limit is reached",
        500 => "narthex failed internally",
        502 => "the server answered with a protocol error",
        503 => "the request cannot be served now",
        504 => "the request took too long",
        _ => "",
    }
}

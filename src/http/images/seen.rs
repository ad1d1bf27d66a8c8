//! A request's images on their way to a model: refused where it sees none, fetched where they are
//! somewhere else.

use futures_util::future::try_join_all;

use crate::dialect::problem::{Fault, ImageRefusal, ImageRefusalKind};
use crate::dialect::{Dialect, Headed};
use crate::error::DecideError;
use crate::http::App;
use crate::json::Json;
use crate::question::Decision;
use crate::service::images::Image;
use crate::service::{Arrival, Caller, Decided};

use super::fetch::FetchFault;
use super::remote::{Remote, origin};
use super::{Found, IMAGES_MAX, ImageFault, Terms, found_after};

impl App {
    /// On what terms images of a request in this dialect are taken.
    ///
    /// A model that sees none has the limit of one that sees many: how many there are is not what is
    /// wrong.
    pub(in crate::http) fn image_terms(&self, dialect: Dialect) -> Terms {
        let limits = self.service.images();
        let count_max = limits.map_or(IMAGES_MAX, |limits| limits.count_max.min(IMAGES_MAX));
        Terms { rules: dialect.image_rules(), fetching: self.fetcher.rules, count_max }
    }

    /// The images for the model, all of them there. Nothing is fetched for a model that sees none.
    ///
    /// # Errors
    /// The model sees none, or one could not be fetched.
    pub(in crate::http) async fn seen(
        &self,
        found: Vec<Found>,
        headed: Headed,
        terms: Terms,
    ) -> Result<Vec<Image>, Fault> {
        if self.service.images().is_none() {
            check_none(&found, headed)?;
        }
        let images = found.into_iter().enumerate().map(|(index, found)| async move {
            match found {
                Found::Here(image) => Ok(image),
                Found::There(element, remote) => {
                    self.fetched(index + 1, element, remote, terms).await
                }
            }
        });
        try_join_all(images).await
    }

    /// Has a decision answered, by what sees its images where it has any.
    pub(in crate::http) async fn decided(
        &self,
        caller: Caller,
        decision: Decision,
        images: Vec<Image>,
        arrival: Arrival,
    ) -> Result<Decided, DecideError> {
        if images.is_empty() {
            return self.service.decide(caller, decision, arrival).await;
        }
        self.service.decide_seeing(caller, decision, images, arrival).await
    }

    /// Refuses a state that has images, or the request's list of them, where the model sees none; a
    /// decision on it would be refused too.
    ///
    /// # Errors
    /// An image, by the rules of the dialect.
    pub(in crate::http) async fn without_images(
        &self,
        dialect: Dialect,
        state: &mut Json,
        listed: Option<&Json>,
    ) -> Result<(), Fault> {
        let terms = self.image_terms(dialect);
        let found = found_after(Vec::new(), state, listed, terms);
        let (images, _) = found.map_err(|fault| Fault::from(fault.refusal()))?;
        self.seen(images, Headed::default(), terms).await.map(|_| ())
    }

    async fn fetched(
        &self,
        number: usize,
        element: usize,
        remote: Remote,
        terms: Terms,
    ) -> Result<Image, Fault> {
        let origin = origin(&remote.url);
        let fetched = self.fetcher.fetch(remote, terms.rules).await;
        fetched.map_err(|reason: FetchFault| {
            let path = vec!["images".into(), element.into()];
            ImageFault::Fetch { number, path, origin, reason }.refusal().into()
        })
    }
}

/// Refuses what only a model that sees images could answer.
fn check_none(found: &[Found], headed: Headed) -> Result<(), Fault> {
    let message = match found.first() {
        Some(first) => format!(
            "the served model reads text only, and the request has {} image(s), the first {first}",
            found.len()
        ),
        None if headed.image_route == Some(true) => {
            "the served model reads text only, there is no route image".to_owned()
        }
        None => return Ok(()),
    };
    let kind = ImageRefusalKind::Capability;
    Err(ImageRefusal { kind, path: Vec::new(), message }.into())
}

//! Flags about images in requests.

use std::time::Duration;

use clap::Args;

use crate::cli::switch::switch;
use crate::config::Config;
use crate::config::quantity::parse_duration;

use super::set;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Images, for models that see them")]
pub(super) struct ImagesArgs {
    /// Fetch images from http:// too
    #[arg(long, env = "DOCKET_ALLOW_HTTP_IMAGES", value_parser = switch)]
    allow_http_images: bool,

    /// Fetch images from addresses that are not public too: whoever may ask then reaches what this
    /// machine reaches
    #[arg(long, env = "DOCKET_ALLOW_PRIVATE_IMAGES", value_parser = switch)]
    allow_private_images: bool,

    /// Longest time to fetch one image [default: 15s]
    #[arg(long, env = "DOCKET_IMAGE_FETCH_TIMEOUT", value_name = "TIME")]
    #[arg(value_parser = parse_duration)]
    image_fetch_timeout: Option<Duration>,
}

impl ImagesArgs {
    pub(super) fn fill(self, config: &mut Config) {
        let images = &mut config.images;
        images.allow_http = self.allow_http_images;
        images.allow_private = self.allow_private_images;
        set(&mut images.fetch_timeout, self.image_fetch_timeout);
    }
}

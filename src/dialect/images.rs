//! Images, as dialects differ about them: forms and limits.

/// Most pixels of an image and of a side where a dialect has no rule of its own.
const PIXELS_MAX: u64 = 40_000_000;
const SIDE_MAX: u32 = 12_000;

/// Most pixels of an image as decisio has it.
const DECISIO_PIXELS_MAX: u64 = 20_000_000;

/// In which forms the list `images` and data URLs may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageForms {
    /// Data URLs in the standard alphabet of base64; the type in them is not looked at.
    DataUrls,
    /// These, URLs to be fetched, and objects of a URL with name and description. The URL-safe alphabet
    /// will do, and a type that is declared must be what the first bytes say.
    All,
}

/// In which forms a dialect takes images, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageRules {
    /// In which forms.
    pub forms: ImageForms,
    /// Whether data URLs inside strings of the state are images, or text like any other.
    pub in_state: bool,
    /// Most pixels of an image, as its header says.
    pub pixels_max: u64,
    /// Most pixels of its longer side.
    pub side_max: u32,
    /// Whether a member of an object that nobody knows is a fault, and not only noted.
    pub is_strict: bool,
}

impl ImageRules {
    /// All forms, everywhere.
    pub const ALL: Self = Self {
        forms: ImageForms::All,
        in_state: true,
        pixels_max: PIXELS_MAX,
        side_max: SIDE_MAX,
        is_strict: false,
    };

    /// self's.
    pub const SELF: Self = Self { is_strict: true, ..Self::ALL };

    /// decisio's.
    pub const DECISIO: Self = Self {
        forms: ImageForms::DataUrls,
        in_state: true,
        pixels_max: DECISIO_PIXELS_MAX,
        side_max: u32::MAX,
        is_strict: false,
    };
}

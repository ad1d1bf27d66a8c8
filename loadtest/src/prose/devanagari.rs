//! Hindi: masculine objects, so that verbs in the past agree with all of them.

use super::Language;
use super::Place::{self, OneOf, Word};

const PEOPLE: Place = OneOf(&[
    "ग्राहक",
    "डाकिये",
    "प्रबंधक",
    "इंजीनियर",
    "डॉक्टर",
    "पड़ोसी",
    "दुकानदार",
    "चालक",
    "कर्मचारी",
    "मेहमान",
    "लेखाकार",
    "अधिकारी",
]);
const THINGS: Place = OneOf(&[
    "पार्सल",
    "बिल",
    "अनुबंध",
    "टिकट",
    "पासपोर्ट",
    "संदेश",
    "ऑर्डर",
    "खाता",
    "पता",
    "फ़ोन",
    "कमरा",
    "दस्तावेज़",
    "सामान",
    "पैकेट",
    "भुगतान",
    "चार्जर",
    "बक्सा",
    "कार्यक्रम",
]);
const SHAPED: Place = OneOf(&[
    "नया",
    "पुराना",
    "टूटा",
    "ग़लत",
    "ज़रूरी",
    "महँगा",
    "भारी",
    "खाली",
    "आख़िरी",
    "मासिक",
    "वार्षिक",
    "सही",
    "साधारण",
    "लंबा",
]);
const VERBS: Place = OneOf(&[
    "लौटाया",
    "खोला",
    "भेजा",
    "देखा",
    "चुना",
    "बदला",
    "खोया",
    "पाया",
    "माँगा",
    "बेचा",
    "ख़रीदा",
    "जाँचा",
    "भरा",
    "छोड़ा",
    "रखा",
]);
const ADVERBS: Place =
    OneOf(&["कल", "आज", "फिर", "दोबारा", "जल्दी", "धीरे", "तुरंत", "अक्सर", "सुबह", "शाम"]);

const SENTENCES: [&[Place]; 6] = [
    &[Word("हमारे"), PEOPLE, Word("ने"), SHAPED, THINGS, ADVERBS, VERBS],
    &[
        Word("कृपया"),
        Word("बताइए"),
        Word("कि"),
        PEOPLE,
        Word("ने"),
        Word("मेरा"),
        THINGS,
        Word("क्यों"),
        VERBS,
    ],
    &[
        Word("जब"),
        PEOPLE,
        Word("ने"),
        THINGS,
        VERBS,
        Word("तब"),
        Word("कोई"),
        Word("नहीं"),
        Word("था"),
    ],
    &[Word("मेरा"), SHAPED, THINGS, Word("अब"), Word("तक"), Word("नहीं"), Word("आया"), Word("है")],
    &[Word("क्या"), PEOPLE, Word("ने"), Word("आपका"), SHAPED, THINGS, ADVERBS, VERBS, Word("है")],
    &[Word("उस"), Word("दिन"), PEOPLE, Word("ने"), THINGS, VERBS, Word("और"), SHAPED, THINGS, VERBS],
];

/// The language of this script.
pub(super) const LANGUAGE: Language = Language { gap: " ", stop: "।", sentences: &SENTENCES };

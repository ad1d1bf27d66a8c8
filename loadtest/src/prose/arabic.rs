//! Arabic: verbs in the past before their subjects, and definite masculine nouns with adjectives that
//! agree.

use super::Language;
use super::Place::{self, OneOf, Word};

const VERBS: Place = OneOf(&[
    "استلم",
    "أعاد",
    "فتح",
    "ألغى",
    "أكد",
    "وقع",
    "فقد",
    "فحص",
    "طلب",
    "أغلق",
    "وجد",
    "نسي",
    "دفع",
    "استبدل",
    "أرسل",
    "باع",
    "أصلح",
    "رفض",
]);
const PEOPLE: Place = OneOf(&[
    "العميل",
    "السائق",
    "الطبيب",
    "المهندس",
    "المورد",
    "الجار",
    "المدير",
    "الموظف",
    "الفني",
    "البائع",
    "المحاسب",
    "الزائر",
]);
const THINGS: Place = OneOf(&[
    "الطرد",
    "العقد",
    "المفتاح",
    "الجواز",
    "الطلب",
    "الجهاز",
    "التقرير",
    "الإيصال",
    "العنوان",
    "الحساب",
    "المبلغ",
    "الموعد",
    "الهاتف",
    "المنتج",
    "الصندوق",
    "الكتاب",
    "الجدول",
    "الخادم",
]);
const MANNERED: Place =
    OneOf(&["المهذب", "الغاضب", "الصبور", "المحلي", "الخبير", "المتعب", "الهادئ", "الشاب"]);
const SHAPED: Place = OneOf(&[
    "الجديد",
    "القديم",
    "العاجل",
    "المفقود",
    "الثقيل",
    "الأخير",
    "الشهري",
    "السنوي",
    "الفارغ",
    "الصحيح",
    "المكسور",
    "الغالي",
]);
const ADVERBS: Place = OneOf(&[
    "أمس",
    "اليوم",
    "مرتين",
    "مجددا",
    "سريعا",
    "متأخرا",
    "فورا",
    "غالبا",
    "مبكرا",
    "الليلة",
]);

const SENTENCES: [&[Place]; 5] = [
    &[VERBS, PEOPLE, MANNERED, THINGS, SHAPED, ADVERBS],
    &[Word("أخبرني"), Word("من"), Word("فضلك"), Word("لماذا"), VERBS, PEOPLE, THINGS, ADVERBS],
    &[Word("عندما"), VERBS, PEOPLE, THINGS, Word("لم"), Word("يكن"), Word("أحد"), Word("هناك")],
    &[Word("في"), Word("الصباح"), VERBS, PEOPLE, THINGS, SHAPED, Word("ثم"), VERBS, THINGS],
    &[Word("لا"), Word("أعرف"), Word("متى"), VERBS, PEOPLE, MANNERED, THINGS],
];

/// The language of this script.
pub(super) const LANGUAGE: Language = Language { gap: " ", stop: ".", sentences: &SENTENCES };

//! Chinese, without spaces: a word is one of the lists below or a particle, of one to three characters.

use super::Language;
use super::Place::{self, OneOf, Word};

const PEOPLE: Place = OneOf(&[
    "客户",
    "司机",
    "经理",
    "医生",
    "工程师",
    "供应商",
    "邻居",
    "快递员",
    "会计",
    "老板",
    "同事",
    "店员",
    "房东",
    "旅客",
]);
const THINGS: Place = OneOf(&[
    "包裹",
    "发票",
    "合同",
    "护照",
    "密码",
    "订单",
    "退款",
    "手机",
    "电池",
    "地址",
    "报告",
    "车票",
    "账户",
    "收据",
    "屏幕",
    "打印机",
    "钥匙",
    "文件",
    "保险",
    "行李",
]);
const SHAPED: Place = OneOf(&[
    "重要", "昂贵", "破损", "紧急", "错误", "正确", "普通", "沉重", "临时", "崭新", "陈旧", "最后",
]);
const VERBS: Place = OneOf(&[
    "收到", "退回", "打开", "取消", "确认", "签署", "弄丢", "检查", "订购", "更换", "寄出", "支付",
    "找到", "忘记", "拒绝", "修理", "更新", "卖掉",
]);
const ADVERBS: Place =
    OneOf(&["昨天", "今天", "再次", "立刻", "已经", "终于", "仔细", "今晚", "早上", "悄悄"]);

const SENTENCES: [&[Place]; 5] = [
    &[PEOPLE, ADVERBS, VERBS, Word("了"), SHAPED, Word("的"), THINGS],
    &[
        Word("请"),
        Word("告诉"),
        Word("我"),
        Word("为什么"),
        PEOPLE,
        Word("没有"),
        VERBS,
        Word("我们"),
        Word("的"),
        THINGS,
    ],
    &[
        PEOPLE,
        VERBS,
        THINGS,
        Word("的"),
        Word("时候，"),
        Word("没有"),
        Word("人"),
        VERBS,
        SHAPED,
        Word("的"),
        THINGS,
    ],
    &[Word("我"), Word("的"), THINGS, ADVERBS, Word("被"), PEOPLE, VERBS, Word("了")],
    &[
        Word("如果"),
        PEOPLE,
        VERBS,
        Word("了"),
        THINGS,
        Word("我们"),
        Word("就"),
        VERBS,
        SHAPED,
        Word("的"),
        THINGS,
    ],
];

/// The language of this script.
pub(super) const LANGUAGE: Language = Language { gap: "", stop: "。", sentences: &SENTENCES };

"""Writes texts.json: 200 texts on which tokenizers are compared. Seeded; no text is from anywhere.

Usage: python3 make_texts.py texts.json
"""
import json
import random
import sys

WRITTEN = [
    # Empty, spaces, line ends.
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r\n\r\n", " \n ", "\n \n  \n", "a ", " a",
    "  a", "a  b", "a   b    c", "a\tb", "a\t\tb", "\ta", "a\n", "a\nb", "a\n\nb", "a\n\n\nb",
    "a \n b", "a\r\nb", "trailing   ", "trailing\n  ", "   leading", "mixed \t \n\t end",
    "no\u00a0break\u00a0space", "thin\u2009space \u3000 wide", "line\u2028sep\u2029par", "x\u0085y",
    "zero\u200bwidth\u200djoin", "\ufeffbom", " " * 37, "\n" * 19, "\t" * 11, " \t" * 9, "a" + " " * 64 + "b",
    # Words, contractions, case.
    "Hello world", "hello, world!", "It's what I'd've said; they'll say we're done, isn't it?",
    "IT'S WHAT I'D'VE SAID; THEY'LL SAY WE'RE DONE", "'s 't 're 've 'm 'll 'd", "'S'T'RE'VE'M'LL'D",
    "don\u2019t won\u2019t", "rock'n'roll 'tis 'twas", "'\u017ft", "O'Reilly's", "''''", "a'b'c'd",
    "The quick brown fox jumps over the lazy dog.", "camelCaseAndPascalCase snake_case kebab-case",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "Dear team, my card was charged twice on 3 May. Please refund order #48-1177. Thanks, J.",
    # Digits.
    "0", "7", "42", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000.00", "-5 +7 1e-9",
    "2024-02-29T23:59:59Z", "192.168.0.1:8080", "0x1F4A9 0b1011 0o17", "v1.2.3-rc.4+build.5",
    "1st 2nd 3rd 4th", "a1b22c333d4444", "\u00bd \u00b2\u00b3 \u2160\u216b \u2460", "\u0661\u0662\u0663\u0664 \u0967\u0968\u0969",
    "\uff11\uff12\uff13", "10 000 000", " 1 22 333 4444", "$12.50 \u20ac9,99 \u00a53000 50%",
    # Punctuation and symbols.
    "!@#$%^&*()_+-=[]{}|;':\",./<>?", "...", "\u2026\u2014\u2013\u2022\u00b7", "?!?!?!", "(a)[b]{c}<d>", "\"quoted\" 'single' `tick`",
    "a/b\\c|d", "\u00ab guillemets \u00bb \u201equotes\u201c", "\u2192\u2190\u2191\u2193 \u2200x\u2208\u211d \u2211\u222b\u221a\u221e \u2260\u2264\u2265",
    "!\n!\n\n!", "###\n\n---\n***", "a.b.c.d", "---------------------", "====\n====", "%%%% ;;;; ,,,,", "~~~ ^^^ |||",
    # Scripts.
    "Gr\u00fc\u00dfe aus K\u00f6ln, \u00c4rger und \u00d6l", "\u00e7a va d\u00e9j\u00e0 vu na\u00efve \u0153uvre", "ma\u00f1ana ping\u00fcino \u00bfqu\u00e9?",
    "Za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144", "P\u0159\u00edli\u0161 \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u039a\u03cc\u03c3\u03bc\u03b5", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u4f60\u597d\uff0c\u4e16\u754c\uff01", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", "Xin ch\u00e0o th\u1ebf gi\u1edbi", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u0532\u0561\u0580\u0565\u0582", "\u1230\u120b\u121d", "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd \u0c24\u0c46\u0c32\u0c41\u0c17\u0c41 \u09ac\u09be\u0982\u09b2\u09be",
    "\u13a0\u13b4\u13a2 \u16a0\u16a2\u16a6", "\U00010330\U00010331 \U0001d400\U0001d401 \U00020000\U00020001", "mixed \u4e2d\u6587 and English \u0438 \u0440\u0443\u0441\u0441\u043a\u0438\u0439",
    # Combining marks, presentation forms.
    "e\u0301 o\u0308 n\u0303", "a\u0300\u0301\u0302\u0303\u0304", "Z\u0351\u036b\u0343a\u0328l\u0334g\u0321o\u0489", "\u0301alone", "\u1112\u1161\u11ab", "\ufb01 \ufb02 \uff28\uff45\uff4c\uff4c\uff4f", "\u212b \u2126 K",
    # Emoji.
    "\U0001f600", "hi \U0001f600\U0001f602\U0001f923", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "\U0001f44d\U0001f3fd ok \u2764\ufe0f \u2714\ufe0e", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
    "\u2603\ufe0f\u26a1 5\ufe0f\u20e3",
    # Code.
    "fn main() {\n    println!(\"{}\", 1 + 1);\n}\n", "def f(x):\n\treturn x**2  # square\n", "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    "SELECT * FROM t WHERE a >= 10 AND b LIKE '%x%';", "<div class=\"a b\">\n  <p>text &amp; more</p>\n</div>", "{\"a\": [1, 2.5, null, true], \"b\": {\"c\": \"d\\n\"}}",
    "if (x != y && !z || w) return;", "#include <stdio.h>\r\n", "\\frac{a}{b} \\sum_{i=0}^{n} x_i", "https://example.org/a/b?c=d&e=f#g", "user.name+tag@example.org",
    "C:\\Users\\x\\file.txt /usr/local/bin", "a = b ? c : d;  // note\n\n\n    e();", "\t\tif x:\n\t\t\tpass\n", "x=>y->z::w..v", "let s = r#\"raw \"q\" str\"#;",
    # Control strings as text.
    "<|im_start|>user\nhi<|im_end|>\n", "<|im_end|>", "<|endoftext|>", "a<|endoftext|>b", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
    "<s>[INST] hi [/INST]</s>", "<bos><start_of_turn>user\nhi<end_of_turn>", "<unk><pad><eos>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<0x0A><0x41>",
    "<tool_call>{}</tool_call>", "<think>\n\n</think>", "< |im_end| >", "<|im_end|", "[PAD151650] [UNK] [CLS]", "<repo_name>x<file_sep>y", "<|object_ref_start|><|box_end|>", "<jupyter_start><gh_stars>",
    # Look-alikes of the vocabulary's own marks.
    "\u2581", "a\u2581b \u2581\u2581", "\u0120hello\u010a", "\u00c3\u00a9", "\u0000", "a\u0000b", "\u0001\u001f\u007f\u009f", "\ue000\uf8ff", "\ufffd\ufffe", "\U0010fffd",
]

PIECES = [
    "invoice", "the", "\u043c\u0438\u0440", "\u4e16\u754c", "caf\u00e9", "42", "2024", "'s", "...", "\n", "\n\n", "  ", "\t", "\U0001f600", "e\u0301", "<|im_end|>",
    "=>", "()", "_x", "A", "refund", "URGENT", "\u0939\u093f", "\r\n", "1,5", "\u00a0", "$", "\"", "don't", "#3", "\u2581", ";",
]


def main():
    rng = random.Random(20261)
    texts = list(WRITTEN)
    while len(texts) < 196:
        count = rng.randint(2, 14)
        glue = [rng.choice(["", " ", " ", "  "]) for _ in range(count)]
        texts.append("".join(rng.choice(PIECES) + space for space in glue))
    words = ["state", "queue", "tenant", "order", "paid", "twice", "late", "since", "Monday", "why"]
    texts.append(" ".join(rng.choice(words) for _ in range(700)))
    texts.append("\n".join(f"{i}. {rng.choice(words)}: {rng.randint(0, 99999)}" for i in range(150)))
    texts.append("".join(chr(rng.choice([rng.randint(0x20, 0x7e), rng.randint(0xa0, 0x17f), rng.randint(0x400, 0x45f), rng.randint(0x4e00, 0x9fa5)])) for _ in range(600)))
    texts.append("a" * 500 + "1" * 50 + "!" * 50)
    assert len(texts) == 200, len(texts)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        rows = [json.dumps(text, ensure_ascii=True) for text in texts]
        file.write("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()

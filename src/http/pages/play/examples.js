// Ready drafts: those of the four formats' own documents, and one for each thing that docket does.

const TICKET = "I was charged twice for March and nobody answers. The refund that you promised on the phone never came. "
  + "Fix it today or I take the money back through my bank.";

const INVOICE = `INVOICE 2026-0417
Nordwind Office Supplies
Customer: Amara Diallo, Lindenweg 4

12 desk lamps at 39.90 EUR
3 standing desks at 412.00 EUR
Discount for returning customers: 5 %
Total due: 1,629.06 EUR

Please pay within 30 days of receipt. After that we charge 9 % interest a year.
Goods that arrive damaged are replaced free of charge if you tell us within a week.`;

const INCIDENT = JSON.stringify({
  service: "checkout",
  started: "09:42",
  symptoms: ["p99 latency from 180 ms to 4.1 s", "error rate 11 %"],
  last_deploy: "09:35, payment client 4.2.0",
  customers_affected: 1840,
}, null, 2);

const POLICY = `Returns. Customers may return goods within 30 days of delivery. Goods must be unused and in their packaging. Refunds go to the card that paid.
Exchanges. An exchange for another size is free once per order. Further exchanges cost the postage.
Warranty. Electronic goods have a warranty of two years. It covers faults of material and of workmanship, and neither drops nor water.
Exceptions. Underwear, opened software and vouchers cannot be returned. Goods on sale may be returned for store credit only.
Case. The customer bought headphones on sale 12 days ago. One side went silent yesterday. The packaging is gone. She asks for her money back.`;

const noul = (id, instructions, more = {}) => ({ id, type: "noul", instructions, ...more });
const choice = (id, instructions, options, more = {}) => ({
  id, type: "choice", instructions, options: Object.entries(options).map(([key, note]) => ({ key, note })), ...more,
});
const score = (id, instructions, levels, more = {}) => ({ id, type: "score", instructions, levels, ...more });

const FEATURES = [
  ["ticket", "A support ticket", {
    kind: "text", state: TICKET,
    questions: [
      choice("team", "Which team should answer?", { billing: "payments, refunds, invoices", shipping: "parcels and delivery", technical: "faults of the product" }),
      noul("refund", "Is the customer asking for money back?"),
      score("anger", "How angry is the customer?", ["calm", "annoyed", "angry", "furious"]),
    ],
  }],
  ["json", "A state in JSON", {
    kind: "json", state: INCIDENT,
    questions: [
      noul("rollback", "Should the last deploy be rolled back?", { yes: "it probably caused this", no: "the cause is elsewhere" }),
      score("severity", "How severe is the incident?", ["cosmetic", "a few users", "many users", "everything is down"]),
    ],
  }],
  ["extract", "Numbers, passages, citations", {
    kind: "text", state: INVOICE,
    questions: [
      { id: "total", type: "number", instructions: "What is the total that is due?", min: "0", precision: "0.01" },
      { id: "deadline", type: "excerpt", instructions: "By when must it be paid?" },
      noul("interest", "Is there interest on late payment?", { cite: true }),
    ],
  }],
  ["stages", "Questions that wait for others", {
    kind: "text", state: TICKET,
    questions: [
      choice("team", "Which team should answer?", { billing: "", shipping: "", technical: "" }),
      noul("refund", "Is a refund due?", { askIf: [{ id: "team", answers: ["billing"] }] }),
      noul("lost", "Was a parcel lost?", { askIf: [{ id: "team", answers: ["shipping"] }] }),
      score("priority", "How soon must it be answered?", ["this week", "today", "within the hour"], { dependsOn: ["team"] }),
    ],
    how: { stageContext: true },
  }],
  ["orders", "Several orders of the options", {
    kind: "text", state: TICKET,
    questions: [
      choice("tone", "What tone should the answer have?", { apologetic: "", factual: "", firm: "", friendly: "" }, { samples: "4" }),
      choice("channel", "By which channel should we answer?", { mail: "", phone: "", letter: "" }),
    ],
    how: { samples: "auto", threshold: "0.3", most: "6" },
  }],
  ["prewarm", "A state read ahead", {
    kind: "text", state: POLICY,
    questions: [
      choice("remedy", "What should we offer?", { refund: "money back", credit: "store credit", repair: "repair or replacement under warranty", nothing: "" }),
      noul("warranty", "Is this covered by the warranty?"),
      noul("return", "May she return them?"),
    ],
  }],
  ["lane", "A lane and a time limit", {
    kind: "text", state: "Nightly import: 18,204 rows read, 31 rejected, 0 written to the ledger.",
    questions: [noul("page", "Should somebody be woken up?"), score("health", "How healthy is the import?", ["broken", "degraded", "fine"])],
    how: { lane: "urgent", timeout: "2000", context: "You judge reports of nightly jobs. Ledgers that stay empty are serious." },
  }],
];

const FORMATS = [
  ["self", "self: a ticket with its tier", {
    dialect: "self", kind: "json", state: JSON.stringify({ message: "I was charged twice for the same order.", customer_tier: "pro" }, null, 2),
    questions: [
      choice("department", "Which department should handle this?", { billing: "Payments and refunds", technical: "Technical problems" }),
      score("urgency", "How urgently should this ticket be handled?", ["Low: routine request with no immediate impact", "Medium: customer affected, but a workaround exists", "High: customer blocked or money at risk"]),
      noul("refund_required", "Does this likely require a refund?"),
    ],
  }],
  ["decisio", "decisio: bare option names", {
    dialect: "decisio", kind: "text", state: "My card keeps getting declined when I renew.",
    questions: [choice("category", "Which team should handle this ticket?", { billing: "", access: "", bug: "" })],
  }],
  ["vllm", "vLLM: one choice", {
    dialect: "vllm", kind: "json", state: JSON.stringify({ ticket: "My card was charged twice for one order." }, null, 2),
    questions: [choice("team", "Which team should handle this ticket?", { billing: "payments and refunds", shipping: "deliveries", security: "account access" })],
    how: { instructions: "You sort tickets of an online shop." },
  }],
  ["gmlx", "gmlx: a refund if it is billing", {
    dialect: "gmlx", kind: "text", state: "Everything is down and we have a demo at noon.",
    questions: [
      choice("team", "Which team?", { billing: "Charges", infra: "Outages" }),
      noul("refund", "Is a refund due?", { askIf: [{ id: "team", answers: ["billing"] }] }),
      score("urgency", "How urgent is it?", ["low", "medium", "high"]),
    ],
  }],
  ["openai", "OpenAI: a decision", {
    dialect: "openai", kind: "text", state: "The parcel is late.",
    questions: [
      noul("late", "Is it late?"),
      choice("team", "Who should answer?", { billing: "", shipping: "" }),
      score("anger", "How angry is the writer?", ["calm", "cross", "furious"]),
    ],
  }],
];

// [{ label, examples: [[key, name, draft]] }] for those dialects that the server has.
export function examples(dialects) {
  const has = ([, , draft]) => (draft.dialect || "systemone") in dialects;
  const own = FEATURES.map(([key, name, draft]) => [key, name, { dialect: "systemone", ...draft }]);
  return [
    { label: "What it does", examples: own.filter(has) },
    { label: "Formats it speaks", examples: FORMATS.filter(has) },
  ];
}

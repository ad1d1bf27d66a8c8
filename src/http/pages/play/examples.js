// Drafts that are ready to ask: one for each thing that a decision can do.

import { emptyDraft } from "./draft.js";

const TICKET = `Subject: Charged twice for March
From: dana@example.com

I was charged 49.90 twice on 3 March. Your chat promised a refund within five days; that was two weeks ago.
I have the statement here: two charges, same minute.
If the money is not back by Friday I will dispute the charge with my bank and cancel all twelve seats.`;

const ORDER = `{
  "order": "A-20117",
  "placed": "2026-11-18",
  "items": [
    {"sku": "lamp-7", "count": 2, "price": 39.50},
    {"sku": "bulb-e14", "count": 6, "price": 3.20}
  ],
  "note": "Please leave it with the neighbour at number 12, I am away until Thursday.",
  "total": 98.20
}`;

const INCIDENT = `14:02 checkout answers 502 for one in five requests
14:04 payments pod restarted twice, out of memory
14:09 limit raised from 512 MiB to 1 GiB, error rate falls
14:15 error rate 0.1 %, queue of 340 orders is worked off
14:40 all orders charged once, no customer wrote in`;

const TRIAGE = [
  { id: "refund", type: "noul", instructions: "Is the customer asking for money back?", criteria: "" },
  { id: "team", type: "choice", instructions: "Who should take this ticket?",
    criteria: "billing: invoices, charges and refunds\nshipping: parcels and addresses\naccounts: seats, logins and plans" },
  { id: "anger", type: "score", instructions: "How upset is the customer?", criteria: "calm\nannoyed\nangry\nfurious" },
];

function example(name, draft) {
  return { name, draft: { ...emptyDraft(), ...draft } };
}

export const EXAMPLES = [
  example("Support ticket: three questions", { state: TICKET, questions: TRIAGE }),
  example("Yes or no, with criteria", { state: TICKET, questions: [
    { id: "churn", type: "noul", instructions: "Is this customer about to leave?",
      criteria: "true: says that they will cancel or go elsewhere\nfalse: complains, but stays" }] }),
  example("One of several options", { state: INCIDENT, questions: [
    { id: "cause", type: "choice", instructions: "What was the cause?",
      criteria: "memory: a limit that was too low\nnetwork\nrelease: a faulty change\nload: too many customers" }] }),
  example("A level on a scale", { state: INCIDENT, questions: [
    { id: "severity", type: "score", instructions: "How bad was it for customers?",
      criteria: "nobody noticed\nsome waited\nmany failed\nmoney was lost" }] }),
  example("A number that the text states", { state: TICKET, questions: [
    { id: "charged", type: "number", instructions: "How much was charged each time?", criteria: "min: 0\nprecision: 0.01" },
    { id: "seats", type: "number", instructions: "How many seats does the customer have?", criteria: "" }] }),
  example("A passage of the text", { state: INCIDENT, questions: [
    { id: "fix", type: "excerpt", instructions: "What ended the problem?", criteria: "" }] }),
  example("Citations", { state: TICKET, questions: [
    { id: "threat", type: "noul", instructions: "Does the customer threaten a chargeback?", criteria: "", cite: true }] }),
  example("JSON as state", { kind: "json", state: ORDER, questions: [
    { id: "neighbour", type: "noul", instructions: "May the parcel be left with somebody else?", criteria: "" },
    { id: "house", type: "number", instructions: "What is the neighbour's house number?", criteria: "" }] }),
  example("Stages: ask only where it matters", { state: TICKET, settings: { stage_context: true }, questions: [
    TRIAGE[1], { ...TRIAGE[0], ask_if: "team = billing" },
    { id: "parcel", type: "noul", instructions: "Is a parcel lost?", criteria: "", ask_if: "team = shipping" }] }),
  example("Many orders of the options", { state: TICKET, settings: { samples: "6" }, questions: [TRIAGE[1]] }),
  example("Urgent lane, with a time limit", { state: TICKET, questions: [TRIAGE[0]],
    headers: { "x-docket-priority": "urgent", "x-docket-timeout-ms": "20000" } }),
  example("decisio's dialect", { dialect: "decisio", state: TICKET, questions: TRIAGE }),
  example("self's dialect", { dialect: "self", state: TICKET, questions: TRIAGE }),
  example("vLLM's dialect", { dialect: "vllm", state: TICKET, questions: TRIAGE }),
  example("gmlx's dialect: an answer opens the next question", { dialect: "gmlx", state: TICKET, questions: [
    TRIAGE[1], { ...TRIAGE[0], ask_if: "team = billing" }] }),
];

// The answers of all dialects in one form, which is what is drawn.
//
// { id, type, asked, headline, isNone, probability, confidence, bars, scale, context, passages, citations,
//   diagnostics, skipped }, where bars are [{ label, note, value, isChosen }].

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function noul(given) {
  const yes = given.noul ?? given.probability;
  const isYes = yes >= 0.5;
  const bars = [
    { label: "yes", value: yes, isChosen: isYes },
    { label: "no", value: 1 - yes, isChosen: !isYes },
  ];
  return { headline: isYes ? "Yes" : "No", probability: isYes ? yes : 1 - yes, bars };
}

function choice(given, asked) {
  const pairs = Array.isArray(given.probabilities)
    ? given.probabilities.map((one) => [String(one.value), one.probability])
    : Object.entries(given.probabilities || {});
  const notes = new Map(asked.options.map((option) => [option.key, option.note]));
  const chosen = String(given.choice);
  const bars = pairs.map(([label, value]) => ({ label, note: notes.get(label) || "", value, isChosen: label === chosen }));
  bars.sort((one, other) => other.value - one.value || Number(other.isChosen) - Number(one.isChosen));
  const probability = (bars.find((bar) => bar.isChosen) || {}).value;
  const isAbstained = given.abstained === true;
  return { headline: isAbstained ? "Abstained" : chosen, isNone: isAbstained, probability, bars };
}

function score(given, asked) {
  const pairs = Array.isArray(given.probabilities)
    ? given.probabilities.map((one) => [one.value, one.label, one.probability])
    : Object.entries(given.probabilities || {}).map(([level, value]) => [Number(level), null, value]);
  const legend = given.legend || {};
  const named = (level, label) => String(label ?? legend[level] ?? asked.levels[level] ?? level);
  const best = pairs.reduce((most, [, , value]) => Math.max(most, value), 0);
  const bars = pairs.map(([level, label, value]) => ({ label: named(level, label), level, value, isChosen: value === best }));
  const scale = { value: given.score, most: Math.max(1, bars.length - 1) };
  return { headline: given.score.toFixed(2), of: `of ${bars.length - 1}`, scale, bars };
}

function number(given) {
  const bars = (given.candidates || []).map((one) => ({
    label: String(one.value), context: one.context, value: one.probability, isChosen: one.value === given.value,
  }));
  bars.push({ label: "not stated", value: given.not_stated, isChosen: given.value === null });
  bars.sort((one, other) => Number(other.isChosen) - Number(one.isChosen) || other.value - one.value);
  const isNone = given.value === null;
  return { headline: isNone ? "Not stated" : String(given.value), isNone, probability: given.probability, bars };
}

function excerpt(given) {
  const isNone = given.text === null || given.text === undefined;
  const passages = isNone ? [] : given.parts || [{ text: given.text, start: given.start, end: given.end }];
  const stated = isNumber(given.not_stated) ? given.not_stated : 1 - given.probability;
  const bars = [
    { label: "this passage", value: isNone ? 0 : given.probability, isChosen: !isNone },
    { label: "not stated", value: stated, isChosen: isNone },
  ].slice(isNone ? 1 : 0);
  return { headline: isNone ? "Not stated" : null, isNone, probability: given.probability, passages, bars };
}

const READ = { noul, predicate: noul, choice, score, number, excerpt };

function skip(because) {
  const was = because.was === null || because.was === undefined ? "was not asked" : `was “${because.was}”`;
  const wanted = (because.wanted || []).map((each) => `“${each}”`).join(" or ");
  return `Not asked: ${because.because} ${was}${wanted ? `, and this is for ${wanted}` : ""}.`;
}

function diagnosed(given, body, id) {
  const found = { ...(given && given.x_diagnostics), ...(body.diagnostics && body.diagnostics[id]) };
  const whole = body.diagnostics;
  if (whole && whole.readout && isNumber(whole.orderings)) found.orders ??= whole.orderings;
  return found;
}

function one(id, given, body, asked) {
  const base = { id, type: asked.type, asked, bars: [], passages: [], citations: [], confidence: null, diagnostics: {} };
  const because = given && given.type === "skipped" ? given
    : given === null ? { because: "another answer", ...((body.diagnostics || {}).skipped || {})[id] } : null;
  if (because) return { ...base, skipped: skip(because) };
  const read = READ[given.type];
  if (!read) return { ...base, headline: `An answer of the type ${given.type}`, isNone: true };
  return {
    ...base,
    ...read(given, asked),
    confidence: isNumber(given.confidence) ? given.confidence : null,
    citations: given.x_citations || given.citations || [],
    diagnostics: diagnosed(given, body, id),
  };
}

// The views of an answer to `questions`, in the order in which they were asked.
export function views(body, questions) {
  const given = body.answers || {};
  if (Array.isArray(given)) return given.map((each, index) => one(each.name || `question ${index + 1}`, each, body, questions[index]));
  const known = questions.filter((asked) => asked.id in given);
  return known.map((asked) => one(asked.id, given[asked.id], body, asked));
}

// All of it in a sentence, for who listens.
export function spoken(list) {
  return list.map((view) => {
    if (view.skipped) return `${view.id}: not asked.`;
    const what = view.headline ?? "a passage";
    const sure = view.scale || view.probability === undefined ? "" : `, ${(view.probability * 100).toFixed(0)} percent`;
    return `${view.id}: ${what}${view.of ? ` ${view.of}` : ""}${sure}.`;
  }).join(" ");
}

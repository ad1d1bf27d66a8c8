// How the whole request is asked: lane, time, orders, what the prompts say ahead of the state.

import { area, at, check, field, h, select } from "./dom.js";
import { LANES } from "./model.js";

// `page` is { draft, takes(), changed(), redraw() }.
export function options(page) {
  const holder = at("how");
  const told = at("how-told");

  function write(key) {
    return (event) => {
      const { target } = event;
      page.draft.how[key] = target.type === "checkbox" ? target.checked : target.value;
      page.changed();
      summarise();
    };
  }

  function input(key, placeholder) {
    return h("input", { value: page.draft.how[key], placeholder, autocomplete: "off", oninput: write(key) });
  }

  function parts() {
    const { how } = page.draft;
    const { fields, hasInstructions, laneInBody } = page.takes();
    const has = (key) => key in fields;
    const limit = fields.timeout_ms && fields.timeout_ms.maximum;
    return [
      field("Lane", select({ onchange: write("lane") }, [["", "as the server says"], ...LANES.map((lane) => [lane, lane])], how.lane),
        laneInBody ? "Who waits for whom: urgent goes first." : "Sent as the header x-docket-priority."),
      field("Time limit in ms", input("timeout", "as the server says"), limit ? `At most ${limit.toLocaleString("en")}.` : null),
      has("samples") ? field("Orders to read", input("samples", "as the model's profile says"), "A number from 1, or auto.") : null,
      has("auto_threshold") ? field("One more order above", input("threshold", "0.1 nats"), "Entropy of the average so far; not beside a number of orders.") : null,
      has("auto_max") ? field("At most orders", input("most", "4")) : null,
      has("profile") ? field("Profile", input("profile", "the model's own")) : null,
      has("context") ? field("Context", area({ value: how.context, placeholder: "what the prompts say ahead of the state", oninput: write("context") }), null, "wide") : null,
      hasInstructions ? field("Instructions", area({ value: how.instructions, placeholder: "a text ahead of the state", oninput: write("instructions") }), null, "wide") : null,
      has("diagnostics") ? check("Diagnostics", { checked: how.diagnostics, onchange: write("diagnostics") }, "label mass, orders, entropy") : null,
      has("stage_context") ? check("Show earlier answers", { checked: how.stageContext, onchange: (event) => {
        write("stageContext")(event);
        page.redraw();
      } }, "to the questions that wait for them") : null,
      has("state_text") ? check("State as the model read it", { checked: how.stateText, onchange: write("stateText") }, "in which offsets count") : null,
    ];
  }

  function summarise() {
    const { how } = page.draft;
    const { fields, hasInstructions } = page.takes();
    const has = (key) => key in fields;
    const set = [
      how.lane ? `lane ${how.lane}` : "",
      how.timeout.trim() ? `${how.timeout.trim()} ms` : "",
      has("samples") && how.samples.trim() ? `orders ${how.samples.trim()}` : "",
      has("auto_threshold") && how.threshold.trim() ? `more above ${how.threshold.trim()} nats` : "",
      has("auto_max") && how.most.trim() ? `at most ${how.most.trim()} orders` : "",
      has("context") && how.context.trim() ? "context" : "",
      hasInstructions && how.instructions.trim() ? "instructions" : "",
      has("profile") && how.profile.trim() ? `profile ${how.profile.trim()}` : "",
      has("stage_context") && how.stageContext ? "earlier answers shown" : "",
    ].filter(Boolean);
    told.textContent = set.length ? set.join(" · ") : "as the server says";
  }

  function draw() {
    holder.replaceChildren(...parts().filter(Boolean));
    summarise();
  }

  return { draw };
}

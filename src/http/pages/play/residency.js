// Whether the state is resident: what a prewarm left, until when it is kept, and what giving it up did.

import { at, count, h } from "./dom.js";

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en", { hour12: false });

function left(seconds) {
  const rest = Math.max(0, Math.round(seconds - Date.now() / 1000));
  return rest >= 60 ? `${Math.floor(rest / 60)} min ${rest % 60} s` : `${rest} s`;
}

const NOT_KEPT = {
  pending: "It will be read later.",
  off: "It is not kept: there is no room for keys and values of its size, or none is configured.",
  unsupported: "It is not kept: this engine keeps nothing.",
};

// `call(method, request)` asks the server, with a key where it wants one.
export function residency(call) {
  const holder = at("residency");
  let shown = null;
  let estimatedFor = null;
  let timer = 0;

  function line(state, title, parts) {
    holder.className = `residency ${state}`;
    holder.replaceChildren(h("span", { class: "dot", "aria-hidden": "true" }), h("p", {}, h("strong", {}, title), ...parts));
  }

  function idle() {
    clearInterval(timer);
    [shown, estimatedFor] = [null, null];
    line("none", "Not prewarmed.", [" Prewarm reads the state ahead; a question then computes only its own tokens."]);
  }

  async function release() {
    const { takes, body: { handle } } = shown;
    const gone = await call("DELETE", { path: `${takes.prewarm}/${handle}` }).catch(() => null);
    idle();
    const isGiven = gone && (gone.ok || gone.status === 404);
    line("none", isGiven ? "The pin is given up." : "The pin could not be given up.", [isGiven ? " The state may stay until its room is needed." : ""]);
  }

  function releaser() {
    const isPinned = shown && shown.body.handle;
    return isPinned ? h("button", { type: "button", class: "link", onclick: release }, "Release") : "";
  }

  function draw() {
    estimatedFor = null;
    const { body, isOld } = shown;
    const { prefix } = body;
    if (prefix.tier !== "exact") {
      line("none", "Not resident.", [` ${NOT_KEPT[prefix.tier] || prefix.tier}`]);
      return;
    }
    const ago = prefix.reused ? "was resident already" : "read just now";
    const until = body.expires_at ? `, kept until ${clock(body.expires_at)}` : "";
    const rest = h("span", { class: "small" });
    const parts = [` ${count(body.prompt_tokens, "token")}, ${ago}${until}`, rest, ". ", releaser()];
    line(isOld ? "old" : "resident", isOld ? "An earlier state is resident." : "Resident.", parts);
    const tick = () => { rest.textContent = ` (${left(body.expires_at)})`; };
    clearInterval(timer);
    if (body.expires_at) {
      tick();
      timer = setInterval(tick, 1000);
    }
  }

  return {
    idle,
    // After a prewarm that was answered.
    keep(body, takes, text) {
      shown = { body, takes, text, isOld: false };
      draw();
    },
    busy() {
      clearInterval(timer);
      line("busy", "Reading the state.", []);
    },
    failed() {
      if (shown) draw();
      else idle();
    },
    // After the draft has changed: `text` is what a prewarm would send now.
    compare(text) {
      const wasEstimated = estimatedFor !== null && estimatedFor !== text;
      if (!shown) {
        if (wasEstimated) idle();
        return;
      }
      if (!wasEstimated && shown.isOld === (shown.text !== text)) return;
      shown.isOld = shown.text !== text;
      draw();
    },
    // What an estimate says of the state that is drafted, for which a prewarm would send `text`.
    estimated(body, text) {
      clearInterval(timer);
      estimatedFor = text;
      const wait = body.admitted ? `waits ${Math.round(body.wait_ms)} ms` : `would be refused (${body.reason})`;
      const engine = body.engine_ms === null ? "" : `, and runs about ${Math.max(1, Math.round(body.engine_ms))} ms`;
      const isWhole = body.cached_tokens >= body.prefix_tokens;
      line(isWhole ? "resident" : "none", `${body.cached_tokens} of ${count(body.prefix_tokens, "token")} ahead of the questions are resident.`,
        [` Asked now, it computes ${count(body.computed_tokens, "token")}, ${wait}${engine}. `, releaser()]);
    },
  };
}

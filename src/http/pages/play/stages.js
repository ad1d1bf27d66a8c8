// Which questions wait for which: conditions on answers, and answers that a question is shown.

import { check, fresh, h, select } from "./dom.js";
import { answerNames } from "./model.js";

const others = (page, asked) => page.draft.questions.filter((each) => each !== asked && each.id !== "");

// Draws anew once the names of other questions and of their answers are not those that were drawn; not
// while it is being used.
function follow(page, asked, holder, draw) {
  const names = () => JSON.stringify(others(page, asked).map((each) => [each.id, answerNames(each)]));
  let drawn = names();
  page.waiting.push(() => {
    if (names() === drawn || holder.contains(document.activeElement)) return;
    drawn = names();
    draw();
  });
}

// Asked only where each of these questions was answered so.
export function conditions(page, asked, told) {
  const holder = h("div", { class: "conditions" });
  const changed = () => {
    page.changed();
    told();
  };
  const answers = (one) => {
    const other = page.draft.questions.find((each) => each.id === one.id);
    const names = [...new Set([...(other ? answerNames(other) : []), ...one.answers])];
    return h("div", { class: "chips", role: "group", "aria-label": `Answers of ${one.id || "the question"}` }, names.map((name) => {
      const id = fresh("chip");
      const box = h("input", { type: "checkbox", id, checked: one.answers.includes(name), onchange: () => {
        one.answers = box.checked ? [...one.answers, name] : one.answers.filter((each) => each !== name);
        changed();
      } });
      return h("span", { class: "chip" }, box, h("label", { for: id }, name));
    }));
  };
  const draw = () => {
    const choices = others(page, asked).filter((each) => answerNames(each).length).map((each) => [each.id, each.id]);
    const known = (id) => (choices.some(([each]) => each === id) || id === "" ? choices : [...choices, [id, id]]);
    holder.replaceChildren(
      h("span", { class: "label" }, "Asked only if"),
      ...asked.askIf.map((one, index) => h("div", { class: "condition" },
        select({ "aria-label": `Condition ${index + 1}: question`, onchange: (event) => {
          [one.id, one.answers] = [event.target.value, []];
          draw();
          changed();
        } }, [["", "choose a question"], ...known(one.id)], one.id),
        h("span", {}, "was"), answers(one),
        h("button", { type: "button", class: "icon", "aria-label": `Remove condition ${index + 1}`, title: "Remove", onclick: () => {
          asked.askIf.splice(index, 1);
          draw();
          changed();
          holder.querySelector("button.link")?.focus();
        } }, "×"))),
      choices.length ? h("button", { type: "button", class: "link", onclick: () => {
        asked.askIf.push({ id: choices[0][0], answers: [] });
        draw();
        changed();
        holder.querySelector(".condition:last-of-type select")?.focus();
      } }, "Add a condition") : h("p", { class: "hint" }, "There is no other question to wait for."));
  };
  draw();
  follow(page, asked, holder, draw);
  return holder;
}

// Asked after these, and shown their answers.
export function dependencies(page, asked, told) {
  const holder = h("div", { class: "conditions", role: "group", "aria-label": "Shown the answers of" });
  const draw = () => holder.replaceChildren(h("span", { class: "label" }, "Shown the answers of"), h("div", { class: "chips" },
    others(page, asked).map((each) => check(each.id, {
      checked: asked.dependsOn.includes(each.id),
      onchange: (event) => {
        const rest = asked.dependsOn.filter((id) => id !== each.id);
        asked.dependsOn = event.target.checked ? [...rest, each.id] : rest;
        page.changed();
        told();
      },
    }))));
  draw();
  follow(page, asked, holder, draw);
  return holder;
}

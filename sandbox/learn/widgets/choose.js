// One question, one program, some answers.

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "choose", `Question ${start.id}`);
  const live = announcer();
  const buttons = start.options.map((text, place) =>
    el(
      "button",
      { type: "button", className: "ae-option", onclick: () => choose(place) },
      el("span", { className: "ae-letter" }, `${String.fromCharCode(97 + place)})`),
      el("span", { className: "ae-text" }, text),
    ),
  );
  root.append(
    el("p", { className: "ae-question" }, ...rich(start.question)),
    el("pre", { className: "ae-code", tabIndex: 0, role: "group", "aria-label": "the program" }, start.code),
    el("div", { className: "ae-options", role: "group", "aria-label": "answers" }, ...buttons),
    live.node,
  );

  function choose(place) {
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === place)));
    live.say("", "running the program …");
    act(model, "answer", place);
  }

  return follow(model, (state) => {
    buttons.forEach((button, place) => {
      const chosen = place === state.chosen;
      button.setAttribute("aria-pressed", String(chosen));
      button.classList.toggle("ae-is-right", chosen && state.verdict === "right");
      button.classList.toggle("ae-is-not-yet", chosen && state.verdict === "not yet");
    });
    live.say(state.problem ? "" : state.verdict, state.problem || state.message);
  });
}

export default { render };

// A program with gaps to type into; the completed program is run.

function render({ model, el: host }) {
  const start = model.get("state");
  const root = frame(host, "gap", `Gaps ${start.id}`);
  const live = announcer();
  const inputs = start.filled.map((text, place) =>
    el("input", {
      type: "text",
      className: "ae-gap-input",
      value: text,
      "aria-label": `gap ${place + 1} of ${start.filled.length}`,
      autocomplete: "off",
      autocapitalize: "off",
      spellcheck: false,
      oninput: (event) => {
        typedSince = true;
        fit(event.target);
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && !event.isComposing && !event.shiftKey && !event.ctrlKey) {
          event.preventDefault(); // the notebook has keys with Enter, too
          check();
        }
      },
      onpaste: (event) => {
        // The browser would join the lines into one without a word.
        if (!/[\r\n]/.test(event.clipboardData.getData("text").trim())) return;
        event.preventDefault();
        live.say("", "A gap is for one line of code, and what you pasted has more. Nothing was changed.");
      },
    }),
  );
  const code = el("div", { className: "ae-code", role: "group", "aria-label": "the program" });
  start.parts.forEach((part, place) => code.append(part, ...(inputs[place] ? [inputs[place]] : [])));
  root.append(
    el("p", { className: "ae-question" }, ...rich(start.question)),
    code,
    el("div", { className: "ae-row" }, el("button", { type: "button", onclick: check }, "Check"), how()),
    live.node,
  );
  inputs.forEach(fit);
  let typedSince = false; // what is being typed while the kernel answers stays

  function how() {
    return el("p", { className: "ae-quiet" }, "Enter in a gap checks as well: the program is run with what you typed.");
  }
  function fit(input) {
    input.style.width = `${Math.max(input.value.length, 6) + 3}ch`;
  }
  function check() {
    typedSince = false;
    live.say("", "running the program …");
    act(model, "answer", ...inputs.map((input) => input.value));
  }
  function output(title, text) {
    return text ? [el("div", { className: "ae-printed" }, title, el("pre", {}, text))] : [];
  }

  let filled = JSON.stringify(start.filled);
  return follow(model, (state) => {
    if (!typedSince && JSON.stringify(state.filled) !== filled) {
      inputs.forEach((input, place) => {
        if (input.value !== state.filled[place]) input.value = state.filled[place];
        fit(input);
      });
    }
    filled = JSON.stringify(state.filled);
    if (state.problem) return live.say("", state.problem);
    const skipped = state.verdict === "not attempted";
    live.say(skipped ? "" : state.verdict, skipped ? `Not attempted: ${state.message}` : state.message);
    live.node.append(...output("It printed:", state.printed), ...output("It should print:", state.expected));
  });
}

export default { render };

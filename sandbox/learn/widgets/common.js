// Shared by every widget of the course; stands before each widget's own text.

// An element: attributes, listeners (on...), and children that are nodes or text. Text never becomes markup.
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !["list", "form"].includes(name)) node[name] = value;
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

// Text in which `code` stands between backticks, as nodes.
function rich(text) {
  return text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

// The frame of a widget. The notebook's own keys (arrows, d d, Enter) must not act while one is in here. JupyterLab listens
// after us. Notebook 7 listens before us, but passes over an element with this attribute; it looks first at the one that has
// the focus. The keys that run a cell are handed on, from outside of the frame, unless `runs` says that it is too early.
function frame(host, kind, label, runs = () => true) {
  const root = el("section", { className: `ae ae-${kind}`, "aria-label": label });
  root.addEventListener("focusin", (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true"));
  root.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey) || event.defaultPrevented || !runs()) return;
    event.preventDefault();
    host.dispatchEvent(new KeyboardEvent("keydown", event));
  });
  host.append(root);
  return root;
}

// A region whose text is read out when it changes. It has to be on the page before the text is. A message that ends with
// "…" waits for the kernel; when no other follows, the region says why that may be.
const PATIENT = 8000; // milliseconds
const waiting = new Map(); // what waits, and its timer

function announcer() {
  const node = el("div", { className: "ae-live", role: "status" });
  node.setAttribute("aria-live", "polite");
  const live = {
    node,
    // verdict: "right", "not yet" or ""; told by mark and word, not by colour alone.
    say(verdict, message) {
      clearTimeout(waiting.get(live));
      waiting.delete(live);
      const mark = { right: "✓", "not yet": "✗" }[verdict];
      node.className = `ae-live ${verdict ? `ae-${verdict.replace(" ", "-")}` : ""}`;
      node.replaceChildren(...(mark ? [el("strong", {}, `${mark} ${verdict}`), " "] : []), ...rich(message || ""));
      if ((message || "").endsWith("…")) waiting.set(live, setTimeout(late, PATIENT));
    },
  };
  const late = () => node.append(" No answer yet: the kernel is busy with a cell, or is gone.");
  return live;
}

// Ask the kernel to do something. It answers by changing the state; a kernel that is busy answers when it is free.
function act(model, action, ...args) {
  try {
    model.send({ do: action, with: args });
  } catch {
    // The kernel that knew this widget is no more.
    for (const live of [...waiting.keys()]) live.say("", "The kernel is a new one: run this cell again.");
  }
}

// Draw now and whenever the state changes; returns the clean-up that anywidget wants.
function follow(model, draw) {
  const again = () => draw(model.get("state"));
  model.on("change:state", again);
  again();
  return () => model.off("change:state", again);
}

"""The rules of axe-core as the pages are looked at: which, and of a thousand alike texts only a few."""

# The rules of axe that a page breaks: name, number of places and the first of them.
AXE = """async ([options, contrast]) => {
  const run = (place, options) => axe.run(place, {...options, resultTypes: ["violations"]});
  const found = [
    await run(document, options),
    await run({include: [document], exclude: (LOOK_ALIKE)()}, {runOnly: [contrast]}),
  ];
  return found.flatMap((one) => one.violations).map((rule) =>
    `${rule.id}, ${rule.nodes.length} times: ${rule.nodes[0].html.slice(0, 200)}`);
}"""
# The rule of contrast takes four fifths of axe's time: it looks at three texts of each look, this returns the rest.
# A look is the kind of an element, the colour and the font of its text and every background behind it, as computed.
CONTRAST = "color-contrast"
LOOK_ALIKE = """() => {
  const backgrounds = new Map(), seen = new Map(), alike = [];
  const behind = (one) => {
    if (one && !backgrounds.has(one)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(one);
      const shows = backgroundColor !== "rgba(0, 0, 0, 0)" || backgroundImage !== "none" || opacity !== "1";
      backgrounds.set(one, behind(one.parentElement) + (shows ? [backgroundColor, backgroundImage, opacity] : ""));
    }
    return backgrounds.get(one) ?? "";
  };
  for (const one of document.querySelectorAll("body *:not(:has(*), option)")) {
    if (!one.textContent.trim() || !one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(one);
    const short = one.textContent.trim().length < 2;  // of which axe says nothing
    const kind = [one.tagName, one.getAttribute("class"), one.matches(":disabled, [aria-disabled=true]"), short];
    const look = [...kind, behind(one), color, fill, fontSize, fontWeight, textShadow].join();
    const count = seen.get(look) ?? 0;
    seen.set(look, count + 1);
    if (count >= 3) alike.push(one);
  }
  return alike;
}"""
# The other rules whose answer depends on the colours or on the width of the window.
BY_COLOUR_AND_WIDTH = {"runOnly": ["link-in-text-block", "scrollable-region-focusable", "target-size"]}
ALL_BUT_CONTRAST = {"rules": {CONTRAST: {"enabled": False}}}
# Two of each kind of row, item, option and mark in a place stay, for axe needs seconds for a thousand of one kind.
KEEP_TWO_OF_A_KIND = """() => {
  const own = (one) => `${one.tagName}.${one.getAttribute("class")}`;
  const kind = (one) => own(one) + one.getAttributeNames().join() + [...one.children].map(kind).join();
  const place = (one) => one ? place(one.parentElement) + own(one) : "";
  const seen = new Map();
  const repeated = "tbody > tr, li, dl > div, option, article > pre, pre *, svg :not(title, desc)";
  for (const one of document.querySelectorAll(repeated)) {
    const all = place(one.parentElement) + kind(one), count = seen.get(all) ?? 0;
    seen.set(all, count + 1);
    if (count >= 2) one.remove();
  }
}"""


def axe_violations(page, axe, options=ALL_BUT_CONTRAST):
    if page.evaluate("!window.axe"):
        page.evaluate(f"{axe}; 1")
    return page.evaluate(AXE.replace("LOOK_ALIKE", LOOK_ALIKE), [options, CONTRAST])

"""The rules of axe-core as the pages are looked at: which, and of a thousand alike texts only a few."""

from typing import NamedTuple

# The rules that a page breaks: name, number of places and the first of them.
AXE = """async ([options, by_look, looks, places]) => {
  const run = (place, options) => axe.run(place, {...options, resultTypes: ["violations"], preload: false});
  const found = [];
  if (!places) found.push(await run(document, options));
  else if (places.length)
    found.push(await run({include: places.flatMap((one) => window.places.get(one))}, options));
  if (looks.length) {
    const alike = [...window.looks].flatMap(([look, all]) => looks.includes(look) ? all.slice(3) : all);
    const exclude = alike.filter((one) => !one.firstElementChild);  // what is in an element goes with it
    found.push(await run({include: [document], exclude}, {runOnly: by_look}));
  }
  return found.flatMap((one) => one.violations).map((rule) =>
    `${rule.id}, ${rule.nodes.length} times: ${rule.nodes[0].html.slice(0, 200)}`);
}"""
# The rules of colours take most of axe's time: they look at three texts of each look.
CONTRAST, LINK_IN_TEXT = BY_LOOK = "color-contrast", "link-in-text-block"
# Names the looks of the texts and the places of the elements of a page, and keeps which have them.
# A look is the kind of an element, the colour and the font of its text and every background behind it, as computed; of
# a link also how it is marked and the text that it stands in. A place is the kind of an element and of its parent.
LOOK_OVER = """() => {
  const backgrounds = new Map(), surroundings = new Map(), looks = new Map(), places = new Map();
  const behind = (one) => {
    if (one && !backgrounds.has(one)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(one);
      const shows = backgroundColor !== "rgba(0, 0, 0, 0)" || backgroundImage !== "none" || opacity !== "1";
      backgrounds.set(one, behind(one.parentElement) + (shows ? [backgroundColor, backgroundImage, opacity] : ""));
    }
    return backgrounds.get(one) ?? "";
  };
  const block = (one) => getComputedStyle(one).display.startsWith("inline") ? block(one.parentElement) : one;
  const around = (one) => {
    const text = block(one.parentElement);
    if (!surroundings.has(text)) {
      const { color, fontFamily, fontSize, fontWeight } = getComputedStyle(text);
      const links = [...text.querySelectorAll("a")].map((one) => one.textContent.trim()).join("").length;
      const hasMore = text.textContent.replace(/\\s+/g, "").length > links;
      const kind = [text.tagName, text.getAttribute("class"), hasMore];
      surroundings.set(text, [...kind, color, fontFamily, fontSize, fontWeight]);
    }
    const { borderBottom, fontFamily, textDecoration } = getComputedStyle(one);
    return [borderBottom, fontFamily, textDecoration, ...surroundings.get(text)];
  };
  const add = (all, key, one) => all.has(key) ? all.get(key).push(one) : all.set(key, [one]);
  const isText = (one) => one.nodeType === Node.TEXT_NODE && one.data.trim();
  for (const one of document.querySelectorAll("body *:not(option)")) {
    if (![...one.childNodes].some(isText)) continue;
    if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const { color, fill, fontSize, fontWeight, textShadow } = getComputedStyle(one);
    const short = one.textContent.trim().length < 2;  // of which axe says nothing
    const kind = [one.tagName, one.getAttribute("class"), one.matches(":disabled, [aria-disabled=true]"), short];
    const link = one.matches("a, [role=link]") ? around(one) : [];
    const look = [...kind, behind(one), color, fill, fontSize, fontWeight, textShadow, ...link].join();
    add(looks, look, one);
  }
  const own = (one) => `${one.tagName}.${one.getAttribute("class")}`;
  const values = ["role", "type", "tabindex", "aria-hidden", "aria-expanded", "aria-disabled", "scope"];
  for (const one of document.querySelectorAll("body *")) {
    const kind = [own(one), ...one.getAttributeNames().sort(), ...values.map((name) => one.getAttribute(name))];
    add(places, [own(one.parentElement), ...kind].join(), one);
  }
  Object.assign(window, {looks, places});
  return [[...looks.keys()], [...places.keys()]];
}"""
# The other rules whose answer depends on the colours or on the width of the window.
BY_COLOUR_AND_WIDTH = {"runOnly": ["scrollable-region-focusable", "target-size"]}
ALL_THE_OTHERS = {"rules": {rule: {"enabled": False} for rule in BY_LOOK}}
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


class Seen(NamedTuple):
    """What axe has looked at on earlier pages."""

    looks: set[str]
    places: set[str]


def axe_violations(page, axe, options=ALL_THE_OTHERS, seen=None, whole=True):
    """Return what axe finds on a page: of ``seen`` no text that looks alike, and unless ``whole`` only new places."""
    if page.evaluate("!window.axe"):
        page.evaluate(f"{axe}; 1")
    looks, places = page.evaluate(LOOK_OVER)
    if seen:
        looks = [one for one in looks if one not in seen.looks]
        seen.looks.update(looks)
    looked_at = None if whole else [one for one in places if one not in seen.places]
    if seen and options == ALL_THE_OTHERS:
        seen.places.update(places)
    return page.evaluate(AXE, [options, BY_LOOK, looks, looked_at])

"use strict";
/* Makes pages quicker to use; everything works without it. */
(() => {
  const root = document.documentElement;
  const brand = document.querySelector(".brand");
  const to = (path) => { location.href = brand.href.replace(/\/$/, "") + path; };

  /* Colours: at once, and kept by the service's own cookie. */
  const paint = document.querySelector("[data-theme-form]");
  const themes = ["auto", "light", "dark"];
  if (paint) {
    const button = paint.querySelector("button");
    paint.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = button.value;
      fetch(paint.action, { method: "POST", body: new URLSearchParams({ theme: chosen, after: "" }) });
      if (chosen === "auto") root.removeAttribute("data-theme"); else root.dataset.theme = chosen;
      document.querySelector("meta[name=color-scheme]").content = chosen === "auto" ? "light dark" : chosen;
      const next = themes[(themes.indexOf(chosen) + 1) % 3];
      button.value = next;
      button.title = `Colours: ${chosen}; change to ${next}`;
      button.querySelector(".theme-name").textContent = chosen;
      button.querySelector(".unseen").textContent = ` colours; change to ${next}`;
    });
  }

  /* Explanations: over a number, at the keyboard's focus, or kept open by a click. */
  const known = new Map();
  let box = null, owner = null, isKept = false, waiting = 0;

  const close = (back) => {
    clearTimeout(waiting);
    if (!box) return;
    const was = owner;
    box.remove();
    was.removeAttribute("aria-describedby");
    box = owner = null;
    if (isKept && back) (titleOf(was) ?? was).focus();
    isKept = false;
  };

  const text = async (link) => {
    if (!known.has(link.href)) {
      const address = new URL(link.href);
      address.searchParams.set("part", "1");
      const answer = await fetch(address, { headers: { accept: "text/html" } });
      const body = await answer.text();
      if (!answer.ok) return new DOMParser().parseFromString(body, "text/html").querySelector(".said")?.outerHTML ?? "";
      known.set(link.href, body);
    }
    return known.get(link.href);
  };

  /* A number of a table whose columns are led by their titles leads where its title does. */
  const titleOf = (cell) => {
    const isOwn = cell.classList.contains("n") && cell.closest("table")?.matches("[data-led]");
    return isOwn ? cell.closest("table").tHead.rows[0].cells[cell.cellIndex]?.querySelector("[data-explain]") : null;
  };
  const place = (from) => {
    const at = from.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, root.clientWidth - box.offsetWidth - 8));
    const below = at.bottom + 6 + box.offsetHeight < root.clientHeight || at.top < box.offsetHeight + 6;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - box.offsetHeight - 6)}px`;
  };

  const open = async (link, keep, from) => {
    if (owner === from && (isKept || !keep)) return;
    const said = await text(link).catch(() => "");
    if (!said) return;
    if (!keep && !from.matches(":hover, :focus-visible")) return;
    close(false);
    box = document.createElement("div");
    box.className = "popover";
    box.id = "explanation";
    box.tabIndex = -1;
    box.setAttribute("role", keep ? "dialog" : "tooltip");
    if (keep) box.setAttribute("aria-label", "Where this number comes from");
    box.innerHTML = said;
    document.body.append(box);
    owner = from;
    isKept = keep;
    from.setAttribute("aria-describedby", box.id);
    place(from);
    box.addEventListener("mouseleave", () => { if (!isKept) close(false); });
    if (keep) box.focus({ preventScroll: true });
  };

  const soon = ([link, from]) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { if (!isKept) open(link, false, from); }, 220);
  };
  /* What explains the place of an event, and the number there. */
  const asked = (event) => {
    const found = event.target instanceof Element ? event.target.closest("[data-explain], td") : null;
    const link = found?.matches("td") ? titleOf(found) : found;
    return link ? [link, found] : null;
  };
  document.addEventListener("mouseover", (event) => { const found = asked(event); if (found) soon(found); });
  document.addEventListener("mouseout", (event) => {
    if (!asked(event)) return;
    clearTimeout(waiting);
    setTimeout(() => { if (box && !isKept && !box.matches(":hover") && !owner.matches(":hover, :focus-visible")) close(false); }, 200);
  });
  document.addEventListener("focusin", (event) => { const found = asked(event); if (found && found[1].matches(":focus-visible")) soon(found); });
  document.addEventListener("focusout", (event) => { if (asked(event) && box && !isKept) close(false); });
  document.addEventListener("click", (event) => {
    const found = asked(event);
    const isChosen = found?.[1].matches("td") && !getSelection().isCollapsed;
    if (found && !isChosen && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      open(found[0], true, found[1]);
    } else if (box && !box.contains(event.target)) close(false);
  });

  /* Keys. */
  const keys = document.getElementById("keys");
  let before = "";
  const follow = (selector) => document.querySelector(selector)?.click();
  const actions = {
    "/": () => { const search = document.querySelector("input[type=search]"); if (search) { search.focus(); search.select(); } else to("/?focus=1"); },
    "?": () => keys.showModal(),
    t: () => paint?.requestSubmit(paint.querySelector("button")),
    n: () => follow("a[rel=next]"),
    p: () => follow("a[rel=prev]"),
    gr: () => to("/"),
    gu: () => to("/upload"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { close(true); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const action = actions[before + event.key] ?? actions[event.key];
    before = event.key === "g" ? "g" : "";
    if (!action) return;
    event.preventDefault();
    action();
  });
})();

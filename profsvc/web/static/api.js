"use strict";
/* The pages of the API: sending what a form says, and finding a path in the list. */
(() => {
  const filter = document.querySelector("[data-api-filter]");
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("submit", (event) => event.preventDefault());
    filter.querySelector("input").addEventListener("input", (event) => {
      const wanted = event.target.value.toLowerCase();
      for (const row of document.querySelectorAll(".api tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      for (const group of document.querySelectorAll("[data-api-group]")) group.hidden = !group.querySelector("tbody tr:not([hidden])");
    });
  }
  const form = document.querySelector("[data-ask]");
  if (!form) return;
  const MAX_SHOWN = 100_000, method = form.dataset.method, curl = document.querySelector("[data-curl]");
  const box = document.querySelector("[data-answer]"), status = box.querySelector(".answer-status"), shown = box.querySelector(".answer-body");
  document.querySelectorAll("[data-needs-script]").forEach((one) => { one.hidden = false; });
  const quoted = (text) => /^[\w./:=?&%@,+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
  const address = () => {
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const one of form.querySelectorAll("[name]")) {
      const value = one.value;
      if (one.hasAttribute("data-in-path")) path = path.replace(`{${one.name}}`, value ? encodeURIComponent(value).replaceAll("%2F", "/") : `{${one.name}}`);
      else if (value) query.append(one.name, value);
    }
    return path + (query.size ? `?${query}` : "");
  };
  const accept = () => form.querySelector("[data-accept]")?.value;
  const write = () => {
    const words = ["curl"], body = form.querySelector("[data-body]"), file = form.querySelector("[data-file]");
    if (method !== "GET" && method !== "POST") words.push("-X", method);
    words.push("-H", '"Authorization: Bearer $PROFSVC_TOKEN"');
    if (accept() && form.querySelector("[data-accept]").selectedIndex) words.push("-H", quoted(`Accept: ${accept()}`));
    if (body) words.push("--json", quoted(body.value.replace(/\n\s*/g, " ").trim()));
    else if (file) words.push("--data-binary", quoted(`@${file.files[0]?.name ?? "FILE"}`));
    else if (method === "POST") words.push("-X POST");
    curl.textContent = [...words, quoted(location.origin + address())].join(" ");
  };
  form.addEventListener("input", write);
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = form.querySelector("[data-body]"), file = form.querySelector("[data-file]"), began = performance.now();
    box.hidden = false;
    status.textContent = "…";
    shown.textContent = "";
    try {
      const headers = { accept: accept() ?? "application/json, */*;q=.5", ...(body ? { "content-type": "application/json" } : {}) };
      const answer = await fetch(address(), { method, headers, body: method === "GET" ? undefined : body ? body.value : file?.files[0] });
      const kind = answer.headers.get("content-type") ?? "", said = /^image\/png/.test(kind) ? await answer.blob() : await answer.text();
      const took = Math.round(performance.now() - began), size = said.size ?? new TextEncoder().encode(said).length;
      status.className = `answer-status ${answer.ok ? "good" : "bad"}`;
      status.textContent = `${answer.status} ${answer.statusText}, ${kind}, ${size.toLocaleString("en").replaceAll(",", " ")} bytes, ${took} ms`;
      let text = typeof said === "string" ? said : "(a picture)";
      if (kind.startsWith("application/json")) try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* as it came */ }
      shown.textContent = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… ${text.length - MAX_SHOWN} more characters` : text;
    } catch (error) {
      status.className = "answer-status bad";
      status.textContent = error.message;
    }
  });
  write();
})();

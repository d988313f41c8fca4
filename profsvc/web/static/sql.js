"use strict";
/* The field of a query: Ctrl+Enter asks, and it grows with what is written into it. */
(() => {
  const field = document.querySelector("textarea[data-submit]");
  if (!field) return;
  const most = 30;
  const grow = () => {
    const lines = field.value.split("\n").length + 1;
    if (lines > field.rows) field.rows = Math.min(lines, most);
  };
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
})();

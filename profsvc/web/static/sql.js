"use strict";
/* The query field: Ctrl+Enter runs the query, and the field grows with its text. */
(() => {
  const field = document.querySelector("textarea[data-submit]");
  if (!field) return;
  const maxRows = 30;
  const grow = () => {
    const lines = field.value.split("\n").length + 1;
    if (lines > field.rows) field.rows = Math.min(lines, maxRows);
  };
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      field.form.requestSubmit();
    }
  });
})();

for (const box of document.querySelectorAll(".filter")) {
  const rows = document.querySelectorAll("#" + box.dataset.rows + " > tbody > tr");
  const texts = Array.from(rows, (row) => row.textContent.toLowerCase());
  const input = box.querySelector("input");
  const output = box.querySelector("output");
  box.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !texts[place].includes(wanted);
      shown += row.hidden ? 0 : 1;
    });
    output.textContent = wanted ? shown + " of " + rows.length : "";
  });
}

// Sets the chosen theme before the first paint. Without a choice the system's preference holds.
(() => {
  try {
    const chosen = localStorage.getItem("runstep-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that stores nothing keeps the system's preference.
  }
})();

// One after the other, so that the first ones show while the rest is drawn.
(async () => {
  for (const [name, spec] of Object.entries(charts)) {
    await vegaEmbed(document.getElementById(name), spec, {
      actions: false,
      config,
      mode: "vega-lite",
      renderer: "svg",
      tooltip: { theme: "custom" },
    });
  }
  document.documentElement.dataset.charts = "drawn";
})();

// Sequential, so that the first charts appear while the others are drawn.
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

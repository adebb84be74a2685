// Charts: Plotly draws them, the page gives data and colours. Each takes the place of a picture, which stays for print.
const styled = getComputedStyle(document.documentElement);
const colour = name => styled.getPropertyValue("--" + name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const CLEAR = "rgba(0,0,0,0)";
const BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
const dressed = (face, narrow, height) => {
  const layout = {
    height, autosize: true, paper_bgcolor: CLEAR, plot_bgcolor: CLEAR, hovermode: "closest",
    dragmode: narrow ? false : "zoom", margin: { l: 50, r: 10, t: 36, b: 45 },
    font: { color: colour("ink"), family: styled.getPropertyValue("--font"), size: 13 },
    legend: { orientation: "h", y: -0.26, x: 0, yanchor: "top" },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("soft"), font: { color: colour("ink") }, align: "left" },
    modebar: { bgcolor: CLEAR, color: colour("soft"), activecolor: colour("accent") },
    ...face.layout,
  };
  for (const name of Object.keys(layout).filter(key => /^[xy]axis/.test(key)))
    layout[name] = { gridcolor: colour("line"), zerolinecolor: colour("line"), automargin: true, ...layout[name], title: { standoff: 8, ...layout[name].title } };
  if (narrow) delete layout.annotations; // there is no room for the ends of each line
  return layout;
};
const draw = async (plot, face, height) => {
  await Plotly.react(plot, face.data, dressed(face, innerWidth < 640, height), { responsive: true, displaylogo: false, modeBarButtons: [BUTTONS], displayModeBar: true });
  for (const image of document.querySelectorAll("svg")) image.setAttribute("aria-hidden", "true");
};
// The arrow keys move from trial to trial, as a mouse would, and say what the label shows.
const walk = (plot, said) => {
  let at = -1;
  const show = event => {
    const curve = plot.data.findIndex(trace => trace.meta === "trials");
    if (curve < 0) return;
    const texts = plot.data[curve].text ?? plot.data[curve].hovertext, last = texts.length - 1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") { at = -1; Plotly.Fx.unhover(plot); return; }
    if (to === undefined || event.target !== plot) return;
    event.preventDefault();
    at = Math.max(0, Math.min(last, to));
    Plotly.Fx.hover(plot, [{ curveNumber: curve, pointNumber: at }]);
    said.textContent = texts[at].replaceAll("<br>", ", ");
  };
  plot.addEventListener("keydown", show);
  plot.addEventListener("blur", () => Plotly.Fx.unhover(plot));
};
// A chart of several drawings lets the reader choose one, and remembers it when the page is renewed.
const chooser = (figure, chart, choose) => {
  const label = document.createElement("label"), select = document.createElement("select");
  chart.faces.forEach((face, k) => select.add(new Option(face.label, k)));
  label.append(chart.choice + " ", select);
  label.className = "choice";
  figure.prepend(label);
  select.addEventListener("change", () => choose(+select.value));
  return select;
};
const start = async figure => {
  const plot = figure.querySelector(".chart"), chart = JSON.parse(figure.querySelector("script").textContent);
  const place = `face:${location.pathname}:${figure.dataset.chart}`;
  let face = Math.min(kept(place) ?? 0, chart.faces.length - 1);
  const renew = () => draw(plot, chart.faces[face], chart.height);
  const choose = k => { face = k; kept(place, k); return renew(); };
  figure.hidden = false;
  figure.classList.add("drawn");
  await renew();
  if (chart.faces.length > 1) chooser(figure, chart, choose).value = face;
  walk(plot, figure.querySelector("output"));
  dark.addEventListener("change", renew);
};
if (window.Plotly) {
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  for (const figure of document.querySelectorAll("[data-chart]")) start(figure);
  // Charts that have no picture are printed in a width that fits the paper.
  const bare = () => document.querySelectorAll(".bare .chart");
  addEventListener("beforeprint", () => bare().forEach(plot => Plotly.relayout(plot, { width: 660, autosize: false })));
  addEventListener("afterprint", () => bare().forEach(plot => Plotly.relayout(plot, { width: null, autosize: true })));
}

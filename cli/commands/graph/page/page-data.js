/**
 * Runs in the page of `tke-eni graph -o html`, before the other scripts: what the page is made of. The files of this
 * folder are modules for the linter only; in the page they stand one after the other in one script. All texts of the
 * node come as data and are set as text, never as markup.
 */

/** The drawing as the renderer wrote it down: see dataText in render-html.ts. */
export const page = JSON.parse(document.getElementById('graph').textContent);

for (const path of page.paths) {
  path.stops = path.stops.map(([node, line]) => ({ node, line }));
  path.steps = path.steps.map((hop) => {
    const [node, title, details, verdict, finding] = page.hops[hop];
    return { node, title: page.texts[title], details: details.map((text) => page.texts[text]), verdict, finding };
  });
}

export const [drawing, view, pathLayer, panel, results] = ['drawing', 'view', 'paths', 'panel', 'results'].map((id) =>
  document.getElementById(id),
);

export const search = document.querySelector('input');

/** Indexes of nodes by their ids. */
export const byId = new Map(page.nodes.map((node, index) => [node.id, index]));

/** Elements of the nodes, by index. */
export const boxes = page.nodes.map(() => undefined);
for (const box of drawing.querySelectorAll('.node')) boxes[byId.get(box.getAttribute('data-id'))] = box;

export const bands = page.bands.map((band) => ({
  ...band,
  isFolded: page.isFolded && band.pods > 0,
  shift: 0,
  element: [...drawing.querySelectorAll('.band')].find((one) => one.getAttribute('data-group') === band.group),
}));

export function bandOf(node) {
  return bands.find(({ group }) => group === node.group);
}
